"""For those who run a server: /healthz, /metrics, scheduled backups, a check that finds damage."""

import os
import re
import signal
import stat
import threading
import time

import pytest
from sqlalchemy import update

from shortlist.annotate.db.schema import Annotator, Item
from shortlist.annotate.db.store import Store
from shortlist.annotate.problems import TooMany
from shortlist.annotate.project.backup import BACKUPS, Schedule, back_up, backing_up, read_period, restore_backup
from shortlist.annotate.project.people import People
from shortlist.annotate.project.project import DATABASE, Project
from shortlist.annotate.web.api import health
from shortlist.annotate.web.board import KEYS, Board, Rate
from shortlist.annotate.web.damage import DamageSearch
from shortlist.annotate.web.serve import Address, serve_project
from shortlist.errors import InputError

from ..conftest import Clock, people

LINE = re.compile(r'shortlist_[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+')


def test_health_is_for_anybody_and_says_what_fails(make_site, database, monkeypatch):
    site = make_site(database)
    stranger = site.client()
    reply = stranger.get("/healthz")
    assert (reply.status_code, reply.json()["status"], reply.json()["database"]) == (200, "ok", True)
    assert reply.json()["disk_free_bytes"] > 0
    assert reply.json()["trainer_seconds"] is None
    monkeypatch.setattr(health, "LEAST_BYTES", 1 << 60)
    assert stranger.get("/healthz").status_code == 200, (
        "looked at a moment ago: anybody may ask, so it must cost nothing"
    )
    monkeypatch.setattr(health, "KEEP_SECONDS", 0)
    assert stranger.get("/healthz").status_code == 503
    monkeypatch.setattr(health, "LEAST_BYTES", 0)
    if database is None:
        site.project.store.close()
        os.truncate(site.project.folder / DATABASE, 100)
        (site.project.folder / f"{DATABASE}-wal").unlink(missing_ok=True)
        reply = stranger.get("/healthz")
        assert (reply.status_code, reply.json()["database"]) == (503, False)


def test_metrics_are_for_owners_and_count(make_site):
    site = make_site(items=4)
    owner, ada = site.admin(), site.annotator("ada")
    assert site.client().get("/metrics").status_code == 401
    assert ada.get("/metrics").status_code == 403
    question = ada.post("/api/v1/next", json={}).json()["questions"][0]
    body = {"question": question["id"], "attempt": 0, "answer": None, "seconds": 1.0}
    assert ada.post("/api/v1/answers", json=body).status_code == 200
    assert ada.post("/api/v1/answers", json={**body, "attempt": 7}).status_code == 409
    text = owner.get("/metrics").text
    for line in text.splitlines():
        assert line.startswith("# ") or LINE.fullmatch(line), line
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert values['shortlist_requests_total{route="next",status="2xx"}'] == "1"
    assert values['shortlist_requests_total{route="answers",status="2xx"}'] == "1"
    assert values['shortlist_requests_total{route="answers",status="4xx"}'] == "1"
    assert values['shortlist_request_seconds_count{route="answers"}'] == "2"
    assert values['shortlist_request_seconds_bucket{route="answers",le="+Inf"}'] == "2"
    assert (values["shortlist_up"], values["shortlist_log_rows_total"], values["shortlist_annotators"]) == (
        "1",
        "1",
        "1",
    )
    assert "ada" not in text


def test_boards_add_up_over_processes():
    first = Board.shared(3)
    second = Board(3, 2, first.handle)
    first.add(0)
    second.add(0, 2)
    second.note(1, 503, 0.02)
    assert first.total(0) == 3
    found = {name: (by_status, counts, seconds) for name, by_status, counts, seconds in first.requests()}
    assert found["answers"][0] == {"2xx": 0, "3xx": 0, "4xx": 0, "5xx": 1}
    assert found["answers"][1] == [0, 0, 1, 0, 0, 0, 0, 0, 0]
    assert found["answers"][2] == 0.02
    clock = Clock()
    mine, theirs = (Rate(1.0, 2, board.submits, clock) for board in (first, second))
    mine.spend(7)
    theirs.spend(7)
    with pytest.raises(TooMany):
        mine.spend(7)
    mine.spend(8)
    clock.now += 1
    theirs.spend(7)
    with pytest.raises(TooMany):
        mine.spend(7 + KEYS)
    os.close(first.handle)


def test_backups_are_written_kept_and_restored(make_project, tmp_path, monkeypatch):
    project = make_project(items=3)
    times = iter(f"2026010{day}T000000Z" for day in range(1, 9))
    monkeypatch.setattr(time, "strftime", lambda *_: next(times))
    for _ in range(4):
        last = back_up(project, keep=2)
    folder = project.folder / BACKUPS
    assert [path.name for path in sorted(folder.iterdir())] == ["20260103T000000Z.zip", "20260104T000000Z.zip"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(last.stat().st_mode) == 0o600
    assert restore_backup(last, tmp_path / "again") > 3


def test_backups_come_by_themselves(make_project):
    project = make_project(items=3)
    with backing_up(project, Schedule(3600, 2)):
        end = time.monotonic() + 60
        while not list((project.folder / BACKUPS).glob("*.zip")):
            assert time.monotonic() < end
            time.sleep(0.02)
    assert [read_period(words) for words in ("90s", "30m", "1h", "2d")] == [90, 1800, 3600, 172_800]
    for words in ("", "1", "h", "0h", "-1h", "1.5h", "1w"):
        with pytest.raises(InputError, match="backup-every"):
            read_period(words)


def test_what_does_not_add_up_is_found(make_project, database):
    project = make_project(database, items=6, gold=2, gold_every=2, overlap=2)
    queue, ids = project.queue(), people(project, "ada", "ben")
    for k in range(6):
        for annotator in ids:
            for question in queue.next(annotator, 1):
                queue.answer(annotator, question.id, 0, None if k % 2 else question.shortlist[0], 1.0)
    queue.next(ids[0], 2)
    assert project.check() == []
    with project.store.write() as connection:
        connection.execute(update(Annotator).where(Annotator.id == 2).values(answers=Annotator.answers + 1))
        connection.execute(update(Item).where(Item.id == 3).values(pending=9))
    assert [line.split(":")[0] for line in project.check()] == ["annotator 2", "item 3"]


def test_a_damaged_database_is_one_line_at_the_start(make_project, capsys):
    project = make_project(items=2000)
    People(project).invite("ada")
    project.close()
    path = project.folder / DATABASE
    content = bytearray(path.read_bytes())
    content[8192:60_000] = os.urandom(60_000 - 8192)
    path.write_bytes(content)
    with pytest.raises(InputError, match="database"), Project.open(project.folder) as opened:
        serve_project(opened, Address(port=0), print)
    with Project.open(project.folder) as opened:
        gate = threading.Event()

        class Large(Store):
            def check(self, quick: bool = False) -> list[str]:
                gate.wait()  # until long after the start
                return super().check(quick)

        stopped = threading.Event()
        before = signal.signal(signal.SIGTERM, lambda *_: stopped.set())
        try:
            search = DamageSearch(Large(opened.store.engine))
            search.wait(0)
            search.refuse()
            gate.set()
            end = time.monotonic() + 60
            while not stopped.wait(0.02) and time.monotonic() < end:  # the signal may wake another thread than this
                pass
            assert stopped.is_set(), "what is found later stops the server"
            with pytest.raises(InputError, match="the database is damaged"):
                search.refuse()
        finally:
            signal.signal(signal.SIGTERM, before)
    path.write_bytes(b"no database at all" * 1000)
    with pytest.raises(InputError, match="not a database"):
        Project.open(project.folder)
