"""Packs and the driver: what is missing is trained, in good company, in time, and stored as it ends."""

import pytest

from shortlist.errors import InputError
from shortlist.study.plan import datasets as sets
from shortlist.study.plan.grid import Wanted, planned
from shortlist.study.plan.recipes import Recipes
from shortlist.study.plan.variants import passes
from shortlist.study.run.batches import (
    FEWEST,
    FIRST_START,
    GOOD,
    SMALL_BESIDE,
    Pace,
    RunBatch,
    cut,
    groups,
    items_of,
    next_batch,
)
from shortlist.study.run.driver import Budget, drive, missing
from shortlist.study.run.ledger import Ledger, Ledgers

from ..conftest import Clock, FakeEngine

DIGITS = planned(Wanted(("table1",), ("digits",), trials=2, sizes=(5, 3), epochs=3), Recipes())
FASHION = planned(Wanted(("table1", "table4"), ("fashion",)), Recipes())


def one(tmp_path):
    ledger = Ledger(tmp_path / "l.jsonl")
    return lambda run: ledger


class TestPacks:
    def test_all_runs_each_once(self):
        found = [run.key for group in groups(FASHION) for run in group]
        assert sorted(found) == sorted(run.key for run in FASHION)

    def test_a_group_can_step_together(self):
        """Which classes a run has does not matter, how many does."""
        for group in groups(FASHION):
            assert len({(r.cell.num_classes, r.config.model, r.config.batch_size) for r in group}) == 1
        assert any(len({r.config.classes for r in group}) > 1 for group in groups(FASHION))

    def test_runs_of_a_group_are_about_as_long(self):
        """Their joint cost is below that of packs by length, and below that of all that can step together."""

        def cost(key):
            parts = {key(run): [r for r in FASHION if key(r) == key(run)] for run in FASHION}
            return sum(RunBatch(tuple(part)).work() for part in parts.values())

        found = groups(FASHION)
        ours = sum(RunBatch(tuple(group)).work() for group in found)
        assert ours < cost(lambda r: (r.config.classes, items_of(r)))
        assert ours < cost(lambda r: r.cell.num_classes)
        spent = sum(items_of(r) * r.config.epochs * passes(r.config.method) for r in FASHION)
        assert ours < 1.35 * spent
        for group in found:
            assert items_of(group[0]) == max(map(items_of, group))

    def test_few_runs_join_their_neighbours(self):
        few = [run for run in FASHION if run.trial == 0 and run.cell.variant.name in ("rc", "sl")]
        found = groups(few)
        assert len({run.cell.num_classes for group in found for run in group}) == len(found) == 2
        assert all(len(group) == sum(r.cell.num_classes == group[0].cell.num_classes for r in few) for group in found)

    def test_items_and_work(self):
        run = next(
            r
            for r in FASHION
            if (r.cell.variant.name, r.cell.variant.protocol, r.cell.classes, r.cell.size) == ("rc", "paper", "4-9", 3)
        )
        assert items_of(run) == pytest.approx(36_000 * 0.5)
        assert RunBatch((run, run)).work() == pytest.approx(18_000 * (200 * 4 / 3 + 100 * SMALL_BESIDE))
        assert RunBatch((run,)).work(cuda=False) == pytest.approx(18_000 * 100 * 4 / 3)

    def test_the_pace_is_measured(self):
        pace, pack = Pace(cuda=True), RunBatch(tuple(FASHION[:10]))
        guess = pace.seconds(pack)
        pace.saw(pack, 100.0)  # with 60 s of compiling in it
        assert pace.seconds(pack) == pytest.approx(1.15 * 100)
        pace.saw(pack, 40.0)
        assert pace.seconds(pack) == pytest.approx(1.15 * 40)
        small = RunBatch(pack.runs[:1])
        pace.saw(small, 27.0)  # 20 s would be expected: a start of 7 s
        assert pace.seconds(small) == pytest.approx(1.15 * 27, rel=0.3)
        assert guess < 120
        assert Pace(cuda=True).all_seconds([pack.runs, pack.runs], 1000) == pytest.approx(
            2 * guess + 1.15 * FIRST_START
        )

    @pytest.mark.parametrize("usual", [1, 10, 60, 1000])
    def test_a_pack_takes_as_long_as_it_may(self, usual):
        pace = Pace(cuda=True)
        pace.saw(RunBatch(tuple(FASHION[:10])), 30.0)
        group = groups(FASHION)[0]
        pack = next_batch(group, pace, usual, float("inf"), None)
        assert pack.runs == tuple(group[: len(pack.runs)])
        assert len(pack.runs) <= GOOD * SMALL_BESIDE or pace.seconds(pack) <= usual
        if len(pack.runs) < len(group):
            assert pace.seconds(RunBatch(tuple(group[: 2 * len(pack.runs)]))) > usual
            sizes = [len(part.runs) for part in cut(group, pace, usual)]
            assert max(sizes[:-1]) == min(sizes[:-1]) == len(pack.runs) >= sizes[-1]  # no small ones left over
            assert sum(sizes) == len(group)

    def test_nothing_is_begun_that_would_end_too_late(self):
        pace = Pace(cuda=True)
        pace.saw(RunBatch(tuple(FASHION[:1])), 10.0)
        group = groups(FASHION)[0]
        assert next_batch(group, pace, 120, 5, None) is None
        fits = next_batch(group, pace, 1200, 60, None)
        assert FEWEST * SMALL_BESIDE <= len(fits.runs) < len(group)
        assert pace.seconds(fits) <= 60
        assert next_batch(group, pace, 1200, 20, None) is None  # a few runs would fit, and waste the device
        assert len(next_batch(group, pace, 120, float("inf"), 1).runs) == 1


