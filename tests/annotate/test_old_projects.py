"""Projects of earlier versions open, serve and export as they did.

data/project_of_1eba82b.zip holds a project made by that commit (SQLite; gold, answers, an undo, a skip, a model),
its backup, its exports, and the links and the token that were given out.
"""

import json
import signal
import sqlite3
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine, select

from shortlist.annotate.db.schema import Answer, Base, Correction, Item, LabelClass, Note
from shortlist.annotate.formats import EXPORTS
from shortlist.annotate.live.chooser import LiveChooser
from shortlist.annotate.live.plan import live_plan
from shortlist.annotate.live.trainer import Trainer
from shortlist.annotate.project.additions import Additions, add_to_project
from shortlist.annotate.project.backup import restore_backup
from shortlist.annotate.project.project import Project
from shortlist.annotate.project.stats import Stats
from shortlist.data import read_table

from .conftest import Site
from .project.test_whole_or_nothing import refused_by_a_full_disk

MADE_BY = Path(__file__).parent / "data" / "project_of_1eba82b.zip"
COMPARED = ("answers.csv", "answers.jsonl", "gold-answers.csv", "labels.csv", "crowd-kit.csv", "label-studio.xml")


@pytest.fixture
def old(tmp_path):
    with zipfile.ZipFile(MADE_BY) as packed:
        packed.extractall(tmp_path)
    (tmp_path / "project" / "secret.key").chmod(0o600)
    return tmp_path


@pytest.fixture
def secrets(old):
    """What was given out, and when: invite links end after a month."""
    return json.loads((old / "secrets.json").read_text())


def test_the_exports_are_those_of_the_version_that_made_it(old):
    with Project.open(old / "project") as project:
        assert project.store.check() == []
        for name in COMPARED:
            EXPORTS[name](project, old / f"now-{name}")
            if name != "labels.csv":  # which has the texts now, in one more column
                assert (old / f"now-{name}").read_bytes() == (old / name).read_bytes(), name
    labels = read_table(old / "now-labels.csv")
    assert all(labels.pop("text"))
    assert labels == read_table(old / "labels.csv")


@pytest.mark.parametrize("reached", ["DROP TABLE items", "RENAME TO questions", "INDEX questions_held", "='0007'"])
def test_it_survives_being_killed_while_its_tables_are_copied(old, reached):
    script = (
        "import os, sys, pathlib\n"
        "from sqlalchemy import Engine, event\n"
        "from shortlist.annotate.project.project import Project\n"
        "@event.listens_for(Engine, 'before_cursor_execute')\n"
        "def look(connection, cursor, statement, *others):\n"
        "    if sys.argv[2] in statement.replace(chr(34), ''): os.kill(os.getpid(), 9)\n"
        "Project.open(pathlib.Path(sys.argv[1]))\n"
    )
    before = rows_of(old / "project")
    killed = subprocess.run([sys.executable, "-c", script, old / "project", reached])
    assert killed.returncode == -signal.SIGKILL
    with Project.open(old / "project") as project:
        assert project.check() == []
        (ada,) = project.status()["annotators"][:1]
        (question,) = project.queue().next(ada["id"])
        assert question.id > before["questions"][-1]["id"]
        project.queue().release(ada["id"])
    after = rows_of(old / "project")
    for table, rows in before.items():
        changed = [{name: row[name] for name in rows[0]} for row in after[table]]
        assert changed[: len(rows)] == rows, table


def test_its_copied_tables_are_those_of_the_schema(old, tmp_path):
    """Also the conditions of indexes, and numbers that are not given twice."""
    Project.open(old / "project").close()
    made = create_engine(f"sqlite:///{tmp_path / 'made.db'}")
    Base.metadata.create_all(made)
    made.dispose()
    assert schema_of(old / "project" / "annotations.db") == schema_of(tmp_path / "made.db")


def schema_of(database: Path) -> dict[str, set[str]]:
    """What makes each table and index, clause by clause: columns that came later stand in another order."""
    with closing(sqlite3.connect(database)) as connection:
        found = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    made = {name: " ".join(sql.replace('"', "").split()).partition("(")[2] for name, sql in found}
    made.pop("alembic_version", None)
    return {name: {part.strip(" )") for part in sql.split(", ")} for name, sql in made.items()}


