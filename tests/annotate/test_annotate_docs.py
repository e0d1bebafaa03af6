"""docs/annotate.md tells the truth: its commands run, in order; its Python runs; its figures are those of results/."""

import csv
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select
from typer.testing import CliRunner

from shortlist.annotate.db.schema import Item
from shortlist.annotate.project.project import Project
from shortlist.annotate.setup import make_invitation
from shortlist.cli import app
from shortlist.cli.annotate import app as annotate

from .browser.projects import digit_pictures, picture, sound
from .conftest import new_database
from .running import Caller, Server, free_port

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "annotate.md").read_text()
OPERATIONS = (ROOT / "docs" / "annotate-operations.md").read_text()
LIVE = (ROOT / "docs" / "annotate-live.md").read_text()
ADDRESS = "127.0.0.1:8080"


def blocks() -> list[tuple[str, str]]:
    return re.findall(r"^```(sh|python)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """What the page says you have."""
    monkeypatch.chdir(tmp_path)
    truth = digit_pictures(tmp_path / "images", 30)
    names = sorted(set(truth.values()))
    Path("classes.txt").write_text("\n".join(names))
    Path("guide.txt").write_text("Take the digit in the middle.")
    Path("more-classes.txt").write_text("wren\n")
    Path("gold.csv").write_text("item,gold\n" + "".join(f"{item},{name}\n" for item, name in list(truth.items())[:4]))
    Path("more-gold.csv").write_text("item,gold\n" + "".join(f"{k},{v}\n" for k, v in list(truth.items())[4:6]))
    Path("tickets.csv").write_text("item,message\n" + "".join(f"t{i},My card number {i} is lost\n" for i in range(9)))
    Path("topics.txt").write_text("card\nloan\nrate\nlogin\nother\n")
    Path("animals.txt").write_text("cat\ndog\nemu\n")
    for folder, ending, make in (("more-images", "png", picture), ("sounds", "wav", sound)):
        Path(folder).mkdir()
        for i in range(3):
            Path(folder, f"{i}.{ending}").write_bytes(make(i))
    Path("runs").mkdir()
    return tmp_path


def answer_all(port: int, folder: Path) -> None:
    """What the people do who open the links."""
    with Project.open(folder) as project:
        caller = Caller(port, make_invitation(project, "eve", True)[0])
    while questions := caller.post("/next", {"hold": 1})[1]["questions"]:
        shown = [choice["class"] for choice in questions[0]["shortlist"]]
        body = {"question": questions[0]["id"], "answer": shown[0] if questions[0]["id"] % 2 else None}
        assert caller.post("/answers", body)[0] == 200
    caller.close()


def test_the_commands_run_in_order(files, request):
    servers: list[Server] = []
    printed = ""
    try:
        for language, block in blocks():
            if language == "python":
                token, here = printed.strip(), f"127.0.0.1:{servers[-1].port}"
                exec(compile(block.replace(ADDRESS, here), "docs/annotate.md", "exec"), {"TOKEN": token})
                continue
            for line in block.splitlines():
                printed = run(line, servers, request)
    finally:
        for server in servers:
            server.kill()
    assert len(Path("classes.csv").read_text().splitlines()) == 31
    assert Path("runs/birds/card.md").is_file()


def test_the_commands_of_the_readme_run_in_order(tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    topics = ["card", "loan", "rate", "login", "other", "phone"]
    Path("classes.txt").write_text("\n".join(topics))
    Path("tickets.csv").write_text("text\n" + "".join(f"My {topics[i % 6]} {i} is lost\n" for i in range(24)))
    page = (ROOT / "README.md").read_text()
    (block,) = re.findall(r"^```\n([^`]*shortlist annotate init[^`]*)^```", page, re.MULTILINE)
    servers: list[Server] = []
    try:
        for line in filter(None, block.splitlines()):
            if line.startswith("shortlist"):  # the others install
                run(line, servers, request)
    finally:
        for server in servers:
            server.kill()
    assert len(Path("classes.csv").read_text().splitlines()) == 25


def run(line: str, servers: list[Server], request: pytest.FixtureRequest) -> str:
    words = shlex.split(line, comments=True)
    assert words[0] == "shortlist"
    if words[1:3] == ["annotate", "demo"]:
        return ""  # run by test_demo_app.py
    if words[1:3] == ["annotate", "serve"]:
        servers.append(Server(Path(words[3]), free_port()))
        servers[-1].wait()
        answer_all(servers[-1].port, Path(words[3]))
        return ""
    if any(word.startswith("postgresql://") for word in words):
        try:
            url = new_database(request.getfixturevalue("postgres"))
        except pytest.skip.Exception:
            return ""  # no PostgreSQL here
        words = [url if word.startswith("postgresql://") else word for word in words]
    done = CliRunner().invoke(app, words[1:])
    assert done.exit_code == 0, f"{line}: {done.output} {done.exception}"
    return done.stdout


def test_every_command_is_on_a_page():
    commands = [command.name or command.callback.__name__ for command in annotate.registered_commands]
    assert "rename" in commands
    for command in commands:
        assert f"shortlist annotate {command}" in PAGE + OPERATIONS


def test_pictures_and_links_are_there():
    for link in re.findall(r"\]\(([^)#\s]+)\)", PAGE) + re.findall(r'src="([^"]+)"', PAGE):
        assert (ROOT / "docs" / link).exists(), link
    for file in ("annotate_load.json", "annotate_crash.json"):
        assert f"results/{file}" in PAGE


VERSIONS = ("now", "1eba82b")


def test_the_figures_are_those_of_the_results():
    load = json.loads((ROOT / "results" / "annotate_load.json").read_text())
    command = [sys.executable, str(ROOT / "benchmarks" / "annotate_load.py"), "--table"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows, many = printed.strip().split("\n\n")
    assert rows in PAGE
    assert len(rows.splitlines()) >= 3
    assert all(line in PAGE.replace("\n", " ") for line in many.splitlines())
    assert f"{load['start_to_first_question_shown']['median']:.1f} s" in PAGE
    for run in load["runs"]:
        assert all(run[way][version]["errors"] == 0 for way in ("fastest", "calm") for version in VERSIONS)
        assert run["many"]["errors"] == 0


def test_the_crashes_are_those_of_the_results():
    totals = json.loads((ROOT / "results" / "annotate_crash.json").read_text())["totals"]
    assert totals["least_answers_in_a_round"] >= 50
    wrong = ("acknowledged_but_lost", "stored_twice", "slots_leased_twice", "integrity_errors")
    assert [totals[name] for name in wrong] == [0, 0, 0, 0]
    page = PAGE.replace("\n", " ")
    assert f"{totals['rounds']:,} rounds" in page
    for count in (*totals["by_kind"].values(), sum(totals["acknowledged"].values())):
        assert f"{count:,}" in page


def test_the_live_figures_are_those_of_the_results():
    command = [sys.executable, str(ROOT / "benchmarks" / "annotate_live.py"), "--table"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    page = (ROOT / "docs" / "annotate-live.md").read_text()
    assert len(printed.splitlines()) > 20
    assert printed.strip() in page


def test_the_cold_start_is_that_of_the_results():
    """Read off each seed's curve at so many questions, then the mean."""
    folder = ROOT / "results"
    items = json.loads((folder / "label_economy_banking77.json").read_text())["items"]
    assert f"{items:,} texts" in LIVE
    runs: dict[str, list[dict[str, float]]] = {}
    with (folder / "label_economy_banking77.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row.pop("way") == "adaptive":
                runs.setdefault(row.pop("seed"), []).append({name: float(value) for name, value in row.items()})
    assert len(runs) == 5
    rows = re.findall(r"^\| ([\d,]+) \| (\d+)% \| (\d+)% \|$", LIVE, re.MULTILINE)
    assert len(rows) == 5
    for asked, nones, accuracy in rows:
        at = int(asked.replace(",", ""))
        read = [
            [np.interp(at, [p["questions"] for p in run], [p[name] for p in run]) for name in ("resolved", "accuracy")]
            for run in runs.values()
        ]
        resolved, right = np.mean(read, axis=0)
        assert (int(nones), int(accuracy)) == (round(100 * (1 - items * resolved / at)), round(100 * right))


def test_known_labels_and_scores_are_given_as_the_page_says(tmp_path, monkeypatch):
    """The commands of docs/annotate-live.md, and labels of texts that were not in the project."""
    monkeypatch.chdir(tmp_path)
    topics = ["card", "loan", "rate", "login", "other", "phone"]
    texts = [(f"My {topics[i % 6]} {i} is lost", topics[i % 6]) for i in range(24)]
    Path("classes.txt").write_text("\n".join(topics))
    Path("tickets.csv").write_text("text\n" + "".join(f"{text}\n" for text, _ in texts))
    Path("labelled.csv").write_text("item,class\n" + "".join(f"{i},{texts[i][1]}\n" for i in range(0, 24, 2)))
    Path("scores.csv").write_text("item,card,loan\n0,0.9,0.1\n7,,1.5\n")
    Path("more.csv").write_text("item,label\n1,loan\n")
    (commands,) = re.findall(r"^```\n([^`]*--known[^`]*)^```", LIVE, re.MULTILINE)
    for line in commands.splitlines():
        done = CliRunner().invoke(app, line.split()[1:])
        assert done.exit_code == 0, done.output
    Path("others.csv").write_text("item,text,label\nelsewhere,My phone is gone,phone\n")
    done = CliRunner().invoke(app, ["annotate", "add", "tickets", "--items", "others.csv", "--known", "others.csv"])
    assert done.exit_code == 0, done.output
    with Project.open(Path("tickets")) as project, project.store.read() as connection:
        known = dict(connection.execute(select(Item.name, Item.known).where(Item.known.is_not(None))).all())
    assert known == {**{str(i): i % 6 for i in range(0, 24, 2)}, "1": 1, "elsewhere": 5}


def test_the_first_answers_with_names_are_those_of_the_results():
    sides = json.loads((ROOT / "results" / "annotate_live_start.json").read_text())["sides"]
    (named,) = (side for side in sides if side["names"])
    for count, words in (("100", "the first 100 answers"), ("500", "the first 500"), ("1000", "the first 1,000")):
        assert f"{100 * named['picked']['live'][count][0]:.0f} % of {words}" in " ".join(LIVE.split())
    (last,) = (row for row in named["rows"] if row["reads"] == 5000)
    assert f"the model alone had {100 * last['live']:.0f} % of the test texts right" in " ".join(LIVE.split())