class TestDrive:
    def test_everything_is_stored_once(self, tmp_path):
        engine, ledger = FakeEngine(), one(tmp_path)
        report = drive(DIGITS, ledger, engine, Budget())
        assert (report.stored, report.left, report.failed) == (len(DIGITS), 0, 0)
        assert {row["key"] for row in ledger(None).rows()} == {run.key for run in DIGITS}
        assert all(len(order.configs) == 1 for order in engine.orders)  # one by one on a CPU
        again = FakeEngine()
        assert drive(DIGITS, ledger, again, Budget()).stored == 0
        assert again.orders == []

    def test_a_gpu_gets_packs(self, tmp_path):
        engine = FakeEngine(cuda=True)
        drive(DIGITS, one(tmp_path), engine, Budget())
        assert max(len(order.configs) for order in engine.orders) > 5
        assert sum(len(order.configs) for order in engine.orders) == len(DIGITS)

    def test_rows_hold_what_was_asked_and_what_came_of_it(self, tmp_path):
        ledger = one(tmp_path)
        drive(DIGITS[:1], ledger, FakeEngine(), Budget())
        (row,) = ledger(None).rows()
        run = DIGITS[0]
        assert row["key"] == run.key
        assert {**row["config"], "classes": None} == run.config.to_dict()
        assert (row["dataset"], row["trial"], row["recipe"]) == ("digits", run.trial, run.source)
        assert len(row["accuracy"]) == 3
        assert row["last"] == row["accuracy"][-1]
        assert list(row)[-1] == "accuracy"
        assert {"hardware", "versions", "commit", "date", "seconds", "validation"} <= set(row)

    def test_stopped_anywhere_and_started_again(self, tmp_path):
        ledger = one(tmp_path)
        for stop in (2, 5, 9):
            with pytest.raises(KeyboardInterrupt):
                drive(DIGITS, ledger, FakeEngine(slots=2, die_after=stop), Budget())
        stored = [row["key"] for row in ledger(None).rows()]
        assert stored
        engine = FakeEngine()
        drive(DIGITS, ledger, engine, Budget())
        assert len(engine.orders) == len(DIGITS) - len(stored)  # nothing lost, nothing repeated
        assert not missing(DIGITS, ledger)

    def test_stops_before_the_time_is_over(self, tmp_path, monkeypatch):
        clock = Clock(monkeypatch)
        engine = FakeEngine(seconds=20.0)
        waited = engine.wait

        def wait():
            clock.now += 20
            return waited()

        engine.wait = wait
        report = drive(DIGITS, one(tmp_path), engine, Budget(minutes=2))
        assert clock.now <= 120
        assert report.stored + report.left == len(DIGITS)
        assert 2 <= report.stored <= 6

    def test_data_that_is_not_here_is_left_out_and_named(self, tmp_path, monkeypatch):
        monkeypatch.setenv("SHORTLIST_DATA", str(tmp_path))
        runs = [*FASHION[:3], *DIGITS]
        sets.load.cache_clear()
        said = []
        report = drive(runs, one(tmp_path), FakeEngine(), Budget(), say=said.append)
        assert report.stored == len(DIGITS)
        assert report.left == 3
        assert list(report.absent) == ["fashion"]
        assert any(line.startswith("fashion is left out: ") for line in said)

    def test_a_run_that_breaks_is_stored_as_such(self, tmp_path):
        config = DIGITS[0].config
        engine = FakeEngine()
        broken = {**engine_row(config), "failed": "the risk is nan after epoch 2", "last": None}
        engine.wait = lambda: type("D", (), {"number": 0, "rows": [broken], "seconds": 1.0})()
        ledger = one(tmp_path)
        report = drive(DIGITS[:1], ledger, engine, Budget())
        assert (report.stored, report.failed) == (1, 1)
        assert ledger(None).rows()[0]["failed"] == "the risk is nan after epoch 2"

    @pytest.mark.parametrize("stated", [{"minutes": 0}, {"batch_minutes": -1}, {"minutes": float("nan")}])
    def test_bad_budgets(self, stated):
        with pytest.raises(InputError, match="expected more than 0"):
            Budget(**stated)


