"""What labelling would cost, before any of it is done: full labels, random shortlists, model-chosen shortlists."""

import math
from dataclasses import dataclass, replace

from shortlist.errors import InputError
from shortlist.policies.time_model import TimeModel
from shortlist.theory import expected_reads, information

MODEL_READS = 3.81
"""Reads per item that model-chosen lists took until all items of BANKING77 (K = 77) were resolved, measured by
benchmarks/label_economy.py."""
MODEL_SECONDS = 1.93
"""Seconds per item there, at 1 s per question and 0.25 s per name."""
MODEL_QUESTIONS = 1.22
"""Questions per item there."""
MODEL_ITEMS = 130
"""Items per class there."""
NO_MODEL = 3.1
"""With so few items per class a model saves nothing, going by the figures of parts of BANKING77."""

NAMES_CLARITY, NAMES_SAVE = 0.55, 0.47
"""How clear the names of BANKING77 are (`names.clarity`), and the share of what is asked beyond one question and one
read per item that they saved there (45 % of the reads, 51 % of the questions: results/label_start_banking77.json)."""
MARK = "... until 99 % of the accuracy"
MARK_QUESTIONS, MARK_READS, MARK_SECONDS, MARK_RESOLVED = 0.57, 0.84, 0.63, 0.49
"""What 99 % of the accuracy of full labels took there, as shares of what all items took, and the share of the items
whose class was known by then. On Letter and digits it took less (reads 0.66 and 0.45, seconds 0.45 and 0.31)."""


@dataclass(frozen=True)
class ItemCost:
    """What an item costs on average until all are resolved, and how that is known."""

    questions: float
    reads: float
    seconds: float
    basis: str


@dataclass(frozen=True)
class PlanRow:
    """One way to label all items."""

    way: str
    size: int
    questions: float
    reads: float
    hours: float
    answered: float
    """Share of the items whose class is known in the end."""
    bits: float
    """Bits learned per item, if all classes are equally likely."""
    reads_per_bit: float
    basis: str


def plan_labelling(
    num_classes: int,
    items: int,
    time: TimeModel,
    sizes: tuple[int, ...] = (),
    clarity: float | None = None,
    own: ItemCost | None = None,
) -> list[PlanRow]:
    """The rows of the plan, one for each way to label all items.

    Full labels and random shortlists are exact for classes that are equally likely. Model-chosen lists are projected:
    from `own` if that is given, else from BANKING77, scaled by log2 K and by the number of items per class.

    Args:
        num_classes: K.
        items: the number of items.
        time: how long a question takes.
        sizes: the sizes of random shortlists to show; if empty, the usual ones.
        clarity: that of the class names (`names.clarity`), if there are texts and names to tell.
        own: what items like these cost, if some with a class are there to tell (`simulation.project_cost`).
    """
    for what, count, least in (("classes", num_classes, 2), ("items", items, 1)):
        if count < least:
            raise InputError(f"{what}: expected at least {least}, got {count}")
    for size in sizes:
        if not 1 <= size < num_classes:
            raise InputError(f"size: expected 1 to {num_classes - 1}, got {size}")
    full = _row("full labels", num_classes, num_classes, items, time)
    rows = [full]
    for size in sizes or _usual_sizes(num_classes):
        rows.append(_row(f"random {size}, once", size, num_classes, items, time))
    rows.append(_again_row(sizes[0] if sizes else min(8, num_classes - 1), num_classes, items, time))
    cost = own or _projected(num_classes, items, time, 0.0)
    rows.append(_model_row("model-chosen, all resolved", num_classes, items, cost))
    if own is None and clarity is not None:
        cost = _projected(num_classes, items, time, clarity)
        rows.append(_model_row("the same, with names", num_classes, items, cost))
    return [*rows, _mark(rows[-1])]


def plan_limits(own: bool = False) -> list[str]:
    """What the figures do and do not say; `own`: model-chosen lists were simulated on labelled items of the user's."""
    played = (
        "Model-chosen shortlists were played on your labelled items; what they cost beyond the least is carried on "
        "to all items as it fell with their number on BANKING77 and Letter."
    )
    projected = (
        "Model-chosen shortlists are a projection from BANKING77 (short texts, 77 classes, accuracy 90 %); a dataset "
        "on which no model does well saves less. With fewer than 130 items per class the start weighs more (measured "
        "there down to 5 items per class); with more, nothing is taken off. A few hundred labelled items of your own "
        "(--data) project better."
    )
    return [
        "Three savings are three claims: per answer (a short list is quicker than a full one), per bit (a None says "
        "little: compare reads per bit), and at equal accuracy (only a simulation on data like yours tells: "
        "`shortlist label DATA`).",
        "Random shortlists are exact for classes that are equally likely; the share answered is l/K whatever they are.",
        played if own else projected,
        "99 % of the accuracy: of a model trained on full labels of all items. Its share of the cost is BANKING77's; "
        "on Letter and digits it was less.",
        "Reads count every name shown; seconds assume that people read from the top and stop at the right name.",
    ]


