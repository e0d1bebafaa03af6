"""The teacher beyond ten classes and without views: Letter (5 of 26 shown) and BANKING77 (8 of 77), paired trials.

Measured on two cores of an AMD EPYC (results/teacher_beyond.json), test accuracy minus the likelihood, uniform lists:
the teacher -0.20 ± 0.10 on Letter and -6.25 ± 0.37 on BANKING77, with `confident=0.7` +0.28 ± 0.09 and +0.30 ± 0.11.

    SHORTLIST_DATA=... python benchmarks/teacher_beyond.py                 # 5 trials, about 15 minutes on a core
    SHORTLIST_DATA=... python benchmarks/teacher_beyond.py --held-out      # changes of the defaults; stores nothing

It prints the tables of docs/teacher.md. What results/teacher_beyond.json holds is not run again.

- **Uniform lists**, every answer: network and settings are those that `shortlist train` takes for the data, the same
  for every method. Test accuracy after the last epoch, and expected calibration error (15 bins).
- **A linear model**, and **word dropout as a second view** (BANKING77, uniform lists): the linear model of `shortlist
  train`, alone, and with a copy of each text that lacks three tenths of its words and pairs. The teacher sees the whole
  text.
- **Lists chosen by the loop's model, with mistakes** (5 % misses, 2 % slips, both known to the loop): the loop asks
  until it has spent SPENT of the reads that full labels would cost. An item's answers are then a row of weights
  P(answers | y). A linear softmax on the loop's features learns from them by the likelihood -log sum_y w_y p_y, or with
  a teacher: q is w_y times the averaged weights' p_y, normalised, with the memory of the method's defaults.

`--held-out` scores changes of the teacher's defaults on three tenths of the training items, by all answers, with seeds
that no trial has. It chose `teacher, sure` (`confident=0.7`) on BANKING77.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from shortlist import methods
from shortlist.data import Dataset, load
from shortlist.internal.files import atomic_write
from shortlist.methods.teacher import Teacher
from shortlist.policies.choose import Policy
from shortlist.policies.features.loop_data import LoopData, loop_data
from shortlist.policies.loop import Loop
from shortlist.policies.noise import Mistakes, simulate_answers
from shortlist.policies.settings import LoopSettings
from shortlist.training import Engine, RunConfig, calibration_error, fit, prepare
from shortlist.training.answers import draw_labels
from shortlist.training.evaluation import predict_logits
from shortlist.training.job.defaults import defaults_for
from shortlist.training.saved.source import with_features
from shortlist.training.views import confidence_of, objective_of

SIZES = {"letter": 5, "banking77": 8}
OF_PRODEN = {"temperature": 1.0, "decay": 0.0, "memory": 0.0, "fresh": False}
"""The teacher's options that make it PRODEN, so that it can be given a mask as well."""
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "likelihood": ("likelihood", {}),
    "teacher": ("teacher", {}),
    "teacher, sure": ("teacher", {"confident": 0.7}),
    "PRODEN": ("proden", {}),
    "PRODEN, sure": ("teacher", {**OF_PRODEN, "confident": 0.7}),
    "RC": ("rc", {}),
    "CRDPLL": ("crdpll", {}),
}
LINEAR = ("likelihood", "teacher", "teacher, sure")
"""The methods that can learn from rows of weights."""
TITLES = {
    "letter": "Letter, uniform lists",
    "letter, chosen lists": "Letter, chosen lists",
    "banking77": "BANKING77, uniform lists",
    "banking77, the same without it": "BANKING77, a linear model",
    "banking77, word dropout": "the same with word dropout as a second view",
    "banking77, chosen lists": "BANKING77, chosen lists",
}
"""Of the data, in the tables."""
CHANGES: dict[str, dict[str, Any]] = {
    "likelihood": {},
    "PRODEN": {},
    **{f"PRODEN, confident={share}": {**OF_PRODEN, "confident": share} for share in (0.5, 0.7, 0.9)},
    "teacher": {},
    **{f"confident={share}": {"confident": share} for share in (0.5, 0.7, 0.9)},
    **{f"ramp={share}": {"ramp": share} for share in (0.3, 1.0)},
    "pull=0.5": {"pull": 0.5},
    "memory=0": {"memory": 0.0},
    "decay=0": {"decay": 0.0},
    "temperature=0.5": {"temperature": 0.5},
}
"""What `--held-out` tries."""
WORDS = {"banking77, the same without it": 0.0, "banking77, word dropout": 0.3}
PEOPLE, SPENT = Mistakes(miss=0.05, slip=0.02), 0.02
L2 = {"banking77": 0.1, "letter": 0.01}
"""As benchmarks/label_economy.py has them."""
LINEAR_RATE, EPOCHS = 0.03, 30
CPU = Engine(device="cpu")


