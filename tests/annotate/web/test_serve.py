"""The command line and the real server process."""

import json
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shortlist import StochasticLabels
from shortlist.annotate.project.project import Project
from shortlist.annotate.web.serve import Address, announcing_address, listen
from shortlist.cli.annotate import app
from shortlist.errors import InputError

from ..conftest import people
from ..running import Caller, Server, free_port


@pytest.fixture
def files(tmp_path):
    (tmp_path / "classes.txt").write_text("cat\ndog\nemu\nfox\n")
    (tmp_path / "items.csv").write_text("item,text\n" + "".join(f"i{k},text {k}\n" for k in range(20)) + "bad,\n")
    return tmp_path


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(part) for part in arguments], catch_exceptions=True)
    assert result.exit_code == code, result.output
    return result.stdout


def make(files: Path) -> Path:
    project = files / "project"
    run("init", project, "--items", files / "items.csv", "--classes", files / "classes.txt", "--size", 2)
    return project


def test_the_whole_way_by_the_command_line(files):
    project = make(files)
    begun = time.monotonic()
    server = Server(project, free_port())
    try:
        assert "/join#" in server.process.stdout.readline()
        server.wait()
        token = json.loads(run("invite", project, "ada", "--token", "--json"))["token"]
        caller = Caller(server.port, token)
        status, reply = caller.post("/next", {"hold": 1})
        assert status == 200
        assert len(reply["questions"]) == 1
        first_question = time.monotonic() - begun
        q = reply["questions"][0]
        assert caller.post("/answers", {"question": q["id"], "answer": q["shortlist"][0]["class"]})[0] == 200
        (files / "more.csv").write_text("item,text\nnew,hello\n")
        (files / "more.txt").write_text("gnu\n")
        run("add", project, "--items", files / "more.csv", "--classes", files / "more.txt")
        status, reply = caller.post("/next", {"hold": 1})
        assert reply["progress"]["total"] >= 20
        caller.close()
        memory = _resident_megabytes(server.process.pid)
        server.process.terminate()
        assert server.process.stdout.read() == "", "no word of a model where lists are drawn"
    finally:
        server.kill()
    assert memory < 150
    # the budget is 3 s on an idle machine (see benchmarks/); the tests share theirs, so this only catches the absurd
    assert first_question < 15
    found = json.loads(run("status", project, "--json"))
    assert (found["answers"], found["items"]) == (1, 21)
    assert "ada: 1 answers" in run("status", project)
    run("export", project, files / "answers.parquet")
    labels = StochasticLabels.read(files / "answers.parquet")
    assert labels.class_names == ("cat", "dog", "emu", "fox", "gnu")
    run("backup", project, files / "b.zip")
    run("restore", files / "b.zip", files / "again")
    assert json.loads(run("status", files / "again", "--json"))["answers"] == 1
    run("export", project, files / "tasks.json", "--format", "label-studio")
    tasks = json.loads((files / "tasks.json").read_text())
    answer = {**tasks[0]["data"], "answer": "__none__", "annotator": 1}
    (files / "ls.json").write_text(json.dumps([answer]))
    assert json.loads(run("import", project, files / "ls.json", "--json"))["added"] == 1