def _usual_sizes(num_classes: int) -> tuple[int, ...]:
    usual = (1, 2, 3, 5, 8, 12, 20, 50, 100)
    return tuple(size for size in usual if size < num_classes)


def _row(way: str, size: int, num_classes: int, items: int, time: TimeModel) -> PlanRow:
    bits = information(num_classes, size)
    seconds = float(time.seconds(expected_reads(num_classes, size)))
    answered = size / num_classes
    return PlanRow(way, size, items, items * size, items * seconds / 3600, answered, bits, size / bits, "exact")


def _again_row(size: int, num_classes: int, items: int, time: TimeModel) -> PlanRow:
    """Random lists, asked again after None without the refused classes, until answered; the last class is deduced."""
    reads = seconds = questions = 0.0
    left, open_share = num_classes, 1.0
    while left > 1:
        shown = min(size, left - 1)
        questions += open_share
        reads += open_share * shown
        seconds += open_share * float(time.seconds(expected_reads(left, shown)))
        open_share *= 1 - shown / left
        left -= shown
    bits = information(num_classes, num_classes)
    way = f"random {size}, again on None"
    hours = items * seconds / 3600
    return PlanRow(way, size, items * questions, items * reads, hours, 1.0, bits, reads / bits, "exact")


def _model_row(way: str, num_classes: int, items: int, cost: ItemCost) -> PlanRow:
    bits, hours = information(num_classes, num_classes), cost.seconds * items / 3600
    return PlanRow(way, 0, cost.questions * items, cost.reads * items, hours, 1.0, bits, cost.reads / bits, cost.basis)


def _mark(row: PlanRow) -> PlanRow:
    """The row up to 99 % of the accuracy of full labels."""
    return replace(
        row,
        way=MARK,
        questions=MARK_QUESTIONS * row.questions,
        reads=MARK_READS * row.reads,
        hours=MARK_SECONDS * row.hours,
        answered=MARK_RESOLVED,
        bits=MARK_RESOLVED * row.bits,
        reads_per_bit=MARK_READS / MARK_RESOLVED * row.reads_per_bit,
    )


def _projected(num_classes: int, items: int, time: TimeModel, clarity: float) -> ItemCost:
    """What BANKING77 took beyond one question and one read per item, scaled by log2 K and by the items per class.

    Names save the share that they saved there, in proportion to their clarity.
    """
    scale = information(num_classes, num_classes) / information(77, 77)
    scale *= _start(num_classes, items, 1 + (MODEL_READS - 1) * scale)
    scale *= 1 - NAMES_SAVE * min(clarity / NAMES_CLARITY, 1.0)
    looked = (MODEL_SECONDS - MODEL_QUESTIONS * 1.0) / 0.25
    reads = min(1 + (MODEL_READS - 1) * scale, _one_by_one(num_classes))
    questions = min(1 + (MODEL_QUESTIONS - 1) * scale, reads)
    seconds = time.base * questions + time.per_class * min(1 + (looked - 1) * scale, reads)
    return ItemCost(questions, reads, seconds, "projection")


def _start(num_classes: int, items: int, reads: float) -> float:
    """How much more is asked beyond the first read, compared with `MODEL_ITEMS` per class: a power of items per class.

    The power is such that with `NO_MODEL` items per class the reads are those of a list read from the top. With 77
    classes it is -0.7; the reads and seconds of parts of BANKING77 are met within 13 % (results/plan_items.json).
    """
    nothing_learned = max((_one_by_one(num_classes) - 1) / (reads - 1), 1.0)
    fewest = MODEL_ITEMS / NO_MODEL
    fewer = min(max(MODEL_ITEMS * num_classes / items, 1.0), fewest)
    return float(nothing_learned ** (math.log(fewer) / math.log(fewest)))


def _one_by_one(num_classes: int) -> float:
    """The expected reads of K names in random order down to the right one, the last being deduced.

    (1 + 2 + ... + (K - 1) + (K - 1)) / K = (K - 1)(K + 2) / (2 K).
    """
    return (num_classes - 1) * (num_classes + 2) / (2 * num_classes)
