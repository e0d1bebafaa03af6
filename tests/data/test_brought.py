"""Features from a file, joined by item."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from shortlist.data import as_features, load, read_features
from shortlist.errors import InputError

X = np.arange(12, dtype=np.float32).reshape(4, 3)
NAMES = ["a", "b", "c", "d"]


def _parquet(path, **columns):
    pa.parquet.write_table(pa.table(columns), path)
    return path


def test_every_form_gives_the_same_rows_in_the_order_asked_for(tmp_path):
    np.savez(tmp_path / "v.npz", x=X.astype(np.float64), items=NAMES)
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 3)
    forms = [
        tmp_path / "v.npz",
        _parquet(tmp_path / "lists.parquet", item=NAMES, vector=[row.tolist() for row in X]),
        _parquet(tmp_path / "fixed.parquet", vector=fixed, item=NAMES),
        _parquet(tmp_path / "columns.parquet", one=X[:, 0], item=NAMES, two=X[:, 1].astype(int), three=X[:, 2]),
    ]
    for path in forms:
        x, x_test = read_features(path, ["d", "a"], ["b"])
        assert x.dtype == np.float32
        np.testing.assert_array_equal(x, X[[3, 0]], str(path))
        np.testing.assert_array_equal(x_test, X[[1]], str(path))
        assert read_features(str(path), ["d"])[1].shape == (0, 3)


def test_rows_without_names_are_numbered(tmp_path):
    np.savez(tmp_path / "v.npz", x=X, x_test=X[::-1])
    x, x_test = read_features(tmp_path / "v.npz", ["2", "0"], ["0"])
    np.testing.assert_array_equal(x, X[[2, 0]])
    np.testing.assert_array_equal(x_test, X[[3]])
    assert read_features("tfidf", NAMES) is None


def test_what_is_wrong_is_named(tmp_path):
    def refused(match, items=("a",), others=None, name="v.npz", **arrays):
        if arrays:
            np.savez(tmp_path / name, **arrays)
        with pytest.raises(InputError, match=match):
            read_features(tmp_path / name, list(items), others)

    refused("no such file of features", name="absent.npz")
    refused(r"has no array x \(it holds: y\)", y=X)
    np.savez(tmp_path / "v.npz", x=X, items=NAMES)
    refused(r"no features of 2 of the 3 items, first 'y', 'z'", items=("a", "y", "z"))
    refused("'a' is in the data and in the test data, expected an .npz with x and x_test", others=["a"])
    np.savez(tmp_path / "v.npz", x=X, items=["a", "a", "b", "c"])
    refused("item 'a' occurs more than once")
    np.savez(tmp_path / "v.npz", x=X, items=7)
    refused("1 item names for 4 rows")
    np.savez(tmp_path / "v.npz", x=X, items=NAMES[:3])
    refused("3 item names for 4 rows")
    refused(r"missing or infinite at row 1", x=np.array([[1.0], [np.nan]]))
    refused(r"shape \(2,\)", x=np.array([1.0, 2.0]))
    np.savez(tmp_path / "v.npz", x=X, items=NAMES, x_test=X[:, :2], items_test=NAMES)
    refused("x has 3 columns, x_test 2", others=["a"])
    whole = (tmp_path / "v.npz").read_bytes()
    for content in (b"nothing", whole[:-30]):
        (tmp_path / "v.npz").write_bytes(content)
        refused("cannot be read as an .npz archive of plain arrays: it is not one, or is damaged")
    np.savez_compressed(tmp_path / "v.npz", x=np.random.default_rng(0).random((50, 3)), items=np.arange(50))
    content = bytearray((tmp_path / "v.npz").read_bytes())
    content[60:90] = bytes(30)
    (tmp_path / "v.npz").write_bytes(bytes(content))
    refused("cannot be read as an .npz archive of plain arrays: ")
    _parquet(tmp_path / "p.parquet", item=["a", "b"], v=[[1.0], [1.0, 2.0]])
    refused("lists of one length", name="p.parquet")
    _parquet(tmp_path / "p.parquet", item=["a", "b"], v=["x", "y"])
    refused("column 'v' is string, expected numbers", name="p.parquet")
    _parquet(tmp_path / "p.parquet", item=["a", "b"], v=[1.0, None], w=[1, 2])
    refused("missing or infinite at row 1", name="p.parquet")


def test_a_dataset_of_texts_becomes_one_of_these_features(tmp_path):
    (tmp_path / "t.csv").write_text("item,text,label\na,one,x\nb,two,y\n")
    np.savez(tmp_path / "v.npz", x=X, items=NAMES)
    data, transform = as_features(load(tmp_path / "t.csv"), str(tmp_path / "v.npz"))
    assert transform is None
    assert data.kind == "features"
    np.testing.assert_array_equal(data.train.x, X[:2])
    assert data.train.y.tolist() == [0, 1]
