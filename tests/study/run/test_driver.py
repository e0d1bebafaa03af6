"""The driver: what is missing is trained, in time, and stored as it ends."""

import pytest

from shortlist.errors import InputError
from shortlist.study.choose.points import TRIED
from shortlist.study.plan import datasets
from shortlist.study.plan.grid import Wanted, planned
from shortlist.study.plan.recipes import Recipes
from shortlist.study.run.batches import RunBatch
from shortlist.study.run.driver import Budget, drive, missing
from shortlist.study.run.engines import Finished
from shortlist.study.run.ledger import Ledger, Ledgers

from ..conftest import Clock, FakeEngine, fake_row

DIGITS = planned(Wanted(("table1",), ("digits",), trials=2, sizes=(5, 3), epochs=3), Recipes())
FASHION = planned(Wanted(("table1",), ("fashion",), trials=1), Recipes())


def one(tmp_path):
    ledger = Ledger(tmp_path / "l.jsonl")
    return lambda run: ledger


class TestDrive:
    def test_everything_is_stored_once(self, tmp_path):
        engine, ledger = FakeEngine(), one(tmp_path)
        outcome = drive(DIGITS, ledger, engine, Budget())
        assert (outcome.stored, outcome.left, outcome.failed) == (len(DIGITS), 0, 0)
        assert {row["key"] for row in ledger(None).rows()} == {run.key for run in DIGITS}
        assert all(len(batch.runs) == 1 for batch in engine.batches)  # one by one on a CPU
        again = FakeEngine()
        assert drive(DIGITS, ledger, again, Budget()).stored == 0
        assert again.batches == []

    def test_a_gpu_gets_batches(self, tmp_path):
        engine = FakeEngine(cuda=True)
        drive(DIGITS, one(tmp_path), engine, Budget())
        assert max(len(batch.runs) for batch in engine.batches) > 5
        assert sum(len(batch.runs) for batch in engine.batches) == len(DIGITS)

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
        assert len(engine.batches) == len(DIGITS) - len(stored)  # nothing lost, nothing repeated
        assert not missing(DIGITS, ledger)

    def test_stops_before_the_time_is_over(self, tmp_path, monkeypatch):
        clock = Clock(monkeypatch)
        engine = FakeEngine(seconds=20.0)
        waited = engine.wait

        def wait():
            clock.now += 20
            return waited()

        engine.wait = wait
        outcome = drive(DIGITS, one(tmp_path), engine, Budget(minutes=2))
        assert clock.now <= 120
        assert outcome.stored + outcome.left == len(DIGITS)
        assert 2 <= outcome.stored <= 6

    def test_data_that_is_not_here_is_left_out_and_named(self, tmp_path, monkeypatch):
        monkeypatch.setenv("SHORTLIST_DATA", str(tmp_path))
        runs = [*FASHION[:3], *DIGITS]
        datasets.load.cache_clear()
        said = []
        outcome = drive(runs, one(tmp_path), FakeEngine(), Budget(), say=said.append)
        assert outcome.stored == len(DIGITS)
        assert outcome.left == 3
        assert list(outcome.absent) == ["fashion"]
        assert any(line.startswith("fashion is left out: ") for line in said)

    def test_a_run_that_breaks_is_stored_as_such(self, tmp_path):
        engine = FakeEngine()
        broken = fake_row(DIGITS[0], failed="the risk is nan after epoch 2")
        engine.wait = lambda: Finished(0, [broken], 1.0)
        ledger = one(tmp_path)
        outcome = drive(DIGITS[:1], ledger, engine, Budget())
        assert (outcome.stored, outcome.failed) == (1, 1)
        assert ledger(None).rows()[0]["failed"] == "the risk is nan after epoch 2"

    @pytest.mark.parametrize("stated", [{"minutes": 0}, {"batch_minutes": -1}, {"minutes": float("nan")}])
    def test_bad_budgets(self, stated):
        with pytest.raises(InputError, match="expected more than 0"):
            Budget(**stated)


def test_a_real_run_and_a_real_failure(tmp_path):
    """Trained, not pretended: the accuracy is the single loop's, and a run that diverges is recorded."""
    from dataclasses import replace

    from shortlist.study.run.worker import train_batch
    from shortlist.training.config import Engine
    from shortlist.training.evaluation import calibration_error, predict_logits
    from shortlist.training.loop import fit
    from shortlist.training.prepared import prepare

    run = next(run for run in DIGITS if run.config.method == "sl")
    config = run.config
    wild = replace(run, config=replace(config, lr=1e6, method_options={}))
    good, bad = train_batch(RunBatch((run, wild), device="cpu"))
    prepared = prepare(datasets.load("digits"), config, engine=Engine("cpu"))
    history = fit(prepared)
    logits = predict_logits(prepared.run.model, prepared.test)
    p = prepared.method.class_probabilities(logits, prepared.smoothing).double().numpy()
    assert good["calibration_error"] == pytest.approx(calibration_error(p, prepared.test_y.numpy()), abs=1e-6)
    assert good["accuracy"] == [round(row.test_accuracy, 4) for row in history]
    assert good["failed"] is None
    assert good["together"] == 1
    assert "the risk is" in bad["failed"]
    assert bad["last"] is bad["mean_of_last_ten"] is None
    held_out = replace(run, config=replace(config, holdout=0.1))
    (untested,) = train_batch(RunBatch((held_out,), TRIED, "cpu"))
    assert untested["accuracy"] == []
    assert "calibration_error" not in untested
    assert untested["last"] is None
    assert 0.1 < untested["validation"] <= 1


def test_ledgers_of_a_study_are_by_dataset(tmp_path):
    ledgers = Ledgers(tmp_path)
    drive([DIGITS[0]], lambda run: ledgers.of(run.cell.dataset), FakeEngine(), Budget())
    assert ledgers.datasets() == ["digits"]
