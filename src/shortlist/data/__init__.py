"""Datasets: the paper's four, three more, and your own.

>>> from shortlist.data import load
>>> digits = load("digits")
>>> digits.train.x.shape, digits.train.x.dtype, digits.num_classes
((1437, 1, 8, 8), dtype('uint8'), 10)

A known dataset is looked for under $SHORTLIST_DATA, then in the user's cache, and downloaded if it is in neither. Your
own data is a path: a folder of class folders, a .csv, .tsv, .json, .jsonl, .parquet or .xlsx table, a folder that
Hugging Face's `datasets` saved, or an .npz file.
"""

from shortlist.data.brought import read_features
from shortlist.data.dataset import UNLABELLED, Dataset, Split, as_inputs
from shortlist.data.formats.images import IMAGE_SUFFIXES, read_images
from shortlist.data.formats.table import TABLE_SUFFIXES, is_table, item_names, read_table
from shortlist.data.registry import describe, load, names
from shortlist.data.sources.kuzushiji import load_kuzushiji_test
from shortlist.data.text.features import as_features, fit_features, load_features
from shortlist.data.text.saved import Features

__all__ = [
    "IMAGE_SUFFIXES",
    "TABLE_SUFFIXES",
    "UNLABELLED",
    "Dataset",
    "Features",
    "Split",
    "as_features",
    "as_inputs",
    "describe",
    "fit_features",
    "is_table",
    "item_names",
    "load",
    "load_features",
    "load_kuzushiji_test",
    "names",
    "read_features",
    "read_images",
    "read_table",
]