def _resident_megabytes(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def test_invitations(files):
    project = make(files)
    assert run("invite", project, "ada").startswith("http://127.0.0.1:8080/join#")
    assert run("invite", project, "ada", "--url", "https://label.example/").startswith("https://label.example/join#")
    assert "/join#" in run("invite", project)
    assert len(run("invite", project, "--token").strip()) > 30


def said(*arguments: object) -> tuple[str, str]:
    """What a command prints, and what it says beside."""
    result = CliRunner().invoke(app, [str(part) for part in arguments])
    return result.stdout.strip(), result.stderr.strip()


def test_an_invitation_leads_to_where_the_project_is_served(files):
    project = make(files)
    idle = "is not being served: say with --url where it will be, if not at http://127.0.0.1:8080"
    assert said("invite", project, "ada")[1] == f"{project} {idle}"
    for options, address, beside in (
        ((), "http://127.0.0.1:{port}", "this link opens on this machine only"),
        (("--public-url", "https://label.example/"), "https://label.example", ""),
    ):
        server = Server(project, free_port(), *options)
        try:
            server.process.stdout.readline()
            link, words = said("invite", project, "ada")
            assert link.startswith(address.format(port=server.port) + "/join#")
            assert words.startswith(beside)
            assert bool(words) == bool(beside)
            assert said("invite", project, "ada", "--token")[1] == ""
            assert json.loads(said("invite", project, "ada", "--json")[0])["link"].startswith(link.partition("#")[0])
            other = said("invite", project, "ada", "--url", "http://127.0.0.1:9000")
            assert other[0].startswith("http://127.0.0.1:9000/join#")
            assert other[1] == ""
        finally:
            server.kill()  # which leaves the address where it was
        link, words = said("invite", project, "ada")
        assert link.startswith("http://127.0.0.1:8080/join#")
        assert words == f"{project} {idle}"


def test_of_several_servers_an_invitation_leads_to_one_that_others_can_open(files):
    """As PostgreSQL allows; when one ends, the others are still there."""
    folder = make(files)
    with Project.open(folder) as project, announcing_address(project, Address(port=8001)):
        with announcing_address(project, Address(port=8002, public_url="https://label.example")):
            link, words = said("invite", folder, "ada")
            assert link.startswith("https://label.example/join#")
            assert words == "also served at http://127.0.0.1:8001 (--url gives the link there)"
        assert said("invite", folder, "ada")[0].startswith("http://127.0.0.1:8001/join#")
        with announcing_address(project, Address(port=8003)):
            words = said("invite", folder, "ada")[1]
            assert words.startswith(
                "also served at http://127.0.0.1:8003 (--url gives the link there); this link opens"
            )
        with ExitStack() as later:
            with announcing_address(project, Address(port=8004)):
                later.enter_context(announcing_address(project, Address(port=8005)))
            assert "also served at http://127.0.0.1:8005 (" in said("invite", folder, "ada")[1], (
                "the one before has ended"
            )


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve", "nowhere"),
        ("status", "nowhere"),
        ("serve", "project", "--host", "0.0.0.0"),
        ("init", "project", "--items", "items.csv", "--classes", "classes.txt"),
        ("init", "other", "--items", "items.csv", "--classes", "classes.txt", "--size", "0"),
        ("init", "other", "--items", "items.csv", "--classes", "classes.txt", "--strict"),
        ("init", "other", "--items", "items.csv", "--classes", "classes.txt", "--database", "oracle://x"),
        ("export", "project", "answers.doc"),
        ("import", "project", "nowhere.json"),
        ("restore", "nowhere.zip", "other"),
        ("add", "project"),
    ],
)
def test_bad_input_is_one_clear_line(files, arguments, monkeypatch):
    make(files)
    monkeypatch.chdir(files)
    result = CliRunner().invoke(app, list(arguments))
    assert isinstance(result.exception, InputError), result.output
    assert "\n" not in str(result.exception)
    assert not (files / "other").exists()


def test_every_command_has_help_with_an_example():
    for command in ("init", "serve", "invite", "status", "export", "import", "backup", "restore", "add"):
        assert f"shortlist annotate {command}" in run(command, "--help").replace("\n", " ")


def test_a_taken_port_is_one_clear_line():
    listener, address = listen(Address(port=0))
    assert address.port > 0
    with listener, pytest.raises(InputError, match=f"cannot listen on 127.0.0.1 port {address.port}"):
        listen(address)


def test_status_says_how_far_and_how_often_people_agree(make_project):
    project = make_project(items=3, overlap=2, classes=2, size=2)
    ada, bob = people(project, "ada", "bob")
    queue = project.queue()
    for who, choice in ((ada, 0), (bob, 1)):
        while held := queue.next(who):
            queue.answer(who, held[0].id, 0, choice, 2.0)
    printed = run("status", project.folder)
    assert "3 of 3 items done, 6 of 6 questions settled" in printed
    assert "agreement: 0.0% of 3 pairs" in printed
