"""Annotators' mistakes: what an answer says about the true class, how to simulate it, and how to estimate the rates.

P(answer | y, shown) for a list of l classes, as `shortlist.labels.draw` simulates it:

    y shown:      None with `miss`, each wrong class shown with slip/(l - 1), y with 1 - miss - slip
    y not shown:  each class shown with (slip + anchor)/l, None with 1 - slip - anchor

A list of one class has no wrong class to slip to, and a list of all K has no None. `anchor` says how much likelier
people are to pick a wrong class if the right one is not on the list.

A typed class is a full label, whatever the list was: the right one with 1 - `typed`, each other one with typed/(K - 1).
The answer to the list then adds nothing: it follows from what the person took the item for. Needs numpy only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import InputError
from shortlist.labels import NONE, answer_shortlists

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Lists = NDArray[np.int32]

ENOUGH_GOLD = 30
"""With so many answers on gold items these alone give the rates of mistakes; with fewer, all answers do."""
EXPECTED_GOLD, EXPECTED = 20, 100
"""The expected rates count as much as so many answers on gold items, or on other items: a model believes the answers
that it was trained on, finds next to no mistake among them, and would take all that follow as right."""
RARE = 1e-3
"""No rate is estimated below this: a rate of 0 would make the first mistake impossible to explain."""
ENOUGH = 200
"""With fewer answers of any kind no rates are estimated."""
PLENTY = 1 << 23
"""Beliefs (answers times classes) that the rates are learned from at most: those of the latest answers."""


@dataclass(frozen=True)
class Mistakes:
    """The rates of annotators' mistakes, as defined above; false if all are 0: answers are then taken as right."""

    miss: float = 0.0
    slip: float = 0.0
    anchor: float = 0.0
    typed: float = 0.0

    def __post_init__(self) -> None:
        rates = (self.miss, self.slip, self.anchor, self.typed)
        if not all(0 <= rate <= 1 for rate in rates) or self.miss + self.slip > 1 or self.slip + self.anchor > 1:
            raise InputError(f"miss, slip, anchor and typed: expected shares with sums of at most 1, got {rates}")

    def at_least(self, least: float) -> "Mistakes":
        """The same rates, but none except `anchor` below `least`."""
        return Mistakes(max(self.miss, least), max(self.slip, least), self.anchor, max(self.typed, least))

    def __bool__(self) -> bool:
        return max(self.miss, self.slip, self.anchor, self.typed) > 0


PEOPLE = Mistakes(miss=0.05, slip=0.02, typed=0.02)
"""The rates that are assumed before any are measured."""


def answer_chances(
    mistakes: Mistakes, log: "Log", num_classes: int
) -> tuple[FloatArray, IntArray, IntArray, FloatArray]:
    """P(answer | y, shown) for the B questions of a log, without a table of all K classes.

    All classes that are not on a list have the same chance; the others are exceptions.

    Returns:
        (B,) the chance that all classes but the exceptions share; then the row, class and chance of each exception. If
        a class is an exception of a question twice, the later one counts.
    """
    sizes, answered, typed = log.sizes, log.answer != NONE, log.all_typed
    full = sizes == num_classes
    miss = np.where(full, 0.0, mistakes.miss)
    slip = np.where(sizes == 1, 0.0, mistakes.slip)
    stray = mistakes.slip + mistakes.anchor
    hidden = np.where(full, 0.0, np.where(answered, stray / np.maximum(sizes, 1), 1 - stray))
    shown = np.where(answered, slip / np.maximum(sizes - 1, 1), miss)
    on_list = (log.lists >= 0) & (log.lists < num_classes)  # short rows are filled up with K
    on_list[typed != NONE] = False
    rows = np.nonzero(on_list)[0]
    picked, wrote = np.nonzero(answered & (typed == NONE))[0], np.nonzero(typed != NONE)[0]
    hidden[wrote] = mistakes.typed / (num_classes - 1)
    return (
        hidden,
        np.concatenate([rows, picked, wrote]),
        np.concatenate([log.lists[on_list], log.answer[picked], typed[wrote]]),
        np.concatenate([shown[rows], (1 - miss - slip)[picked], np.full(len(wrote), 1 - mistakes.typed)]),
    )


