"""The paper's figures, and the grid: which cells, which runs, one key for one result."""

import doctest
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist import methods
from shortlist.errors import InputError
from shortlist.internal import provenance
from shortlist.methods import METHODS
from shortlist.study.plan import paper, run_keys, variants
from shortlist.study.plan.datasets import study_dataset
from shortlist.study.plan.grid import TABLES, Cell, Wanted, cells, config_of, plan_run, planned
from shortlist.study.plan.recipes import CHOICE, Recipe, Recipes, default_recipe
from shortlist.study.plan.run_keys import canonical, key_of, settings_key
from shortlist.study.plan.variants import FIRST_OPTIONS, MethodVariant, default_options, trained_share
from shortlist.training.config import RunConfig

NONE_CHOSEN = Recipes()


def figures_in(content):
    if isinstance(content, list):
        return 1
    return sum(map(figures_in, content.values())) if isinstance(content, dict) else 0


def test_every_figure_of_the_paper_is_there():
    counts = {name: figures_in(table["cells"]) for name, table in paper.tables().items()}
    assert counts == {"table1": 4 * 7 * 6, "table2": 4 * 5, "table3": 28, "table4": 56, "table5": 84}
    assert paper.figure("MNIST", "1-10", "rc", 3) == (10.52, 0.7)
    assert paper.figure("CIFAR10", "1-10", "ol", None) == (82.81, 0.56)
    assert paper.figure("Fashion", "5-10", "lw", 3) == (94.4, 0.16)  # printed as "4 ~ 9"
    assert paper.figure("Fashion", "4-9", "lw", 3) is None
    assert paper.figure("MNIST", "5-10", "lw", 4) is None
    assert paper.figure("MNIST", "1-10", "likelihood", 5) is None
    assert paper.figure(None, "1-10", "sl", 5) is None
    assert [paper.subset_size(c) for c in ("1-8", "4-9", "5-10", "7-10")] == [4, 3, 3, 2]


def test_table2_repeats_table1():
    for size in (8, 7, 6, 5):
        for dataset in ("MNIST", "Fashion", "Kuzushiji", "CIFAR10"):
            again = paper.tables()["table2"]["cells"][f"SL size {size}"][dataset]
            assert paper.figure(dataset, "1-10", "sl", size) == tuple(again)


def test_every_cell_with_a_figure_is_in_the_grid():
    wanted = Wanted()
    found = {(c.dataset, c.classes, c.size, c.variant.name) for c in cells(wanted) if c.variant.protocol == "paper"}
    reported = [c for c in found if paper.figure(study_dataset(c[0]).title, c[1], c[3], c[2])]
    # Table 2's SL cells are Table 1's; its OL cells are run with two losses
    assert len(reported) == 168 + 28 + 56 + 84 + 4 * 2


def test_runs_of_a_table_are_shared_between_protocols():
    names = [
        (r.cell.variant.name, r.cell.variant.protocol)
        for r in planned(Wanted(("table1",), ("fashion",), trials=1, sizes=(5,)), NONE_CHOSEN)
    ]
    assert len(names) == len(set(names)) == 13
    assert names.count(("likelihood", "fair")) == 1
    assert ("cc", "fair") not in names
    assert {name for name in names if name[1] == "paper"} == {
        (n, "paper") for n in ("log", "exp", "lw", "rc", "cc", "proden")
    }


def test_the_whole_study():
    runs = planned(Wanted(datasets=("mnist", "fashion")), NONE_CHOSEN)
    # 13 variants x (6 sizes + 6 class subsets, one of them read in two ways) and 2 kinds of ordinary labels, 5 trials
    assert len(runs) == 2 * 5 * (13 * 13 + 2)
    assert len({run.key for run in runs}) == len(runs)
    assert [r.key for r in planned(Wanted(datasets=("mnist", "fashion")), NONE_CHOSEN)] == [r.key for r in runs]


