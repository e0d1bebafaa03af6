import numpy as np
import pytest

from shortlist.data import load
from shortlist.errors import InputError
from shortlist.policies.features.loop_data import loop_data
from shortlist.policies.features.words import make_features

TEXTS = ["where is my card", "my card is lost", "exchange rates", "what rate today"]


def test_a_word_for_another_kind_is_refused():
    x = np.zeros((4, 1, 8, 8), np.uint8)
    with pytest.raises(InputError, match="'tfidf' are not for image items, expected patches, pixels or a file"):
        make_features("image", x, x[:0], word="tfidf")
    with pytest.raises(InputError, match="'patches' are not for text items, expected tfidf, embeddings or a file"):
        make_features("text", TEXTS, [], word="patches")
    with pytest.raises(InputError, match="'patches' are not for features items, expected a file"):
        make_features("features", x.reshape(4, -1), x[:0].reshape(0, 64), word="patches")
    with pytest.raises(
        InputError, match=r"unknown features 'tfifd': did you mean 'tfidf'.*features by item in .npz and .parquet"
    ):
        make_features("text", TEXTS, [], word="tfifd")


def test_tfidf_is_what_texts_get():
    for made, stated in zip(
        make_features("text", TEXTS, TEXTS[:1]), make_features("text", TEXTS, TEXTS[:1], word="tfidf"), strict=True
    ):
        np.testing.assert_array_equal(made, stated)


def test_vectors_of_ones_own_are_centred_and_of_length_one(tmp_path):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((30, 8)) + 5).astype(np.float32)
    np.savez(tmp_path / "v.npz", x=x, items=[f"i{k}" for k in range(30)])
    wanted = [f"i{k}" for k in (3, 1, 2)]
    made, others = make_features("text", TEXTS[:3], TEXTS[:1], word=str(tmp_path / "v.npz"), items=(wanted, ["i9"]))
    centred = x[[3, 1, 2, 9]] - x[[3, 1, 2]].mean(axis=0)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    np.testing.assert_allclose(made, centred[:3], atol=1e-5)
    np.testing.assert_allclose(others, centred[3:], atol=1e-5)


def test_wide_vectors_keep_what_varies(tmp_path):
    rng = np.random.default_rng(0)
    low = rng.standard_normal((60, 3)).astype(np.float32)
    x = low @ np.linalg.qr(rng.standard_normal((20, 3)))[0].T.astype(np.float32)
    np.savez(tmp_path / "v.npz", x=x)
    names = [str(k) for k in range(60)]
    made, _ = make_features("image", x, x[:0], word=str(tmp_path / "v.npz"), items=(names, []), size=3)
    assert made.shape == (60, 3)
    centred = x - x.mean(axis=0)
    cosine = centred @ centred.T / np.outer(*[np.linalg.norm(centred, axis=1)] * 2)
    np.testing.assert_allclose(made @ made.T, cosine, atol=1e-4)  # a rotation keeps all angles


def test_the_loop_takes_them_for_a_dataset_with_or_without_a_test_part(tmp_path):
    digits = load("digits")
    x, x_test = (part.x.reshape(len(part), -1) for part in (digits.train, digits.test))
    np.savez(tmp_path / "v.npz", x=x, x_test=x_test)
    data = loop_data(digits, features=str(tmp_path / "v.npz"))
    assert data.x.shape == (1437, 64)
    assert data.x_test.shape == (360, 64)
    np.savez(tmp_path / "own.npz", x=x, y=digits.train.y)
    data = loop_data(load(tmp_path / "own.npz"), features=str(tmp_path / "v.npz"))
    centred = x.astype(float)[[int(name) for name in data.items]]
    centred -= centred.mean(axis=0)
    np.testing.assert_allclose(data.x, centred / np.linalg.norm(centred, axis=1, keepdims=True), atol=1e-5)


def test_several_sets_stand_side_by_side_and_count_alike(tmp_path):
    rng = np.random.default_rng(0)
    items = [f"i{k}" for k in range(5)]
    np.savez(tmp_path / "v+w.npz", x=rng.standard_normal((5, 3)).astype(np.float32), items=items)
    np.savez(tmp_path / "v.npz", x=rng.standard_normal((5, 3)).astype(np.float32), items=items)
    file, named = str(tmp_path / "v.npz"), (items[:4], items[4:])
    both = make_features("text", TEXTS, TEXTS[:1], word=f"tfidf+{file}", items=named)
    alone = [make_features("text", TEXTS, TEXTS[:1], word=word, items=named) for word in ("tfidf", file)]
    for made, *parts in zip(both, *alone, strict=True):
        np.testing.assert_allclose(made, np.hstack(parts) / np.sqrt(2), atol=1e-6)
    assert make_features("text", TEXTS, TEXTS[:1], word=str(tmp_path / "v+w.npz"), items=named)[0].shape == (4, 3)
    with pytest.raises(InputError, match="unknown features 'tfifd'"):
        make_features("text", TEXTS, [], word="tfidf+tfifd")
    with pytest.raises(InputError, match="nothing beside a \\+ in 'tfidf\\+'"):
        make_features("text", TEXTS, [], word="tfidf+")


def test_the_loop_takes_several_sets(tmp_path):
    data = load("digits")
    names = [*data.train.items.tolist(), *(f"test {item}" for item in data.test.items.tolist())]
    x = np.random.default_rng(0).standard_normal((len(names), 4)).astype(np.float32)
    train = len(data.train)
    np.savez(tmp_path / "v.npz", x=x[:train], items=names[:train], x_test=x[train:], items_test=data.test.items)
    made = loop_data(data, features=f"pixels+{tmp_path / 'v.npz'}", size=30)
    assert (made.x.shape, made.x_test.shape) == ((train, 34), (len(data.test), 34))
