"""What a method is fed, and the confidences it keeps for every item."""

import io
from dataclasses import replace

import numpy as np
import pytest
import torch

from shortlist import methods
from shortlist.errors import InputError
from shortlist.labels import NONE, StochasticLabels

BASELINES = {"log", "exp", "cc", "rc", "proden", "lw", "crdpll", "dirk"}
STATEFUL = {"rc": "after", "proden": "forward", "lw": "after", "crdpll": "forward", "teacher": "forward"}


def some_labels(n=40, K=5, **rest) -> StochasticLabels:
    return StochasticLabels.draw(np.arange(n) % K, num_classes=K, **({"size": 2, "seed": 0} | rest))


def test_a_weight_counts_like_so_many_copies():
    labels, weight = some_labels(), np.arange(40) % 4
    method = methods.get("sl", form="paper")
    weighted, repeated = (
        method.feed(labels, weight=weight),
        method.feed(labels.subset(np.repeat(np.arange(40), weight))),
    )
    torch.testing.assert_close(weighted.prior, repeated.prior)
    logits = torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
    got = method.objective(logits, weighted.batch(torch.arange(40)))
    want = method.objective(logits.repeat_interleave(torch.from_numpy(weight), 0), repeated.batch(torch.arange(60)))
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize("protocol", methods.PROTOCOLS)
@pytest.mark.parametrize("name", methods.METHODS)
def test_which_items_a_method_is_fed(name, protocol):
    labels = some_labels()
    feed = methods.get(name).feed(labels, protocol)
    if name == "ol":
        want = labels.answered  # it has no use for a None, under either protocol
    elif name in BASELINES and protocol == "paper":
        want = ~labels.answered
    else:
        want = np.ones(len(labels), bool)
    assert feed.rows.tolist() == np.nonzero(want)[0].tolist()
    assert len(feed) == want.sum()
    assert feed.num_classes == 5
    assert feed.answer.tolist() == labels.answer[want].tolist()
    torch.testing.assert_close(feed.prior.double(), torch.from_numpy(labels.prior))  # of all labels
    batch = feed.batch(torch.arange(len(feed)))
    assert (batch.shown.numpy() == labels.shown[want]).all()
    assert (batch.candidates.numpy() == labels.candidates[want]).all()


def test_the_default_protocol_is_fair():
    assert len(methods.get("cc").feed(some_labels())) == 40


def test_mixed_sizes_and_all_shown():
    labels = some_labels(size=np.arange(40) % 5 + 1)
    feed = methods.get("likelihood").feed(labels)
    index = torch.tensor([4, 0, 39, 4])
    batch = feed.batch(index)
    assert (batch.shown.numpy() == labels.mask(index.numpy())).all()
    assert batch.answer.tolist() == labels.answer[index].tolist()


def test_weights_follow_their_items():
    labels = some_labels()
    weight = np.arange(40.0)
    feed = methods.get("cc").feed(labels, "paper", weight=weight)
    assert feed.weight.tolist() == weight[~labels.answered].tolist()
    assert feed.batch(torch.tensor([1])).weight.tolist() == [weight[~labels.answered][1]]
    words, ragged = ["much"] * 40, [[1.0]] * 39 + [[1.0, 2.0]]
    for bad in (np.ones(39), np.ones(41), np.ones((40, 1)), -np.ones(40), np.full(40, np.nan), words, ragged, 1j):
        with pytest.raises(InputError, match="weight: expected 40 numbers"):
            methods.get("cc").feed(labels, weight=bad)


def test_the_objective_of_a_feed_is_the_likelihood_of_its_answers():
    labels = some_labels()
    feed = methods.get("likelihood").feed(labels)
    p = torch.softmax(torch.arange(5.0), 0).numpy()
    want = [p[s] if s != NONE else p[~shown].sum() for s, shown in zip(labels.answer, labels.shown, strict=True)]
    got = methods.get("likelihood").objective(torch.arange(5.0).expand(40, 5), feed.batch(torch.arange(40)))
    assert got.item() == pytest.approx(-np.log(want).mean(), rel=1e-6)


# -- refusals ----------------------------------------------------------------------------------------------------------


def test_nothing_to_feed():
    full = StochasticLabels.ordinary([0, 1], num_classes=3)
    with pytest.raises(InputError, match="method 'cc' under protocol 'paper' needs None items, and there are none"):
        methods.get("cc").feed(full, "paper")
    assert len(methods.get("cc").feed(full, "fair")) == 2
    refused = StochasticLabels.from_lists([[0], [1]], [NONE, NONE], 3)
    with pytest.raises(InputError, match="method 'ol' under protocol 'fair' needs answered items"):
        methods.get("ol").feed(refused)
    with pytest.raises(InputError, match="method 'sl' cannot train without labels"):
        methods.get("sl").feed(refused.subset([]))


def test_unknown_protocols_are_refused():
    with pytest.raises(InputError, match="unknown protocol 'papr': did you mean 'paper'"):
        methods.get("cc").feed(some_labels(), "papr")


# -- confidences -------------------------------------------------------------------------------------------------------


