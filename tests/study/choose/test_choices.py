"""Settings that are chosen: tuning and the search."""

import numpy as np
import pytest

from shortlist.errors import InputError
from shortlist.study.choose import points, sl_search, tuning
from shortlist.study.commands import TUNED, Study
from shortlist.study.plan import datasets
from shortlist.study.plan.datasets import StudyDataset, study_dataset
from shortlist.study.plan.grid import Wanted
from shortlist.study.plan.recipes import Recipes, default_recipe
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.run.driver import Budget
from shortlist.study.run.ledger import RUN, Ledger

from ..conftest import Clock, FakeEngine

BOTH = ("paper", "fair")


class TestTuning:
    def test_every_line_has_the_same_number_of_tries(self):
        lines = tuning.variants_of(TUNED, BOTH)
        assert len(lines) == len(set(lines)) == 15
        for dataset in ("fashion", "cifar10"):
            starts = {line: Recipes().start(study_dataset(dataset), line) for line in lines}
            assert {len(tuning.points(dataset, line, start)) for line, start in starts.items()} == {8}
        line = MethodVariant("rc", "paper")
        for point in tuning.points("fashion", line, default_recipe(study_dataset("fashion"), line)):
            configs = [run.config for run in point.runs()]
            assert {(c.epochs, c.holdout, c.protocol) for c in configs} == {(30, 0.1, "paper")}
            assert [(c.size, c.seed) for c in configs] == [(5, 1001), (5, 1002), (3, 1001), (3, 1002)]

    def test_square_losses_have_a_tenth_of_the_rates(self):
        for name, rates in (("likelihood", {1e-1, 1e-2}), ("ol-ovr", {1e-2, 1e-3})):
            start = default_recipe(study_dataset("fashion"), MethodVariant(name))
            assert {p.recipe.lr for p in tuning.points("fashion", MethodVariant(name), start)} == rates

    def test_each_try_is_told_with_its_settings(self, tmp_path):
        said = []
        Study(tmp_path, say=said.append).tune(["digits"], ["rc"], ("fair",), FakeEngine(), epochs=1)
        tried = [line.split("] ")[1].split(": ")[0] for line in said if line.startswith("[")]
        assert len(tried) == len(set(tried)) == 16  # two sizes, two seeds, four points
        assert tried[0] == "digits, classes 1-10, size 5, RC (fair), trial 1001, lr 0.1, weight decay 0.0001"

    def test_the_best_on_held_out_items_is_used_for_all_sizes(self, tmp_path):
        study = Study(tmp_path)
        engine = FakeEngine(cuda=True, level=lambda c: 0.9 if (c.lr, c.weight_decay) == (1e-2, 1e-2) else 0.7)
        report = study.tune(["digits"], ["rc", "cc", "ol"], BOTH, engine)
        # rc (both), cc (paper), the likelihood at two sizes and ol, two seeds; the small grid of an mlp
        assert report.stored == (4 * 2 + 1) * 2 * 4
        assert not any(batch.kind == RUN for batch in engine.batches)
        assert len(engine.batches) == 1  # all points of all methods together
        recipe = study.recipes.of(study_dataset("digits"), MethodVariant("rc", "paper"))
        assert (recipe.lr, recipe.weight_decay) == (1e-2, 1e-2)
        assert recipe.source == (
            "tuned: first of 4 points of 30 epochs within a standard error of the best, held-out accuracy 90.00 ± 0.50"
            " at sizes 5 and 3, 2 seeds"
        )
        runs = study.missing(Wanted(("table1",), ("digits",), methods=("rc", "cc")))
        assert {(r.config.lr, r.config.weight_decay) for r in runs} == {(1e-2, 1e-2)}
        assert {r.config.holdout for r in runs} == {0.0}  # the final runs use all training items
        assert {r.config.size for r in runs} == {8, 7, 6, 5, 4, 3}
        again = FakeEngine()
        assert Study(tmp_path).tune(["digits"], ["rc", "cc", "ol"], BOTH, again).stored == 0
        kinds = [row["kind"] for row in Ledger(tmp_path / "ledger" / "tuning.jsonl").rows()]
        assert (kinds.count("tried"), kinds.count("choice")) == (72, 5)

    def test_a_short_try_does_not_push_out_the_real_choice(self, tmp_path):
        """The real one is in the ledger already and would not be stored again: it could never come back."""

        def best_at(lr):
            return FakeEngine(cuda=True, level=lambda c: 0.9 if c.lr == lr else 0.7)

        study = Study(tmp_path)
        study.tune(["digits"], ["rc"], ("fair",), best_at(1e-2))
        study.tune(["digits"], ["rc"], ("fair",), best_at(1e-1), epochs=3)
        study.tune(["digits"], ["rc"], ("fair",), best_at(1e-2))
        recipe = study.recipes.of(study_dataset("digits"), MethodVariant("rc"))
        assert (recipe.lr, recipe.source[:37]) == (1e-2, "tuned: first of 4 points of 30 epochs")

    def test_stopped_between_points_nothing_is_chosen_yet(self, tmp_path):
        study = Study(tmp_path)
        with pytest.raises(KeyboardInterrupt):
            study.tune(["digits"], ["sl", "rc"], ("fair",), FakeEngine(die_after=20))
        assert study.recipes.of(study_dataset("digits"), MethodVariant("rc")).source == "default, not tuned"
        study.tune(["digits"], ["sl", "rc"], ("fair",), FakeEngine())
        assert study.recipes.of(study_dataset("digits"), MethodVariant("rc")).source.startswith("tuned: first of 4")

    def test_what_fails_under_sgd_is_given_adam(self, tmp_path):
        study = Study(tmp_path)

        def level(config):
            if config.method == "rc":
                return 0.85 if config.optimiser == "adam" else 0.11
            return 0.8

        study.tune(["digits"], ["rc", "sl"], ("fair",), FakeEngine(level=level))
        recipe = study.recipes.of(study_dataset("digits"), MethodVariant("rc"))
        assert (recipe.optimiser, recipe.lr) == ("adam", 1e-3)
        assert recipe.source.endswith("(the authors' Adam, as it fails under SGD)")
        assert study.recipes.of(study_dataset("digits"), MethodVariant("sl")).optimiser == "sgd"

    @pytest.mark.parametrize(("num_classes", "level", "adam"), [(7, 0.49, True), (30, 0.17, False), (30, 0.16, True)])
    def test_many_classes_are_harder_to_tell(self, tmp_path, monkeypatch, num_classes, level, adam):
        about = StudyDataset("others", "Others", "mlp", 2, in_paper=False, num_classes=num_classes)
        monkeypatch.setitem(datasets._DATASETS, "others", about)
        monkeypatch.setattr(datasets, "load", lambda name: None)
        stored = Study(tmp_path).tune(["others"], ["rc"], ("fair",), FakeEngine(level=lambda config: level)).stored
        assert stored == 16 + 4 * adam

    def test_what_fails_gets_no_choice_before_adam_was_tried(self, tmp_path, monkeypatch):
        """Not the best of what failed, where the time ended before the last point."""
        clock, engine = Clock(monkeypatch), FakeEngine(level=lambda config: 0.11, seconds=20.0)
        waited = engine.wait

        def wait():
            clock.now += 20
            return waited()

        engine.wait = wait
        study = Study(tmp_path, budget=Budget(minutes=5.5))
        outcome = study.tune(["digits"], ["rc"], ("fair",), engine)
        assert (outcome.stored, outcome.left) == (16, 4)
        assert study.recipes.of(study_dataset("digits"), MethodVariant("rc")).source == "default, not tuned"
        assert Study(tmp_path).tune(["digits"], ["rc"], ("fair",), FakeEngine(level=lambda config: 0.85)).stored == 4
        assert study.recipes.of(study_dataset("digits"), MethodVariant("rc")).optimiser == "adam"

    def test_a_method_of_ones_own_has_no_authors(self, tmp_path, monkeypatch):
        (tmp_path / "my_weak.py").write_text("from shortlist.methods.cc import CC\n\n\nclass Mine(CC):\n    pass\n")
        monkeypatch.chdir(tmp_path)
        study = Study(tmp_path)
        engine = FakeEngine(level=lambda config: 0.85 if config.optimiser == "adam" else 0.11)
        study.tune(["digits"], ["my_weak:Mine"], ("fair",), engine)
        recipe = study.recipes.of(study_dataset("digits"), MethodVariant("my_weak:Mine"))
        assert "held-out accuracy 85.00" in recipe.source
        assert recipe.source.endswith(" (Adam, as it fails under SGD)")

    def test_for_real(self, tmp_path):
        """Trained on digits: the choice is by held-out answers alone, None answers among them."""
        from shortlist.study.run.engines import Local

        study = Study(tmp_path, device="cpu")
        assert study.tune(["digits"], ["likelihood"], BOTH, Local("cpu"), epochs=2).stored == 4 * 4
        rows = study.ledgers.of("tuning").rows()
        tried = [row for row in rows if row["kind"] == "tried"]
        assert all(row["accuracy"] == [] and row["last"] is None for row in tried)
        assert all(0 < row["estimate_error"] < 0.1 for row in tried)
        assert any(row["estimate"] != row["validation"] for row in tried)
        best = max(np.mean([row["estimate"] for row in tried[at : at + 4]]) for at in range(0, 16, 4))
        assert rows[-1]["score"] >= best - rows[-1]["score_error"] - 1e-6