def test_the_run_of_a_cell():
    cell = Cell("cifar10", "4-9", 3, MethodVariant("rc", "paper", augment=True))
    config = plan_run(cell, 3, NONE_CHOSEN).config
    assert (config.model, config.epochs, config.momentum, config.optimiser) == ("resnet32", 200, 0.9, "sgd")
    assert (config.classes, config.size, config.seed, config.augment) == ((3, 4, 5, 6, 7, 8), 3, 3, True)
    assert (config.holdout, config.batch_size, config.protocol) == (0.0, 256, "paper")
    ordinary = plan_run(Cell("mnist", "1-10", None, MethodVariant("ol-ovr", "paper")), 0, NONE_CHOSEN, 7).config
    assert (ordinary.method, ordinary.method_options, ordinary.size) == ("ol", {"loss": "ovr_square"}, None)
    assert (ordinary.epochs, ordinary.classes, ordinary.model) == (7, None, "lenet")


def test_a_run_that_ends_with_its_best_epoch():
    cell = Cell("mnist", "5-10", 3, MethodVariant("sl", keep=True))
    config = plan_run(cell, 1, NONE_CHOSEN).config
    assert (config.keep, config.holdout, config.classes) == ("best", 0.1, (4, 5, 6, 7, 8, 9))
    assert cell.variant.text == "sl+keep"
    assert MethodVariant.parse("sl+keep") == cell.variant
    plain = plan_run(replace(cell, variant=MethodVariant("sl")), 1, NONE_CHOSEN).config
    assert (plain.keep, plain.holdout) == ("last", 0.0)


def test_keys_do_not_change_with_the_code():
    """If this fails, every run of the ledger would be done again: raise `RESULTS_VERSION` if that is meant."""
    assert key_of("fashion", canonical(RunConfig(method="sl", model="lenet", size=5), 10)) == "d332da5436adf5e2"


def test_one_key_for_one_result():
    base = RunConfig(method="sl", size=5)
    same = [
        replace(base, protocol="paper"),
        replace(base, method_options={"form": "total"}),
        replace(base, classes=tuple(range(10))),
    ]
    assert {key_of("mnist", canonical(c, 10)) for c in same} == {key_of("mnist", canonical(base, 10))}
    rival = RunConfig(method="cc", size=5, protocol="fair")
    assert key_of("mnist", canonical(rival, 10)) == key_of("mnist", canonical(replace(rival, method="likelihood"), 10))
    assert key_of("mnist", canonical(base, 10)) != key_of("fashion", canonical(base, 10))


def test_a_default_that_changed_is_stated_and_stored_runs_keep_their_keys():
    """Of the teacher: a stored run without options is its first form, a new one the form of today."""
    new = canonical(RunConfig("teacher"), 10)
    assert new.method_options == {"decay": 0.99, "memory": 0.5, "temperature": 1.0}
    assert key_of("cifar10", new) == key_of("cifar10", canonical(replace(new, method_options={"memory": 0.5}), 10))
    first = canonical(RunConfig("teacher", {"decay": 0.999, "memory": 0.0, "temperature": 0.5, "pull": 1.0}), 10)
    assert methods.get("teacher", **first.method_options) == methods.get("teacher", **FIRST_OPTIONS["teacher"])
    assert key_of("cifar10", first) == key_of("cifar10", RunConfig("teacher")) != key_of("cifar10", new)
    assert default_options("teacher") == {**default_options("teacher"), **new.method_options}


def test_a_stored_choice_without_options_is_of_its_time():
    row = {"kind": CHOICE, "dataset": "cifar10", **MethodVariant("teacher", augment=True).to_dict(), "source": "tuned"}
    settings = {"lr": 0.1, "weight_decay": 1e-3, "method_options": {"pull": 0.5}}
    recipe = Recipes([{**row, "settings": settings}]).of(
        study_dataset("cifar10"), MethodVariant("teacher", augment=True)
    )
    assert recipe.method_options == {**FIRST_OPTIONS["teacher"], "pull": 0.5}


CHANGES = {
    "method": ["sl", "rc", "cc"],
    "method_options": [{"form": "paper"}, {"form": "paper", "normalisation": "mean"}],
    "size": [3, 4],
    "classes": [(0, 1, 2), (1, 2, 3)],
    "epochs": [5, 7],
    "batch_size": [64],
    "lr": [0.1, 0.01],
    "weight_decay": [0.0, 1e-3],
    "schedule": ["step"],
    "optimiser": ["adam"],
    "augment": [True],
    "ema": [0.9, 0.99],
    "holdout": [0.1],
    "keep": ["best"],
    "seed": [1, 2],
}
ONE_CHANGE = [(name, value) for name, values in CHANGES.items() for value in values]


