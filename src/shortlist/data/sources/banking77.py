"""BANKING77: customers' questions to a bank, 77 intents."""

from dataclasses import replace

from shortlist.data.dataset import Dataset
from shortlist.data.fetch import fetch, find
from shortlist.data.formats.table import Columns, load_table
from shortlist.data.source import RemoteFile, Source

_URL = "https://raw.githubusercontent.com/PolyAI-LDN/task-specific-datasets/master/banking_data/"
_FILES = (
    RemoteFile(
        "train.csv",
        (_URL + "train.csv",),
        "sha256:b06e26ac675513959a63135f11b94ea7786ed02da65db93a5650d8838cbc664b",
    ),
    RemoteFile(
        "test.csv",
        (_URL + "test.csv",),
        "sha256:d12d6e3bc4c3103966ae786dc435913c0c563dfa328f5a3646d0e62cfeeb474d",
    ),
)


def read() -> Dataset:
    """10,003 questions to train on and 3,080 to test."""
    train, test = fetch("banking77", _FILES)
    return replace(load_table(train, test, Columns(label="category")), name="banking77")


SOURCE = Source(
    "banking77",
    "questions to a bank, 77 intents",
    "text",
    77,
    10_003,
    3_080,
    read,
    lambda: all(find("banking77", file.name) is not None for file in _FILES),
)