def test_which_methods_keep_confidences():
    kept = {name: methods.get(name).refresh for name in methods.METHODS}
    assert {name: refresh for name, refresh in kept.items() if refresh != "never"} == STATEFUL
    for name in methods.METHODS:
        feed = methods.get(name).feed(some_labels())
        assert (feed.table is not None) == (name in STATEFUL)
        assert set(feed.state_dict()) == ({"confidence"} if name in STATEFUL else set())


@pytest.mark.parametrize("name", ["rc", "proden"])
def test_confidences_start_equal_on_the_candidates(name):
    labels = some_labels(size=np.arange(40) % 4 + 1)
    table = methods.get(name).feed(labels).table.numpy()
    for row, possible in zip(table, labels.candidates, strict=True):
        assert row[possible] == pytest.approx(1 / possible.sum())
        assert (row[~possible] == 0).all()


def test_lw_starts_at_one_over_k():
    assert (methods.get("lw").feed(some_labels()).table == 1 / 5).all()


@pytest.mark.parametrize("name", ["rc", "proden"])
def test_renewed_confidences_are_p_on_the_candidates(name):
    method, labels = methods.get(name), some_labels()
    feed = method.feed(labels)
    logits = torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
    renewed = method.confidence(logits, feed.batch(torch.arange(40))).numpy()
    p = torch.softmax(logits, -1).numpy()
    for row, mine, possible in zip(renewed, p, labels.candidates, strict=True):
        assert row == pytest.approx(np.where(possible, mine, 0) / mine[possible].sum(), abs=1e-6)


def test_lw_renews_inside_and_outside_separately():
    method, labels = methods.get("lw"), some_labels()
    logits = torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
    renewed = method.confidence(logits, method.feed(labels).batch(torch.arange(40))).numpy()
    p = torch.softmax(logits, -1).numpy()
    for row, mine, possible in zip(renewed, p, labels.candidates, strict=True):
        assert row[possible] == pytest.approx(mine[possible] / mine[possible].sum(), abs=1e-6)
        assert row[~possible] == pytest.approx(mine[~possible] / mine[~possible].sum(), abs=1e-6)


@pytest.mark.parametrize("name", STATEFUL)
def test_renew_changes_the_rows_given_and_no_others(name):
    method = methods.get(name)
    feed = method.feed(some_labels())
    before = feed.table.clone()
    index = torch.tensor([3, 17])
    logits = torch.randn(2, 5, requires_grad=True)
    renewed = method.confidence(logits, feed.batch(index))
    feed.renew(index, renewed)
    torch.testing.assert_close(feed.batch(index).confidence, renewed.detach())
    untouched = torch.ones(40, dtype=torch.bool).index_fill(0, index, False)
    assert (feed.table[untouched] == before[untouched]).all()
    assert not feed.table.requires_grad  # or it would hold on to the graphs of all steps


def test_renewing_a_method_without_state_does_nothing():
    feed = methods.get("cc").feed(some_labels())
    feed.renew(torch.tensor([0]), torch.ones(1, 5))
    assert feed.table is None


@pytest.mark.parametrize("name", STATEFUL)
def test_state_is_saved_and_restored(name):
    method, labels = methods.get(name), some_labels()
    feed = method.feed(labels)
    index = torch.arange(0, 40, 3)
    feed.renew(index, method.confidence(torch.randn(len(index), 5), feed.batch(index)))
    file = io.BytesIO()
    torch.save(feed.state_dict(), file)
    file.seek(0)
    other = method.feed(labels)
    assert not torch.equal(other.table, feed.table)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(other.table, feed.table)


def test_state_that_does_not_fit_is_refused():
    feed = methods.get("rc").feed(some_labels())
    for state in ({}, {"confidence": torch.ones(3, 5)}):
        with pytest.raises(InputError, match=r"the saved confidences do not fit: expected a table of \(40, 5\)"):
            feed.load_state_dict(state)
    methods.get("cc").feed(some_labels()).load_state_dict({})


def test_a_feed_moves_with_all_its_parts():
    feed = methods.get("rc").feed(some_labels(), weight=np.ones(40)).to("cpu")
    for name in ("rows", "shortlist", "answer", "prior", "weight", "table"):
        assert getattr(feed, name).device.type == "cpu"
    moved = methods.get("rc").feed(some_labels(), weight=np.ones(40)).to("meta")
    assert all(getattr(moved, name).is_meta for name in ("rows", "shortlist", "answer", "prior", "weight", "table"))


def test_the_items_before_are_the_items_one_place_on():
    """With everything that belongs to them: a mixed view is of another item too, with that item's own weight."""
    items = {"weight": torch.rand(4), "inclusion": torch.rand(4), "confidence": torch.rand(4, 5)}
    batch = replace(methods.get("sl").feed(some_labels()).batch(torch.arange(4)), **items, teacher=torch.randn(4, 5))
    before = batch.before()
    for name in ("shown", "answer", "teacher", *items):
        got, want = getattr(before, name), getattr(batch, name)
        assert torch.equal(got, torch.stack([want[i - 1] for i in range(4)])), name


@pytest.mark.parametrize("name", ["rc", "proden", "lw"])
def test_confidences_come_from_the_weak_view(name):
    method, (weak, strong) = methods.get(name), torch.randn(2, 40, 5)
    batch = method.feed(some_labels()).batch(torch.arange(40))
    assert torch.equal(method.confidence_of_views([weak, strong], batch), method.confidence(weak, batch))