def test_a_disk_too_full_to_copy_its_tables_is_said_and_changes_nothing(old):
    """What was said was that a temporary table does not exist."""
    folder = old / "project"
    with closing(sqlite3.connect(folder / "annotations.db")) as connection, connection:
        connection.execute("UPDATE items SET text = ?", ("long " * 20_000,))
    before = rows_of(folder)
    line = refused_by_a_full_disk((folder / "annotations.db").stat().st_size + 200_000, "status", folder)
    assert line.endswith(("database or disk is full", "disk I/O error"))
    assert rows_of(folder) == before
    with Project.open(folder) as project:
        assert project.check() == []


def rows_of(folder: Path) -> dict[str, list[dict]]:
    """The rows of the tables that are copied and of those that refer to them."""
    with closing(sqlite3.connect(folder / "annotations.db")) as connection:
        connection.row_factory = sqlite3.Row
        tables = ("items", "annotators", "questions", "answers", "classes")
        return {
            table: [dict(row) for row in connection.execute(f"SELECT * FROM {table} ORDER BY id")] for table in tables
        }


def test_nothing_was_said_yet_about_its_items_beside_the_answers(old):
    with Project.open(old / "project") as project, project.store.read() as connection:
        for column in (LabelClass.merged_into, LabelClass.ended_at, Answer.reason):
            assert set(connection.execute(select(column)).scalars()) == {None}
        for table in (Note, Correction):
            assert connection.execute(select(table.id)).all() == []


def test_it_is_served_and_its_links_and_tokens_work(old, secrets):
    with Project.open(old / "project") as project:
        site = Site(project, clock=lambda: secrets["made_at"] + 60)
        ada = site.signed_in(secrets["ada"])
        assert ada.get("/api/v1/session").json()["instructions"] == "Look at the beak first."
        ended = site.client().post("/api/v1/session", json={"secret": secrets["ended_link"]})
        assert ended.status_code == 401, "a newer link took its place"
        robot = site.client(headers={"Authorization": f"Bearer {secrets['token']}"})
        for client in (ada, robot):
            (question,) = client.post("/api/v1/next", json={}).json()["questions"]
            body = {"question": question["id"], "attempt": question["attempt"], "answer": None}
            assert client.post("/api/v1/answers", json=body).status_code == 200
        people = {row["name"]: row["answers"] for row in Stats(project.store).status()["annotators"]}
        assert people == {"ada": 9, "ben": 6}


def test_its_model_goes_on_choosing(old):
    """Settings that a plan no longer has are in its project.json; what its trainer published is made anew."""
    with Project.open(old / "project") as project:
        plan = live_plan(project.settings)
        assert (plan.policy, plan.size, plan.epsilon, plan.mistakes) == ("adaptive", 2, 0.1, True)
        chooser = LiveChooser(project.live, plan)
        assert not chooser.refresh(), "publications had another form: until the first new one lists are drawn at random"
        assert Trainer(project, plan).step()
        assert chooser.refresh()
        assert chooser.choose(3, 4, [], 7).policy == "adaptive"
        assert plan.names, "an older project of texts uses the names of its classes, too"


def test_its_backup_is_restored_and_takes_labels(old, database):
    """Rows of 0001 or 0002 in tables of today, which have a column for classes that are known."""
    assert restore_backup(old / "backup.zip", old / "again", database) > 50
    with Project.open(old / "again") as project:
        EXPORTS["answers.csv"](project, old / "now.csv")
        with project.store.read() as connection:
            name = connection.execute(select(Item.name).where(Item.id == 3)).scalar_one()
        (old / "known.csv").write_text(f"item,class\n{name},owl\n")
        assert add_to_project(project, Additions(known=old / "known.csv")).known == 1
        trainer = Trainer(project, live_plan(project.settings))
        assert trainer.step()
        assert trainer.loop.state.known.tolist().index(True) == 2
        people = {row["name"]: row["id"] for row in project.status()["annotators"]}
        queue = project.queue(LiveChooser(project.live, live_plan(project.settings)))
        (question,) = queue.next(people["ben"])
        absent = next(k for k in range(4) if k not in question.shortlist)
        stored, _ = queue.answer(people["ben"], question.id, question.attempt, absent, 2.0, typed=True)
        assert stored.kind == "typed", "a model chooses the lists, so classes may be typed here, too"
        assert trainer.step()
        EXPORTS["answers.csv"](project, old / "typed.csv")
        assert "typed" in (old / "typed.csv").read_text().splitlines()[0]
    assert (old / "now.csv").read_bytes() == (old / "answers.csv").read_bytes()
