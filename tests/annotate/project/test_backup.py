import errno
import os
import shutil
import stat
import subprocess
import threading
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from PIL import Image
from sqlalchemy import select

from shortlist.annotate.db.schema import REVISION, Item, tables
from shortlist.annotate.project.backup import restore_backup, write_backup
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.people import People
from shortlist.annotate.project.project import Project
from shortlist.annotate.project.sources import find_sources
from shortlist.annotate.setup import export_file
from shortlist.annotate.web.auth import Auth
from shortlist.errors import InputError

from ..conftest import new_database, people
from ..running import COMMAND
from ..test_annotate_commands import run


def content(project) -> dict:
    with project.store.read() as connection:
        return {
            table.name: [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key.columns))]
            for table in tables()
        }


def worked_on(make_project, database, tmp_path):
    folder = tmp_path / "images"
    folder.mkdir(exist_ok=True)
    Image.new("L", (8, 8), 77).save(folder / "a.png")
    project = make_project(database, items=5, gold=1)
    add_items(project, find_sources(folder))
    (ada,) = people(project, "ada")
    queue = project.queue()
    for _ in range(3):
        (q,) = queue.next(ada)
        queue.answer(ada, q.id, 0, None, 1.0)
    queue.undo(ada)
    return project, ada


def test_a_backup_comes_back_whole(make_project, database, tmp_path):
    project, ada = worked_on(make_project, database, tmp_path)
    token, link = People(project).make_token("robot", ada), People(project).renew_invite(ada)
    path = tmp_path / "backup.zip"
    saved = write_backup(project, path)
    assert saved.missing == []
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert restore_backup(path, tmp_path / "again") == saved.rows
    with Project.open(tmp_path / "again") as again:
        assert content(again) == content(project)
        files = [
            sorted((p.relative_to(x.media), p.read_bytes()) for p in x.media.rglob("*.png")) for x in (again, project)
        ]
        assert files[0] == files[1]
        assert len(files[0]) == 1
        auth = Auth(again, People(again))
        assert auth.who(token, "token").annotator_id == ada, "tokens and links go on working"
        auth.sign_in(link)
        (q,) = again.queue().next(ada)
        again.queue().answer(ada, q.id, q.attempt, None, 1.0)


@pytest.mark.postgres
def test_from_either_database_to_the_other(make_project, postgres, tmp_path):
    project, _ = worked_on(make_project, None, tmp_path)
    write_backup(project, tmp_path / "one.zip")
    restore_backup(tmp_path / "one.zip", tmp_path / "there", new_database(postgres))
    with Project.open(tmp_path / "there") as there:
        assert content(there) == content(project)
        people(there, "new")  # the ids go on counting where they were
        write_backup(there, tmp_path / "two.zip")
        expected = content(there)
    restore_backup(tmp_path / "two.zip", tmp_path / "back")
    with Project.open(tmp_path / "back") as back:
        assert content(back) == expected


def test_a_backup_while_answers_come_in_is_one_moment(make_project, database, tmp_path):
    project = make_project(database, items=400)
    (ada,) = people(project, "ada")
    queue, stop = project.queue(), threading.Event()

    def work() -> None:
        while not stop.is_set() and (held := queue.next(ada)):
            queue.answer(ada, held[0].id, 0, None, 1.0)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for round_ in range(3):
            write_backup(project, tmp_path / f"{round_}.zip")
    finally:
        stop.set()
        worker.join()
    for round_ in range(3):
        restore_backup(tmp_path / f"{round_}.zip", tmp_path / f"p{round_}")
        with Project.open(tmp_path / f"p{round_}") as again:
            assert again.store.check() == []
            rows = content(again)
            done = [row for row in rows["slots"] if "done" in row]
            assert len(rows["answers"]) == len(done) == rows["annotators"][0][5]


def test_what_is_no_backup_of_ours_is_refused_and_leaves_nothing(make_project, tmp_path):
    project, _ = worked_on(make_project, None, tmp_path)
    good = tmp_path / "good.zip"
    write_backup(project, good)

    def changed(name: str, remove: str = "", **replace: bytes) -> None:
        with zipfile.ZipFile(good) as source, zipfile.ZipFile(tmp_path / name, "w") as target:
            for entry in source.namelist():
                if entry != remove:
                    target.writestr(entry, replace.pop(entry, source.read(entry)))
            for entry, data in replace.items():
                target.writestr(entry, data)

    (tmp_path / "text.zip").write_text("no zip")
    (tmp_path / "cut.zip").write_bytes(good.read_bytes()[:-200])
    changed("headless.zip", remove="backup.json")
    changed("tableless.zip", remove="tables/slots.jsonl")
    changed("newer.zip", **{"backup.json": b'{"format": "shortlist-annotate-backup", "revision": "9"}'})
    changed("broken.zip", **{"tables/items.jsonl": b"{no json"})
    changed("escape.zip", **{"media/../../evil.png": b"x"})
    changed("absolute.zip", **{"media//etc/evil.png": b"x"})
    for path in sorted(tmp_path.glob("*.zip")):
        if path == good:
            continue
        with pytest.raises(InputError) as error:
            restore_backup(path, tmp_path / "restored")
        assert "\n" not in str(error.value)
        assert not list(tmp_path.glob("*restor*")), path
    assert not (tmp_path / "evil.png").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    for taken in (project.folder, tmp_path / "mine", good):
        with pytest.raises(InputError, match="exists already"):
            restore_backup(good, taken)
    (tmp_path / "empty").mkdir()
    restore_backup(good, tmp_path / "empty")


