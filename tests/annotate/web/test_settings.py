"""Settings that change while the server runs; backups and the search for damage by the API."""

import io
import json
import threading
import time
import zipfile
from pathlib import Path

import pytest

from shortlist.annotate.live.plan import LivePlan
from shortlist.annotate.project.backup import restore_backup
from shortlist.annotate.project.people import People
from shortlist.annotate.project.project import SECRET, Project, read_settings
from shortlist.annotate.project.review.class_changes import restore_class, retire_class
from shortlist.annotate.queue.chooser import UniformChooser
from shortlist.annotate.web.tuning import Follower, Tuning, watching

from ..conftest import new_database
from ..running import Server, free_port
from .test_workers import ask, children, until


def shown(ada, **wanted):
    return [one["name"] for one in ada.post("/api/v1/next", json=wanted).json()["questions"][-1]["shortlist"]]


def test_settings_are_stored_and_in_force_from_the_next_question_on(make_site):
    site = make_site(items=9, gold=2)
    owner, ada = site.admin(), site.annotator("ada")
    assert owner.get("/api/v1/settings").json()["policy"] == "uniform"
    changed = owner.patch("/api/v1/settings", json={"gold_every": 2, "overlap": 3, "title": "Birds"}).json()
    assert (changed["gold_every"], changed["overlap"], changed["title"]) == (2, 3, "Birds")
    assert site.app.state.services.queue.leases.gold_every == 2
    owner.patch("/api/v1/settings", json={"size": 5})
    assert len(shown(ada)) == 5
    owner.patch("/api/v1/settings", json={"pinned": "class 4", "size": 2})
    listed = shown(ada, hold=2)
    assert (len(listed), listed[-1]) == (3, "class 4")
    for retired, pinned in ((True, None), (False, "class 4")):
        (retire_class if retired else restore_class)(site.project, 4)
        assert owner.get("/api/v1/settings").json()["pinned"] == pinned, "as the lists are"
    assert owner.patch("/api/v1/settings", json={"pinned": ""}).json()["pinned"] is None
    assert len(shown(ada, hold=3)) == 2
    assert owner.patch("/api/v1/settings", json={"policy": "adaptive", "epsilon": 0.25}).status_code == 200
    live = read_settings(site.project.folder).live
    assert (live["policy"], live["epsilon"], live["mistakes"], live["size"]) == ("adaptive", 0.25, True, 2)
    assert ada.get("/api/v1/session").json()["typing"], "where a model chooses, classes may be typed"
    now = owner.patch("/api/v1/settings", json={"size": 4, "overlap": 1, "names": False, "typing": False}).json()
    assert (now["size"], now["names"], now["typing"], now["policy"]) == (4, False, False, "adaptive")
    live = read_settings(site.project.folder).live
    assert (live["size"], live["mistakes"], live["names"], live["epsilon"]) == (4, False, False, 0.25)
    assert owner.patch("/api/v1/settings", json={"policy": "uniform"}).json()["policy"] == "uniform"
    assert read_settings(site.project.folder).live is None


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({"overlap": 0}, "overlap"),
        ({"epsilon": 0.5}, "--policy adaptive"),
        ({"size": 7}, "size 7: expected at most the 6 classes"),
        ({"pinned": "class 99"}, "no class is named 'class 99'"),
        ({"compare": True, "typing": False}, "without typing"),
        ({"policy": "adaptive"}, "all items to be texts"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(make_site, wanted, says):
    site = make_site()
    if "policy" in wanted:
        with site.project.store.write() as connection:
            connection.exec_driver_sql("UPDATE items SET kind = 'audio'")
    before = (site.project.folder / "project.json").read_bytes()
    reply = site.admin().patch("/api/v1/settings", json={"title": "another", **wanted})
    assert reply.status_code in (400, 409, 422)
    assert says in reply.text
    assert (site.project.folder / "project.json").read_bytes() == before
    assert site.project.settings.title == "t"


def test_ways_are_not_compared_where_lists_would_differ(make_site):
    site = make_site(items=60)
    owner = site.admin()
    assert owner.post("/api/v1/classes/5/retire").status_code == 200
    assert owner.patch("/api/v1/settings", json={"compare": True}).json()["code"] == "class_ended"
    assert owner.post("/api/v1/classes/5/restore").status_code == 204
    assert owner.patch("/api/v1/settings", json={"compare": True}).json()["compare"]
    ada, lists = site.annotator("ada"), set()
    for _ in range(40):
        (question,) = ada.post("/api/v1/next", json={}).json()["questions"]
        lists.add(len(question["shortlist"]))
        body = {"question": question["id"], "attempt": question["attempt"]}
        reply = ada.post("/api/v1/skips", json=body)
        assert reply.status_code == 200, reply.text
    assert lists == {0, 3, 6}, "search, shortlist, full list"


def test_what_serve_was_told_stays_until_lists_are_changed(make_project):
    """`serve --policy top` is for one session: another title must not end it, and is no reason to store it."""
    project = make_project()
    told = LivePlan(policy="top", size=2)
    follower = Follower(project, told)
    tuning = Tuning(project, follower, project.queue(follower.chooser))
    with Project.open(project.folder) as other:
        other.store_settings(other.with_settings({"title": "another", "gold_every": 7}))
    tuning.look()
    assert (project.settings.title, tuning.queue.leases.gold_every, follower.plan) == ("another", 7, told)
    tuning.change({"title": "a third"}, told)
    assert read_settings(project.folder).live is None
    with Project.open(project.folder) as other:
        other.store_settings(other.with_settings({"size": 1}))
    tuning.look()
    assert follower.plan is None
    assert isinstance(tuning.queue.chooser.chooser, UniformChooser)
    assert tuning.queue.chooser.chooser.size == 1


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.postgres)])
def test_a_model_begins_and_ends_without_a_restart(make_project, request, workers):
    """In each process, also where the one that is told does not train."""
    database = None if workers == 1 else new_database(request.getfixturevalue("postgres"))
    project = make_project(database, items=2000)
    owner, ada = (
        People(project).make_token("o", None),
        People(project).make_token("a", People(project).invite("ada")[0]),
    )
    server = Server(project.folder, free_port(), "--workers", str(workers))

    def change(**wanted):
        status, reply = ask(server.port, "PATCH", "/api/v1/settings", owner, wanted)
        assert status == 200, reply

    def chosen_by():
        """The policy of one more question."""
        time.sleep(0.05)  # an annotator may ask 50 times a second
        (question,) = json.loads(ask(server.port, "POST", "/api/v1/next", ada, {})[1])["questions"]
        body = {"question": question["id"], "attempt": question["attempt"]}
        assert ask(server.port, "POST", "/api/v1/skips", ada, body)[0] == 200
        with project.store.read() as connection:
            return connection.exec_driver_sql("SELECT policy FROM questions ORDER BY id DESC LIMIT 1").scalar()

    def lately(count=6):
        return {chosen_by() for _ in range(count)}

    try:
        server.wait()
        assert lately() == {"uniform"}
        change(policy="top", size=2)
        until(lambda: lately() == {"top"})
        change(policy="information")
        until(lambda: lately() == {"information"})
        change(policy="uniform")
        until(lambda: lately() == {"uniform"})
        until(lambda: len(children(server.process.pid)) == (0 if workers == 1 else workers))  # no trainer is left
    finally:
        server.kill()


