"""Can an annotator tell gold items from others by what the browser is sent?

Measured on two cores of an AMD EPYC (results/annotate_gold.json), 4,000 questions: area 0.510 (0.484 to 0.536) by
logistic regression, 0.514 (0.479 to 0.549) by boosting. So no.

    python benchmarks/annotate_gold.py      # about a minute; writes results/annotate_gold.json

40 annotators with 100 questions each at a real server, one item in ten gold. Of each question: its number and the step
since the one before, its place in the session, the size of the reply and of its headers, the milliseconds that it took,
the moments it was served at and its lease ends, the length of the list, which classes are on it and in which order,
whether it is asked again. What the items say is the same for all, so that only the app can give gold away. Logistic
regression and gradient boosting learn from four fifths of the annotators which item is gold and say it of the rest, in
turn. The area under the curve, its interval by drawing annotators with replacement: it must hold 0.5 and be narrower
than 0.1.

Each class has as many gold items as any other: half of the gold lists hold the right class, so classes that are rare
among the gold items are on fewer gold lists, and who knows which lists were gold could learn that. Annotators who
compare notes have another way, which no server can close: gold items are those that everybody saw.
"""

import argparse
import http.client
import json
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from annotate_servers import CLASSES, Server, about, free_port, make_tokens
from shortlist.annotate.db.schema import Item, Question
from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.project import Project, Settings
from shortlist.annotate.project.sources import Source

ROOT = Path(__file__).parents[1]
PEOPLE, QUESTIONS, GOLD, DRAWS = 40, 100, 100, 1000
TOOK = 5  # which of the features is the time of the reply


def make(folder: Path) -> Project:
    """Items of which nothing differs but the name."""
    project = Project.create(folder, Settings("gold", 5))
    add_classes(project, [f"class {k:02}" for k in range(CLASSES)])
    gold = random.Random(0).sample(range(PEOPLE * QUESTIONS), GOLD)
    known = {item: f"class {j % CLASSES:02}" for j, item in enumerate(gold)}
    sources = [
        Source(f"item {i:06}", f"item {i:06}", text="the same", gold=known.get(i)) for i in range(PEOPLE * QUESTIONS)
    ]
    add_items(project, sources)
    return project


class Browser:
    """One annotator; `seen` has a row of features per question."""

    def __init__(self, port: int, token: str, seed: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self.dice, self.last = random.Random(seed), 0
        self.question: Any = None
        self.seen: list[tuple[int, list[float]]] = []

    def step(self) -> None:
        """Answer what is held, as the page does, and look at what comes with the reply."""
        path, body = "/next", dict[str, Any](hold=1)
        if self.question is not None:
            choice = self.dice.choice([None, *(shown["class"] for shown in self.question["shortlist"])])
            path, body = "/answers", {"question": self.question["id"], "answer": choice, "seconds": 1.0, "hold": 1}
        begun = time.perf_counter()
        self.connection.request("POST", f"/api/v1{path}", json.dumps(body), self.headers)
        reply = self.connection.getresponse()
        content = reply.read()
        took = time.perf_counter() - begun
        assert reply.status == 200, content
        (self.question,) = json.loads(content)["questions"]
        self.seen.append((self.question["id"], self._features(len(content), str(reply.headers), took)))
        self.last = self.question["id"]

    def _features(self, size: int, headers: str, took: float) -> list[float]:
        question = self.question
        shown = [one["class"] for one in question["shortlist"]]
        row = [question["id"], question["id"] - self.last, len(self.seen), size, len(headers), 1000 * took]
        row += [question["served_at"] % 60, question["lease_until"] - question["served_at"], len(shown)]
        row += [question["again"], *shown, *(k in shown for k in range(CLASSES))]
        return [float(value) for value in row]


def gather() -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Features, whether gold, and whose."""
    with tempfile.TemporaryDirectory(prefix="annotate-gold-") as folder:
        project = make(Path(folder) / "project")
        tokens = make_tokens(project, PEOPLE)
        server = Server(project.folder, free_port())
        try:
            server.wait()
            browsers = [Browser(server.port, token, seed) for seed, token in enumerate(tokens)]
            for _ in range(QUESTIONS):
                for browser in browsers:
                    browser.step()
        finally:
            server.kill()
        with project.store.read() as connection:
            gold = select(Question.id).join(Item, Item.id == Question.item_id).where(Item.gold.is_not(None))
            known = set(connection.execute(gold).scalars())
        project.close()
    rows = [(row, number in known, who) for who, browser in enumerate(browsers) for number, row in browser.seen]
    x, y, groups = zip(*rows, strict=True)
    return np.array(x), np.array(y), np.array(groups)


def areas(x: NDArray[Any], y: NDArray[Any], groups: NDArray[Any]) -> dict[str, Any]:
    """The area under the curve of each model, with its interval."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import GroupKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    models = {
        "logistic_regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
        "gradient_boosting": HistGradientBoostingClassifier(random_state=0),
    }
    found, rng = {}, np.random.default_rng(0)
    for name, model in models.items():
        told = cross_val_predict(model, x, y, groups=groups, cv=GroupKFold(5), method="predict_proba")[:, 1]
        drawn = []
        for _ in range(DRAWS):
            people = rng.integers(0, PEOPLE, PEOPLE)
            rows = np.concatenate([np.flatnonzero(groups == who) for who in people])
            drawn.append(roc_auc_score(y[rows], told[rows]))
        low, high = np.quantile(drawn, [0.025, 0.975])
        area = roc_auc_score(y, told)
        found[name] = {"area": round(area, 4), "low": round(float(low), 4), "high": round(float(high), 4)}
        found[name]["holds_a_half"] = bool(low <= 0.5 <= high)
        found[name]["narrower_than_a_tenth"] = bool(high - low < 0.1)
    return found


def reply_times(x: NDArray[Any], y: NDArray[Any]) -> dict[str, float]:
    """Milliseconds of the replies, and how well they tell by themselves."""
    from sklearn.metrics import roc_auc_score

    took = x[:, TOOK]
    medians = {name: float(np.median(took[y == gold])) for name, gold in (("median_gold", 1), ("median_others", 0))}
    return {name: round(value, 4) for name, value in {**medians, "area": float(roc_auc_score(y, took))}.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "annotate_gold.json")
    options = parser.parse_args()
    x, y, groups = gather()
    counts = {"annotators": PEOPLE, "questions": len(y), "gold": int(y.sum()), "features": x.shape[1]}
    result = {**about(), **counts, "reply_ms": reply_times(x, y), "models": areas(x, y, groups)}
    options.out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps({**counts, **result["models"]}, indent=2))


if __name__ == "__main__":
    main()
