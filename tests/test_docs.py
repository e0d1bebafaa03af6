"""The examples in the docstrings and in docs/methods.md run, and its figures are those of the code."""

import doctest
import importlib
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch

import naive
import shortlist
from shortlist import methods, theory
from shortlist.methods import Batch

SOURCE = Path(shortlist.__file__).parent
MODULES = [
    ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(SOURCE.rglob("*.py"))
    if ">>>" in path.read_text()
]
PAGE = (Path(__file__).parents[1] / "docs" / "methods.md").read_text()


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    found = doctest.testmod(importlib.import_module(name), extraglobs={"torch": torch})
    assert found.attempted
    assert not found.failed


def test_adding_a_method_as_the_page_says(monkeypatch):
    monkeypatch.setattr(methods, "METHODS", dict(methods.METHODS))
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len([line for line in example.splitlines() if line.strip()]) <= 20
    # as a module of its own: a dataclass looks its module up
    exec(compile(example, "docs/methods.md", "exec"), {"__name__": __name__})
    sample = naive.sample(keep="none")
    method = methods.get("outside", scale=2.0)
    got = method.objective(sample.logits, Batch(sample.shown, sample.answer, sample.prior))
    p = torch.softmax(sample.logits, -1)
    torch.testing.assert_close(got, 2 * (p * sample.shown).sum(-1).mean())


def test_running_and_comparing_it_as_the_page_says(tmp_path):
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (commands,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "outside.py").write_text(example)
    words = [shlex.split(command) for command in commands.splitlines()]
    # one after the other in one process: PyTorch is loaded once
    script = f"""
import sys
from shortlist.cli import main
for sys.argv in {words!r}:
    try:
        main()
    except SystemExit as end:
        assert not end.code, sys.argv
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "| probability outside the candidates |" in (tmp_path / "mine" / "report.md").read_text()


def test_the_page_names_every_method_and_no_other():
    table = PAGE.split("## The methods, one by one")[1].split("## Adding a method")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(methods.METHODS)


def test_the_page_names_every_loss():
    from shortlist.losses import LOSSES

    table = PAGE.split("## The losses")[1].split("## The two protocols")[0]
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == list(LOSSES)


def test_the_figures_of_the_page():
    for name, smoothing in (("smoothing", theory.smoothing), ("paper_smoothing", theory.paper_smoothing)):
        (row,) = re.findall(rf"\(`theory\.{name}`\) \|(.*)\|", PAGE)
        assert [float(cell) for cell in row.split("|")] == [round(smoothing(10, size), 2) for size in (8, 5, 3)]


DESIGN = (Path(__file__).parents[1] / "docs" / "design.md").read_text()
SOURCE = Path(__file__).parents[1] / "src" / "shortlist"


def test_the_files_of_the_design_are_there():
    named = set(re.findall(r"`((?:\w+/)+\w*(?:\.py)?|\w+\.py)`", DESIGN)) - {"results/", "benchmarks/"}
    assert len(named) > 20
    for name in named:
        assert (SOURCE / name).exists() or (SOURCE.parents[1] / name).exists(), name


def test_every_room_is_in_the_design():
    tree = DESIGN.split("## Rooms")[1].split("**Layers.**")[0]
    rooms = {path.name + "/" * path.is_dir() for path in SOURCE.iterdir() if path.name[:1] not in "_."}
    missing = {room for room in rooms - {"py.typed"} if room not in tree}
    assert not missing


def test_the_layers_of_the_design_are_those_that_are_checked():
    contract = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    block = DESIGN.split("**Layers.**")[1].split("```")[1]
    assert [re.findall(r"\w+", line) for line in block.strip().splitlines()] == [
        re.findall(r"\w+", layer) for layer in contract["layers"]
    ]


def test_the_lengths_of_the_design():
    """The lines that matter are as few as it says."""
    stated = re.findall(r"`([\w/]+\.py)` \(under (\d+) lines\)", DESIGN)
    assert len(stated) >= 3
    for name, lines in stated:
        assert len((SOURCE / name).read_text().splitlines()) < int(lines), name


PAGES = sorted((SOURCE.parents[1] / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_the_files_that_a_page_names_are_there(page):
    named = re.findall(r"(?<![\w/.-])((?:tests|benchmarks|results|src)/[\w/-]+\.[a-z]+)", page.read_text())
    assert [name for name in named if not (SOURCE.parents[1] / name).exists()] == []


def test_the_ledger_in_pandas_keeps_runs_of_different_settings_apart(monkeypatch):
    """A trial counts once in each mean: what was run for 100 and for 200 epochs are two figures."""
    pytest.importorskip("pandas")
    root = Path(__file__).parents[1]
    monkeypatch.chdir(root)
    page = (root / "docs" / "study.md").read_text()
    names = {}
    exec(page.split("```python\n")[1].split("```")[0], names)
    trials = names["whole"].groupby(names["cell"], dropna=False)["trial"]
    assert trials.size().eq(trials.nunique()).all()
    assert len(trials) > 700