def test_a_backup_that_is_downloaded_lets_nobody_in(make_site, tmp_path):
    site = make_site()
    owner, ada = site.admin(), site.annotator("ada")
    (question,) = ada.post("/api/v1/next", json={}).json()["questions"]
    body = {"question": question["id"], "attempt": 0, "answer": None, "seconds": 1.0}
    assert ada.post("/api/v1/answers", json=body).status_code == 200
    reply = owner.get("/api/v1/backup")
    assert reply.headers["content-type"] == "application/zip"
    secret = (site.project.folder / SECRET).read_bytes()
    with zipfile.ZipFile(io.BytesIO(reply.content)) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    assert SECRET not in held
    assert held["tables/credentials.jsonl"] == b""
    assert json.loads(held["project.json"])["database"] is None
    assert not any(secret in content for content in held.values())
    (tmp_path / "backup.zip").write_bytes(reply.content)
    restore_backup(tmp_path / "backup.zip", tmp_path / "again")
    with Project.open(tmp_path / "again") as again:
        assert again.secret != secret
        assert again.status()["annotators"][0]["answers"] == 1
        assert again.check() == []


def test_a_backup_on_the_server_is_whole_and_removes_none(make_site, tmp_path):
    site = make_site()
    owner = site.admin()
    folder = site.project.folder / "backups"
    folder.mkdir(mode=0o700)
    for old in range(30):
        (folder / f"200001{old:02}T000000Z.zip").touch()
    made = owner.post("/api/v1/backups").json()
    assert made == owner.get("/api/v1/backups").json()[0]
    assert abs(made["at"] - time.time()) < 60
    assert len(list(folder.iterdir())) == 31
    path = folder / made["name"]
    assert (path.stat().st_size, path.stat().st_mode & 0o777) == (made["bytes"], 0o600)
    restore_backup(path, tmp_path / "again")
    assert (tmp_path / "again" / SECRET).read_bytes() == (site.project.folder / SECRET).read_bytes()


def test_damage_is_found_by_the_api(make_site):
    site = make_site()
    owner = site.admin()
    assert owner.get("/api/v1/check").json() == {"problems": []}
    with site.project.store.write() as connection:
        connection.exec_driver_sql("UPDATE items SET pending = pending + 1 WHERE id = 1")
    assert len(owner.get("/api/v1/check").json()["problems"]) == 1


def test_what_cannot_be_read_is_told_once_and_not_while_we_stop(caplog):
    looked = threading.Event()
    with caplog.at_level("ERROR"):
        with watching(lambda: looked.set() or Path("gone").stat(), seconds=0.01):
            assert looked.wait(10)
            looked.clear()
            assert looked.wait(10), "a second time, a second later"
        assert [record.message for record in caplog.records] == ["something could not be read"]
