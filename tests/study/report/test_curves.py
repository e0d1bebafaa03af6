"""Curves: accuracy by epoch and by size."""

import numpy as np

from shortlist.internal import drawing
from shortlist.study.plan.grid import Cell, Wanted, planned
from shortlist.study.plan.paper import Figure
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.report import curves, size_curves
from shortlist.study.report.results import Results

from ..conftest import fake_row
from .conftest import NONE_CHOSEN


def test_curves_of_figure_2(fashion):
    results = Results(fashion, NONE_CHOSEN)
    svg = curves.figure2("fashion", results)
    assert 'role="img"' in svg
    for text in ("size 8, paper", "size 5, fair", "likelihood", "PRODEN", "OL (cross entropy)", "epoch"):
        assert text in svg
    assert curves.figure2("mnist", results) is None
    colours = [look[0] for look in drawing.LOOKS.values()]
    assert len(set(colours)) == len(colours)
    assert len({(str(look[1]), look[2]) for look in drawing.LOOKS.values()}) == len(colours)
    every = [*drawing.LOOKS.values(), *drawing.SPARE]
    assert len({look[0] for look in every}) == len({(str(look[1]), look[2]) for look in every}) == len(every)
    assert curves.figure2("fashion", results) == svg  # the same ledger, the same picture


def test_accuracy_by_size(fashion):
    """Points where the cells are; what was run at one size only, or not at all, has no line."""
    results = Results(fashion, NONE_CHOSEN)
    svg = size_curves.by_size("fashion", results)
    assert svg == size_curves.by_size("fashion", results)
    assert 'role="img"' in svg
    for text in (
        "without augmentation",
        "classes shown, of 10",
        ">SL<",
        ">RC<",
        ">likelihood<",
        ">OL (cross entropy)<",
    ):
        assert text in svg
    for text in ("with augmentation", "with two views", ">CC<"):  # CC with every answer is the likelihood
        assert text not in svg.replace("without augmentation", "")
    points = size_curves._methods("fashion", "", results, drawing.LOOKS)["rc"]
    assert points == {
        size: results.of(Cell("fashion", "1-10", size, MethodVariant("rc", "fair"))).last
        for size in results.sizes("fashion")
    }
    alone = [row for row in fashion if row["size"] in (5, None)]
    assert size_curves.by_size("fashion", Results(alone, NONE_CHOSEN)) is None
    assert size_curves.by_size("mnist", results) is None
    low, high = size_curves._range([Figure(92.0, 0.1), Figure(88.0, None), Figure(30.0, 9.0)])
    assert 87 < low < 88
    assert 92 < high < 93


def test_accuracy_by_size_of_a_method_that_the_paper_has_not(fashion):
    """Such as one's own: it has a line as the others have."""
    runs = planned(Wanted(("table1",), ("fashion",), ("sl_unbiased",), sizes=(5, 3)), NONE_CHOSEN)
    results = Results([*fashion, *(fake_row(run, 0.9) for run in runs)], NONE_CHOSEN)
    assert ">SL, unbiased form<" in size_curves.by_size("fashion", results)


def test_figure_2_shows_where_the_curves_are():
    """Methods a point apart are told apart, every one that learned is in the picture, a collapsed one is not."""
    epochs = np.arange(80)
    shown = [level - 3 * np.exp(-epochs / 20) for level in (92.5, 92.0, 91.0, 90.5, 90.2, 90.1, 90.0, 88.5)]
    low, high = curves._range([*shown, np.full(80, 10.0)])
    assert 85 < low < 88.5
    assert 92.5 < high < 93.5
    assert curves._range([np.full(80, 99.9)])[1] == 100
