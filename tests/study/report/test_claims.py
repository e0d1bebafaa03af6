"""Claims: what reaches the paper's figure, and what falls short of it."""

import pytest

from shortlist.study.plan.grid import Cell, plan_run
from shortlist.study.plan.recipes import Recipes
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.report.claims import checks
from shortlist.study.report.results import Results

from ..conftest import fake_row


@pytest.mark.parametrize(("ours", "held", "below"), [(0.9874, 1, ()), (0.9873, 0, ("size 8: -0.01",))])
def test_a_figure_that_is_just_reached_is_reached(ours, held, below):
    """The paper's SL has 99.04 on MNIST at size 8, the margin is 0.3: 98.74 is at it, neither above nor below."""
    run = plan_run(Cell("mnist", "1-10", 8, MethodVariant("sl")), 0, Recipes())
    (check,) = checks(Results([{**fake_row(run), "last": ours}], Recipes()))
    assert check.claim == "MNIST: our SL row reaches the paper's SL row minus 0.3 at every size"
    assert (check.held, check.cells, check.below) == (held, 1, below)
