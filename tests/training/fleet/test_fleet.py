"""A fleet's runs against their single twins, on the CPU: equal to the last bit, whatever differs between the runs."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from shortlist import methods
from shortlist.data import Dataset, load
from shortlist.errors import InputError
from shortlist.labels import NONE
from shortlist.methods import METHODS, Batch, Feed, Method
from shortlist.training.config import Engine, RunConfig
from shortlist.training.fleet.fleet import FleetResult
from shortlist.training.fleet.networks import suits_kernels
from shortlist.training.fleet.packs import build_tasks, fleet_of, packs, train_pack
from shortlist.training.loop import fit
from shortlist.training.many import train_fleet
from shortlist.training.prepared import prepare
from shortlist.training.task import build_task

CPU = Engine(device="cpu").resolve(1)
BASE = RunConfig(model="mlp", epochs=2, batch_size=64, lr=0.02, weight_decay=1e-3, holdout=0.1)


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load("digits")


def lockstep(dataset: Dataset, configs: list[RunConfig]) -> dict[int, FleetResult]:
    """The runs through the fleet itself, which without a GPU `train_fleet` would not use."""
    results: dict[int, FleetResult] = {}
    for pack in packs(configs):
        results.update(train_pack(dataset, configs, pack, CPU, 1, None))
    return results


def twin(dataset: Dataset, config: RunConfig) -> tuple[dict[str, torch.Tensor], list[object]]:
    prepared = prepare(dataset, config, engine=CPU)
    history = fit(prepared)
    return prepared.run.model.state_dict(), [replace(row, seconds=0) for row in history]


def assert_twins(dataset: Dataset, configs: list[RunConfig]) -> None:
    for i, result in lockstep(dataset, configs).items():
        state, history = twin(dataset, configs[i])
        assert result.state is not None
        assert [replace(row, seconds=0) for row in result.history] == history, configs[i]
        for name, tensor in state.items():
            # batch norm's own counter also counts passes that stood still; nothing reads it
            if tensor.is_floating_point():
                assert torch.equal(tensor, result.state[name]), (configs[i].method, name)


def test_every_method_under_both_protocols(digits: Dataset) -> None:
    configs = [
        replace(BASE, method=method, size=None if method == "ol" else 5, protocol=protocol, seed=seed)
        for seed, method in enumerate(METHODS)
        for protocol in ("fair", "paper")
    ]
    assert_twins(digits, configs)


def test_weights_that_a_method_of_ones_own_feeds_itself(digits: Dataset) -> None:
    @dataclass(frozen=True)
    class Picked(METHODS["likelihood"]):  # type: ignore[misc]
        name = "picked"

        def feed(self, *args: Any) -> Feed:
            feed = super().feed(*args)
            return replace(feed, weight=torch.where(feed.answer == NONE, 0.1, 5.0))

    methods.register(Picked)
    try:
        assert_twins(digits, [replace(BASE, method=name, size=5, seed=1) for name in ("picked", "likelihood")])
    finally:
        del METHODS["picked"]


def test_everything_else_may_differ(digits: Dataset) -> None:
    assert_twins(
        digits,
        [
            replace(BASE, size=3, seed=1, epochs=1),
            replace(BASE, size=8, seed=2, lr=0.1, schedule="constant", weight_decay=0.0),
            replace(BASE, size=5, seed=3, epochs=4, schedule="step"),
            replace(BASE, size=5, seed=4, method="sl", method_options={"form": "paper"}),
            replace(BASE, size=2, seed=5, classes=(0, 1, 2, 3)),
            replace(BASE, size=5, seed=6, optimiser="adam", lr=1e-3),
            replace(BASE, size=5, seed=7, optimiser="adam", lr=1e-3, method="rc", protocol="paper"),
        ],
    )


def test_batch_norm_and_augmentation(digits: Dataset) -> None:
    small = replace(digits, train=digits.train.take(range(200)), test=digits.test.take(range(50)))  # type: ignore[union-attr]
    lenet = replace(BASE, model="lenet", size=5, batch_size=32)
    assert_twins(
        small,
        [
            lenet,
            replace(lenet, seed=1, method="lw", protocol="paper"),  # fewer items: stands still for some steps
            replace(lenet, seed=2, augment=True),
        ],
    )


@pytest.mark.parametrize("flips", [False, True])
def test_augmented_and_plain_runs_share_a_pack(digits: Dataset, flips: bool) -> None:
    """Runs that are not augmented stay where they are; when the last augmented one has ended, nobody moves."""
    small = replace(digits, train=digits.train.take(range(200)), test=digits.test.take(range(50)), flips=flips)  # type: ignore[union-attr]
    lenet = replace(BASE, model="lenet", size=5, batch_size=32)
    configs = [
        lenet,
        replace(lenet, seed=1, augment=True, method="rc"),  # renews its confidences by a second pass
        replace(lenet, seed=2, augment=True, epochs=1),
        replace(lenet, seed=3, method="lw", protocol="paper", epochs=3),
    ]
    assert len(packs(configs)) == 1
    assert_twins(small, configs)


@pytest.mark.parametrize("model", ["mlp", "lenet"])
def test_runs_on_different_classes(digits: Dataset, model: str) -> None:
    """Sets of different sizes in one pack, some of whose runs end early; each is tested on its own classes."""
    base = replace(BASE, model=model, size=2, batch_size=32)
    configs = [
        replace(base, classes=(0, 1, 2)),
        replace(base, classes=(7, 8, 9), method="lw", protocol="paper", seed=1),
        replace(base, classes=(2, 1, 0), seed=2, epochs=1),
        replace(base, classes=(4, 8, 9), seed=3, method="proden"),
        replace(base, classes=(0, 1, 2), seed=4),
    ]
    small = replace(digits, train=digits.train.take(range(600)), test=digits.test.take(range(150)))  # type: ignore[union-attr]
    assert len(packs(configs)) == 1
    assert_twins(small, configs)


def test_averaged_weights(digits: Dataset) -> None:
    """Averages of several decays, and none, in one pack; runs that end early or stand still, and batch norm."""
    small = replace(digits, train=digits.train.take(range(200)), test=digits.test.take(range(50)))  # type: ignore[union-attr]
    lenet = replace(BASE, model="lenet", size=5, batch_size=32)
    configs = [
        replace(lenet, ema=0.9, method="rc"),
        replace(lenet, ema=0.999, seed=1, method="lw", protocol="paper", epochs=3),
        replace(lenet, seed=2),
    ]
    assert_twins(small, configs)
    assert_twins(digits, [replace(BASE, size=5, ema=0.9, optimiser="adam"), replace(BASE, size=5, optimiser="adam")])


def test_two_views_and_teachers(digits: Dataset) -> None:
    """Runs of two views go together, whoever has a teacher; some end early, some stand still at times."""
    small = replace(digits, train=digits.train.take(range(200)), test=digits.test.take(range(50)), flips=True)  # type: ignore[union-attr]
    lenet = replace(BASE, model="lenet", size=5, batch_size=32, strong=True)
    configs = [
        lenet,
        replace(lenet, seed=1, method="teacher", augment=True, epochs=1),
        replace(lenet, seed=2, method="teacher", method_options={"memory": 0.0, "ramp": 0.5}, ema=0.9, epochs=3),
        replace(lenet, seed=3, method="rc", augment=True),
        replace(lenet, seed=4, method="lw", protocol="paper"),
        replace(lenet, seed=7, method="crdpll", augment=True, epochs=3),
        replace(lenet, seed=5, method="teacher", strong=False, augment=True),
        replace(lenet, seed=6, method="proden", strong=False),
    ]
    assert sorted(map(len, packs(configs))) == [2, 6]
    assert_twins(small, configs)


def test_teachers_with_a_memory(digits: Dataset) -> None:
    """Tables of teachers beside PRODEN's; one run ends early, one has a smaller feed and stands still at times."""
    small = replace(digits, train=digits.train.take(range(200)), test=digits.test.take(range(50)), flips=True)  # type: ignore[union-attr]
    lenet = replace(BASE, model="lenet", size=5, batch_size=32, strong=True, augment=True, epochs=3)
    taught = replace(lenet, method="teacher")
    configs = [
        lenet,
        replace(taught, seed=1, method_options={"memory": 0.7, "decay": 0.9}, epochs=2),
        replace(taught, seed=2, method_options={"memory": 0.5, "decay": 0.0, "temperature": 1.0}, holdout=0.3),
        replace(taught, seed=3, method_options={"memory": 0.5, "fresh": False}),
        replace(taught, seed=4, method_options={"decay": 0.0, "memory": 0.0}),
        replace(lenet, seed=5, method="proden"),
    ]
    assert list(map(len, packs(configs))) == [6]
    assert_twins(small, configs)


