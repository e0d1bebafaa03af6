"""Files read as columns hold what the same files hold read row by row; what is unusual is read row by row."""

import numpy as np
import pytest

from shortlist.errors import InputError
from shortlist.labels import StochasticLabels, batches, files


def by_rows(path, monkeypatch, **options):
    with monkeypatch.context() as patch:
        patch.setattr(files, "read_columns", refuse)
        return StochasticLabels.read(path, **options)


def refuse(path):
    raise batches.UnusualError


def assert_same(left, right):
    for name in ("classes", "offsets", "answer", "inclusion", "item_ids"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))
    assert (left.num_classes, left.class_names) == (right.num_classes, right.class_names)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("named", [True, False])
def test_columns_and_rows_agree(ending, named, tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "ROWS", 7)  # many batches
    rng = np.random.default_rng(0)
    names = [f"class {k}" for k in range(9)] if named else None
    drawn = StochasticLabels.draw(rng.integers(0, 9, 100), num_classes=9, size=4, seed=1, class_names=names)
    path = tmp_path / f"labels.{ending}"
    drawn.write(path)
    assert len(batches.read_columns(path).items) == 100, "read as columns"
    assert_same(StochasticLabels.read(path), drawn)
    assert_same(StochasticLabels.read(path), by_rows(path, monkeypatch))


@pytest.mark.parametrize(
    "text",
    [
        'item,shortlist,answer\n"a,b",x|y,x\n',  # a quote
        'item,shortlist,answer,note\na,x|y,x,"one\nb,x|y,y,two"\n',  # a quoted line end, in a column that is not read
        'item,shortlist,answer,"classes"\na,x|y,x,x|y|z\n',  # a quoted name of a column
        "item,shortlist,answer\na,x\\|y|z,z\n",  # an escape
        "item,shortlist,answer\na,x|y,'=x\n",  # a cell guarded against spreadsheets
        "item,shortlist,answer,typed\na,x|y,,z\n",  # typed
        "item,shortlist,answer,probabilities\na,x|y,x,0.5|0.5\nb,x,x,\n",  # known for some rows only
        "item,shortlist,answer\na,x|y\n",  # cut short
        "item,shortlist,answer\na,x|x,x\n",  # wrong
        "item,shortlist\na,x|y\n",
    ],
)
def test_what_is_unusual_is_read_by_rows(text, tmp_path, monkeypatch):
    path = tmp_path / "labels.csv"
    path.write_text(text)
    assert outcome(lambda: StochasticLabels.read(path)) == outcome(lambda: by_rows(path, monkeypatch))


def outcome(read):
    """What was read, or the error."""
    try:
        labels = read()
    except InputError as error:
        return str(error)
    chances = None if labels.inclusion is None else labels.inclusion.tolist()
    return repr((labels.classes.tolist(), labels.offsets.tolist(), labels.answer.tolist(), labels.class_names, chances))


def test_plain_files_of_other_programs(tmp_path, monkeypatch):
    path = tmp_path / "labels.csv"
    path.write_text("\ufeffwho,item,shortlist,answer\nada,1,x|y,x\nbob,2,y,\n\nbob,3,z|x,z\n")
    assert len(batches.read_columns(path).items) == 3
    assert_same(StochasticLabels.read(path), by_rows(path, monkeypatch))
    options = {"class_names": ["z", "y", "x", "w"]}
    assert_same(StochasticLabels.read(path, **options), by_rows(path, monkeypatch, **options))


def test_the_first_bad_row_is_named_in_any_block(monkeypatch):
    from shortlist.labels import checks

    monkeypatch.setattr(checks, "BLOCK", 3)
    lists = [[0, 1]] * 7 + [[2, 2]] + [[1, 1]]
    with pytest.raises(InputError, match="row 7: a class is on the shortlist twice"):
        StochasticLabels.from_lists(lists, [0] * 7 + [2, 1], 3)
