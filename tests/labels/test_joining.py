import itertools

import numpy as np
import pytest
import torch

from shortlist import risks
from shortlist.errors import InputError
from shortlist.labels import NONE, StochasticLabels, join


def asked(lists, answer, items, K=4):
    return StochasticLabels.from_lists(lists, answer, K, items=items, class_names=[f"c{k}" for k in range(K)])


def test_labels_come_in_the_order_of_the_data():
    rows, joined = join(asked([[0], [1], [2]], [0, NONE, 2], ["z", "x", "y"]), ["x", "unlabelled", "y", "z"])
    assert rows.tolist() == [0, 2, 3]
    assert joined.item_ids.tolist() == ["x", "y", "z"]
    assert joined.answer.tolist() == [NONE, 2, 0]
    assert joined.class_names == ("c0", "c1", "c2", "c3")


def test_numbered_labels_join_by_number():
    drawn = StochasticLabels.draw(np.arange(6) % 3, num_classes=3, size=2, seed=0)
    rows, joined = join(drawn.subset([4, 2]), [str(row) for row in range(6)])
    assert rows.tolist() == [2, 4]
    assert joined == drawn.subset([2, 4])
    assert join(drawn, range(6))[1] == drawn  # identifiers are compared as text


def test_several_questions_become_one_row():
    lists = [[0, 1], [2], [2, 3], [3, 0]]
    rows, joined = join(asked(lists, [NONE, 2, 3, NONE], ["a", "b", "a", "b"]), ["b", "a"])
    assert rows.tolist() == [0, 1]
    assert joined.item_ids.tolist() == ["b", "a"]
    assert [joined.shortlist(row).tolist() for row in (0, 1)] == [[2, 3, 0], [0, 1, 2, 3]]
    assert joined.answer.tolist() == [2, 3]


@pytest.mark.parametrize(
    ("answers", "want"),
    [([0, 0, 1], 0), ([0, 1], 1), ([1, 0], 0), ([NONE, 0], 0), ([0, NONE], 0), ([NONE, NONE], NONE), ([0, 1, 1, 0], 0)],
)
def test_the_class_picked_most_often_wins_then_the_last(answers, want):
    _, joined = join(asked([[0, 1]] * len(answers), answers, ["a"] * len(answers)), ["a"])
    assert joined.answer.tolist() == [want]
    assert joined.shortlist(0).tolist() == [0, 1]


def test_an_item_whose_every_class_was_refused_says_nothing():
    labels = asked([[0, 1], [2, 3], [1]], [NONE, NONE, 1], ["a", "a", "b"])
    rows, joined = join(labels, ["a", "b"])
    assert rows.tolist() == [1]
    assert joined.item_ids.tolist() == ["b"]
    rows, joined = join(labels.subset([0, 1]), ["a", "b"])
    assert len(rows) == len(joined) == 0


@pytest.mark.parametrize("truth", range(4))
def test_merging_keeps_the_exact_likelihood(truth):
    """Ask {0, 1}, on None {2}: the merged row has the probability of both answers together."""
    p = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
    lists, answers = [[0, 1]], [truth if truth < 2 else NONE]
    if truth >= 2:
        lists, answers = [*lists, [2]], [*answers, 2 if truth == 2 else NONE]
    _, joined = join(asked(lists, answers, ["a"] * len(lists)), ["a"])
    shown, answer = torch.from_numpy(joined.shown), torch.from_numpy(joined.answer)
    assert risks.likelihood_risk(p.log()[None], shown, answer).exp().item() == pytest.approx(1 / p[truth].item())


def test_merging_is_the_loop_written_out():
    rng = np.random.default_rng(0)
    items = rng.integers(0, 30, 120).astype(str).tolist()
    truth = {item: int(item) % 5 for item in items}
    lists = [rng.choice(5, rng.integers(1, 4), replace=False).tolist() for _ in items]
    answers = [truth[i] if truth[i] in shown else NONE for i, shown in zip(items, lists, strict=True)]
    data = [str(k) for k in range(30)]
    rows, joined = join(asked(lists, answers, items, K=5), data)
    for row, label in itertools.zip_longest(rows.tolist(), range(len(joined))):
        mine = [k for k, item in enumerate(items) if item == data[row]]
        union = {k for question in mine for k in lists[question]}
        assert set(joined.shortlist(label).tolist()) == union
        assert joined.answer[label] == (truth[data[row]] if truth[data[row]] in union else NONE)


def test_labels_of_other_data_are_refused():
    with pytest.raises(InputError, match=r"1 of 2 labels .* does not have, first 'q' \(the data's first is 'a'\)"):
        join(asked([[0], [1]], [0, 1], ["a", "q"]), ["a", "b"])
    with pytest.raises(InputError, match="identifier twice"):
        join(asked([[0]], [0], ["a"]), ["a", "a"])


def test_an_item_in_another_spelling_of_one_look_is_shown_as_it_is_coded():
    labels = StochasticLabels.from_lists([[0]], [0], 2, items=["caf\u00e9.png"])
    with pytest.raises(InputError, match=r"the item 'caf\\xe9.png', the data has 'cafe\\u0301.png'"):
        join(labels, ["other.png", "cafe\u0301.png"])
