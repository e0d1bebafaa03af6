"""Kuzushiji-MNIST (KMNIST): cursive Japanese characters."""

from shortlist.data.dataset import Dataset
from shortlist.data.sources.idx import IdxDataset

_DATA = IdxDataset(
    "kuzushiji",
    "Kuzushiji-MNIST: cursive Japanese characters, 28x28 grey",
    ("http://codh.rois.ac.jp/kmnist/dataset/kmnist/",),
    (
        "sha256:51467d22d8cc72929e2a028a0428f2086b092bb31cfb79c69cc0a90ce135fde4",
        "sha256:e38f9ebcd0f3ebcdec7fc8eabdcdaef93bb0df8ea12bee65224341c8183d8e17",
        "sha256:edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5",
        "sha256:20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c",
    ),
    ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"),
)
SOURCE = _DATA.source


def load_kuzushiji_test() -> Dataset:
    """The official 10,000 test images alone, as items to train on; the training files are not needed."""
    return _DATA.read_test()
