"""The README tells the truth: its example runs, its commands and links exist, its figures are those of results/."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from shortlist.demo.table import result_table

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = sorted((ROOT / "docs").glob("*.md"))
DEMO = json.loads((ROOT / "results" / "demo.json").read_text())


def blocks(language: str, page: str = README) -> list[str]:
    # one after another, so that a closing fence is not taken for an opening one
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == language]


def test_example_runs_and_prints_what_the_readme_says(tmp_path: Path) -> None:
    (example,) = blocks("python")
    assert len([line for line in example.splitlines() if line.strip()]) <= 15
    path = tmp_path / "example.py"
    path.write_text(example)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    said = next(block for block in blocks("") if block.startswith("StochasticLabels("))
    (first, last), (said_first, said_last) = done.stdout.splitlines(), said.splitlines()
    assert first == said_first
    # the accuracy may move by an image or two between machines, the rest may not
    number = re.compile(r"^([\d.]+)%")
    assert number.sub("", last) == number.sub("", said_last)
    assert float(number.match(last)[1]) == pytest.approx(float(number.match(said_last)[1]), abs=1.0)  # type: ignore[index]


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z]+)\b(?=[`\s]*(?:`|#|$))", README, re.MULTILINE))
    assert {"demo", "test"} <= named <= targets


def test_commands_exist() -> None:
    cli = pytest.importorskip("shortlist.cli")
    import typer

    command = typer.main.get_command(cli.app)
    known = set(command.commands)  # type: ignore[attr-defined]
    named = set(re.findall(r"`shortlist ([a-z]+)", README)) | set(re.findall(r"^shortlist ([a-z]+)", README, re.M))
    assert named
    assert named <= known, f"not commands: {named - known}"


def test_it_stays_short() -> None:
    assert len(README.splitlines()) <= 110
    assert README.count("![") <= 2


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", *(f"docs/{page.name}" for page in PAGES)])
def test_links_lead_somewhere(page: str) -> None:
    """Those inside the docs are checked with their anchors by `make docs`; this needs nothing installed."""
    text = (ROOT / page).read_text()
    for link in re.findall(r"\]\(([^)#\s]+)\)", text) + re.findall(r'(?:src|href)="([^"#]+)"', text):
        assert "://" in link or (ROOT / page).parent.joinpath(link).exists(), f"{page}: {link}"


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    pages = [str(page.relative_to(ROOT / "docs")) for page in (*PAGES, *(ROOT / "docs" / "tutorials").glob("*.md"))]
    assert [page for page in pages if f"({page})" not in index] == ["index.md"]


def test_the_study_in_small_is_that_of_the_results() -> None:
    """The README's table has three columns of the rows that `shortlist report` wrote for Fashion."""
    results = (ROOT / "docs" / "results.md").read_text()
    fashion = results.split("| Fashion |")[1].split("\n\n")[0]
    rows = {cells[0]: cells[1:] for cells in table_rows(fashion)}
    shown = {cells[0]: cells[1:] for cells in table_rows(README.split("| classes shown |")[1].split("\n\n")[0])}
    assert len(shown) == 5
    for ours, theirs in (
        ("the paper's method (SL), as it reports", "SL, the paper reports"),
        ("the paper's method (SL), re-run", "SL, ours"),
        ("exact likelihood, our default", "likelihood (CC with every answer), ours"),
        ("best other method, fed every answer", "best other rival, ours, every answer"),
        ("all labels", "OL, all labels (better of two losses), ours"),
    ):
        size8, _, _, size5, _, size3 = (cell.split(" ")[0] for cell in rows[theirs])
        assert shown[ours] == [size8, size5, size3], ours


def table_rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]


def test_what_it_saves_is_that_of_the_results() -> None:
    economy = json.loads((ROOT / "results" / "label_start_banking77.json").read_text())
    (way,) = (way for way in economy["starts"] if way["way"] == "names")
    told = " ".join(README.split())
    assert f"99 % of the accuracy of full labels at {100 * way['mark_reads']:.1f} % of the class" in told
    assert f"{100 * way['mark_seconds']:.0f} % of the estimated time" in told
    assert f"{100 * way['hits_of_500']:.0f} % of the first 500 answers named a class" in told
    assert (f"{economy['classes']} classes" in told, f"{way['seeds']} seeds" in told) == (True, True)


def test_the_demos_table_is_that_of_the_results() -> None:
    page = io.StringIO()
    Console(file=page, width=80).print(result_table(DEMO))
    table = "\n".join(line.rstrip() for line in page.getvalue().rstrip().splitlines())
    shown = next(block for block in blocks("", (ROOT / "docs" / "demo.md").read_text()) if "last ten" in block)
    assert shown.rstrip() == table, "paste the table anew: .venv/bin/shortlist demo"


def test_results_say_where_they_come_from() -> None:
    assert re.fullmatch(r"[0-9a-f]{40}", DEMO["commit"]), "from a commit, its source unchanged"
    assert DEMO["hardware"]["cpu"]
    assert {"python", "torch", "shortlist"} <= set(DEMO["versions"])
    assert DEMO["seeds"] == [0, 1, 2]
    assert DEMO["model"]["epochs"] == 40
    assert {(row["size"], row["protocol"]) for row in DEMO["lines"] if row["method"] == "rc"} == {
        (3, "paper"), (3, "fair"), (5, "paper"), (5, "fair"),
    }  # fmt: skip
