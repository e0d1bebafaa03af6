"""The report's tables in a few rows: Table 1 at a glance, and what goes beyond the paper."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shortlist.methods import Protocol
from shortlist.study.plan import paper
from shortlist.study.plan.datasets import StudyDataset, study_dataset
from shortlist.study.plan.grid import IMPROVED, Cell, beyond_methods
from shortlist.study.plan.paper import Figure
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.report.results import CellResult, Results
from shortlist.study.report.tables import OUTDATED, added


@dataclass(frozen=True)
class Overview:
    """A table on one dataset in a few rows, each a name and a figure per size."""

    title: str
    sizes: tuple[int, ...]
    rows: tuple[tuple[str, tuple[Figure | None, ...]], ...]
    remarks: tuple[str, ...] = ()
    """What the table says, in words."""


def table1_overview(dataset: str, results: Results) -> Overview | None:
    """SL, the best rival under each protocol, likelihood and one's own method; None where Table 1 was not run.

    The best rival is the one with the best mean of its cell; a remark names those that were not run.
    """
    about, sizes = study_dataset(dataset), tuple(results.sizes(dataset))
    rivals = [name for name in paper.METHODS if name != "sl"]
    others = [name for name in rivals if name != "cc"]

    used: list[CellResult] = []
    lacking: dict[str, dict[str, None]] = {}

    def result(text: str, size: int | None, protocol: Protocol = "fair") -> CellResult:
        used.append(results.of(Cell.of_all_classes(dataset, size, MethodVariant.parse(text, protocol))))
        return used[-1]

    def ours(text: str, size: int | None, protocol: Protocol = "fair") -> Figure | None:
        return result(text, size, protocol).last

    def best(figures: Sequence[Figure | None]) -> Figure | None:
        return max((figure for figure in figures if figure is not None), key=lambda figure: figure.mean, default=None)

    def best_run(fed: str, names: Sequence[str], size: int | None, protocol: Protocol = "fair") -> Figure | None:
        found = [result(name, size, protocol) for name in names]
        if any(one.rows for one in found):
            lacking.setdefault(fed, {}).update((one.cell.variant.title, None) for one in found if not one.rows)
        return best([one.last for one in found])

    reported = about.title if about.in_paper else None
    rows: list[tuple[str, list[Figure | None]]] = [
        ("SL, the paper reports", [paper.figure(reported, paper.ALL_CLASSES, "sl", size) for size in sizes]),
        ("SL, ours", [ours("sl", size) for size in sizes]),
        ("SL, ours, epoch chosen on held-out answers", [ours("sl+keep", size) for size in sizes]),
        ("best rival, the paper reports", [
            best([paper.figure(reported, paper.ALL_CLASSES, name, size) for name in rivals]) for size in sizes
        ]),
        ("best rival, ours, None answers only", [
            best_run("None answers only", rivals, size, "paper") for size in sizes
        ]),
        ("likelihood (CC with every answer), ours", [ours("likelihood", size) for size in sizes]),
        ("best other rival, ours, every answer", [best_run("every answer", others, size) for size in sizes]),
        ("OL, all labels (better of two losses), ours", [best_run("all labels", ("ol", "ol-ovr"), None)] * len(sizes)),
        ("likelihood, augmented, ours", [ours("likelihood+aug", size) for size in sizes]),
        ("OL, all labels, augmented, ours", [ours("ol+aug", None)] * len(sizes)),
    ]  # fmt: skip
    for variant in _own(dataset, results):
        if variant.kind.baseline:
            rows += [(f"{variant.title}, None answers only", [ours(variant.text, size, "paper") for size in sizes])]
        rows += [(f"{variant.title}, every answer", [ours(variant.text, size) for size in sizes])]
    run = [any(result.rows and result.cell.size == size for result in used) for size in sizes]
    if not any(run):
        return None
    if not about.in_paper:  # the paper's sizes are to be compared with; here a column without a run says nothing
        rows = [(name, [figure for figure, was in zip(figures, run, strict=True) if was]) for name, figures in rows]
        sizes = tuple(size for size, was in zip(sizes, run, strict=True) if was)
    shown = tuple((name, tuple(figures)) for name, figures in rows if any(figures))
    note = [f"{about.note[:1].upper()}{about.note[1:]}."] if about.note else []
    told = (*_untuned(used), *_lacking(lacking), *_divergences(used), *_outdated(used))
    return Overview(about.title, sizes, shown, (*note, _lengths(about, used), *told))


def _own(dataset: str, results: Results) -> list[MethodVariant]:
    """Methods of the user's own that were run."""
    return [variant for text in added(dataset, results) if (variant := MethodVariant.parse(text)).own]


def _lengths(dataset: StudyDataset, found: Iterable[CellResult]) -> str:
    """How long the runs of these cells were, and how many there are of each."""
    shown = [result for result in found if result.rows]
    epochs = sorted({result.epochs for result in shown if result.epochs})
    papers = f" (the paper's: {dataset.epochs})" if dataset.in_paper and epochs != [dataset.epochs] else ""
    trials = _listed(sorted({len(result.rows) for result in shown}))
    return f"Ours: {_listed(epochs)} epochs{papers}, {trials} {'trial' if trials == '1' else 'trials'} per cell."


