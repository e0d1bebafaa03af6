"""A project is there whole or not at all: full disks, kills, modes of files, strangers' backups."""

import json
import os
import resource
import signal
import stat
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from PIL import Image

from shortlist.annotate.project.additions import Additions
from shortlist.annotate.project.backup import restore_backup, write_backup
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.known_items import mark_known
from shortlist.annotate.project.project import DATABASE, UNFINISHED, Project, Settings
from shortlist.annotate.project.sources import Source, find_sources
from shortlist.annotate.setup import init_project
from shortlist.errors import InputError

COMMAND = [sys.executable, "-m", "shortlist", "annotate"]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "classes.txt").write_text("cat\ndog\nemu\n")
    rows = "".join(f"i{k},{'long ' * 100} {k}\n" for k in range(1000))
    (tmp_path / "items.csv").write_text("item,text\n" + rows)
    return Additions(tmp_path / "items.csv", tmp_path / "classes.txt")


def refused_by_a_full_disk(size, *arguments) -> str:
    """What a command says, in one line, when no file may grow beyond `size` bytes."""

    def small_disk() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    done = subprocess.run([*COMMAND, *arguments], preexec_fn=small_disk, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.strip().splitlines()
    return line


def test_init_on_a_full_disk_is_one_line_and_leaves_nothing(files, tmp_path):
    made = ("init", tmp_path / "p", "--items", files.items, "--classes", files.classes)
    assert "cannot be made" in refused_by_a_full_disk(400_000, *made)
    assert not (tmp_path / "p").exists()


def test_a_database_that_fails_is_one_line_with_its_project(make_project, files):
    project = make_project(items=0)
    line = refused_by_a_full_disk(400_000, "add", project.folder, "--items", files.items)
    assert f"{project.folder}: the database: " in line
    assert (project.status()["items"], project.check()) == (0, [])


def test_pictures_for_which_there_is_no_room_are_one_line_and_leave_nothing(make_project, tmp_path):
    project, folder = make_project(items=0), tmp_path / "pictures"
    folder.mkdir()
    Image.frombytes("RGB", (300, 300), os.urandom(270_000)).save(folder / "a.png")
    line = refused_by_a_full_disk(200_000, "add", project.folder, "--items", folder)
    assert f"{project.media}: File too large" in line
    assert (project.status()["items"], list(project.media.iterdir())) == (0, [])


@pytest.mark.parametrize("name", ["labels.csv", "answers.jsonl", "answers.parquet"])
def test_an_export_onto_a_full_disk_names_its_file_and_leaves_the_old_one(make_project, tmp_path, name):
    project = make_project(items=300)
    mark_known(project, {f"item {k}": "class 1" for k in range(300)})
    (tmp_path / name).write_text("old")
    command = ("export", project.folder, tmp_path / name, "--format", name.partition(".")[0])
    line = refused_by_a_full_disk(2000, *command)
    assert f"{tmp_path / name}: cannot be written: " in line
    assert line.endswith("File too large")
    assert (tmp_path / name).read_text() == "old"
    assert not list(tmp_path.glob(".*.tmp"))


def test_a_backup_or_a_restore_onto_a_full_disk_is_one_line_with_its_path(make_project, tmp_path):
    project = make_project(items=0)
    add_items(project, [Source(str(k), str(k), text=os.urandom(500).hex()) for k in range(500)])
    line = refused_by_a_full_disk(100_000, "backup", project.folder, tmp_path / "b.zip")
    assert f"{tmp_path / 'b.zip'}: File too large" in line
    write_backup(project, tmp_path / "b.zip")
    line = refused_by_a_full_disk(400_000, "restore", tmp_path / "b.zip", tmp_path / "again")
    assert f"{tmp_path / 'again'}: cannot be made: " in line
    assert {path.name for path in tmp_path.iterdir()} == {"project0", "b.zip"}


@pytest.mark.parametrize(
    ("name", "row"),
    [("items", {"id": 1, "colour": "red"}), ("classes", {"id": 0, "name": "class 1"}), ("answers", {"id": "x"})],
)
def test_a_backup_with_rows_of_another_kind_is_one_line(make_project, tmp_path, name, row):
    project = make_project(items=3)
    write_backup(project, tmp_path / "good.zip")
    with zipfile.ZipFile(tmp_path / "good.zip") as good, zipfile.ZipFile(tmp_path / "bad.zip", "w") as bad:
        for one in good.namelist():
            more = json.dumps(row).encode() + b"\n" if one == f"tables/{name}.jsonl" else b""
            bad.writestr(one, more + good.read(one))
    with pytest.raises(InputError, match="a damaged backup") as refused:
        restore_backup(tmp_path / "bad.zip", tmp_path / "again")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize("place", [0, 1, 40])
def test_a_backup_with_another_byte_in_it_is_one_line(make_project, tmp_path, place):
    """Packed rows that cannot be unpacked came as a traceback of zlib's."""
    project = make_project(items=30)
    write_backup(project, tmp_path / "good.zip")
    with zipfile.ZipFile(tmp_path / "good.zip") as good:
        rows = good.getinfo("tables/items.jsonl")
    packed = bytearray((tmp_path / "good.zip").read_bytes())
    packed[packed.index(b"tables/items.jsonl", rows.header_offset) + 50 + place] ^= 0xFF
    (tmp_path / "bad.zip").write_bytes(packed)
    with pytest.raises(InputError, match=r"bad\.zip: a damaged backup: .") as refused:
        restore_backup(tmp_path / "bad.zip", tmp_path / "again")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize("name", ["instructions.txt", "scores.npz", "secret.key"])
def test_what_lies_in_the_folder_is_not_taken_for_a_projects_own(files, tmp_path, name):
    """`init .` beside one's own instructions removed them, also where it failed."""
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match=f"holds a file {name}"):
        init_project(tmp_path, files)
    assert (tmp_path / name).read_text() == "mine"
    assert not (tmp_path / UNFINISHED).exists()


