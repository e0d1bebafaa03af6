"""The user's own data: .npz files."""

import numpy as np
import pytest

from shortlist import data
from shortlist.data import UNLABELLED
from shortlist.errors import InputError


def npz(path, **arrays):
    np.savez(path, **arrays)
    return path


def test_npz_of_images(tmp_path):
    x = np.random.default_rng(0).integers(0, 256, (5, 3, 4, 6), np.uint8)
    y = np.array([0, 1, 2, -1, 1])
    path = npz(
        tmp_path / "a.npz", x=x, y=y, x_test=x[:2], y_test=[2, 0], class_names=["p", "q", "r"], items=list("vwxyz")
    )
    dataset = data.load(path)
    np.testing.assert_array_equal(dataset.train.x, x)
    assert dataset.train.y.tolist() == [0, 1, 2, UNLABELLED, 1]
    assert dataset.test.y.tolist() == [2, 0]
    assert dataset.class_names == ("p", "q", "r")
    assert dataset.train.items.tolist() == list("vwxyz")
    last = data.load(npz(tmp_path / "b.npz", x=x.transpose(0, 2, 3, 1), y=y))
    np.testing.assert_array_equal(last.train.x, x)
    assert data.load(npz(tmp_path / "c.npz", x=x[:, 0], y=y)).in_shape == (1, 4, 6)


def test_npz_of_features_and_texts(tmp_path):
    dataset = data.load(npz(tmp_path / "a.npz", x=np.eye(3), y=np.array(["b", "", "a"])))
    assert dataset.kind == "features"
    assert dataset.train.x.dtype == np.float32
    assert dataset.class_names == ("a", "b")
    assert dataset.train.y.tolist() == [1, UNLABELLED, 0]
    unlabelled = data.load(npz(tmp_path / "b.npz", x=np.eye(3)))
    assert unlabelled.train.y is None
    held = npz(tmp_path / "c.npz", x=np.ones((2, 3)), y=[3, 0])
    dataset = data.load(npz(tmp_path / "d.npz", x=np.eye(3), y=[0.0, 1.0, 1.0]), test=held)
    assert dataset.class_names == ("0", "1", "2", "3")
    assert dataset.test.y.tolist() == [3, 0]
    texts = data.load(npz(tmp_path / "e.npz", x=np.array(["one", "two"]), y=[1, 0]))
    assert texts.kind == "text"
    assert texts.train.x == ["one", "two"]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"z": np.eye(2)}, r"has no array x \(it holds: z\)"),
        ({"x": np.eye(2), "y": [0]}, r"y has shape \(1,\), expected \(2,\)"),
        ({"x": np.eye(2), "items": ["a"]}, r"items has shape \(1,\)"),
        ({"x": np.array([[1, np.nan]]), "y": [0]}, "x holds nan at row 0, column 1"),
        ({"x": np.array([[1, 1e300]]), "y": [0]}, "x holds inf at row 0, column 1"),
        ({"x": np.zeros((2, 3, 4, 5)), "y": [0, 1]}, r"shape \(2, 3, 4, 5\) and type float64, expected uint8 images"),
        ({"x": np.eye(2), "y": [0, 5], "class_names": ["a", "b"]}, "y is 5 at row 1, expected 0 to 1"),
        ({"x": np.eye(2), "y": [0, -2]}, "y is -2 at row 1"),
        ({"x": np.eye(2), "y": [0, 0.5]}, "whole numbers or class names"),
        ({"x": np.eye(2), "y": [0, np.nan]}, "whole numbers or class names"),
        ({"x": np.eye(2), "y": ["a", "b"], "class_names": ["a", "c"]}, "'b', which is not among the class names"),
        ({"x": np.eye(2), "y": [0, 1], "class_names": ["a", "a"]}, "named twice"),
        ({"x": np.eye(2), "y": [0, 1], "x_test": np.eye(3)}, r"x_test is features \(3,\), x is features \(2,\)"),
        ({"x": np.array([{}, []], object)}, "cannot be read as an .npz archive of plain arrays"),
        ({"x": np.zeros((0, 3))}, "holds no items"),
        ({"x": np.zeros((2, 0)), "y": [0, 1]}, r"x has shape \(2, 0\): its items hold nothing"),
        ({"x": np.zeros((2, 3, 0), np.uint8), "y": [0, 1]}, "its items hold nothing"),
        ({"x": np.eye(2), "y": [0, 10**15]}, "y holds 1000000000000000, expected classes counted from 0"),
        ({"x": np.eye(2), "y": [0, 1], "class_names": 3}, "y is 1 at row 1, expected 0 to 0"),
    ],
)
def test_npz_errors(tmp_path, arrays, message):
    with pytest.raises(InputError, match=message) as caught:
        data.load(npz(tmp_path / "a.npz", **arrays))
    assert "\n" not in str(caught.value)


def test_npz_with_two_tests(tmp_path):
    path = npz(tmp_path / "a.npz", x=np.eye(2), x_test=np.eye(2))
    with pytest.raises(InputError, match="has x_test already"):
        data.load(path, test=path)
