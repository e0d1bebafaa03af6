"""Batches: runs that are trained together, few enough that each batch ends, and is stored, within minutes."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from shortlist.study.plan.datasets import StudyDataset, study_dataset
from shortlist.study.plan.grid import PlannedRun
from shortlist.study.plan.variants import step_cost, trained_share
from shortlist.study.run.ledger import RUN
from shortlist.training import pack_key

GPU_SECONDS = {"lenet": 0.016 / 60_000, "resnet32": 1 / 280_000}
CPU_SECONDS = {"lenet": 4.4e-4, "resnet32": 2.9e-3}
"""First guesses of the seconds per item trained; `Pace` replaces them by what it measures."""
OVERHEAD = {"resnet32": 2.0}
SMALL_OVERHEAD = 6.0
"""The fixed cost of a batch on a GPU, counted in runs: a step of LeNets takes 0.36 ms however few they are
(results/fleet_speed.json). This decides which runs are put together."""
START = 3.0
"""Seconds to build a batch on a GPU and capture its step."""
FIRST_START = 45.0
"""Seconds until the first batch on a GPU is under way: compiling, mostly."""
SLACK = 1.15
"""Estimates are raised by this factor, so that no batch is begun that would end too late."""
GOOD, FEWEST = 4, 2
"""Sizes of batches, as multiples of the overhead. A group is not cut into batches smaller than the first. A batch that
the end of the time would cut below the second is not begun: it would pay for the device and hardly use it."""


@dataclass(frozen=True)
class RunBatch:
    """Runs of one dataset, number of classes and network, and how to train them."""

    runs: tuple[PlannedRun, ...]
    kind: str = RUN
    """Of the ledger's rows. Only runs of kind `RUN` are scored on the test items, never those that settings are chosen
    by."""
    device: str = "auto"
    score_every: int = 1
    own_data: StudyDataset | None = None
    """What it trains on, if that is data of one's own: a worker in another process has not read it."""

    @property
    def dataset(self) -> str:
        """Of all its runs."""
        return self.runs[0].cell.dataset

    @property
    def model(self) -> str:
        """Of all its runs."""
        return self.runs[0].config.model

    @property
    def overhead(self) -> float:
        """Its fixed cost on a GPU, counted in runs."""
        return OVERHEAD.get(self.model, SMALL_OVERHEAD)

    def cost(self, cuda: bool = True) -> float:
        """The items it trains, second passes and the overhead included.

        Runs of one batch step together: those with fewer items idle at the end of each epoch and cost as much.
        """
        longest = max(items_of(run) for run in self.runs)
        overhead = self.overhead * max(run.config.epochs for run in self.runs) if cuda else 0.0
        return longest * (overhead + sum(run.config.epochs * step_cost(run.config) for run in self.runs))


def items_of(run: PlannedRun) -> float:
    """How many items a run trains on, about."""
    cell, dataset = run.cell, study_dataset(run.cell.dataset)
    share = trained_share(cell.variant, cell.size, cell.num_classes)
    return dataset.train_items * cell.num_classes / dataset.num_classes * share * (1 - run.config.holdout)


@dataclass
class Pace:
    """How long batches take: a start and seconds per item, guessed at first and then measured."""

    cuda: bool
    _seen: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    @property
    def first_start(self) -> float:
        """How long the very first batch takes to start, beyond the start of any batch."""
        return SLACK * FIRST_START if self.cuda and not self._seen else 0.0

    def seconds(self, batch: RunBatch) -> float:
        """How long a batch will take without the very first start; rather too long than too short."""
        seen = self._seen.get(batch.model)
        if not seen:
            rate = (GPU_SECONDS if self.cuda else CPU_SECONDS).get(batch.model, 1e-5)
            return SLACK * (self.cuda * START + batch.cost(self.cuda) * rate)
        rate = min(seconds / cost for cost, seconds in seen)
        # the very first batch also compiles: its start says nothing about later ones
        start = max((seconds - cost * rate for cost, seconds in seen[1:]), default=0.0)
        return SLACK * (start + batch.cost(self.cuda) * rate)

    def all_seconds(self, groups: Iterable[Sequence[PlannedRun]], usual: float) -> float:
        """A guess for all batches of many groups; only the first waits for the compiler."""
        return self.first_start + sum(self.seconds(batch) for group in groups for batch in cut(group, self, usual))

    def saw(self, batch: RunBatch, seconds: float) -> None:
        """Take in how long a batch took, its start included."""
        self._seen.setdefault(batch.model, []).append((batch.cost(self.cuda), seconds))


def groups(runs: Iterable[PlannedRun]) -> list[list[PlannedRun]]:
    """Runs that can step together and waste little by it, the longest first."""
    together: dict[tuple[object, ...], list[PlannedRun]] = defaultdict(list)
    for run in runs:
        together[(run.cell.dataset, pack_key(run.config))].append(run)
    return [group for members in together.values() for group in _joined(members)]


def _joined(members: Sequence[PlannedRun]) -> list[list[PlannedRun]]:
    """Runs of one length each, joined as long as a joint batch costs less than two."""
    levels: dict[float, list[PlannedRun]] = defaultdict(list)
    for run in sorted(members, key=lambda run: (-items_of(run), run.trial)):
        levels[items_of(run)].append(run)
    parts, start = list(levels.values()), START / GPU_SECONDS.get(members[0].config.model, 1e-5)
    while len(parts) > 1:
        gains = [start + _cost(one) + _cost(two) - _cost([*one, *two]) for one, two in pairwise(parts)]
        best = max(range(len(gains)), key=gains.__getitem__)
        if gains[best] <= 0:
            break
        parts[best : best + 2] = [[*parts[best], *parts[best + 1]]]
    return [sorted(part, key=lambda run: -items_of(run)) for part in parts]


def _cost(runs: Sequence[PlannedRun]) -> float:
    return RunBatch(tuple(runs)).cost()


def cut(group: Sequence[PlannedRun], pace: Pace, usual: float) -> list[RunBatch]:
    """A group as batches of about equal size, each of about `usual` seconds at most but none too small."""
    whole = RunBatch(tuple(group))
    least = GOOD * whole.overhead if pace.cuda else 1
    parts, size = 1, len(group)
    while size > least and pace.seconds(RunBatch(whole.runs[:size])) > usual:
        parts += 1
        size = -(-len(group) // parts)
    return [RunBatch(whole.runs[start : start + size]) for start in range(0, len(group), size)]


def next_batch(group: Sequence[PlannedRun], pace: Pace, usual: float, left: float) -> RunBatch | None:
    """The first runs of a group that make a batch; without a GPU it is a single run.

    Args:
        group: runs that can step together.
        pace: how long batches take.
        usual: the seconds a batch should take; a small one is begun even if it takes longer.
        left: the seconds that are left; None is returned where too few runs fit into them.
    """
    batch = cut(group if pace.cuda else group[:1], pace, usual)[0]
    fewest = min(len(batch.runs), FEWEST * batch.overhead) if pace.cuda else 1
    while len(batch.runs) > fewest and pace.first_start + pace.seconds(batch) > left:
        batch = RunBatch(batch.runs[:-1])
    return batch if pace.first_start + pace.seconds(batch) <= left else None