@pytest.mark.slow
def test_a_killed_init_can_be_run_again(files, tmp_path, database):
    folder = tmp_path / "p"
    script = (
        "import os, sys, pathlib\n"
        "from shortlist.annotate import Additions, init_project\n"
        "items, classes, folder, database = sys.argv[1:]\n"
        "import shortlist.annotate.setup as setup\n"
        "setup.check_live = lambda *a: os.kill(os.getpid(), 9)\n"
        "init_project(pathlib.Path(folder), Additions(pathlib.Path(items), pathlib.Path(classes)),"
        " database=database or None)\n"
    )
    command = [sys.executable, "-c", script, files.items, files.classes, folder, database or ""]
    assert subprocess.run(command).returncode == -signal.SIGKILL
    assert (folder / DATABASE).exists() == (database is None)
    with pytest.raises(InputError, match="did not finish"):
        Project.open(folder)
    _, outcome = init_project(folder, files, database=database)
    assert outcome.added == 1000
    assert not (folder / UNFINISHED).exists()
    Project.open(folder).close()
    with pytest.raises(InputError, match="already holds a project"):
        init_project(folder, files, database=database)
    Project.open(folder).close()


def test_a_second_init_does_not_clear_the_first(files, tmp_path):
    script = "import sys, time, pathlib\nfrom shortlist.annotate.project.project import unfinished\n"
    script += "with unfinished(pathlib.Path(sys.argv[1])):\n print('begun', flush=True)\n sys.stdin.read()\n"
    command = [sys.executable, "-c", script, tmp_path / "p"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        first.stdout.readline()
        with pytest.raises(InputError, match=f"at work .*process {first.pid}"):
            init_project(tmp_path / "p", files)
        first.stdin.close()


def test_the_database_is_for_its_owner_also_in_a_folder_made_beforehand(tmp_path):
    folder = tmp_path / "open"
    folder.mkdir(mode=0o755)
    project = Project.create(folder, Settings("t", 2))
    with project.store.write():
        pass
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}
    project.close()
    (folder / DATABASE).chmod(0o644)  # as earlier versions made it
    Project.open(folder).close()
    assert stat.S_IMODE((folder / DATABASE).stat().st_mode) == 0o600


def test_one_server_of_a_sqlite_project(files, tmp_path):
    init_project(tmp_path / "p", files)
    command = [*COMMAND, "serve", tmp_path / "p", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        try:
            assert "/join#" in first.stdout.readline()
            second = subprocess.run(command, capture_output=True, text=True)
            assert second.returncode == 2
            assert f"is being served already (process {first.pid})" in second.stderr
            assert "/join" not in second.stdout
            assert len(second.stderr.strip().splitlines()) == 1
        finally:
            first.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone ends a child with its parent")
def test_the_trainer_dies_with_its_server_even_in_the_middle_of_a_computation(tmp_path):
    busy = (
        "from shortlist.annotate.live.trainer import end_with_parent\nend_with_parent()\n"
        "print('begun', flush=True)\nlen(str(3 ** (10 ** 8)))"  # one call that lets no thread run, for minutes
    )
    parent = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {busy!r}], stdout=subprocess.PIPE)\n"
        "child.stdout.readline(); print(child.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as server:
        child = int(server.stdout.readline())
        server.kill()
    end = time.monotonic() + 30
    while _alive(child) and time.monotonic() < end:
        time.sleep(0.02)
    gone = not _alive(child)
    if not gone:
        os.kill(child, signal.SIGKILL)
    assert gone


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_bomb_is_not_restored(make_project, tmp_path):
    project = make_project(items=50)
    write_backup(project, tmp_path / "good.zip")
    with zipfile.ZipFile(tmp_path / "good.zip") as good, zipfile.ZipFile(tmp_path / "bomb.zip", "w") as bomb:
        for name in good.namelist():
            if not name.endswith("measures.jsonl"):
                bomb.writestr(name, good.read(name))
        bomb.writestr("tables/measures.jsonl", b"\n" * 50_000_000, zipfile.ZIP_DEFLATED)
    with pytest.raises(InputError, match="not a backup of ours") as refused:
        restore_backup(tmp_path / "bomb.zip", tmp_path / "again")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "again").exists()
    assert not list(tmp_path.glob(".again*"))
    assert restore_backup(tmp_path / "good.zip", tmp_path / "again") > 50


def test_a_table_names_no_picture_outside_of_its_folder(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "secret.png").write_bytes(b"x")
    table = tmp_path / "data" / "items.csv"
    table.write_text(f"item,image\na,in.png\nb,../secret.png\nc,{tmp_path}/secret.png\nd,deep/../in.png\n")
    problems = {source.name: source.problem for source in find_sources(table)}
    assert problems["a"] is problems["d"] is None
    assert all("outside" in problems[name] for name in "bc")
