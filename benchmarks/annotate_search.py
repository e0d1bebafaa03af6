"""What it costs the server to search 10,000 described classes for a few letters, in processor time per request.

Measured on x86_64 (results/annotate_search.json), 600 requests: mean 10.6 ms, p99 34.1; names and descriptions of all
classes are 954 kB.

    python benchmarks/annotate_search.py            # writes results/annotate_search.json

The alternative, sending all classes to the page, would cost every page load the bytes stated beside it and could not
rank the matches by what the model believes of the item. Processor time: other work on the machine matters little.
"""

import json
import platform
import random
import tempfile
import time
from pathlib import Path

import numpy as np

from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.people import People
from shortlist.annotate.project.project import Project, Settings
from shortlist.annotate.project.sources import Source
from shortlist.annotate.queue.chooser import UniformChooser
from shortlist.annotate.queue.search import ClassSearch
from shortlist.internal.files import atomic_write

RESULTS = Path(__file__).parent.parent / "results" / "annotate_search.json"
CLASSES, REQUESTS = 10_000, 600
SYLLABLES = ["ka", "lo", "mi", "ren", "tu", "pa", "shi", "vor", "den", "cal", "fin", "gro", "hul", "jas", "wen", "pol"]


class Believes(UniformChooser):
    """Has an opinion on every class."""

    def beliefs(self, item: int, num_classes: int, seed: int) -> np.ndarray:
        """The same for every item."""
        return np.random.default_rng(0).random(num_classes, dtype=np.float32)


def main() -> None:
    dice = random.Random(0)

    def word() -> str:
        return "".join(dice.choices(SYLLABLES, k=dice.randint(1, 4)))

    names = [f"{word()} {word()} {k}" for k in range(CLASSES)]
    described = {name: " ".join(word() for _ in range(10)) for name in names}
    with tempfile.TemporaryDirectory() as folder:
        project = Project.create(Path(folder) / "p", Settings("search", 5))
        add_classes(project, described)
        add_items(project, [Source("0", "0", text="x")])
        ada = People(project).invite("ada")[0]
        (question,) = project.queue().next(ada)
        search = ClassSearch(project.store, Believes(5))
        taken = []
        for _ in range(REQUESTS):
            typed = dice.choice(names)[: dice.randint(0, 8)]
            if dice.random() < 0.2:
                typed += dice.choice("xqy")  # a slip of the finger: looks alike only
            begun = time.process_time()
            search.find(ada, question.id, typed, 8)
            taken.append(1000 * (time.process_time() - begun))
        project.close()
    result = {
        "classes": CLASSES,
        "requests": REQUESTS,
        "processor_ms": {
            "first, which makes the index": round(taken[0], 1),
            "mean": round(float(np.mean(taken[1:])), 2),
            "p99": round(float(np.quantile(taken[1:], 0.99)), 2),
            "max": round(max(taken[1:]), 2),
        },
        "bytes_of_all_names_and_descriptions": sum(len(name) + len(words) for name, words in described.items()),
        "machine": f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}",
    }
    print(json.dumps(result, indent=1))
    atomic_write(RESULTS, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
