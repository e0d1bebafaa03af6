"""For all tests: no deadlines, and which tests `make quick` leaves out.

Files are marked by the words in their path, so that a test that moves keeps its mark; a single test is marked by its
name (`_killed_`) or, if it takes long in another file, where it stands (`@pytest.mark.slow`).
"""

import gc
import os
import re
import sys
import types
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import settings

# speed lives in benchmarks/: on a busy machine a deadline fails by chance
settings.register_profile("shortlist", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=20)  # make quick
settings.load_profile("shortlist")

# many tests start programs of ours: each would compile all of it again
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

MARKS = {
    "browser": r"browser",
    "kernels": r"kernel|cuda|nvrtc",
    "kill": r"kill|crash",
    "docs": r"docs|readme|pages|tutorial",
    # whole servers with trainers, pools of processes, commands from end to end, and what a fuzzer makes of the API
    "slow": r"/live/|engines|run_locks|test_gold|distributed|real_data|fuzz|machine|study/test_commands|study/report"
    r"|test_import|test_sklearn|test_facade|test_demo|test_connections|test_workers|test_whole_or_nothing|test_serve"
    r"|test_first_steps|test_packaging|fleet/test_fleet|test_label_command|test_patches|test_download|test_threads",
}
"""Mark -> what in the path of a test file earns it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        place = item.nodeid.partition("::")[0]
        for mark, words in MARKS.items():
            if re.search(words, place):
                item.add_marker(mark)
        if "_killed_" in item.name:
            item.add_marker("kill")
        if "page" in getattr(item, "fixturenames", ()):  # a page of a browser, in whatever file
            item.add_marker("browser")
    # the longest first: at the end everybody would wait for them
    items.sort(key=lambda item: item.get_closest_marker("kernels") is None)


def pytest_collection_finish() -> None:
    gc.freeze()  # PyTorch and all else that was imported: looked through again and again, it is a tenth of the time


@dataclass
class Done:
    code: int
    out: str
    err: str


@pytest.fixture
def shortlist(monkeypatch, capsys):
    """The command line in this process: what `shortlist ...` would print and exit with."""

    from shortlist.cli import main

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["shortlist", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return Done(ended.value.code or 0, captured.out, captured.err)

    return call


@pytest.fixture
def encoder_of(monkeypatch):
    """A stand-in for sentence-transformers that knows what means the same: `encoder_of(["lost gone", "rate"])`."""

    def install(meanings):
        topics = [set(words.split()) for words in meanings]

        class SentenceTransformer:
            def __init__(self, name):
                self.name = name

            def get_sentence_embedding_dimension(self):
                return len(topics) + 1

            def encode(self, texts, normalize_embeddings, show_progress_bar):
                counts = [[sum(word in topic for word in text.split()) for topic in topics] for text in texts]
                vectors = np.hstack([np.array(counts, np.float64), np.full((len(texts), 1), 3.0)])
                return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

        module = types.ModuleType("sentence_transformers")
        module.SentenceTransformer = SentenceTransformer
        monkeypatch.setitem(sys.modules, "sentence_transformers", module)

    return install