def likelihood(mistakes: Mistakes, log: "Log", num_classes: int) -> FloatArray:
    """(B, K) P(answer | y, shown) of each question for every class y; without mistakes 1 or 0: is y a candidate?"""
    rest, rows, classes, chances = answer_chances(mistakes, log, num_classes)
    table = np.repeat(rest[:, None], num_classes, axis=1)
    table[rows, classes] = chances
    return table


def simulate_answers(
    rng: np.random.Generator, lists: Lists, sizes: IntArray, truth: IntArray, num_classes: int, mistakes: Mistakes
) -> IntArray:
    """(B,) what annotators with these rates of mistakes answer to B lists."""
    flat = lists[np.arange(lists.shape[1]) < sizes[:, None]]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    answer = answer_shortlists(rng, flat, offsets, truth, num_classes, mistakes.miss, mistakes.slip)
    if mistakes.anchor == 0:
        return answer
    hidden = ~(lists == truth[:, None]).any(axis=1)
    # drawn from those who would say None, so that `anchor` is a share of all lists without the right class
    share = mistakes.anchor / (1 - mistakes.slip) if mistakes.slip < 1 else 0.0
    drawn = hidden & (answer == NONE) & (rng.random(len(sizes)) < share) & (sizes > 0)
    place = (rng.random(len(sizes)) * sizes).astype(np.int64)
    return np.where(drawn, lists[np.arange(len(sizes)), place], answer)


def simulate_typing(
    rng: np.random.Generator, answer: IntArray, truth: IntArray, num_classes: int, share: float, mistakes: Mistakes
) -> IntArray:
    """(B,) the class that people type who do so after this share of their None answers; NONE where they do not."""
    other = (truth + rng.integers(1, num_classes, len(truth))) % num_classes
    wrong, typing = rng.random(len(truth)) < mistakes.typed, rng.random(len(truth)) < share
    return np.where((answer == NONE) & typing, np.where(wrong, other, truth), NONE)


def rectangle(shortlists: Sequence[Sequence[int]], num_classes: int) -> tuple[Lists, IntArray]:
    """Shortlists as (B, width) rows, short ones filled up with K, and their (B,) sizes.

    >>> lists, sizes = rectangle([[2, 0], [1]], 3)
    >>> lists.tolist(), sizes.tolist()
    ([[2, 0], [1, 3]], [2, 1])
    """
    sizes = np.array([len(row) for row in shortlists], np.int64)
    lists = np.full((len(sizes), int(sizes.max(initial=1))), num_classes, np.int32)
    lists[np.arange(lists.shape[1]) < sizes[:, None]] = [class_ for row in shortlists for class_ in row]
    return lists, sizes