def test_mixed_views_and_teachers_apart(digits: Dataset) -> None:
    """A teacher with a crop of its own beside one without; one run ends early, one stands still at times."""
    small = replace(digits, train=digits.train.take(range(200)), test=digits.test.take(range(50)), flips=True)  # type: ignore[union-attr]
    lenet = replace(BASE, model="lenet", size=5, batch_size=32, strong=True, augment=True, mix=True)
    configs = [
        lenet,
        replace(lenet, seed=1, method="teacher", method_options={"apart": True, "whole": 0.2}, epochs=3),
        replace(lenet, seed=2, method="teacher", method_options={"pull": 1.5, "aligned": True}, holdout=0.3),
        replace(lenet, seed=3, method="rc", epochs=1),
        replace(lenet, seed=4, method="proden"),
        replace(lenet, seed=5, method="lw", protocol="paper"),
        replace(lenet, seed=6, method="teacher", method_options={"apart": True}, mix=False),
    ]
    assert sorted(map(len, packs(configs))) == [1, 6]
    assert_twins(small, configs)


@pytest.mark.parametrize("strong", [False, True])
def test_its_own_teacher_an_epoch_late_is_proden(digits: Dataset, strong: bool) -> None:
    small = replace(digits, train=digits.train.take(range(200)), test=None, flips=True)
    proden = replace(BASE, model="lenet", size=5, batch_size=32, strong=strong, augment=True, method="proden", epochs=3)
    options = {"decay": 0.0, "memory": 0.0, "fresh": False}
    (want, _), (got, _) = (twin(small, c) for c in (proden, replace(proden, method="teacher", method_options=options)))
    assert all(torch.equal(want[name], got[name]) for name in want)


