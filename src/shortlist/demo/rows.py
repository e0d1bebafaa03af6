"""The lines of the demo's table: which method on which labels, and the settings it was given beforehand."""

from dataclasses import dataclass
from typing import Literal

from shortlist.methods import Protocol

SIZES = (3, 5)
SEEDS = (0, 1, 2)
EPOCHS = 40
HIDDEN = (64,)
BATCH_SIZE = 64
RIVALS = ("cc", "rc")

Kind = Literal["shortlists", "all items", "same reads"]


@dataclass(frozen=True)
class Line:
    """One line of the table.

    Attributes:
        method: a name of `shortlist methods`.
        size: classes on a shortlist; for `same reads`, the size whose reads it may spend; None for `all items`.
        protocol: what a rival is fed; None for a method that both protocols feed alike, which is run once.
        kind: `shortlists`, or ordinary labels: of all items, or of as many items as the reads of a shortlist each
            would pay for (the honest alternative: show every class, but for fewer items).
    """

    method: str
    size: int | None = None
    protocol: Protocol | None = None
    kind: Kind = "shortlists"

    @property
    def title(self) -> str:
        """As the table and the pictures name it."""
        return {"ol": "OL", "sl": "SL", "cc": "CC", "rc": "RC"}.get(self.method, self.method)


@dataclass(frozen=True)
class Settings:
    """What is chosen for a line, and nothing else differs between lines."""

    lr: float
    weight_decay: float


def lines(sizes: tuple[int, ...] = SIZES) -> list[Line]:
    """Ordinary labels first, then for each size the methods and the rivals under both protocols."""
    rows = [Line("ol", kind="all items")]
    for size in sizes:
        rows += [Line("ol", size, kind="same reads"), Line("sl", size), Line("likelihood", size)]
        rows += [Line(rival, size, protocol) for rival in RIVALS for protocol in ("paper", "fair")]
    return rows
