"""A study of Fashion whose figures are made up."""

import re

import pytest

from shortlist.study.plan.grid import Wanted, planned
from shortlist.study.plan.recipes import Recipes
from shortlist.study.run.ledger import Ledgers

from ..conftest import fake_row

NONE_CHOSEN = Recipes()


def write(folder, rows):
    ledgers = Ledgers(folder)
    for row in rows:
        ledgers.of(row["dataset"]).append(row)
    return folder


def level_of(run):
    """SL falls with the size; the likelihood is the best, RC the worst."""
    base = {"sl": 0.90, "likelihood": 0.93, "rc": 0.80, "ol": 0.94}.get(run.cell.variant.method, 0.88)
    return base + 0.002 * (run.cell.size or 9) + 0.001 * run.trial


@pytest.fixture(scope="module")
def fashion():
    runs = planned(Wanted(datasets=("fashion",)), NONE_CHOSEN)
    return [fake_row(run, level_of(run)) for run in runs]


def missing(path):
    """The cells that the report names as missing, by what stands above them."""
    parts = re.split(r"^(?=\*\*)", path.read_text().split("## What was not run")[1].strip(), flags=re.MULTILINE)
    split = [part.strip().split("\n\n- ") for part in parts if part.startswith("**")]
    return {head: lines.split("\n- ") for head, lines in split}
