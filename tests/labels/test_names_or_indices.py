"""Whether the rows of a file hold names or indices, and how many classes there are, if the file does not say so."""

import pytest

from shortlist.errors import InputError
from shortlist.labels import NONE, StochasticLabels


def read(tmp_path, rows, **options) -> StochasticLabels:
    path = tmp_path / "a.csv"
    path.write_text("item,shortlist,answer\n" + "".join(f"{k},{row}\n" for k, row in enumerate(rows)))
    return StochasticLabels.read(path, **options)


def test_names_of_which_some_look_like_numbers_are_names(tmp_path):
    labels = read(tmp_path, ["7|cat,cat", "7|dog,"])
    assert labels.class_names == ("7", "cat", "dog")
    assert labels.answer.tolist() == [1, NONE]


def test_indices_of_two_classes(tmp_path):
    labels = read(tmp_path, ["0|1,1", "0,"], num_classes=2)
    assert (labels.num_classes, labels.class_names) == (2, None)
    assert read(tmp_path, ["0,0", "0,"]).num_classes == 2  # only one occurs, and there is no choice of one class


def test_as_many_names_as_there_are_classes(tmp_path):
    assert read(tmp_path, ["ant|bee,bee", "cat,"], num_classes=3).class_names == ("ant", "bee", "cat")
    with pytest.raises(InputError, match="3 class names occur, expected 4: say class_names"):
        read(tmp_path, ["ant|bee,bee", "cat,"], num_classes=4)


@pytest.mark.parametrize("index", [3, 4, 5, 30])
def test_an_index_beyond_the_last_class_is_refused(tmp_path, index):
    assert read(tmp_path, ["0|2,2"], num_classes=3).answer.tolist() == [2]
    with pytest.raises(InputError, match=rf"row 2: class '{index}' is out of range, expected 0\.\.2"):
        read(tmp_path, [f"0|{index},0"], num_classes=3)
    with pytest.raises(InputError, match=rf"row 2: class '{index}' is out of range, expected 0\.\.2"):
        read(tmp_path, [f"0|{index},"], num_classes=3)