@given(st.sampled_from(ONE_CHANGE), st.sampled_from(ONE_CHANGE))
def test_what_decides_the_result_decides_the_key(one, other):
    def key(change):
        base = RunConfig(method="sl", size=5, protocol="paper", epochs=100, seed=0)
        if change[0] == "method" and change[1] != "sl":
            base = replace(base, method_options={})
        changed = dict([change, *([("holdout", 0.2)] if change[0] == "keep" else [])])
        return key_of("mnist", canonical(replace(base, **changed), 10))

    same_run = one == other or {json.dumps(one), json.dumps(other)} <= {'["method", "sl"]'}
    assert (key(one) == key(other)) == same_run


def test_a_setting_added_later_does_not_change_old_keys(monkeypatch):
    config = canonical(RunConfig(method="sl", size=5), 10)
    before = key_of("mnist", config)
    whole = RunConfig.to_dict
    monkeypatch.setattr(RunConfig, "to_dict", lambda self: {**whole(self), "later": 0.0})
    assert key_of("mnist", config) == before
    new = {**config.to_dict(), "later": 0.9}
    monkeypatch.setattr(RunConfig, "to_dict", lambda self: new if self is config else {**whole(self), "later": 0.0})
    assert key_of("mnist", config) != before


def test_trials_share_their_settings_key():
    rows = [{"dataset": "mnist", "config": RunConfig(seed=seed).to_dict()} for seed in (0, 1)]
    assert settings_key(rows[0]) == settings_key(rows[1])
    assert settings_key(rows[0]) != settings_key({**rows[0], "config": RunConfig(lr=0.3).to_dict()})
    older = {**rows[0], "config": {k: v for k, v in rows[0]["config"].items() if k != "ema"}}
    assert settings_key(older) == settings_key(rows[0])
    assert settings_key({**rows[0], "config": RunConfig(ema=0.9).to_dict()}) != settings_key(rows[0])


def test_a_cell_survives_its_row():
    for cell in cells(Wanted(datasets=("fashion",), methods=("sl+keep", "rc+aug", "teacher+aug+strong+ema", "ol"))):
        assert Cell.from_dict(json.loads(json.dumps(cell.to_dict()))) == cell


@pytest.mark.parametrize("method", METHODS)
def test_the_share_a_line_trains_on_is_what_it_is_fed(method):
    from shortlist.data import load
    from shortlist.training.task import build_task

    digits = load("digits")
    for protocol in ("paper", "fair"):
        line = MethodVariant(method, protocol)
        config = RunConfig(method=method, protocol=protocol, size=None if line.ordinary else 3, model="linear")
        share = len(build_task(digits, config).feed) / len(digits.train)
        assert share == pytest.approx(trained_share(line, config.size, 10), abs=0.05)


def test_recipes_of_the_ledger():
    def row(by, lr, dataset="fashion", line="sl", augment=False, **more):
        settings = Recipe(lr, 1e-3, method_options={"form": "paper"}).settings()
        return {"kind": CHOICE, "by": by, "dataset": dataset, "line": line, "protocol": "fair", "augment": augment,
                "settings": settings, "source": by, **more}  # fmt: skip

    fashion, line = study_dataset("fashion"), MethodVariant("sl", "paper")
    assert NONE_CHOSEN.of(fashion, line) == default_recipe(fashion, line.run_as())
    assert NONE_CHOSEN.of(fashion, line).source == "default, not tuned"
    assert Recipes([row("tune", 0.1), row("tune", 0.2)]).of(fashion, line).lr == 0.2
    found = Recipes([row("tune", 0.1), row("search", 0.3), row("tune", 0.2), {"kind": "tried"}])
    assert (found.of(fashion, line).lr, found.of(fashion, line).source) == (0.3, "search")
    assert found.of(fashion, line).method_options == {"form": "paper"}
    assert found.of(fashion, MethodVariant("sl", "fair", augment=True)).source == "search (for sl on fashion)"
    assert found.of(study_dataset("kuzushiji-small"), line).source == "search (for sl on fashion)"
    assert found.of(study_dataset("fashion-quick"), line).lr == 0.3
    assert found.of(study_dataset("mnist"), line).source == "search (for sl on fashion)"
    assert found.of(study_dataset("cifar10"), line).source == "default, not tuned"
    # what was searched for so many classes goes first, elsewhere too; a run with a chosen epoch has the same settings
    some = Recipes([row("search", 0.4, num_classes=6), row("search", 0.3), row("tune", 0.2, dataset="mnist")])
    assert [some.of(fashion, line, count).lr for count in (10, 8, 6, None)] == [0.3, 0.3, 0.4, 0.3]
    assert some.of(study_dataset("mnist"), line, 6).lr == 0.4
    assert some.of(fashion, MethodVariant("sl", keep=True), 6).lr == 0.4
    assert some.start(study_dataset("cifar10"), line).method_options == {"form": "paper"}
    # CC with every answer is the likelihood, settings and all
    chosen = Recipes([row("tune", 0.7, line="likelihood")])
    assert chosen.of(fashion, MethodVariant("cc", "fair")).lr == 0.7
    assert chosen.of(fashion, MethodVariant("cc", "paper")).lr != 0.7


