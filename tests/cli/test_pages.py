"""The commands and examples of docs/practitioners.md and docs/researchers.md, and those in every --help, run."""

import re
import shlex
import subprocess
import sys

import pytest
import typer

from shortlist import methods
from shortlist.cli import app
from shortlist.losses import LOSSES
from shortlist.policies.sizes import RULES

from .conftest import ROOT, environment, image_folder, piped, text_rows, text_table

PAGES = {name: (ROOT / "docs" / f"{name}.md").read_text() for name in ("practitioners", "researchers")}


def blocks(page, language):
    return fenced(PAGES[page], language)


def fenced(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


SECTIONS = [found for part in PAGES["researchers"].split("\n## ") if (found := "\n".join(fenced(part, "python")))]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with what the pages speak of."""
    monkeypatch.chdir(tmp_path)
    image_folder(tmp_path / "images", per_class=16)
    image_folder(tmp_path / "more-images", per_class=4, seed=1)
    text_table(tmp_path / "questions.csv", text_rows(60))
    rows = [
        (item, "lost card|top up", label if label != "exchange rate" else "") for item, _, label in text_rows(60)[:50]
    ]
    rows[0] = ("q0", "lost card|exchange rate", "lost card")
    text_table(tmp_path / "answers.csv", rows, ("item", "shortlist", "answer"))
    return tmp_path


def call(line, shortlist, monkeypatch):
    if "|" in line:
        said, _, line = line.partition(" | ")
        monkeypatch.setattr("sys.stdin", piped(shlex.split(said)[1] + "\n"))
    done = shortlist(*shlex.split(line)[1:])
    assert done.code == 0, (line, done.err)
    assert "Traceback" not in done.err
    return done


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_the_page(page, place, shortlist, monkeypatch):
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    assert len(lines) >= 5
    for line in lines:
        done = call(line, shortlist, monkeypatch)
    if page == "practitioners":
        assert done.out.splitlines()[1].split(",")[1] == "lost card"
        assert (place / "classes.csv").read_text().count("\n") == 61
        (example,) = blocks(page, "python")
        exec(compile(example, page, "exec"), {"__name__": "page"})


@pytest.mark.parametrize("number", range(len(SECTIONS)))
def test_the_examples_of_the_researchers_page(number, monkeypatch, capsys):
    monkeypatch.setattr(methods, "METHODS", dict(methods.METHODS))
    for registry, name in ((LOSSES, "ovr_hinge"), (RULES, "doubtful")):
        monkeypatch.setitem(registry, name, None)  # so that it is taken away again
    example = SECTIONS[number]
    names = {"__name__": "page"}
    exec(compile(example, "researchers", "exec"), names)
    if "ovr_hinge" in names:
        import torch

        logits = torch.tensor([[0.5, -2.0, 0.0]])
        naive = [max(0, 1 - z) + sum(max(0, 1 + o) for j, o in enumerate((0.5, -2.0, 0.0)) if j != i)
                 for i, z in enumerate((0.5, -2.0, 0.0))]  # fmt: skip
        assert names["ovr_hinge"](logits)[0].tolist() == pytest.approx(naive)
    if "doubtful" in names:
        assert "# +10.9% ± 0.7%" in example
        assert names["ratios"].mean() == pytest.approx(0.109, abs=0.05)
        assert "doubtful 0.99" in capsys.readouterr().out
    if "scores" in names:
        assert names["scores"].test_accuracy > 0.9


def test_commands_that_are_not_run_are_commands_at_least():
    command = typer.main.get_command(app)
    for page in PAGES:
        for block in blocks(page, "text"):
            for line in block.splitlines():
                if line.startswith("shortlist "):
                    name, *words = shlex.split(line)[1:]
                    command.commands[name].make_context(name, words, resilient_parsing=False)


OURS = ("simulate", "train", "evaluate", "predict", "methods", "models", "datasets")


def test_every_help_has_an_example_that_runs(place, shortlist, monkeypatch):
    """In the order of a session: what train makes, evaluate reads."""
    assert shortlist("train", "questions.csv", "--size", "2", "--out", "runs/banking").code == 0
    for name in OURS:
        done = shortlist(name, "--help")
        assert done.code == 0
        example = re.search(r"Example: (.*?)(?:\n\n|\Z)", done.out, re.DOTALL)
        assert example, name
        call(" ".join(example[1].split()), shortlist, monkeypatch)


def test_help_is_quick_and_loads_no_torch():
    code = (
        "import sys, time; t = time.perf_counter(); sys.argv = ['shortlist', '--help']\n"
        "import shortlist.cli\n"
        "try: shortlist.cli.main()\n"
        "except SystemExit: pass\n"
        "heavy = [m for m in ('torch', 'sklearn', 'scipy', 'matplotlib', 'pyarrow', 'fastapi') if m in sys.modules]\n"
        "assert not heavy, heavy\n"
        "sys.stderr.write(str(time.process_time()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "train" in done.stdout
    assert float(done.stderr) < 0.5  # of processor time: others may be busy