@dataclass(frozen=True)
class Log:
    """Questions and their answers, one row each, in the order in which they came."""

    items: IntArray
    lists: Lists
    sizes: IntArray
    answer: IntArray
    typed: IntArray | None = None
    """(B,) the class typed, or NONE; without this column nobody typed."""

    def __len__(self) -> int:
        return len(self.items)

    @property
    def all_typed(self) -> IntArray:
        """(B,) the class typed, NONE where nobody typed."""
        return np.full(len(self), NONE, np.int64) if self.typed is None else self.typed

    def check(self, num_items: int, num_classes: int) -> None:
        """Raise an InputError if these cannot be questions and answers of one round, at most one per item."""
        columns = (self.items, self.sizes, self.answer, *(() if self.typed is None else (self.typed,)))
        if self.lists.ndim != 2 or any(column.shape != self.lists.shape[:1] for column in columns):
            shapes = ", ".join(str(part.shape) for part in (self.lists, *columns))
            raise InputError(f"expected (B, width) lists and (B,) items, sizes and answers, got {shapes}")
        found, count = np.unique(self.items, return_counts=True)
        if (count > 1).any():
            raise InputError(f"item {found[count > 1][0]} has two answers in one call: give them one after another")
        shown = np.arange(self.lists.shape[1]) < self.sizes[:, None]
        named = np.where(shown, (self.lists >= 0) & (self.lists < num_classes), self.lists == num_classes).all(axis=1)
        fits = (self.sizes >= 0) & (self.sizes <= self.lists.shape[1])
        picked = (self.answer == NONE) | ((self.lists == self.answer[:, None]) & shown).any(axis=1)
        for wrong, expected in (
            ((self.items < 0) | (self.items >= num_items), f"a row from 0 to {num_items - 1}"),
            (~(named & fits), f"as many classes from 0 to {num_classes - 1} as its size, then {num_classes}"),
            (~picked, "an answer that is on the list, or NONE"),
            ((self.all_typed < NONE) | (self.all_typed >= num_classes), "a class that was typed, or NONE"),
        ):
            for i in np.nonzero(wrong)[0][:1]:
                asked = f"item {self.items[i]}, list {self.lists[i].tolist()} of size {self.sizes[i]}"
                raise InputError(f"{asked}, answer {self.answer[i]}, typed {self.all_typed[i]}: expected {expected}")

    def __getitem__(self, kept: NDArray[np.bool_] | slice) -> "Log":
        typed = None if self.typed is None else self.typed[kept]
        return Log(self.items[kept], self.lists[kept], self.sizes[kept], self.answer[kept], typed)


def joined(parts: Sequence[Log], num_classes: int) -> Log:
    """Several logs as one, in order."""
    width = max((part.lists.shape[1] for part in parts), default=1)
    wide = [np.pad(p.lists, ((0, 0), (0, width - p.lists.shape[1])), constant_values=num_classes) for p in parts]
    empty = np.empty(0, np.int64)
    return Log(
        np.concatenate([empty, *(p.items for p in parts)]),
        np.concatenate([np.empty((0, width), np.int32), *wide]).astype(np.int32),
        np.concatenate([empty, *(p.sizes for p in parts)]),
        np.concatenate([empty, *(p.answer for p in parts)]),
        np.concatenate([empty, *(p.all_typed for p in parts)]),
    )


# -- estimating the rates ----------------------------------------------------------------------------------------------


