"""The round trip through Label Studio itself: our tasks in, two people who answer by its API, its exports back.

It is too large to install for every run of the tests. In an environment of its own (`python -m venv`,
`pip install label-studio`) it is found by SHORTLIST_LABEL_STUDIO=/path/to/bin/label-studio.
"""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image
from sqlalchemy import select

from shortlist.annotate.db.schema import Annotator, Answer, Item, Question
from shortlist.annotate.formats.label_studio_answers import import_answers
from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.project import Project, Settings
from shortlist.annotate.project.sources import Source
from shortlist.annotate.project.stats import Stats
from shortlist.annotate.setup import export_file

from ..running import free_port

PROGRAM = os.environ.get("SHORTLIST_LABEL_STUDIO")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PROGRAM, reason="SHORTLIST_LABEL_STUDIO does not name Label Studio's program"),
]
START = 300  # seconds: it begins with some hundred migrations of its database
EVE, BOB = "eve@example.org", "bob@example.org"


@dataclass
class LabelStudio:
    """A running Label Studio, its two people, and the folder whose files it may serve."""

    people: dict[str, httpx.Client]
    root: Path


@pytest.fixture(scope="module")
def label_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabelStudio]:
    folder, port = tmp_path_factory.mktemp("label-studio"), free_port()
    root = folder / "project"
    settings = {
        **{"LABEL_STUDIO_BASE_DATA_DIR": str(folder / "data"), "HOME": str(folder)},
        **{"COLLECT_ANALYTICS": "false", "LATEST_VERSION_CHECK": "false", "SENTRY_DSN": "", "FRONTEND_SENTRY_DSN": ""},
        "LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED": "true",
        "LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT": str(root),
    }
    where = ["--no-browser", "--internal-host", "127.0.0.1", "--port", str(port)]
    owner = ["--username", EVE, "--password", "a-secret-of-eve", "--enable-legacy-api-token"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [str(PROGRAM), "start", *where, *owner], env={**os.environ, **settings}, stdout=log, stderr=log
        )
    people = {who: httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) for who in (EVE, BOB)}
    try:
        _wait(server, people[EVE], folder / "log")
        _enter(people[EVE], "/user/login/", EVE, "a-secret-of-eve")
        _enter(people[BOB], "/user/signup/", BOB, "a-secret-of-bob")
        yield LabelStudio(people, root)
    finally:
        for client in people.values():
            client.close()
        server.kill()
        server.wait()


def _wait(server: subprocess.Popen[bytes], client: httpx.Client, log: Path) -> None:
    end = time.monotonic() + START
    while time.monotonic() < end:
        try:
            if client.get("/health").status_code == 200:
                return
        except httpx.TransportError:
            assert server.poll() is None, log.read_text()[-2000:]
            time.sleep(0.5)
    raise AssertionError(f"Label Studio did not start: {log.read_text()[-2000:]}")


def _enter(client: httpx.Client, page: str, email: str, password: str) -> None:
    """Fill in one of its forms, and go on with the person's token."""
    hidden = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', client.get(page).text)
    assert hidden
    form = {"csrfmiddlewaretoken": hidden[1], "email": email, "password": password}
    assert client.post(page, data=form).status_code == 302
    token = client.get("/api/current-user/token").json()["token"]
    client.cookies.clear()
    client.headers["Authorization"] = f"Token {token}"


def _pictures(folder: Path) -> list[Source]:
    folder.mkdir()
    for i in range(4):
        Image.new("RGB", (8, 8), (60 * i, 90, 120)).save(folder / f"{i}.png")
    return [Source(f"{i}.png", f"{i}.png", path=folder / f"{i}.png") for i in range(4)]


def _set_up(eve: httpx.Client, project: Project, folder: Path) -> tuple[int, list[dict[str, Any]]]:
    """A project there with our tasks and configuration; returns its number and the tasks as they are there."""
    for name in ("tasks.json", "config.xml"):
        export_file(project, folder / name, "label-studio")
    new = {"title": "round trip", "label_config": (folder / "config.xml").read_text()}
    number = eve.post("/api/projects/", json=new).raise_for_status().json()["id"]
    file = ("tasks.json", (folder / "tasks.json").read_bytes(), "application/json")
    eve.post(f"/api/projects/{number}/import", files={"file": file}).raise_for_status()
    listed = eve.get("/api/tasks", params={"project": number, "page_size": 100}).json()["tasks"]
    return number, sorted(listed, key=lambda task: task["id"])


