"""Which answers look wrong: how many of those named are, and how many of the wrong ones are named.

It prints its figures and keeps none; docs/annotate-live.md has them.

    SHORTLIST_DATA=... OMP_NUM_THREADS=1 python benchmarks/label_doubts.py

BANKING77's training texts with all classes, and a small project of them (25 classes, 600 texts); people overlook the
right class in 5 % of the lists and pick a wrong one in 2 %. After so many answers: the answers that a model trained
without them holds less likely than another class (`less likely`), and those of `Loop.doubts` (`in doubt`). Printed as
Markdown: how many are named, precision and recall, means over the seeds.
"""

import argparse
from dataclasses import replace

import numpy as np

from label_economy import FEATURES, L2, SIZE
from shortlist.data import load
from shortlist.data.dataset import Dataset, Split
from shortlist.labels import NONE
from shortlist.policies import Loop, LoopSettings, Mistakes, Policy
from shortlist.policies.features.loop_data import LoopData, loop_data
from shortlist.policies.names import names_expert
from shortlist.policies.noise import simulate_answers
from shortlist.policies.score.doubt import cross_fitted

PEOPLE = Mistakes(miss=0.05, slip=0.02)
STOPS = {"25 classes": (30, 70, 150, 300, 600), "77 classes": (100, 400, 1600, 3000, 6000)}


def small(dataset: Dataset, classes: int = 25, items: int = 600) -> Dataset:
    """Some of the classes, some of their texts."""
    rng = np.random.default_rng(5)
    kept = np.sort(rng.permutation(len(dataset.class_names))[:classes])

    def part(split: Split | None, most: int) -> Split:
        assert split is not None
        assert split.y is not None
        rows = np.sort(rng.permutation(np.nonzero(np.isin(split.y, kept))[0])[:most])
        return replace(split.take(rows), y=np.searchsorted(kept, split.y[rows]))

    names = tuple(dataset.class_names[k] for k in kept)
    return replace(dataset, train=part(dataset.train, items), test=part(dataset.test, 200), class_names=names)


def named(loop: Loop, data: LoopData) -> dict[str, tuple[int, int, int]]:
    """By each rule: how many answers are named, how many of them are wrong, how many are wrong at all."""
    state, rows = loop.state, np.sort(loop.state.informative)
    weights = state.answer_likelihood.take(rows).likeliest().table()
    believed = cross_fitted(loop.x, weights, rows, l2=loop.settings.l2, seed=loop.seed).argmax(axis=1)
    judged, said = state.answer[rows] != NONE, state.answer[rows]
    wrong = set(rows[judged & (said != data.y[rows])].tolist())
    sets = {"less likely": rows[judged & (believed != said)], "in doubt": loop.doubts().rows}
    return {rule: (len(found), len(wrong & set(found.tolist())), len(wrong)) for rule, found in sets.items()}


def play(data: LoopData, stops: tuple[int, ...], size: int, seed: int) -> dict[tuple[int, str], tuple[int, int, int]]:
    """One loop, looked at after so many answers."""
    settings = LoopSettings(Policy("adaptive", max_size=size), l2=L2["banking77"], retrain_every=stops[-1] // 30)
    loop = Loop(data.x, data.num_classes, settings, seed, (names_expert(data.texts, data.class_names, data.x),))
    rng = np.random.Generator(np.random.PCG64([seed, 1]))
    found: dict[tuple[int, str], tuple[int, int, int]] = {}
    for stop in stops:
        while loop.state.questions < stop:
            rows, asked = loop.ask()
            some = slice(0, stop - loop.state.questions)
            rows, lists, sizes = rows[some], asked.lists[some], asked.sizes[some]
            answer = simulate_answers(rng, lists, sizes, data.y[rows], data.num_classes, PEOPLE)
            loop.record(rows, lists, sizes, answer)
            loop.retrain()
        found |= {(stop, rule): counts for rule, counts in named(loop, data).items()}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=5)
    seeds = parser.parse_args().seeds
    whole = load("banking77")
    print("| project | answers | rule | named | of these wrong | of the wrong ones named |\n|---|---|---|---|---|---|")
    for name, stops in STOPS.items():
        data = loop_data(whole if name == "77 classes" else small(whole), features=FEATURES.get("banking77"))
        runs = [play(data, stops, SIZE["banking77"] if name == "77 classes" else 5, seed) for seed in range(seeds)]
        for stop, rule in runs[0]:
            count, hit, wrong = np.mean([run[stop, rule] for run in runs], axis=0)
            precision = f"{hit / count:.0%}" if count else "–"
            print(f"| {name} | {stop:,} | {rule} | {count:.1f} | {precision} | {hit / wrong:.0%} |", flush=True)


if __name__ == "__main__":
    main()