def learn_rates(
    log: Log,
    believed: Callable[[IntArray], NDArray[np.floating]],
    gold: tuple[Log, IntArray],
    num_classes: int,
    *,
    start: Mistakes,
    expected: Mistakes,
) -> Mistakes | None:
    """The rates: counted on gold items if there are `ENOUGH_GOLD` answers on them, else by EM on all answers.

    Args:
        log: the answers on items of unknown class.
        believed: returns the (B, K) class probabilities of some items, made without these items' own answers.
        gold: the answers on items of known class, and the class of each.
        num_classes: K.
        start: the present rates.
        expected: the rates that were assumed before anything was answered.

    Returns:
        The rates; None while there are too few answers to tell.
    """
    known, truth = gold
    if len(known) >= ENOUGH_GOLD:
        found = estimate_from_gold(known, truth, num_classes, prior=EXPECTED_GOLD, expected=expected)
        return found.at_least(RARE)
    if len(log) + len(known) < ENOUGH:
        return None
    latest = np.unique(log.items[-max(PLENTY // num_classes, ENOUGH) :])
    log = log[np.isin(log.items, latest)]  # all answers on the items that were asked about last
    both = joined(
        [
            replace(log, items=np.searchsorted(latest, log.items)),
            replace(known, items=len(latest) + np.arange(len(known))),
        ],
        num_classes,
    )
    beliefs = np.concatenate([believed(latest), _certain(truth, num_classes)])
    found = estimate_by_em(both, beliefs, num_classes, start=start, rounds=5, prior=EXPECTED, expected=expected)
    return found or Mistakes().at_least(RARE)


def estimate_from_gold(
    log: Log, truth: IntArray, num_classes: int, *, prior: float = 1.0, expected: Mistakes | None = None
) -> Mistakes:
    """The rates by counting on items whose class is known (gold).

    Lists with the right class give miss and slip, lists without it give slip + anchor. Each rate is

        (mistakes of this kind + prior x expected rate) / (chances to make one + prior)

    Args:
        log: questions on gold items.
        truth: (B,) the true class of each question's item.
        num_classes: K.
        prior: the expected rates count like so many answers, so that a handful of gold answers does not yield a rate
            of one half.
        expected: the expected rates; all 0 if not given.
    """
    return _rates(log, _certain(truth, num_classes), num_classes, prior, expected or Mistakes())


def estimate_by_em(
    log: Log,
    beliefs: NDArray[np.floating],
    num_classes: int,
    *,
    start: Mistakes | None = None,
    rounds: int = 20,
    prior: float = 1.0,
    expected: Mistakes | None = None,
) -> Mistakes:
    """The rates without gold, by expectation maximisation.

    E: the posterior of each item, proportional to its belief times P(its answers | y) under the present rates. M: the
    rates as in `estimate_from_gold`, each class counted with its posterior. Repeated questions help: two answers on an
    item that cannot both be right raise the rates.

    Args:
        log: all questions, any number on an item.
        beliefs: (N, K) the model's probabilities for every item of the log, made without the item's own answers (a
            model that was trained on them agrees with them and finds too few mistakes).
        num_classes: K.
        start: the rates to start from.
        rounds: rounds of EM.
        prior: as in `estimate_from_gold`.
        expected: as in `estimate_from_gold`.
    """
    mistakes = start or PEOPLE
    for _ in range(rounds):
        log_posterior = np.log(np.maximum(beliefs, 1e-12)).astype(np.float64)
        each = likelihood(mistakes, log, num_classes)
        np.add.at(log_posterior, log.items, np.log(np.maximum(each, 1e-12)))
        log_posterior -= log_posterior.max(axis=1, keepdims=True)
        posterior = np.exp(log_posterior)
        posterior /= posterior.sum(axis=1, keepdims=True)
        mistakes = _rates(log, posterior[log.items], num_classes, prior, expected or Mistakes())
    return mistakes


def _certain(truth: IntArray, num_classes: int) -> NDArray[np.float32]:
    """(B, K) one-hot rows, without the K x K identity that they could be taken from."""
    sure: NDArray[np.float32] = (truth[:, None] == np.arange(num_classes)).astype(np.float32)
    return sure


def _rates(log: Log, posterior: NDArray[np.floating], num_classes: int, prior: float, expected: Mistakes) -> Mistakes:
    """The rates, from the (B, K) probabilities of the true class of each question's item.

    Each is (expected mistakes + prior x expected rate) / (expected chances to make one + prior), at most 0.5.
    """
    padded = np.concatenate([posterior, np.zeros((len(log), 1))], axis=1)
    on_list = np.take_along_axis(padded, log.lists.astype(np.int64), axis=1).sum(axis=1)
    answered = log.answer != NONE
    right = np.where(answered, padded[np.arange(len(log)), log.answer], 0.0)
    can_miss, can_slip = log.sizes < num_classes, log.sizes > 1
    missed = ((on_list * ~answered)[can_miss].sum() + prior * expected.miss) / (on_list[can_miss].sum() + prior)
    slips = ((on_list - right) * answered)[can_slip].sum()
    slipped = (slips + prior * expected.slip) / (on_list[can_slip].sum() + prior)
    off_list = np.where((log.sizes > 0) & (log.sizes < num_classes), 1 - on_list, 0.0)
    strays = (off_list * answered).sum() + prior * (expected.slip + expected.anchor)
    stray = strays / (off_list.sum() + prior)
    slip = float(np.clip(slipped, 0, 0.5))
    rows = np.nonzero(log.all_typed != NONE)[0]
    mistyped = len(rows) - padded[rows, log.all_typed[rows]].sum()
    # people who type err about as often as those who pick, until typed answers say otherwise
    typed = float(np.clip((mistyped + prior * slip) / (len(rows) + prior), 0, 0.5)) if len(rows) + prior else slip
    return Mistakes(float(np.clip(missed, 0, 0.5)), slip, float(np.clip(stray - slip, 0, 0.5)), typed)
