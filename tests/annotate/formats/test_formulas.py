"""No export runs anything in a spreadsheet, and what it holds comes back as it was."""

import csv
import importlib.util

from shortlist import StochasticLabels
from shortlist.annotate.formats import EXPORTS
from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.sources import Source
from shortlist.data import read_table

from ..conftest import people

CLASSES = ["=1+1", "+cmd", "-x", "@SUM(A1)", "'=quoted", "plain"]
ITEMS = ["=HYPERLINK(1)", "-5", "@b", "\tc".strip(), "+d", "'e"]


def test_names_that_look_like_formulas(make_project, tmp_path):
    project = make_project(items=0, classes=0, size=5)
    add_classes(project, CLASSES)
    add_items(project, [Source(name, name, text=name) for name in ITEMS])
    add_items(project, [Source(f"={name}", f"={name}", text="?", gold="=1+1") for name in "gh"])
    (ada,) = people(project, "=ada")
    queue = project.queue()
    while held := queue.next(ada):
        queue.answer(ada, held[0].id, 0, held[0].shortlist[0], 1.0)
    spreadsheets = {name for name in EXPORTS if name.endswith(".csv")}
    if importlib.util.find_spec("crowdkit") is None:
        spreadsheets.remove("dawid-skene.csv")
    for name in spreadsheets:
        EXPORTS[name](project, tmp_path / name)
        with (tmp_path / name).open(newline="", encoding="utf-8") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "@", "-")) and cell != "-5"], name
    EXPORTS["answers.jsonl"](project, tmp_path / "answers.jsonl")
    read = [StochasticLabels.read(tmp_path / f"answers.{ending}") for ending in ("csv", "jsonl")]
    assert read[0].class_names == read[1].class_names == tuple(CLASSES)
    assert list(read[0].items) == list(read[1].items)
    assert set(read[0].items) == set(ITEMS)
    assert set(read_table(tmp_path / "labels.csv")["item"]) == set(ITEMS)
    assert set(read_table(tmp_path / "labels.csv")["label"]) <= set(CLASSES)
    read[0].write(tmp_path / "again.csv")
    assert "\n=" not in (tmp_path / "again.csv").read_text()
    assert list(StochasticLabels.read(tmp_path / "again.csv").items) == list(read[0].items)
