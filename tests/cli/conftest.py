import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from conftest import Done

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SHORTLIST_OFFLINE", "1")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def environment():
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}


def command(*words, stdin=None, cwd=None):
    """The command line in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "shortlist", *map(str, words)],
        capture_output=True,
        text=True,
        input=stdin,
        cwd=cwd,
        env=environment(),
        timeout=300,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def piped(text):
    """What a process finds on stdin: bytes."""
    return io.TextIOWrapper(io.BytesIO(text if isinstance(text, bytes) else text.encode()))


def image_folder(folder, per_class=12, side=20, colour=False, seed=0):
    """PNGs by class: a bright bar lying, standing, or a dot."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    for name in ("dot", "lying", "standing"):
        (folder / name).mkdir(parents=True)
        for i in range(per_class):
            pixels = rng.integers(0, 60, (side, side, 3) if colour else (side, side)).astype(np.uint8)
            at = int(rng.integers(4, side - 6))
            short, long = slice(at, at + 3), slice(2, -2)
            rows, columns = {"dot": (short, short), "lying": (short, long), "standing": (long, short)}[name]
            pixels[rows, columns] = 250
            Image.fromarray(pixels).save(folder / name / f"{i}.png")
    return folder


WORDS = {
    "lost card": ["my card is gone", "I lost my card", "card was stolen", "where is my missing card"],
    "exchange rate": ["what is the rate for euros", "exchange dollars", "currency rates today", "rate of exchange"],
    "top up": ["add money to my account", "top up by transfer", "how do I top up", "put money in"],
}


def text_rows(count=60, seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(count):
        label = list(WORDS)[i % 3]
        text = str(rng.choice(WORDS[label])) + str(rng.choice(["", " please", ", thanks", " now"]))
        rows.append((f"q{i}", text, label))
    return rows


def text_table(path, rows, header=("item", "text", "label")):
    import csv

    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path
