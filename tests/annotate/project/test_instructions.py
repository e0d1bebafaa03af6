"""What annotators are told: given at the start, changed later by file or API, kept by a backup."""

import pytest

from shortlist.annotate.project.backup import restore_backup, write_backup
from shortlist.annotate.project.instructions import instructions_of, set_instructions
from shortlist.annotate.project.project import Project

from ..test_annotate_commands import refused, run


@pytest.fixture
def files(tmp_path):
    (tmp_path / "classes.txt").write_text("cat\ndog\n")
    (tmp_path / "items.csv").write_text("item,text\na,one\n")
    (tmp_path / "guide.txt").write_bytes("\ufeffTake the main animal.\r\n\r\nIgnore the others.\r\n".encode())
    return tmp_path


def init(files, guide: str) -> tuple[object, ...]:
    made = ("--items", files / "items.csv", "--classes", files / "classes.txt", "--size", 1)
    return ("init", files / "p", *made, "--instructions", files / guide)


def test_by_the_command_line(files):
    run(*init(files, "guide.txt"))
    with Project.open(files / "p") as project:
        assert instructions_of(project) == "Take the main animal.\n\nIgnore the others."
    (files / "guide.txt").write_text("Any animal.")
    run("add", files / "p", "--instructions", files / "guide.txt")
    with Project.open(files / "p") as project:
        assert instructions_of(project) == "Any animal."


@pytest.mark.parametrize("content", [b"", b" \n ", b"\xff\xfe", b"a\x00b", b"x" * 10_001, None])
def test_what_cannot_be_shown_is_refused_and_leaves_nothing(files, content):
    if content is not None:
        (files / "bad.txt").write_bytes(content)
    assert "bad.txt" in refused(*init(files, "bad.txt"))
    assert not (files / "p").exists()


def test_over_the_api(make_site, database):
    site = make_site(database)
    admin, ada = site.admin(), site.annotator("ada")
    assert ada.get("/api/v1/session").json()["instructions"] == ""
    assert admin.put("/api/v1/instructions", json={"text": "Look\r\ntwice. "}).status_code == 204
    assert ada.get("/api/v1/session").json()["instructions"] == "Look\ntwice."
    assert ada.put("/api/v1/instructions", json={"text": "mine"}).status_code == 403
    assert site.client().put("/api/v1/instructions", json={"text": "mine"}).status_code == 401
    for bad in ("x" * 10_001, "a\x00b"):
        assert admin.put("/api/v1/instructions", json={"text": bad}).status_code == 422
    assert ada.get("/api/v1/session").json()["instructions"] == "Look\ntwice."
    assert admin.put("/api/v1/instructions", json={"text": " "}).status_code == 204
    assert ada.get("/api/v1/session").json()["instructions"] == ""


def test_a_backup_has_them(make_project, tmp_path):
    project = make_project()
    set_instructions(project, "Look\n\ntwice.")
    write_backup(project, tmp_path / "a.zip")
    restore_backup(tmp_path / "a.zip", tmp_path / "again")
    with Project.open(tmp_path / "again") as again:
        assert instructions_of(again) == "Look\n\ntwice."


def test_a_file_in_another_encoding_keeps_nobody_out(make_project):
    project = make_project()
    (project.folder / "instructions.txt").write_bytes("grün".encode("latin-1"))
    assert instructions_of(project) == "gr\ufffdn"
