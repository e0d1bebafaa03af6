"""What is known about every item after the answers so far: a plain state machine, the same simulated and live.

Needs numpy only.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import InputError
from shortlist.labels import NONE
from shortlist.policies.answers import LEAST, Answers, AnswerTable, likelihood_of
from shortlist.policies.choose import BoolArray
from shortlist.policies.noise import IntArray, Lists, Log, Mistakes, joined
from shortlist.policies.time_model import MATCHES, TimeModel, looked_at


@dataclass
class LabelState:
    """The answers on N items of K classes, merged item by item.

    Attributes:
        mistakes: the rates of mistakes that are modelled; if all are 0, answers are taken as right.
        answer_likelihood: (N, K) P(the item's answers | y), scaled to a largest value of 1; without mistakes it is 1 on
            the candidates and 0 elsewhere. Memory grows with the answers only.
        asked: (N,) the number of questions so far.
        answer: (N,) the class answered last, or NONE.
        broken: (N,) whether every class was refused although answers are taken as right: nothing can be learned.
        known: (N,) whether the class was known without asking.
        held: (N,) whether the item is asked about but kept out of all learning (`score.audit`).
    """

    num_items: int
    num_classes: int
    mistakes: Mistakes = field(default_factory=Mistakes)
    time: TimeModel = field(default_factory=TimeModel)

    def __post_init__(self) -> None:
        if self.num_items < 1 or self.num_classes < 2:
            raise InputError(f"at least 1 item and 2 classes are needed, got {self.num_items} and {self.num_classes}")
        self.answer_likelihood = AnswerTable(self.num_items, self.num_classes)
        self.asked: IntArray = np.zeros(self.num_items, np.int64)
        self.answer: IntArray = np.full(self.num_items, NONE, np.int64)
        self.broken: BoolArray = np.zeros(self.num_items, np.bool_)
        self.known: BoolArray = np.zeros(self.num_items, np.bool_)
        self.held: BoolArray = np.zeros(self.num_items, np.bool_)
        self.questions = 0
        self.reads = 0
        self.seconds = 0.0
        self._log: list[Log] = []

    def record(
        self, items: IntArray, lists: Lists, sizes: IntArray, answer: IntArray, typed: IntArray | None = None
    ) -> None:
        """Take in answers, at most one per item in a call.

        Args:
            items: (B,) rows of the data.
            lists: (B, width) the classes shown in their order, short rows filled up with K.
            sizes: (B,) the number of classes on each list.
            answer: (B,) a class of the list, or NONE.
            typed: (B,) the class typed, on the list or not, or NONE; if not given, nobody typed.
        """
        part = Log(items, lists, sizes, answer, typed)
        self._weigh(part)
        self.asked[items] += 1
        said = np.where(part.all_typed != NONE, part.all_typed, answer)
        self.answer[items] = np.where(said != NONE, said, self.answer[items])
        self.questions += len(items)
        wrote = part.all_typed != NONE
        self.reads += int(sizes.sum()) + MATCHES * int(wrote.sum())
        self.seconds += float(self.time.seconds(looked_at(lists, sizes, answer)[~wrote]).sum())
        self.seconds += float(self.time.typed(sizes[wrote]).sum())
        self._log.append(part)

    def before(self, items: IntArray, typed: IntArray | None = None) -> NDArray[np.float32]:
        """(B, K) P(the answers so far | y) of some items, scaled to a largest value of 1.

        If answers are taken as right and a class is typed now, this is 1 for every class: the last word stands, and if
        the class was refused before, that was the mistake.
        """
        return self._before(items, typed).table()

    def _before(self, items: IntArray, typed: IntArray | None) -> Answers:
        earlier = self.answer_likelihood.take(items)
        if typed is None or self.mistakes or not (typed != NONE).any():
            return earlier
        stands = typed == NONE
        kept = stands[earlier.rows]
        offsets = np.concatenate([[0], np.cumsum(np.where(stands, np.diff(earlier.offsets), 0))])
        rest = np.where(stands, earlier.rest, 1)
        return Answers(rest, offsets, earlier.classes[kept], earlier.values[kept], self.num_classes)

    def _weigh(self, part: Log) -> None:
        self.broken[part.items[part.all_typed != NONE]] = False
        product = self._before(part.items, part.typed).times(likelihood_of(self.mistakes, part, self.num_classes))
        merged, lost = product.scaled(LEAST if self.mistakes else 0)
        self.broken[part.items[lost]] = True
        self.answer_likelihood.put(part.items, merged)

    def know(self, items: IntArray, classes: IntArray) -> None:
        """Take in classes that are known without asking; these items are settled and learned from."""
        self.known[items] = True
        self.answer[items] = classes
        self._settle_known()

    def _settle_known(self) -> None:
        rows = np.nonzero(self.known)[0]
        self.answer_likelihood.put(rows, Answers.known(self.answer[rows], self.num_classes))

    def remodel(self, mistakes: Mistakes) -> None:
        """Compute P(answers | y) again from all answers, under other rates of mistakes."""
        self.mistakes = mistakes
        self.answer_likelihood = AnswerTable(self.num_items, self.num_classes)
        self.broken[:] = False
        for part in self._log:
            self._weigh(part)
        self._settle_known()

    def log(self) -> Log:
        """All questions asked so far, in order."""
        return joined(self._log, self.num_classes)

    def candidates(self, rows: IntArray) -> BoolArray:
        """(B, K) the classes that may be shown: those not refused, or all where mistakes are modelled."""
        return np.greater(self.answer_likelihood[rows], 0)

    @property
    def counts(self) -> IntArray:
        """(K,) the number of items answered with each class, those held out aside."""
        return np.bincount(self.answer[(self.answer != NONE) & ~self.held], minlength=self.num_classes)

    @property
    def informative(self) -> IntArray:
        """The rows to learn from: known or asked, not broken, and not held."""
        return np.nonzero((((self.asked > 0) & ~self.broken) | self.known) & ~self.held)[0]

    @property
    def certain(self) -> BoolArray:
        """(N,) whether one class is left (answered, or all others refused) or the item is broken.

        If mistakes are modelled, only items whose class was known.
        """
        single: BoolArray = self.answer_likelihood.possible == 1
        return single | self.broken