def engine_row(config):
    from ..conftest import outcome

    return outcome(config, 0.5)


def test_a_real_run_and_a_real_failure(tmp_path):
    """Trained, not pretended: the accuracy is the single loop's, and a run that diverges is recorded."""
    from dataclasses import replace

    from shortlist.study.run.worker import Order, work
    from shortlist.training.config import Engine
    from shortlist.training.loop import fit
    from shortlist.training.prepared import prepare

    config = next(run.config for run in DIGITS if run.config.method == "sl")
    wild = replace(config, lr=1e6, method_options={})
    good, bad = work(Order("digits", (config, wild), "cpu"))
    history = fit(prepare(sets.load("digits"), config, engine=Engine("cpu")))
    assert good["accuracy"] == [round(row.test_accuracy, 4) for row in history]
    assert good["failed"] is None
    assert good["together"] == 1
    assert "the risk is" in bad["failed"]
    assert bad["last"] is bad["mean_of_last_ten"] is None
    untested = work(Order("digits", (replace(config, holdout=0.1),), "cpu", tested=False))[0]
    assert untested["accuracy"] == []
    assert untested["last"] is None
    assert 0.1 < untested["validation"] <= 1


class TestSets:
    def test_a_quick_part(self):
        assert len(sets.load("digits-quick").train) == 1_437  # less than a quick part has
        assert len(sets.load("digits-quick").test) == 360
        part = "1,437 of 1,437 training and 360 of 360 test items"
        assert sets.study_dataset("digits-quick").note == f"not in the paper: scikit-learn's 8x8 digits; {part}"
        part = "4,000 of 60,000 training and 1,000 of 10,000 test items"
        assert sets.study_dataset("fashion-quick").note == f"not the paper's setting: {part}"

    def test_kuzushiji_small(self):
        import numpy as np

        pytest.importorskip("numpy")
        try:
            small = sets.load("kuzushiji-small")
        except InputError as error:
            pytest.skip(f"the official test images are not here: {error}")
        assert (len(small.train), len(small.test), small.num_classes) == (8_000, 2_000, 10)
        assert not set(small.train.items) & set(small.test.items)
        assert np.bincount(small.train.y).min() > 700

    def test_only_the_papers_data_is_held_against_it(self):
        assert sets.paper_title("fashion") == "Fashion"
        for name in ("kuzushiji-small", "digits", "fashion-quick"):
            assert sets.paper_title(name) is None
            assert "not" in sets.study_dataset(name).note


def test_ledgers_of_a_study_are_by_dataset(tmp_path):
    ledgers = Ledgers(tmp_path)
    drive([DIGITS[0]], lambda run: ledgers.of(run.cell.dataset), FakeEngine(), Budget())
    assert ledgers.datasets() == ["digits"]
