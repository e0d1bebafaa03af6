"""What labelling would cost, before any of it is done: full labels, random shortlists, model-chosen shortlists."""

import csv
import io
import json
import math
from dataclasses import dataclass
from pathlib import Path

from shortlist.errors import InputError
from shortlist.internal.cells import plain_cell
from shortlist.internal.names import split_names
from shortlist.policies.time_model import TimeModel, fit_time
from shortlist.theory import expected_reads, information

MODEL_READS = 3.81
"""Reads per item that the model-chosen lists took until all items of BANKING77 (K = 77) were resolved."""
MODEL_SECONDS = 1.93
"""Seconds per item, at 1 s per question and 0.25 s per name; both measured by benchmarks/label_economy.py."""
MODEL_QUESTIONS = 1.22
"""Questions per item, measured there."""
MODEL_ITEMS = 130
"""Items per class there."""
NO_MODEL = 3.1
"""Items per class at which a model saves nothing any more: where the figures of parts of BANKING77 point to."""

NAMES_CLARITY, NAMES_SAVE = 0.55, 0.4
"""How clear the names of BANKING77 are (`names.clarity`), and the share of what is asked beyond one question and one
read per item that they saved there (36 % of the reads, 42 % of the questions: results/label_start_banking77.json)."""


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
    """Bits learned per item, under a uniform posterior."""
    reads_per_bit: float
    basis: str


def plan_labelling(
    num_classes: int, items: int, time: TimeModel, sizes: tuple[int, ...] = (), clarity: float | None = None
) -> list[PlanRow]:
    """The rows of the plan.

    `clarity` is that of the class names (`names.clarity`), where texts and names are there to tell.

    Random shortlists are asked once per item (exact, uniform classes). The model-chosen row is a projection: what was
    measured on BANKING77, its reads scaled with log2 K, and the more of them the fewer items per class there are.
    """
    if num_classes < 2 or items < 1:
        raise InputError(f"at least 2 classes and 1 item are needed, got {num_classes} and {items}")
    for size in sizes:
        if not 1 <= size < num_classes:
            raise InputError(f"size: expected 1 to {num_classes - 1}, got {size}")
    full = _row("full labels", num_classes, num_classes, items, time)
    rows = [full]
    for size in sizes or _usual_sizes(num_classes):
        rows.append(_row(f"random {size}, once", size, num_classes, items, time))
    rows.append(_again_row(sizes[0] if sizes else min(8, num_classes - 1), num_classes, items, time))
    rows.append(_model_row(num_classes, items, time, None))
    if clarity is not None:
        rows.append(_model_row(num_classes, items, time, clarity))
    return rows


def plan_limits() -> list[str]:
    """What the figures do and do not say."""
    return [
        "Three savings are three claims: per answer (a short list is quicker than a full one), per bit (a None says "
        "little: compare reads per bit), and at equal accuracy (only a simulation on data like yours tells: "
        "`shortlist label DATA`).",
        "Random shortlists are exact for classes that are equally likely; the share answered is l/K whatever they are.",
        "Model-chosen shortlists are a projection from BANKING77 (short texts, 77 classes, accuracy 90 %); a dataset "
        "on which no model does well saves less. With fewer than 130 items per class the start weighs more (measured "
        "there down to 5 items per class); with more, nothing is taken off.",
        "Reads count every name shown; seconds assume that people read from the top and stop at the right name.",
    ]


def read_time_log(path: str | Path) -> TimeModel:
    """The time model of an annotation export: columns shortlist (names separated by |), answer, seconds, maybe typed.

    Raises:
        InputError: the file lacks a column, or has too few timed answers.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    try:
        if file.suffix.lower() == ".jsonl":
            records = [json.loads(line) for line in text.split("\n") if line.strip()]
        else:
            rows = csv.DictReader(io.StringIO(text, newline=""))
            records = [{key: plain_cell(value or "") for key, value in row.items()} for row in rows]
    except (ValueError, csv.Error) as error:
        raise InputError(f"{file} is not a log of answers: {error}") from error
    needed = ("shortlist", "answer", "seconds")
    missing = [name for name in needed if not records or name not in records[0]]
    if missing:
        raise InputError(f"{file} has no column {missing[0]!r}: a log has shortlist, answer and seconds")
    lists, answers, seconds, typed = [], [], [], []
    for number, record in enumerate(records, 1):
        if record["seconds"] in ("", None):
            continue
        try:
            seconds.append(float(record["seconds"]))
        except (TypeError, ValueError) as error:
            raise InputError(f"{file}, row {number}: seconds is {record['seconds']!r}, not a number") from error
        shown = record["shortlist"]
        lists.append([str(name) for name in shown] if isinstance(shown, list) else split_names(str(shown)))
        answers.append("" if record["answer"] is None else str(record["answer"]))
        typed.append(bool(record.get("typed")))
    return fit_time(lists, answers, seconds, typed=typed)


def _usual_sizes(num_classes: int) -> tuple[int, ...]:
    usual = (1, 2, 3, 5, 8, 12, 20, 50, 100)
    return tuple(size for size in usual if size < num_classes)


def _row(way: str, size: int, num_classes: int, items: int, time: TimeModel) -> PlanRow:
    bits = information(num_classes, size)
    seconds = float(time.seconds(expected_reads(num_classes, size)))
    answered = size / num_classes
    return PlanRow(way, size, items, items * size, items * seconds / 3600, answered, bits, size / bits, "exact")


def _again_row(size: int, num_classes: int, items: int, time: TimeModel) -> PlanRow:
    """Random lists, asked again on None with the refused classes left out, until answered; the last one is deduced."""
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


def _model_row(num_classes: int, items: int, time: TimeModel, clarity: float | None) -> PlanRow:
    """What BANKING77 took beyond one question and one read per item, scaled by log2 K and by the items per class.

    Names take off what they took off there, the less the less clear they are.
    """
    bits = information(num_classes, num_classes)
    scale = bits / information(77, 77)
    scale *= _start(num_classes, items, 1 + (MODEL_READS - 1) * scale)
    scale *= 1 - NAMES_SAVE * min((clarity or 0.0) / NAMES_CLARITY, 1.0)
    looked = (MODEL_SECONDS - MODEL_QUESTIONS * 1.0) / 0.25
    reads = min(1 + (MODEL_READS - 1) * scale, _one_by_one(num_classes))
    questions = min(1 + (MODEL_QUESTIONS - 1) * scale, reads)
    seconds = time.base * questions + time.per_class * min(1 + (looked - 1) * scale, reads)
    way = "model-chosen, all resolved" if clarity is None else "the same, with names"
    hours = items * seconds / 3600
    return PlanRow(way, 0, items * questions, items * reads, hours, 1.0, bits, reads / bits, "projection")


def _start(num_classes: int, items: int, reads: float) -> float:
    """How many times as much is asked beyond the first as with `MODEL_ITEMS` per class: a power of the items per class.

    At `NO_MODEL` items per class the reads are those of a list read through. With 77 classes the power is -0.7; the
    reads and seconds of parts of BANKING77 are met within 13 % (results/plan_items.json).
    """
    nothing_learned = max((_one_by_one(num_classes) - 1) / (reads - 1), 1.0)
    fewest = MODEL_ITEMS / NO_MODEL
    fewer = min(max(MODEL_ITEMS * num_classes / items, 1.0), fewest)
    return float(nothing_learned ** (math.log(fewer) / math.log(fewest)))


def _one_by_one(num_classes: int) -> float:
    """Reads per item of names in a random order, up to the right one; the last is deduced."""
    return (num_classes - 1) * (num_classes + 2) / (2 * num_classes)
