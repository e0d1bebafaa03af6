"""Packs: runs that go through the fleet together, small enough that each ends within minutes and is stored."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from shortlist.study.grid import PlannedRun
from shortlist.study.lines import passes, trained_share
from shortlist.study.sets import study_set

EVEN = 0.6
"""Runs of one pack step together, and those with fewer items stand still at the end of each epoch while they still
cost: none may have fewer than this share of the longest."""
ENOUGH = 8
"""Fewer runs hardly fill a device, and join a pack of others all the same."""

GPU_SECONDS = {"lenet": 0.022 / 60_000, "resnet32": 1 / 250_000}
CPU_SECONDS = {"lenet": 8e-4, "resnet32": 4e-3}
"""First guesses of the seconds per item trained; `Pace` replaces them by what it measures."""
FIRST_START = 45.0
"""Seconds until the first pack on a GPU is under way: compiling, mostly."""
SLACK = 1.15
"""Estimates are raised by this much: a pack that would end too late is not begun."""


@dataclass(frozen=True)
class Pack:
    """Runs of one dataset, set of classes and network."""

    runs: tuple[PlannedRun, ...]

    @property
    def dataset(self) -> str:
        """Of all its runs."""
        return self.runs[0].cell.dataset

    @property
    def model(self) -> str:
        """Of all its runs."""
        return self.runs[0].config.model

    @property
    def work(self) -> float:
        """Items trained, runs that stand still counted in, second passes too."""
        longest = max(items_of(run) for run in self.runs)
        epochs = sum(run.config.epochs for run in self.runs)
        return longest * epochs * max(passes(run.config.method) for run in self.runs)


def items_of(run: PlannedRun) -> float:
    """How many items a run trains on, about."""
    of = study_set(run.cell.dataset)
    share = trained_share(run.cell.line, run.cell.size, run.cell.num_classes)
    return of.train_items * run.cell.num_classes / of.num_classes * share * (1 - run.config.holdout)


@dataclass
class Pace:
    """How long packs take: a start and so many seconds per item trained, guessed first and then measured."""

    cuda: bool
    _seen: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def seconds(self, pack: Pack) -> float:
        """How long a pack will take, rather too long than too short."""
        seen = self._seen.get(pack.model)
        if not seen:
            rate = (GPU_SECONDS if self.cuda else CPU_SECONDS).get(pack.model, 1e-5)
            return SLACK * (pack.work * rate + (FIRST_START if self.cuda else 0))
        rate = min(seconds / work for work, seconds in seen)
        # the very first pack also compiles: its start says nothing about later ones
        start = max((seconds - work * rate for work, seconds in seen[1:]), default=0.0)
        return SLACK * (start + pack.work * rate)

    def all_seconds(self, packs: Iterable[Pack]) -> float:
        """A guess for many packs; only the first waits for the compiler."""
        listed = list(packs)
        starts = SLACK * FIRST_START * max(len(listed) - 1, 0) if self.cuda and not self._seen else 0.0
        return sum(map(self.seconds, listed)) - starts

    def saw(self, pack: Pack, seconds: float) -> None:
        """A pack was timed, its start included."""
        self._seen.setdefault(pack.model, []).append((pack.work, seconds))


def groups(runs: Iterable[PlannedRun]) -> list[list[PlannedRun]]:
    """Runs that can step together and waste little: by order of dataset and classes, the longest first."""
    together: dict[tuple[object, ...], list[PlannedRun]] = defaultdict(list)
    for run in runs:
        c = run.config
        shared = (run.cell.dataset, c.classes, c.model, repr(c.model_options), c.batch_size, c.optimiser, c.augment)
        together[shared].append(run)
    found: list[list[PlannedRun]] = []
    for members in together.values():
        members.sort(key=lambda run: (-passes(run.config.method), -items_of(run), run.trial))
        found += _even(members)
    return found


def _even(members: Sequence[PlannedRun]) -> list[list[PlannedRun]]:
    """Cut where runs get too short for their company; what is too small for a pack of its own joins its neighbour."""
    parts: list[list[PlannedRun]] = []
    for run in members:
        if parts and _alike(parts[-1][0], run):
            parts[-1].append(run)
        else:
            parts.append([run])
    found: list[list[PlannedRun]] = []
    for part in parts:
        if found and min(len(found[-1]), len(part)) < ENOUGH:
            found[-1] += part
        else:
            found.append(part)
    return [sorted(part, key=lambda run: -items_of(run)) for part in found]


def _alike(first: PlannedRun, run: PlannedRun) -> bool:
    return passes(run.config.method) == passes(first.config.method) and items_of(run) >= EVEN * items_of(first)


def next_pack(group: Sequence[PlannedRun], pace: Pace, usual: float, left: float, most: int | None) -> Pack | None:
    """The first runs of a group that make a pack.

    Args:
        group: runs that can step together.
        pace: how long packs take.
        usual: the seconds a pack should take; one run is begun even if it takes longer.
        left: the seconds it must not take longer than; None is returned where not even one run fits.
        most: runs a pack.
    """
    pack = Pack(tuple(group[: most or len(group)]))
    while len(pack.runs) > 1 and pace.seconds(pack) > min(usual, left):
        fit = int(len(pack.runs) * min(usual, left) / pace.seconds(pack))
        pack = Pack(pack.runs[: _round(max(1, min(fit, len(pack.runs) - 1)), group)])
    return pack if pace.seconds(pack) <= left else None


def _round(count: int, group: Sequence[PlannedRun]) -> int:
    """Fewer runs, so that packs of a group are alike: as many of each method, in steps that come again.

    The objectives are compiled for a number of runs a method; packs of ever new sizes would compile ever again.
    """
    methods = len({(run.config.method, repr(run.config.method_options)) for run in group})
    steps = [step for power in range(8) for step in (2**power, 3 * 2**power) if methods * step <= count]
    return methods * max(steps) if steps else count