@pytest.mark.parametrize(
    ("stated", "complaint"),
    [
        ({"tables": ("table9",)}, "unknown table 'table9'"),
        ({"datasets": ("fashon",)}, "unknown dataset of the study 'fashon': did you mean 'fashion'"),
        ({"datasets": ("fashon-quick",)}, "unknown dataset of the study 'fashon': did you mean 'fashion'"),
        ({"datasets": ("blobs.npz-quick",)}, "no such file or folder: .*blobs.npz"),
        ({"methods": ("slx",)}, "unknown method 'slx'"),
        ({"methods": ("rc+strong+mix", "crdpll+strong+mix")}, r"crdpll\+strong\+mix: the method compares the views"),
        ({"classes": ("9-4",)}, "classes '9-4': expected a range such as 4-9"),
        ({"classes": ("all",)}, "expected a range such as 4-9"),
        ({"classes": ("1-²",)}, "classes '1-²': expected a range"),
        (
            {"tables": ("table4",), "classes": ("4-9", "2-7")},
            "classes '2-7': not in table4, expected some of 1-6, 5-10",
        ),
        ({"tables": ("table1",), "classes": ("4-9",)}, "classes '4-9': not in table1, expected some of 1-10"),
        ({"sizes": (10,)}, "size: expected 1..9 of 10 classes, got 10"),
        ({"trials": 0}, "trials: expected at least 1, got 0"),
        ({"epochs": 0}, "epochs: expected at least 1, got 0"),
    ],
)
def test_bad_wishes(stated, complaint):
    with pytest.raises(InputError, match=complaint):
        Wanted(**stated)


def test_what_is_named_twice_counts_once():
    once = Wanted(("table4",), ("mnist",), ("sl",), (3,), ("1-6",), ("fair",))
    twice = Wanted(("table4",) * 2, ("mnist",) * 2, ("sl",) * 2, (3,) * 2, ("1-6", "01-06"), ("fair",) * 2)
    assert twice == once
    assert len(cells(twice)) == 1


def test_a_wish_that_fits_nothing():
    with pytest.raises(InputError, match="no cell of the grid"):
        cells(Wanted(("table3",), ("mnist",), methods=("ol",)))
    with pytest.raises(InputError, match=r"no cell of the grid .* --protocol"):  # beyond the paper's feed, too
        cells(Wanted(("beyond",), ("mnist",), protocols=("paper",)))
    with pytest.raises(InputError, match="protocol: expected both, paper or fair, got 'pape'"):
        variants.checked_protocols("pape")


def test_examples_in_docstrings():
    from shortlist.study.report import markdown

    found = [doctest.testmod(module) for module in (paper, variants, markdown, provenance)]
    assert all(result.attempted for result in found)
    assert not any(result.failed for result in found)


def test_the_report_has_every_table():
    from shortlist.study.report import content, tables

    assert tuple(tables.TITLES) == content.TABLES == tuple(t for t in TABLES if t != "figure2")
    assert run_keys.RESULTS_VERSION == 1


def test_trials_differ_in_everything_drawn_and_methods_share_it():
    cell = Cell("digits", "1-10", 5, MethodVariant("sl"))
    recipe = Recipe(0.1, 0.0)
    seeds = [config_of(cell, trial, recipe).seed for trial in range(5)]
    assert len(set(seeds)) == 5
    rival = config_of(replace(cell, variant=MethodVariant("rc", "paper")), 2, recipe)
    assert rival.seed == seeds[2]  # the same shortlists: a paired comparison