def test_a_picture_that_is_gone_does_not_cost_the_answers(make_project, tmp_path):
    project, _ = worked_on(make_project, None, tmp_path)
    (file,) = project.media.rglob("*.png")
    file.unlink()
    printed = run("backup", project.folder, tmp_path / "a.zip", code=1)
    assert "its file is missing or cannot be read: a.png" in printed
    restore_backup(tmp_path / "a.zip", tmp_path / "again")
    with Project.open(tmp_path / "again") as again:
        assert content(again) == content(project)


@pytest.mark.parametrize(
    ("revision", "missing"), [("0001", [', "description": null', ', "known": null']), ("0002", [', "known": null'])]
)
def test_a_backup_from_before_a_column_was_added_is_read(make_project, tmp_path, revision, missing):
    project = make_project()
    new, old = tmp_path / "new.zip", tmp_path / "old.zip"
    write_backup(project, new)
    with zipfile.ZipFile(new) as source, zipfile.ZipFile(old, "w") as target:
        for name in source.namelist():
            text = source.read(name).decode().replace(f'"revision": "{REVISION}"', f'"revision": "{revision}"')
            for column in missing:
                assert name != "tables/items.jsonl" or column != ', "known": null' or column in text
                text = text.replace(column, "")
            target.writestr(name, text)
    restore_backup(old, tmp_path / "again")
    with Project.open(tmp_path / "again") as again:
        assert content(again) == content(project)


def _killed_between(command: list[str], media: Path, files: int) -> bool:
    """Whether a restore could be killed once it had written so many files, before it had ended."""
    restoring = subprocess.Popen(command)
    while restoring.poll() is None:
        with suppress(FileNotFoundError):  # not there yet, or renamed already
            if len(list(media.rglob("*.png"))) >= files:
                break
    restoring.kill()
    return restoring.wait() != 0


@pytest.mark.parametrize("files", [1, 100, 250])
@pytest.mark.kill
def test_a_restore_that_is_killed_leaves_no_project_and_can_be_run_again(make_project, tmp_path, files):
    folder = tmp_path / "images"
    folder.mkdir()
    for i in range(300):
        Image.new("L", (8, 8), i % 256).save(folder / f"{i}.png")
    project = make_project(items=0)
    add_items(project, find_sources(folder))
    write_backup(project, tmp_path / "a.zip")
    command = [*COMMAND, "restore", str(tmp_path / "a.zip"), str(tmp_path / "again")]
    while not _killed_between(command, tmp_path / ".again.restoring" / "media", files):
        shutil.rmtree(tmp_path / "again")  # it was done before we saw so many files: once more
    assert not (tmp_path / "again").exists()
    run(*command[len(COMMAND) :])
    with Project.open(tmp_path / "again") as again:
        with again.store.read() as connection:
            named = connection.execute(select(Item.file)).scalars().all()
        assert all((again.media / file).is_file() for file in named)
        assert len(named) == 300
    assert not (tmp_path / ".again.restoring").exists()


def test_a_restore_that_cannot_end_leaves_nothing(make_project, tmp_path, monkeypatch):
    """Its folder may be a mount point, over which nothing can be renamed."""
    write_backup(make_project(items=3), tmp_path / "backup.zip")

    def busy(self: Path, target: Path) -> Path:
        raise OSError(errno.EBUSY, "busy")

    monkeypatch.setattr(Path, "rename", busy)
    with pytest.raises(InputError, match="cannot be made: busy; nothing was restored"):
        restore_backup(tmp_path / "backup.zip", tmp_path / "again")
    assert not (tmp_path / ".again.restoring").exists()


def test_neither_a_backup_nor_an_export_takes_the_place_of_a_pipe_or_a_device(make_project, tmp_path):
    """Files are written beside their place and renamed: root lost /dev/full to a backup."""
    project = make_project()
    os.mkfifo(tmp_path / "pipe.csv")
    for act in (write_backup, export_file):
        with pytest.raises(InputError, match="a device or a pipe, expected the name of a file"):
            act(project, tmp_path / "pipe.csv")
    assert (tmp_path / "pipe.csv").is_fifo()