def _say(client: httpx.Client, task: dict[str, Any], place: int | None) -> float:
    """Choose the option of this place, or cancel the task; returns when, as Label Studio has it."""
    value = [] if place is None else [{"choices": [task["data"]["options"][place]["alias"]]}]
    result = [{"from_name": "answer", "to_name": "img", "type": "choices", "value": one} for one in value]
    body = {"result": result, "lead_time": 2.5, "was_cancelled": place is None}
    made = client.post(f"/api/tasks/{task['id']}/annotations/", json=body).raise_for_status().json()
    return datetime.fromisoformat(made["updated_at"]).timestamp()


def _stored(project: Project) -> set[tuple[Any, ...]]:
    with project.store.read() as connection:
        rows = connection.execute(
            select(Annotator.name, Item.name, Question.seed, Answer.kind, Answer.class_id, Answer.answered_at)
            .join_from(Answer, Question, Answer.question_id == Question.id)
            .join(Annotator, Annotator.id == Question.annotator_id)
            .join(Item, Item.id == Question.item_id)
            .where(Answer.seconds == 2.5)
        )
        return {tuple(row) for row in rows}


def _exports(eve: httpx.Client, number: int) -> dict[str, bytes]:
    """As its page exports them, and a snapshot, which has the people's addresses."""
    kinds = ("JSON", "JSON_MIN", "CSV")
    page = {"download_all_tasks": "true"}
    files = {kind: eve.get(f"/api/projects/{number}/export", params={"exportType": kind, **page}) for kind in kinds}
    named = {"serialization_options": {"annotations__completed_by": {"only_id": False}}}
    snapshot = eve.post(f"/api/projects/{number}/exports/", json=named).raise_for_status().json()
    assert snapshot["status"] == "completed"
    files["snapshot"] = eve.get(f"/api/projects/{number}/exports/{snapshot['id']}/download")
    return {kind: response.raise_for_status().content for kind, response in files.items()}


def test_the_round_trip_through_label_studio(label_studio, make_project, tmp_path):
    pictures, classes = _pictures(tmp_path / "pictures"), [f"class {k}" for k in range(6)]
    with Project.create(label_studio.root, Settings(title="t", size=3, overlap=2)) as project:
        add_classes(project, classes)
        add_items(project, pictures)
        eve, bob = label_studio.people[EVE], label_studio.people[BOB]
        number, tasks = _set_up(eve, project, tmp_path)
        assert [task["data"]["stochastic"]["item_id"] for task in tasks] == [one.name for one in pictures] * 2

        # pictures: refused until the project there has their folder as a local storage
        address = tasks[0]["data"]["image"]
        assert bob.get(address).status_code == 404
        storage = {"project": number, "path": str(label_studio.root / "media"), "use_blob_urls": True}
        eve.post("/api/storages/localfiles", json=storage).raise_for_status()
        with Image.open(BytesIO(bob.get(address).raise_for_status().content)) as picture:
            assert picture.convert("RGB").getpixel((0, 0)) == (0, 90, 120)

        # item 0: one task each; 1: both tasks are eve's; 2: both people on one task; 3: eve cancels, bob answers
        plan = [
            (EVE, 0, 0),
            (BOB, 4, 3),
            (EVE, 1, 1),
            (EVE, 5, 3),
            (EVE, 2, 2),
            (BOB, 2, 3),
            (EVE, 3, None),
            (BOB, 7, 2),
        ]
        said = set()
        for who, at, place in plan:
            asked = tasks[at]["data"]["stochastic"]
            when = _say(label_studio.people[who], tasks[at], place)
            chosen = None if place in (None, 3) else asked["classes"][place]
            kind = "skip" if place is None else "answer"
            said.add((f"label-studio:{who}", asked["item_id"], asked["seed"], kind, chosen, when))

        files = _exports(eve, number)
        report = import_answers(project, files["snapshot"], is_csv=False)
        assert (report.added, report.known, report.skipped) == (8, 0, [])
        assert _stored(project) == said
        assert Stats(project.store).progress() == {"done": 7, "total": 8}, "what eve cancelled waits for others"
        assert project.check() == []
        for kind, known in (("JSON", 8), ("JSON_MIN", 7), ("CSV", 7)):  # the last two leave out what was cancelled
            report = import_answers(project, files[kind], is_csv=kind == "CSV")
            assert (report.added, report.known, report.skipped) == (0, known, []), kind

    # the exports without addresses first: the same answers, people by number
    fresh = make_project(items=0, overlap=2)
    add_items(fresh, [Source(one.name, one.name, text="a picture") for one in pictures])
    for kind, added in (("CSV", 7), ("JSON_MIN", 0), ("JSON", 1), ("snapshot", 0)):
        assert import_answers(fresh, files[kind], is_csv=kind == "CSV").added == added, kind
    assert {row[1:] for row in _stored(fresh)} == {row[1:] for row in said}
    assert {row[0] for row in _stored(fresh)} == {"label-studio:1", "label-studio:2"}