def test_no_accuracy_where_none_of_the_held_out_is_answered(digits: Dataset) -> None:
    configs = [replace(BASE, epochs=1, size=1, holdout=0.002, seed=seed) for seed in range(3)]  # of three items
    assert None in [result.history[0].validation_accuracy for result in lockstep(digits, configs).values()]
    assert_twins(digits, configs)


def test_a_broken_run_ends_alone(digits: Dataset) -> None:
    configs = [replace(BASE, size=5), replace(BASE, size=5, method="sl", lr=1e20), replace(BASE, size=5, seed=9)]
    results = lockstep(digits, configs)
    assert results[1].failed is not None
    assert "after epoch 1" in results[1].failed
    assert results[1].state is None
    for i in (0, 2):
        assert results[i].failed is None
        state, _ = twin(digits, configs[i])
        assert all(torch.equal(state[name], results[i].state[name]) for name in state)  # type: ignore[index]


def test_a_last_step_into_nowhere_ends_a_run_alone(digits: Dataset) -> None:
    """The risk is of before it; the index of a bin that no number has would end a GPU's process."""
    one_step = replace(BASE, size=5, epochs=1, batch_size=len(digits.train), holdout=0.0)
    configs = [one_step, replace(one_step, lr=1e38, seed=1), replace(one_step, seed=2)]
    for results in (lockstep(digits, configs), dict(enumerate(train_fleet(digits, configs, engine=Engine("cpu"))))):
        assert (results[1].failed or "").startswith("the outputs are no numbers after epoch 1")
        assert (results[1].state, results[1].calibration_error) == (None, None)
        for i in (0, 2):
            assert results[i].failed is None
            assert results[i].calibration_error is not None