@cache
def features_of(name: str) -> Dataset:
    """The data, texts as `shortlist train` reads them."""
    return with_features(load(name))[0]


def configure(name: str, line: str, seed: int) -> RunConfig:
    """As `shortlist train` would, for a method."""
    data, (method, options) = features_of(name), METHODS[line]
    usual = defaults_for(data, len(data.train))
    return RunConfig(**{**usual, "method": method, "method_options": options, "size": SIZES[name], "seed": seed})


def train(name: str, line: str, seed: int) -> dict[str, Any]:
    """One run: test accuracy and calibration."""
    prepared = prepare(features_of(name), configure(name, line, seed), engine=CPU)
    history = fit(prepared, score_every=10**6)
    assert prepared.test is not None
    assert prepared.test_y is not None
    logits = predict_logits(prepared.run.model, prepared.test)
    error = calibration_error(torch.softmax(logits.double(), -1).numpy(), prepared.test_y.numpy())
    row = {
        "data": name,
        "method": line,
        "seed": seed,
        "ece": error,
        "test_accuracy": history[-1].test_accuracy,
    }
    print(row, flush=True)
    return row


def held_out(name: str, seeds: Sequence[int]) -> None:
    """Changes of the teacher's defaults less the likelihood, by the held-out answers of the same seed."""
    data, found = replace(features_of(name), test=None), dict[str, list[float]]()
    for line, options in CHANGES.items():
        method = METHODS.get(line, ("teacher", options))[0]
        scores = found[line] = []
        for seed in seeds:
            config = replace(configure(name, "teacher", seed), method=method, method_options=options, holdout=0.3)
            accuracy = fit(prepare(data, config, engine=CPU), score_every=10**6)[-1].validation_estimate
            assert accuracy is not None
            scores.append(100 * accuracy)
        gap = figure(np.array(scores) - np.array(found["likelihood"]), "+")
        print(f"| {name} | {line} | {figure(np.array(scores))} | {gap} |", flush=True)