class TestChoice:
    @staticmethod
    def choose(*scores, error=0.004):
        rows = [({"estimate": s, "estimate_error": error if s else None},) for s in scores]
        found = [points.Scored(None, row) for row in rows]
        chosen = points.choose(found)
        return None if chosen is None else found.index(chosen)

    def test_of_those_within_a_standard_error_of_the_best_the_first(self):
        assert self.choose(0.9, 0.903, 0.8) == 0
        assert self.choose(0.9, 0.905, 0.904) == 1
        assert self.choose(0.8, 0.9, 0.9) == 1

    def test_failures_go_to_nobody(self):
        assert self.choose(None, 0.8) == 1
        assert self.choose(None, None) is None
        assert self.choose() is None

    def test_the_error_of_a_mean(self):
        rows = tuple({"estimate": 0.9, "estimate_error": e} for e in (0.003, 0.004))
        assert points.Scored(None, rows).error == pytest.approx(0.0025)


class TestSearch:
    @staticmethod
    def level(config):
        """The literal form and a cosine are made to be the best, but with four classes another form."""
        form = "equal" if config.classes is not None and len(config.classes) == 4 else "paper"
        level = 0.6 + 0.1 * (config.method_options.get("form", "total") == form) + 0.05 * (config.lr == 1e-2)
        return level + 0.04 * (config.schedule == "cosine") - 0.01 * (config.size == 3)

    def test_both_rounds_the_table_and_the_choices(self, tmp_path):
        study = Study(tmp_path)
        engine = FakeEngine(cuda=True, level=self.level)
        report = study.search(["digits"], engine, epochs=12)
        grid = len(sl_search.grid("digits", 10, 12))
        assert grid == 30
        places = [len(cells) for cells in sl_search.PLACES.values()]
        assert report.stored == grid * sum(places) + 6 * 2 * sum(places)
        assert not any(batch.kind == RUN for batch in engine.batches)
        forms = {}
        for count in (10, 8, 6, 4):
            recipe = study.recipes.of(study_dataset("digits"), MethodVariant("sl"), count)
            forms[count] = recipe.method_options["form"]
            assert (recipe.schedule, recipe.lr) == ("cosine", 1e-2)
            assert recipe.source.startswith("search: first of 6 points at full length")
        assert forms == {10: "paper", 8: "paper", 6: "paper", 4: "equal"}
        text = (tmp_path / "search-digits.md").read_text()
        rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")][1:]
        assert len(rows) == 4 * (grid + 6)
        assert {row[3] for row in rows} == {"total", "equal", "paper"}
        assert {row[4] for row in rows} == {"sum", "mean", "negatives"}
        assert [row[-1] for row in rows].count("chosen |") == 4
        scores = [(-int(row[0].strip("| ")), -int(row[1]), -float(row[8].split()[0])) for row in rows]
        assert scores == sorted(scores)
        assert study.search(["digits"], FakeEngine(), epochs=12).stored == 0

    def test_no_point_of_a_round_is_run_twice(self):
        for dataset in ("fashion", "cifar10", "digits"):
            keys = [run.key for point in sl_search.grid(dataset, 10, 100) for run in point.runs()]
            assert len(keys) == len(set(keys))

    def test_elsewhere_sl_is_tuned_in_the_form_that_was_found(self, tmp_path):
        """Another network needs its own rates; form, normalisation and schedule are the recipe's."""
        study = Study(tmp_path)
        study.search(["digits"], FakeEngine(level=self.level), epochs=12)
        found, cifar10 = study.recipes.of(study_dataset("digits"), MethodVariant("sl")), study_dataset("cifar10")
        for run in study.untried(["cifar10"], ["sl"], ("fair",), None):
            assert (run.config.schedule, run.config.method_options) == ("cosine", found.method_options)
        assert study.recipes.start(cifar10, MethodVariant("sl", augment=True)).method_options == found.method_options
        for line in (MethodVariant("likelihood"), MethodVariant("ol-ovr")):
            assert study.recipes.start(cifar10, line) == default_recipe(cifar10, line)
        own = study_dataset("digits")
        assert study.recipes.start(own, MethodVariant("sl")) == default_recipe(own, MethodVariant("sl"))

    def test_stopped_in_the_first_round_it_goes_on(self, tmp_path):
        study = Study(tmp_path)
        with pytest.raises(KeyboardInterrupt):
            study.search(["digits"], FakeEngine(level=self.level, die_after=9), epochs=12)
        assert study.recipes.of(study_dataset("digits"), MethodVariant("sl")).source == "default, not tuned"
        study.search(["digits"], FakeEngine(level=self.level), epochs=12)
        assert study.recipes.of(study_dataset("digits"), MethodVariant("sl")).schedule == "cosine"


def test_settings_from_a_folder_without_a_ledger(tmp_path):
    with pytest.raises(InputError, match="holds no ledger"):
        Study(tmp_path / "a", recipes_from=tmp_path)


def test_the_pace_is_kept_between_drives(tmp_path):
    study = Study(tmp_path, budget=Budget(minutes=60))
    study.tune(["digits"], ["sl"], BOTH, FakeEngine(cuda=True, seconds=50))
    assert study._pace._seen["mlp"]