def test_without_a_gpu_one_after_another(digits: Dataset) -> None:
    configs = [replace(BASE, size=5, seed=3), replace(BASE, size=5, method="sl", lr=1e20)]
    good, broken = train_fleet(digits, configs, engine=Engine(device="cpu"))
    state, _ = twin(digits, configs[0])
    assert good.state is not None
    assert all(torch.equal(state[name], good.state[name]) for name in state)
    assert broken.state is None
    assert broken.failed


def test_what_a_method_refuses_on_the_way_is_no_divergence(digits: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """A study would store it as a run that diverged."""

    def refuse(self: Method, logits: torch.Tensor, batch: Batch) -> torch.Tensor:
        if len(batch.answer) > 2:  # not in the trial before the training
            raise InputError("not these")
        return logits.sum()

    monkeypatch.setitem(METHODS, "mine", type("Mine", (Method,), {"name": "mine", "title": "", "objective": refuse}))
    with pytest.raises(InputError, match="not these"):
        train_fleet(digits, [replace(BASE, size=5, method="mine")], engine=Engine(device="cpu"))


def test_memory_that_runs_out_splits_the_pack(digits: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """The device is not ours to fill in a test: the fleet is told that more than two runs do not fit."""
    import shortlist.training.fleet.packs as fleet_pack

    sizes: list[int] = []

    def refuse_many(tasks: list[object], engine: Engine) -> object:
        sizes.append(len(tasks))
        if len(tasks) > 2:
            raise torch.OutOfMemoryError("too many")
        return fleet_of(tasks, engine)  # type: ignore[arg-type]

    monkeypatch.setattr(fleet_pack, "fleet_of", refuse_many)
    configs = [replace(BASE, size=5, seed=seed, epochs=1) for seed in range(5)]
    results = lockstep(digits, configs)
    assert sorted(results) == [0, 1, 2, 3, 4]
    assert sizes == [5, 2, 2, 1]


def test_packs_share_what_must_be_shared(digits: Dataset) -> None:
    configs = [
        replace(BASE, size=5, method="sl"),
        replace(BASE, size=5, batch_size=32),
        replace(BASE, size=5, method="likelihood", seed=4),
        replace(BASE, size=5, method="sl", lr=1.0),
        replace(BASE, size=2, classes=(1, 2, 3)),
        replace(BASE, size=2, classes=(5, 6, 7)),
        replace(BASE, size=2, classes=(5, 6, 7, 8)),
    ]
    assert packs(configs) == [[2, 0, 3], [1], [4, 5], [6]]  # runs of one method side by side


def test_runs_with_fewer_items_than_a_batch(digits: Dataset) -> None:
    """Their batches are smaller: they were refused as `a fleet needs one batch size`."""
    small = replace(digits, train=digits.train.take(range(100)))
    configs = [
        replace(BASE, size=5, batch_size=80),
        replace(BASE, size=5, batch_size=80, method="cc", protocol="paper"),
        replace(BASE, size=5, batch_size=80, seed=1),
        replace(BASE, size=5, batch_size=80, method="proden", protocol="paper", seed=1),
    ]
    assert list(map(len, packs(configs))) == [4]
    assert_twins(small, configs)


def test_one_batch_size(digits: Dataset) -> None:
    tasks = build_tasks(digits, [replace(BASE, size=5), replace(BASE, size=5, batch_size=32)])
    with pytest.raises(InputError, match="one batch size"):
        fleet_of(tasks, CPU)


def test_the_special_path_is_for_what_it_knows(digits: Dataset) -> None:
    cuda = Engine(device="cuda", amp=True, compile=False, cuda_graph=True, kernels=True)
    lenet = replace(BASE, model="lenet", size=5)
    assert suits_kernels(build_task(digits, lenet), cuda)
    assert suits_kernels(build_task(digits, replace(lenet, augment=True)), cuda)
    for other in (BASE, replace(lenet, optimiser="adam")):
        assert not suits_kernels(build_task(digits, replace(other, size=5)), cuda)
    assert not suits_kernels(build_task(digits, lenet), CPU)