def train_on_words(name: str, line: str, drop: float, seed: int) -> dict[str, Any]:
    """The linear model of `train`, with a second view of each text that lacks a share of its features."""
    data, config = features_of(name), configure(name, line, seed)
    assert data.test is not None
    assert data.test.y is not None
    x: Any = data.train.x
    method = methods.get(config.method, **config.method_options)
    feed = method.feed(draw_labels(data, config.size, seed))
    drawn, rng = torch.Generator().manual_seed(seed), np.random.Generator(np.random.PCG64([seed, 2]))
    weight = torch.zeros(x.shape[1], data.num_classes, requires_grad=True)
    slow, optimiser = weight.detach().clone(), torch.optim.Adam([weight], config.lr, weight_decay=config.weight_decay)
    steps, done = config.epochs * (len(feed) // config.batch_size), 0
    for _ in range(config.epochs):
        order = torch.randperm(len(feed), generator=drawn)
        for index in order[: len(feed) // config.batch_size * config.batch_size].split(config.batch_size):  # type: ignore[no-untyped-call]
            whole = x[feed.rows[index].numpy()]
            views = [whole, _without(whole, drop, rng)] if drop else [whole]
            batch = replace(feed.batch(index), teacher=_sparse(whole) @ slow if method.teacher else None)
            logits = torch.cat([_sparse(view) @ weight for view in views])
            optimiser.param_groups[0]["lr"] = config.lr * (1 + np.cos(np.pi * done / steps)) / 2
            optimiser.zero_grad()
            objective_of(method, logits, batch).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            if method.refresh != "never":
                feed.renew(index, confidence_of(method, logits.detach(), batch))
            slow.lerp_(weight.detach(), 1 - min(method.teacher or 0.0, (1 + done) / (10 + done)))
            done += 1
    p = torch.softmax((_sparse(data.test.x) @ weight.detach()).double(), 1).numpy()
    right = float((p.argmax(1) == data.test.y).mean())
    kind = next(kind for kind, share in WORDS.items() if share == drop)
    row = {"data": kind, "method": line, "seed": seed, "ece": calibration_error(p, data.test.y), "test_accuracy": right}
    print(row, flush=True)
    return row


def _sparse(x: Any) -> torch.Tensor:
    return torch.sparse_csr_tensor(x.indptr, x.indices, x.data.astype(np.float32), x.shape)


def _without(x: Any, share: float, rng: np.random.Generator) -> Any:
    """A copy with features left out at random, and the others as much larger."""
    kept = x.copy()
    kept.data = kept.data * (rng.random(len(kept.data)) >= share) / (1 - share)
    return kept


@cache
def asked_of(name: str) -> LoopData:
    """The data, as the loop sees it."""
    return loop_data(load(name))


@cache
def answered(name: str, seed: int) -> NDArray[np.float32]:
    """(N, K) P(answers | y) after the loop has spent its reads; items without a question have a row of ones."""
    data = asked_of(name)
    policy = Policy("adaptive", max_size=SIZES[data.name])
    settings = LoopSettings(policy=policy, l2=L2[data.name], retrain_every=1000)
    settings = replace(settings, mistakes=PEOPLE, policy=replace(policy, deduce=False))
    loop, rng = Loop(data.x, data.num_classes, settings, seed), np.random.Generator(np.random.PCG64([seed, 1]))
    while loop.state.reads < SPENT * len(data.y) * data.num_classes:
        rows, questions = loop.ask()
        lists, sizes = questions.lists, questions.sizes
        loop.record(rows, lists, sizes, simulate_answers(rng, lists, sizes, data.y[rows], data.num_classes, PEOPLE))
        loop.retrain()
    return loop.state.answer_likelihood[np.arange(len(data.y))]


def learn(name: str, line: str, seed: int) -> dict[str, Any]:
    """A linear softmax from the rows of weights that say anything."""
    data, weights = asked_of(name), answered(name, seed)
    method = methods.get(METHODS[line][0], **METHODS[line][1])
    told = np.flatnonzero(weights.min(1) < 1)
    x, test = (torch.from_numpy(_dense(part)) for part in (data.x[told], data.x_test))
    w, drawn = torch.from_numpy(weights[told]), torch.Generator().manual_seed(seed)
    memory = w / w.sum(1, keepdim=True)
    model = torch.nn.Linear(x.shape[1], w.shape[1])
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    slow = [part.detach().clone() for part in model.parameters()]
    optimiser, steps = torch.optim.Adam(model.parameters(), LINEAR_RATE, weight_decay=1e-5), 0
    for epoch in range(EPOCHS):
        for group in optimiser.param_groups:
            group["lr"] = LINEAR_RATE * (1 + np.cos(np.pi * epoch / EPOCHS)) / 2
        for rows in torch.randperm(len(x), generator=drawn).split(128):  # type: ignore[no-untyped-call]
            log_p = torch.log_softmax(model(x[rows]), 1)
            risks = -torch.logsumexp(log_p + w[rows].log(), 1)
            if isinstance(method, Teacher):
                q = w[rows] * torch.softmax(x[rows] @ slow[0].T + slow[1], 1)
                memory[rows] = torch.lerp(q / q.sum(1, keepdim=True), memory[rows], method.memory)
                sure = memory[rows].amax(1) >= method.confident
                risks = torch.where(sure, -(memory[rows] * log_p).sum(1), risks)
            optimiser.zero_grad()
            risks.mean().backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            decay = min(method.teacher or 0.0, (1 + steps) / (10 + steps))
            for average, part in zip(slow, model.parameters(), strict=True):
                average.lerp_(part.detach(), 1 - decay)
            steps += 1
    p = torch.softmax(model(test).detach().double(), 1).numpy()
    right = float((p.argmax(1) == data.y_test).mean())
    row = {"data": f"{data.name}, chosen lists", "method": line, "seed": seed, "items": len(told)}
    row |= {"ece": calibration_error(p, data.y_test), "test_accuracy": right}
    print(row, flush=True)
    return row


def _dense(x: Any) -> NDArray[np.float32]:
    return np.asarray(x.toarray() if hasattr(x, "toarray") else x, np.float32)


def table(rows: list[dict[str, Any]], score: str) -> str:
    """The likelihood's score, and what the others have more, paired by trial, in Markdown."""
    by: dict[str, dict[str, NDArray[np.float64]]] = {data: {} for data in TITLES}
    for data, line in product(TITLES, METHODS):
        scores = [100 * row[score] for row in rows if (row["data"], row["method"]) == (data, line)]
        if scores:
            by[data][line] = np.array(scores)
    lines = [f"| {score.replace('_', ' ')} | {' | '.join(METHODS)} | teacher, sure minus PRODEN, sure |"]
    lines.append("|" + "---|" * (len(METHODS) + 2))
    for data, found in by.items():
        pairs = [(line, "likelihood") for line in METHODS if line != "likelihood"] + [("teacher, sure", "PRODEN, sure")]
        gaps = [figure(found[a] - found[b], "+") if {a, b} <= {*found} else "" for a, b in pairs]
        if found:
            lines.append(f"| {TITLES[data]} | {figure(found['likelihood'])} | {' | '.join(gaps)} |")
    return "\n".join(lines)


def figure(values: NDArray[np.float64], sign: str = "") -> str:
    """Mean and standard error."""
    return f"{values.mean():{sign}.2f} ± {values.std(ddof=1) / len(values) ** 0.5:.2f}"


@dataclass
class Stored:
    """The rows of a file, which grows as they come; what it holds is not run again."""

    path: Path
    rows: list[dict[str, Any]]

    def add(self, data: str, line: str, seed: int, run: Callable[[], dict[str, Any]]) -> None:
        if not any((row["data"], row["method"], row["seed"]) == (data, line, seed) for row in self.rows):
            self.rows.append(run())
            atomic_write(self.path, json.dumps({"runs": self.rows}, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"), help="the folder of the JSON")
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--data", nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--held-out", action="store_true", help="score changes on held-out answers, and store nothing")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.held_out:
        for name in args.data:
            held_out(name, range(2000, 2000 + args.trials))
        return
    path = args.out / "teacher_beyond.json"
    stored = Stored(path, json.loads(path.read_text())["runs"] if path.exists() else [])
    seeds = range(args.trials)
    if "banking77" in args.data:
        for kind, drop in WORDS.items():
            for line, seed in product(METHODS, seeds):
                stored.add(kind, line, seed, partial(train_on_words, "banking77", line, drop, seed))
    for name in args.data:
        for line, seed in product(METHODS, seeds):
            stored.add(name, line, seed, partial(train, name, line, seed))
        kind = f"{name}, chosen lists"
        for seed, line in product(seeds, LINEAR):
            stored.add(kind, line, seed, partial(learn, name, line, seed))
    print(table(stored.rows, "test_accuracy"), table(stored.rows, "ece"), sep="\n\n")


if __name__ == "__main__":
    main()