def _untuned(found: Iterable[CellResult]) -> list[str]:
    """Which rows ran with default settings: a remark, or none."""
    run = [result for result in found if result.rows]
    titles = dict.fromkeys(_fed(result.cell.run_as().variant) for result in run if result.untuned)
    which = "all" if all(result.untuned for result in run) else "; ".join(titles)
    return [f"With default settings, not tuned: {which}."] if titles else []


def _fed(variant: MethodVariant) -> str:
    """Its title, and its protocol where that matters."""
    return variant.title + (f" ({variant.protocol})" if variant.kind.baseline else "")


def _lacking(titles: Mapping[str, Iterable[str]]) -> list[str]:
    """Which rows a "best" does not cover, as they were not run: a remark, or none.

    >>> _lacking({"None answers only": ["LOG", "EXP"], "every answer": []})
    ['Not run, in some columns at least, and so not among the best: LOG, EXP (None answers only).']
    """
    told = [f"{', '.join(names)} ({fed})" for fed, names in titles.items() if names]
    return [f"Not run, in some columns at least, and so not among the best: {'; '.join(told)}."] if told else []


def _outdated(found: Iterable[CellResult]) -> list[str]:
    """Which figures of one's own methods are from before their file changed: a remark, or none."""
    titles = dict.fromkeys(result.cell.variant.title for result in found if result.outdated)
    return [f"{title}: {OUTDATED}." for title in titles]


def _divergences(found: Iterable[CellResult]) -> list[str]:
    """Which means are of fewer trials than were run: a remark, or none."""
    broken = {result.cell.run_as(): result for result in found if result.failed}
    told = [
        f"{_fed(cell.variant)}{'' if cell.size is None else f', l = {cell.size}'}: "
        f"{result.failed} of {len(result.rows)}"
        for cell, result in broken.items()
    ]
    return [f"Trials that diverged and are not in the mean: {'; '.join(told)}."] if told else []


def beyond_overview(dataset: str, results: Results) -> Overview | None:
    """Methods with augmentation and every answer, against ordinary labels for all; None where none was run."""
    methods = ["ol+aug", *beyond_methods()]
    by_place = {
        (text, size): results.of(
            Cell.of_all_classes(dataset, None if text == "ol+aug" else size, MethodVariant.parse(text))
        )
        for text in methods
        for size in results.sizes(dataset)
    }
    sizes = tuple(s for s in results.sizes(dataset) if any(by_place[(text, s)].rows for text in methods[1:]))
    texts = [text for text in methods if any(by_place[(text, size)].rows for size in sizes)]
    if not sizes:
        return None
    titles = {text: MethodVariant.parse(text).title for text in methods}
    rows = tuple((titles[text], tuple(by_place[(text, size)].last for size in sizes)) for text in texts)
    remarks = [_beyond_remark(size, {t: r for t in texts if (r := by_place[(t, size)]).last}) for size in sizes]
    absent = [titles[text] for text in methods if text not in texts]
    remarks += [f"Not run: {'; '.join(absent)}."] if absent else []
    used = [result for (_, size), result in by_place.items() if size in sizes]
    remarks += [_lengths(study_dataset(dataset), used), *_untuned(used), *_divergences(used)]
    return Overview(study_dataset(dataset).title, sizes, rows, tuple(filter(None, remarks)))


def _listed(values: Iterable[object], word: str = "or") -> str:
    """
    >>> _listed([1, 3, 5])
    '1, 3 or 5'
    """
    *first, last = map(str, values)
    return f"{', '.join(first)} {word} {last}" if first else last


def _beyond_remark(size: int, found: dict[str, CellResult]) -> str:
    """The best at a size, and by how much, paired by trial; empty where there is nothing to compare."""
    means = {text: result.last.mean for text, result in found.items() if result.last is not None}
    ranked = sorted((t for t in means if t != "ol+aug"), key=lambda text: -means[text])
    if len(ranked) < 2:
        return ""
    best, rest = ranked[0], ranked[1:]
    gaps = {text: gap for text in means if text != best and (gap := found[best].minus(found[text])) is not None}
    level = [text for text in rest if text in gaps and gaps[text].error is not None and not gaps[text].clear]
    told = f"Size {size}: {_short(best)} is best"
    if level:
        told += f", and within two standard errors of it {_listed(map(_short, level), 'and')}"
    for text in dict.fromkeys([rest[0], *(t for t in rest if t == "likelihood+aug")]):
        if text not in level and text in gaps:
            told += f"; {gaps[text]} above {_short(text)}"
    if "ol+aug" in gaps:
        told += f"; {gaps['ol+aug']} to ordinary labels for all"
    if IMPROVED in found and (gain := found[IMPROVED].minus(found.get("likelihood+aug", found[IMPROVED]))):
        told += f"; averaged weights change the likelihood by {gain}" if "likelihood+aug" in found else ""
    return told + "."


def _short(text: str) -> str:
    """Among variants that are all augmented.

    >>> _short("likelihood+aug+ema")
    'likelihood with averaged weights'
    """
    return MethodVariant.parse(text).title.replace(", augmented", "").replace(", averaged", " with averaged")
