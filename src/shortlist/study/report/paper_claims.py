"""The paper's claims, checked against our runs, with differences paired by trial."""

from collections.abc import Sequence

from shortlist.methods import PROTOCOLS, Protocol
from shortlist.study.plan import paper
from shortlist.study.plan.datasets import study_dataset
from shortlist.study.plan.grid import SIZES, Cell
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.report.claims import Check
from shortlist.study.report.epochs import PLACES, place_name
from shortlist.study.report.results import CellResult, Paired, Results, pooled

DATASETS = ("mnist", "fashion", "cifar10")
FED: dict[Protocol, str] = {"paper": "None answers only, as in the paper", "fair": "every answer"}
RIVALS = tuple(name for name in paper.METHODS if name != "sl")
COLLAPSED = 60.0
"""Percent: what RC, PRODEN and LW are below at size 3 in the paper, on every dataset of 28x28 images."""


def paper_checks(results: Results) -> list[Check]:
    """The paper's claims, for each dataset with runs."""
    found = []
    for dataset in DATASETS:
        found += [
            *(_above_rivals(results, dataset, text, protocol) for protocol in PROTOCOLS for text in ("sl", "sl+keep")),
            _above_ordinary(results, dataset),
            _collapse(results, dataset),
            _one_objective(results, dataset),
            _feed(results, dataset),
        ]
    return [check for check in found if check.cells]


def _cell(results: Results, dataset: str, place: tuple[str, int | None], text: str, protocol: Protocol) -> CellResult:
    return results.of(Cell(dataset, *place, MethodVariant.parse(text, protocol)))


def _above_rivals(results: Results, dataset: str, text: str, protocol: Protocol) -> Check:
    held, below, missing = 0, [], []
    for place in PLACES:
        ours = _cell(results, dataset, place, text, protocol)
        gaps = _gaps(ours, [_cell(results, dataset, place, name, protocol) for name in RIVALS])
        if len(gaps) < len(RIVALS):
            missing.append(place_name(*place))
            continue
        least = min(gaps, key=lambda gap: gap[1].mean)
        held += least[1].mean > 0
        below += [] if least[1].mean > 0 else [f"{place_name(*place)}: {least[1]} to {least[0]}"]
    claim = f"{MethodVariant.parse(text).title} is above every rival fed {FED[protocol]}"
    return _check(dataset, claim, held, below, missing)


def _above_ordinary(results: Results, dataset: str) -> Check:
    held, below, missing = 0, [], []
    for size in SIZES["table2"]:
        ours = _cell(results, dataset, (paper.ALL_CLASSES, size), "sl", "fair")
        ordinary = [_cell(results, dataset, (paper.ALL_CLASSES, None), text, "fair") for text in ("ol", "ol-ovr")]
        gaps = _gaps(ours, ordinary)
        if not gaps:
            missing.append(f"size {size}")
            continue
        least = min(gaps, key=lambda gap: gap[1].mean)
        held += least[1].mean > 0
        below += [] if least[1].mean > 0 else [f"size {size}: {least[1]} to {least[0]}"]
    return _check(dataset, "SL with most classes shown is above ordinary labels (Table 2)", held, below, missing)


def _collapse(results: Results, dataset: str) -> Check:
    held, below, missing = 0, [], []
    for name in ("lw", "rc", "proden"):
        ours = _cell(results, dataset, (paper.ALL_CLASSES, 3), name, "paper").last
        title = MethodVariant(name).title
        reported = paper.figure(study_dataset(dataset).title, paper.ALL_CLASSES, name, 3)
        if reported is None or reported.mean >= COLLAPSED:
            continue
        if ours is None:
            missing.append(title)
            continue
        held += ours.mean < COLLAPSED
        below += [] if ours.mean < COLLAPSED else [f"{title}: {ours.text()} (the paper: {reported.text()})"]
    claim = "the rivals that collapse in the paper at size 3, fed None answers only, collapse here"
    return _check(dataset, claim, held, below, missing)


def _one_objective(results: Results, dataset: str) -> Check:
    """LOG and CC from None answers are one objective up to a factor, so they should perform alike."""
    pairs = []
    for place in PLACES:
        log, cc = (_cell(results, dataset, place, name, "paper") for name in ("log", "cc"))
        if log.minus(cc) is not None:
            pairs.append((log, cc))
    gap = pooled(pairs)
    same = gap is not None and gap.error is not None and not gap.clear
    claim = "LOG and CC from None answers, one objective up to a factor, differ by less than two standard errors"
    return _check(dataset, claim, int(same), [] if same or gap is None else ["pooled"], [], len(pairs), gap)


def _feed(results: Results, dataset: str) -> Check:
    """Whether rivals fed None answers only are nearer to the paper's figures than rivals fed every answer."""
    held, below = 0, []
    for place in PLACES:
        for name in ("log", "exp", "cc"):
            none_only, fair = (_cell(results, dataset, place, name, protocol).difference for protocol in PROTOCOLS)
            if none_only is None or fair is None:
                continue
            nearer = abs(none_only) < abs(fair)
            held += nearer
            below += [] if nearer else [f"{place_name(*place)}, {name.upper()}"]
    claim = "LOG, EXP and CC fed None answers only are nearer to the paper's figures than fed every answer"
    return _check(dataset, claim, held, below, [])


def _gaps(ours: CellResult, others: Sequence[CellResult]) -> list[tuple[str, Paired]]:
    found = [(other.cell.variant.title, ours.minus(other)) for other in others]
    return [(title, gap) for title, gap in found if gap is not None]


def _check(
    dataset: str,
    claim: str,
    held: int,
    below: Sequence[str],
    missing: Sequence[str],
    cells: int | None = None,
    gap: Paired | None = None,
) -> Check:
    count = held + len(below)
    note = "" if gap is None else f"{gap} over {cells} cells"
    title = study_dataset(dataset).title
    return Check(f"{title}: {claim}", held, count, tuple(below), tuple(missing), note=note)
