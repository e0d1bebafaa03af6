"""partial_fit: answers that keep arriving."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits

from shortlist import NONE, ShortlistClassifier, StochasticLabels
from shortlist.errors import InputError
from shortlist.training import one_pass
from shortlist.training.run import Run

X, Y = load_digits(return_X_y=True)
X = X.astype(np.float32)
LABELS = StochasticLabels.draw(Y, num_classes=10, size=5, seed=0)
CHUNKS = [slice(start, start + 130) for start in range(0, 1300, 130)]
TEST = slice(1300, None)


def feed(clf, chunks, repeat=1):
    for part in chunks * repeat:
        clf.partial_fit(X[part], LABELS.answer[part], classes=range(10), shown=LABELS.shown[part])
    return clf


def test_it_gets_better_as_answers_arrive():
    clf = ShortlistClassifier(random_state=0)
    early = feed(clf, CHUNKS[:1]).score(X[TEST], Y[TEST])
    late = feed(clf, CHUNKS[1:]).score(X[TEST], Y[TEST])
    assert late > max(early + 0.1, 0.75)
    assert [row["epoch"] for row in clf.history_] == list(range(1, 11))


def test_the_order_of_arrival_counts_and_decides():
    def network(chunks):
        return feed(ShortlistClassifier(random_state=0), chunks).decision_function(X[TEST])

    start = CHUNKS[:1]  # measures the features
    assert np.array_equal(network(CHUNKS[:4]), network(CHUNKS[:4]))
    assert not np.array_equal(network(CHUNKS[:4]), network(start + CHUNKS[3:0:-1]))


def test_it_goes_on_after_pickling_and_after_fit():
    clf = feed(ShortlistClassifier(random_state=0), CHUNKS[:2])
    copy = pickle.loads(pickle.dumps(clf))
    feed(clf, CHUNKS[2:4])
    assert np.array_equal(feed(copy, CHUNKS[2:4]).predict_proba(X), clf.predict_proba(X))
    fitted = ShortlistClassifier(random_state=0, epochs=10).fit(X[:1000], Y[:1000])
    before, risk = fitted.score(X[TEST], Y[TEST]), fitted.history_[-1]["risk"]
    feed(fitted, CHUNKS[8:10])
    assert fitted.score(X[TEST], Y[TEST]) > before - 0.03  # went on, did not start anew
    assert fitted.history_[-1]["risk"] < 10 * max(risk, 0.05)


def test_fit_starts_anew():
    clf = feed(ShortlistClassifier(random_state=0, epochs=2), CHUNKS[:2])
    clf.fit(X[:200], Y[:200])
    fresh = ShortlistClassifier(random_state=0, epochs=2).fit(X[:200], Y[:200])
    assert np.array_equal(clf.predict_proba(X[TEST]), fresh.predict_proba(X[TEST]))


def test_a_single_answer_moves_the_network():
    clf = feed(ShortlistClassifier(random_state=0), CHUNKS[:1])
    before = clf.predict_proba(X[TEST])
    clf.partial_fit(X[200:201], [Y[200]])
    assert not np.array_equal(clf.predict_proba(X[TEST]), before)


@pytest.mark.parametrize("count", [1, 31, 33, 70, 71])
def test_every_item_counts_exactly_once(count, monkeypatch):
    """Runs drop incomplete batches; an answer that comes once must not be dropped, nor counted twice."""
    seen: list[np.ndarray] = []
    from shortlist.methods import likelihood

    def risk(logits, shown, answer, *, weight, all_sum):
        counted = np.ones(len(answer)) if weight is None else weight.numpy()
        seen.append(np.column_stack([answer.numpy(), counted]))
        return logits.sum() * 0

    monkeypatch.setattr(likelihood, "likelihood_risk", risk)
    clf = ShortlistClassifier(random_state=0, batch_size=32, classes=range(100))
    clf.partial_fit(X[:count], np.arange(count))
    rows = np.concatenate(seen[1:])  # without the trial of the method
    total = np.bincount(rows[:, 0].astype(int), rows[:, 1], minlength=count)
    assert total.tolist() == [1] * count
    assert max(len(batch) for batch in seen) <= 32


def test_every_pass_shuffles_anew_and_the_optimiser_goes_on(monkeypatch):
    orders = []
    original = Run._draw

    def spy(self):
        drawn = original(self)
        orders.append(drawn.order.tolist())
        return drawn

    monkeypatch.setattr(Run, "_draw", spy)
    clf = feed(ShortlistClassifier(random_state=0, batch_size=65), CHUNKS[:1], repeat=3)
    assert len({tuple(order) for order in orders}) == 3
    assert clf._optimiser["count"] == 6  # steps of Adam: two a pass
    assert sorted(orders[0]) == list(range(130))


def test_a_model_that_needs_company_says_so():
    images = np.kron(X[:40].reshape(-1, 1, 8, 8), np.ones((1, 1, 4, 4)))[..., 2:30, 2:30].astype(np.uint8)
    clf = ShortlistClassifier(model="lenet", random_state=0, classes=range(10))
    with pytest.raises(InputError, match="cannot train on a single item"):
        clf.partial_fit(images[:1], Y[:1])
    clf.partial_fit(images, Y[:40])
    assert clf.predict_proba(images).shape == (40, 10)


def test_smoothing_is_that_of_all_answers_so_far():
    K, sizes = 10, [2] * 100 + [8] * 300
    labels = StochasticLabels.draw(Y[:400], num_classes=K, size=sizes, seed=0)
    clf = ShortlistClassifier("sl", random_state=0, classes=range(K))
    clf.partial_fit(X[:100], shown=labels.subset(range(100)))
    assert clf.smoothing_ == pytest.approx(1 - 2 / 9)
    clf.partial_fit(X[100:400], shown=labels.subset(range(100, 400)))
    assert clf.smoothing_ == pytest.approx(0.25 * (1 - 2 / 9) + 0.75 * (1 - 8 / 9))


@pytest.mark.parametrize("method", ["rc", "proden", "lw"])
def test_methods_that_keep_confidences(method):
    clf = feed(ShortlistClassifier(method, random_state=0), CHUNKS)
    assert clf.score(X[TEST], Y[TEST]) > 0.5


def test_refused():
    with pytest.raises(InputError, match="classes must be passed on the first call"):
        ShortlistClassifier().partial_fit(X[:10], Y[:10])
    clf = ShortlistClassifier(random_state=0).partial_fit(X[:10], [0, 1] * 5, classes=[0, 1])
    with pytest.raises(InputError, match="not the same as on the first call"):
        clf.partial_fit(X[:10], [0, 1] * 5, classes=[0, 1, 2])
    with pytest.raises(InputError, match="row 1 has 2, which is not among the 2 classes"):
        clf.partial_fit(X[:10], [0, 2] * 5)
    with pytest.raises(ValueError, match="features"):
        clf.partial_fit(X[:10, :3], [0, 1] * 5)
    with pytest.raises(InputError, match="stands for None"):
        clf.partial_fit(X[:2], [0, NONE])
    clf.partial_fit(X[:1], [1])  # refusals leave it as it was
    assert clf.score(X[:1], [1]) in (0, 1)


def test_a_first_call_that_fails_leaves_nothing_behind():
    clf = ShortlistClassifier(random_state=0, lr=1e30)
    before = vars(clf).copy()
    with pytest.raises(InputError, match="smaller lr"):
        clf.partial_fit(X[:40], Y[:40], classes=range(10))
    assert vars(clf) == before


def test_a_copy_is_trained():
    clf = ShortlistClassifier(random_state=0).partial_fit(X[:40], [0, 1] * 20, classes=[0, 1])
    before = [p.clone() for p in clf.network_.parameters()]
    labels = StochasticLabels.ordinary([0, 1], num_classes=2)
    one_pass(clf.network_, {}, 0, clf._config(2), X[:2], labels, None, "cpu")
    assert all((a == b).all() for a, b in zip(before, clf.network_.parameters(), strict=True))
