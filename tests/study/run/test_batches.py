"""Batches: runs in good company, which end in time."""

import pytest

from shortlist.study.plan.grid import Wanted, planned
from shortlist.study.plan.recipes import Recipes
from shortlist.study.plan.variants import step_cost
from shortlist.study.run.batches import (
    FEWEST,
    FIRST_START,
    GOOD,
    SMALL_OVERHEAD,
    Pace,
    RunBatch,
    cut,
    groups,
    items_of,
    next_batch,
)

FASHION = planned(Wanted(("table1", "table4"), ("fashion",)), Recipes())


def test_all_runs_each_once():
    found = [run.key for group in groups(FASHION) for run in group]
    assert sorted(found) == sorted(run.key for run in FASHION)


def test_a_group_can_step_together():
    """Which classes a run has does not matter, how many does."""
    for group in groups(FASHION):
        assert len({(r.cell.num_classes, r.config.model, r.config.batch_size) for r in group}) == 1
    assert any(len({r.config.classes for r in group}) > 1 for group in groups(FASHION))


@pytest.mark.slow
def test_runs_of_a_group_are_about_as_long():
    """Their joint cost is below that of batches by length, and below that of all that can step together."""

    def cost(key):
        parts = {key(run): [r for r in FASHION if key(r) == key(run)] for run in FASHION}
        return sum(RunBatch(tuple(part)).cost() for part in parts.values())

    found = groups(FASHION)
    ours = sum(RunBatch(tuple(group)).cost() for group in found)
    assert ours < cost(lambda r: (r.config.classes, items_of(r)))
    assert ours < cost(lambda r: r.cell.num_classes)
    spent = sum(items_of(r) * r.config.epochs * step_cost(r.config) for r in FASHION)
    assert ours < 1.35 * spent
    for group in found:
        assert items_of(group[0]) == max(map(items_of, group))


def test_few_runs_join_their_neighbours():
    few = [run for run in FASHION if run.trial == 0 and run.cell.variant.name in ("rc", "sl")]
    found = groups(few)
    assert len({run.cell.num_classes for group in found for run in group}) == len(found) == 2
    assert all(len(group) == sum(r.cell.num_classes == group[0].cell.num_classes for r in few) for group in found)


def test_items_and_work():
    run = next(
        r
        for r in FASHION
        if (r.cell.variant.name, r.cell.variant.protocol, r.cell.classes, r.cell.size) == ("rc", "paper", "4-9", 3)
    )
    assert items_of(run) == pytest.approx(36_000 * 0.5)
    assert RunBatch((run, run)).cost() == pytest.approx(18_000 * (200 * 4 / 3 + 100 * SMALL_OVERHEAD))
    assert RunBatch((run,)).cost(cuda=False) == pytest.approx(18_000 * 100 * 4 / 3)


def test_the_pace_is_measured():
    pace, batch = Pace(cuda=True), RunBatch(tuple(FASHION[:10]))
    guess = pace.seconds(batch)
    pace.saw(batch, 100.0)  # with 60 s of compiling in it
    assert pace.seconds(batch) == pytest.approx(1.15 * 100)
    pace.saw(batch, 40.0)
    assert pace.seconds(batch) == pytest.approx(1.15 * 40)
    small = RunBatch(batch.runs[:1])
    pace.saw(small, 27.0)  # 20 s would be expected: a start of 7 s
    assert pace.seconds(small) == pytest.approx(1.15 * 27, rel=0.3)
    assert guess < 120
    assert Pace(cuda=True).all_seconds([batch.runs, batch.runs], 1000) == pytest.approx(2 * guess + 1.15 * FIRST_START)


@pytest.mark.parametrize("usual", [1, 10, 60, 1000])
def test_a_batch_takes_as_long_as_it_may(usual):
    pace = Pace(cuda=True)
    pace.saw(RunBatch(tuple(FASHION[:10])), 30.0)
    group = groups(FASHION)[0]
    batch = next_batch(group, pace, usual, float("inf"))
    assert batch.runs == tuple(group[: len(batch.runs)])
    assert len(batch.runs) <= GOOD * SMALL_OVERHEAD or pace.seconds(batch) <= usual
    if len(batch.runs) < len(group):
        assert pace.seconds(RunBatch(tuple(group[: 2 * len(batch.runs)]))) > usual
        sizes = [len(part.runs) for part in cut(group, pace, usual)]
        assert max(sizes[:-1]) == min(sizes[:-1]) == len(batch.runs) >= sizes[-1]  # no small ones left over
        assert sum(sizes) == len(group)


def test_nothing_is_begun_that_would_end_too_late():
    pace = Pace(cuda=True)
    pace.saw(RunBatch(tuple(FASHION[:1])), 10.0)
    group = groups(FASHION)[0]
    assert next_batch(group, pace, 120, 5) is None
    fits = next_batch(group, pace, 1200, 60)
    assert FEWEST * SMALL_OVERHEAD <= len(fits.runs) < len(group)
    assert pace.seconds(fits) <= 60
    assert next_batch(group, pace, 1200, 20) is None  # a few runs would fit, and waste the device
    assert len(next_batch(group, Pace(cuda=False), 120, float("inf")).runs) == 1
