"""Datasets: the paper's four, three more, and the user's own.

>>> from shortlist.data import load
>>> digits = load("digits")
>>> digits.train.x.shape, digits.train.x.dtype, digits.num_classes
((1437, 1, 8, 8), dtype('uint8'), 10)

A known name is looked for under $SHORTLIST_DATA, then in the user's cache, else downloaded. A path is the user's own
data: a folder of class folders, a .csv, .tsv, .jsonl or .parquet table, or an .npz file.
"""

from shortlist.data.dataset import UNLABELLED, Dataset, Split
from shortlist.data.registry import DatasetRow, describe, load, names

__all__ = ["UNLABELLED", "Dataset", "DatasetRow", "Split", "describe", "load", "names"]
