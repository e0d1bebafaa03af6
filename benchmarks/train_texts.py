"""Training on texts beside scikit-learn: processor seconds of whole commands, start and vectoriser included.

Measured on two cores (results/train_texts.json): 91.85 % in 4.9 s of processor time; LogisticRegression(C=10) 89.38 %
in 9.8 s, LinearSVC 89.38 % in 2.1 s.

    SHORTLIST_DATA=... OMP_NUM_THREADS=1 python benchmarks/train_texts.py        # 2 minutes on a quiet machine

BANKING77 with full labels and with lists of 8; scikit-learn's LogisticRegression and LinearSVC on TF-IDF of words and
pairs of words, each as one script; and 30 labelled items. Writes results/train_texts.json.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from shortlist.data import load
from shortlist.internal.files import atomic_write

OUT = Path(__file__).parent.parent / "results" / "train_texts.json"
RIVAL = """
from shortlist.data import load
from sklearn.feature_extraction.text import TfidfVectorizer
{imports}
data = load("banking77")
words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
model = {model}.fit(words.fit_transform(data.train.x), data.train.y)
print('{{"test_accuracy": %f}}' % model.score(words.transform(data.test.x), data.test.y))
"""
RIVALS = {
    "LogisticRegression()": "from sklearn.linear_model import LogisticRegression",
    "LogisticRegression(C=10, max_iter=1000)": "from sklearn.linear_model import LogisticRegression",
    "LinearSVC()": "from sklearn.svm import LinearSVC",
}


def timed(command: list[str]) -> dict[str, Any]:
    """What a command printed as JSON, and what it took."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    accuracy = json.loads(done.stdout.splitlines()[-1])["test_accuracy"]
    return {
        "test_accuracy": accuracy,
        "processor_seconds": round(used, 2),
        "seconds": round(time.perf_counter() - began, 2),
    }


def main() -> None:
    shortlist = [sys.executable, "-m", "shortlist", "train"]
    found: dict[str, Any] = {"load_average": os.getloadavg()[0]}
    libraries = "import torch, sklearn.linear_model, sklearn.svm, sklearn.feature_extraction.text"
    subprocess.run([sys.executable, "-c", libraries], check=True)  # whoever comes first would read them from the disk
    with tempfile.TemporaryDirectory() as folder:
        data = load("banking77")
        few = Path(folder) / "few.jsonl"
        assert data.train.y is not None
        rows = zip(data.train.x[:3000:100], data.train.y[:3000:100].tolist(), strict=True)
        few.write_text("".join(json.dumps({"text": text, "label": f"class {y}"}) + "\n" for text, y in rows))
        ways = {
            "train banking77": [*shortlist, "banking77"],
            "train banking77 --size 8": [*shortlist, "banking77", "--size", "8"],
            "train 30 items": [*shortlist, str(few)],
        }
        for name, command in ways.items():
            found[name] = timed([*command, "--out", f"{folder}/{len(found)}", "--json"])
            print(name, found[name], flush=True)
        for model, imports in RIVALS.items():
            found[model] = timed([sys.executable, "-c", RIVAL.format(model=model, imports=imports)])
            print(model, found[model], flush=True)
    atomic_write(OUT, json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
