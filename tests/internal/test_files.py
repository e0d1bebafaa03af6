import errno
import os

import pytest

from shortlist.internal import files
from shortlist.internal.files import atomic_path, atomic_write


def test_written_whole(tmp_path):
    atomic_write(tmp_path / "a.txt", "é\n")
    atomic_write(tmp_path / "b.bin", b"\x00\xff")
    assert (tmp_path / "a.txt").read_bytes() == "é\n".encode()
    assert (tmp_path / "b.bin").read_bytes() == b"\x00\xff"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.bin"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_failing_write_leaves_the_old_file_and_no_litter(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def write():
        with atomic_path(path) as temporary:
            temporary.write_text("half of the n")
            raise error

    with pytest.raises(error):
        write()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failing_write_makes_no_file(tmp_path):
    with pytest.raises(RuntimeError), atomic_path(tmp_path / "new.txt"):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_no_folder_is_named_by_the_file_that_was_meant(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        atomic_write(tmp_path / "none" / "a.csv", "")
    assert caught.value.filename == str(tmp_path / "none" / "a.csv")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        atomic_write(tmp_path / "folder", "")
    assert caught.value.filename == str(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch, step):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "a.txt"
    path.write_text("old")
    with monkeypatch.context() as patch:
        patch.setattr(*(("os.fsync", full) if step == "fsync" else (files.Path, "replace", full)))
        with pytest.raises(OSError, match="No space"):
            atomic_write(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_bytes_are_on_the_disk_before_the_name(tmp_path, monkeypatch):
    done = []
    fsync, replace = os.fsync, files.Path.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (done.append("fsync"), fsync(fd)))
    monkeypatch.setattr(files.Path, "replace", lambda self, to: (done.append("replace"), replace(self, to)))
    atomic_write(tmp_path / "a.txt", "new")
    assert done == ["fsync", "replace", "fsync"]  # the last one is the directory's


def test_a_new_file_has_the_usual_mode_and_an_old_one_keeps_its_own(tmp_path):
    (tmp_path / "usual").write_text("")
    atomic_write(tmp_path / "new", "x")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode
    (tmp_path / "new").chmod(0o600)
    atomic_write(tmp_path / "new", "y")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link, target = tmp_path / "link.txt", tmp_path / "elsewhere" / "target.txt"
    link.symlink_to(target)
    atomic_write(link, "through")
    assert link.is_symlink()
    assert target.read_text() == "through"


def test_names_may_be_as_long_as_the_system_allows(tmp_path):
    path = tmp_path / ("n" * 250)
    atomic_write(path, "x")
    assert path.read_text() == "x"


def test_relative_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    atomic_write("a.txt", "x")
    assert (tmp_path / "a.txt").read_text() == "x"
