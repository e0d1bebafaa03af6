"""The labelling loop: train, believe, choose items and shortlists, take answers, again. Needs numpy and scipy.

The same object is driven by the simulation and, in a process of its own, by the web app (`snapshot`).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import InputError
from shortlist.labels import NONE
from shortlist.policies.beliefs import FEW, background, log_chance, posterior, softmax, stray_share, update
from shortlist.policies.calibration import Calibration, HeldOut, Pool, knowledge
from shortlist.policies.choose import Questions, choose
from shortlist.policies.experts import Expert, weighted_scores
from shortlist.policies.items import DIVERSITY, ORDERS, class_turns, representatives, sureness
from shortlist.policies.linear import Linear, chunks, fit
from shortlist.policies.noise import IntArray, Lists, Log, joined, learn_rates, likelihood
from shortlist.policies.score.audit import Audit, Score, draw_sample
from shortlist.policies.score.doubt import LEAST_ITEMS, MOST_JUDGED, Doubts, hard_to_believe, held_out_known
from shortlist.policies.settings import LoopSettings
from shortlist.policies.sizes import bits
from shortlist.policies.state import LabelState
from shortlist.policies.threads import spread

SPARE = 100
"""More typical items, for a crowd: asked about while the first ones are all in somebody's hands."""
TRIED = 50
"""Answers after which it is decided whether experts make typical items first superfluous."""
WORTHWHILE = 0.1
"""Nats per answer that experts must know for that."""
GENTLE = 20
"""Questions per class at the start, where something is known, in which the likeliest classes take turns instead of hard
items: most hit, and no class stays unseen (chosen on held-out training data of BANKING77, docs/labelling.md)."""


class Loop:
    """One labelling project: N items with features x, K classes.

    Args:
        x: (N, D) features, an array or scipy CSR; float32 is taken as it is.
        num_classes: K.
        settings: what is fixed.
        seed: decides everything that is drawn.
        experts: what else knows something about the classes of these items.
        sample: rows drawn at random (`draw_sample`) that are asked about, in this order, but not learned from: the
            `score` is theirs.
    """

    def __init__(
        self,
        x: Any,
        num_classes: int,
        settings: LoopSettings,
        seed: int = 0,
        experts: Sequence[Expert] = (),
        sample: Sequence[int] | IntArray = (),
    ) -> None:
        self.x = x = _checked(x)
        self.settings, self.seed, self.experts = settings, seed, tuple(experts)
        self.state = LabelState(x.shape[0], num_classes, settings.mistakes, settings.time)
        self.audit = Audit(np.asarray(sample, np.int64))
        self.state.held[self.audit.rows] = True
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.model = self._trusting = Linear.zeros(x.shape[1], num_classes)
        self.calibration = Calibration(tuple(expert.weight for expert in self.experts))
        self.version = 0
        self.share = 0.0
        """Of the items, how many the model knows nothing about (`beliefs.stray_share`)."""
        self.log_model = np.zeros(x.shape[0])
        """(N,) log of how likely the model held each item's answers before they came."""
        count = 2 * num_classes if settings.representatives is None else settings.representatives
        self._typical: IntArray = self._representatives(count, self.rng) if count else np.empty(0, np.int64)
        self.first = self._typical
        """The items to ask first: typical ones, unless something is known already."""
        self._undecided = self._informed = False
        self._spare: IntArray | None = None
        self._gold, self._truth = joined([], num_classes), np.empty(0, np.int64)
        if self.experts:
            self._begin_informed()

    draw_sample = staticmethod(draw_sample)

    def _begin_informed(self) -> None:
        """No typical items first, until `TRIED` answers have told whether what is known is worth something."""
        self.first, self._undecided, self._informed = np.empty(0, np.int64), True, True

    def _decide(self, worthwhile: bool) -> None:
        """Go on without typical items, or ask about them now: what was known is worth nothing."""
        self._undecided = False
        if not worthwhile:
            self.first, self._informed = self._typical, False

    @property
    def pool(self) -> Pool:
        """How model and experts are weighed now."""
        return self.calibration.pool

    # -- asking ------------------------------------------------------------------------------------------------------

    def beliefs(self, rows: IntArray) -> NDArray[np.float32]:
        """(B, K) the posterior of some items: the model or the background, times the item's own answers."""
        prior = self._prior(rows, self.model.logits(self.x[rows]))
        answers = self.state.answer_likelihood.take(rows)
        return posterior(prior, answers, self.log_model[rows], self.share, lambda: background(self.state.counts))

    def _each(self, rows: IntArray, measure: Callable[[NDArray[np.float32]], NDArray[Any]]) -> NDArray[Any]:
        """(B, ...) a measure of each row's beliefs, chunk by chunk: those of all rows are never there at once."""
        parts = list(chunks(len(rows), self.state.num_classes)) or [slice(0, 0)]
        work = len(rows) * self.model.weight.size
        return np.concatenate(spread(lambda part: measure(self.beliefs(rows[part])), parts, work))

    def _prior(self, rows: IntArray, logits: NDArray[np.float32]) -> NDArray[np.float32]:
        """(B, K) what the model and the experts believe, the item's own answers aside."""
        known = weighted_scores(self.experts, self.pool.weights, rows)
        return softmax(logits / np.float32(self.pool.temperature) + known)

    def open_items(self) -> IntArray:
        """The rows still worth a question."""
        state, settings = self.state, self.settings
        worth = (state.asked < settings.most_questions) & ~state.broken & ~state.known
        if not state.mistakes:
            return np.nonzero(worth & ~state.certain)[0]
        asked = np.nonzero(worth & (state.asked > 0))[0]
        worth[asked] = self._each(asked, sureness) < settings.sure
        return np.nonzero(worth)[0]

    def standing(self, truth: IntArray) -> tuple[float, float]:
        """The share of the items whose class is settled, and of those whose likeliest class is the true one."""
        state, rows = self.state, np.arange(self.state.num_items)
        tops = self._each(rows, lambda found: np.stack([found.argmax(axis=1), found.max(axis=1)], axis=1))
        settled = state.certain & ~state.broken
        if state.mistakes:
            settled = ((tops[:, 1] >= self.settings.sure) & (state.asked > 0)) | state.known
        return float(settled.mean()), float((tops[:, 0] == truth).mean())

    def batch_size(self) -> int:
        """How many questions to ask before the next training."""
        settings = self.settings
        if not settings.grow:
            return settings.retrain_every
        return min(settings.retrain_every, max(settings.retrain_least, int(settings.grow * self.state.questions)))

    def next_items(self, count: int) -> IntArray:
        """The rows to ask next: typical items until they are resolved, then by the order set; the sample in between."""
        rows = self.open_items()
        others = self._next_among(rows[~self.state.held[rows]], count)
        return self.audit.among(others, rows, self.state)[:count]

    def hand_out(self) -> tuple[IntArray, bool]:
        """Every row worth a question in the order in which a crowd is given them, and whether this is the start.

        At the start, while typical items are open, there are soon fewer of them than people. The others are asked about
        further typical items, then about any: they are there and do not wait.
        """
        every = self.open_items()
        rows = every[~self.state.held[every]]
        first = self._next_among(rows, SPARE if self.settings.order == DIVERSITY else len(rows))
        start = bool(np.isin(self.first, rows).any())
        rest = self.rng.permutation(np.setdiff1d(rows, first, assume_unique=True))  # data often comes sorted by class
        if start:
            if self._spare is None:
                own = np.random.Generator(np.random.PCG64([self.seed, 1]))
                self._spare = self._representatives(SPARE, own) if len(self.first) < SPARE else self.first
            rest = rest[np.lexsort((self.state.asked[rest], ~np.isin(rest, self._spare)))]
        return self.audit.among(np.concatenate([first, rest]), every, self.state, all_of_it=True), start

    def _representatives(self, count: int, rng: np.random.Generator) -> IntArray:
        """Typical items; none of the sample."""
        rows = np.nonzero(~self.state.held)[0]
        return rows[representatives(self.x if len(rows) == len(self.state.held) else self.x[rows], count, rng)]

    def _next_among(self, rows: IntArray, count: int) -> IntArray:
        first = np.intersect1d(rows, self.first, assume_unique=True)
        if len(first):
            # those asked least often, so that no single hard item holds up the start
            turn = self.rng.permutation(len(first))
            return first[turn[np.argsort(self.state.asked[first][turn], kind="stable")]][:count]
        if not len(rows):
            return rows
        if self._informed and self.state.questions < GENTLE * self.state.num_classes:
            shuffled = self.rng.permutation(rows)
            turns = class_turns(self._each(shuffled, lambda found: found.argmax(axis=1)), self.state.counts)
            return shuffled[np.lexsort((turns, self.state.asked[shuffled] > 0))][:count]
        if self.settings.order == DIVERSITY:
            # fewer come back where clusters share an item: the rest of the batch waits for the next training
            return rows[representatives(self.x[rows], count, self.rng, rounds=3)]
        order = ORDERS[self.settings.order]
        scores = np.zeros(len(rows)) if order.score is None else self._each(rows, order.score)
        ranked = rows[order.rank(scores, self.rng)]
        if self.settings.worth:
            ranked = ranked[self._each(ranked, self._promise) >= self.settings.worth]
        return ranked[:count]

    def ask(self, count: int | None = None) -> tuple[IntArray, Questions]:
        """The next items and a shortlist for each; no items: nothing is worth asking any more."""
        rows = self.next_items(self.batch_size() if count is None else count)
        return rows, self.shortlists(rows)

    def shortlists(self, rows: IntArray) -> Questions:
        """A shortlist for each of the rows."""
        return choose(self.settings.policy, self.beliefs(rows), self.state.candidates(rows), self.rng)

    def _promise(self, beliefs: NDArray[np.float32]) -> NDArray[np.float64]:
        """(B,) bits per second of the best list."""
        longest = min(self.settings.policy.longest, beliefs.shape[1])
        ordered = -np.sort(-beliefs, axis=1)[:, :longest].astype(np.float64)
        rate: NDArray[np.float64] = (bits(ordered) / self.settings.time.expected(ordered)).max(axis=1)
        return rate

    # -- learning ----------------------------------------------------------------------------------------------------

    def record(
        self,
        rows: IntArray,
        lists: Lists,
        sizes: IntArray,
        answer: IntArray,
        typed: IntArray | None = None,
        *,
        held_out: bool = True,
    ) -> None:
        """Take in answers, those typed among them (`LabelState.record`).

        Until the next training they are held out, and tell how sure the model may be.

        Without `held_out` they are only learned from: answers that came long ago say how sure another model might be.
        """
        new = Log(rows, lists, sizes, answer, typed)
        new.check(self.state.num_items, self.state.num_classes)
        if held_out and (self.version or self.experts):
            for part in chunks(len(rows), self.state.num_classes):
                self._hold_out(new[part])
        self.state.record(rows, lists, sizes, answer, typed)

    def _hold_out(self, new: Log) -> None:
        """Keep what was believed before these answers."""
        rows, state = new.items, self.state
        each = likelihood(state.mistakes, new, state.num_classes)
        logits, before = self.model.logits(self.x[rows]), state.before(rows, new.typed)
        scores = tuple(expert.scores(rows) for expert in self.experts)
        self.log_model[rows] += log_chance(update(self._prior(rows, logits), before), each)
        free = ~state.held[rows]  # the sample must not even tell how sure the model may be
        if free.any() and self.settings.calibrate:
            self.calibration.hold_out(HeldOut(logits, scores, before, each)[free])

    def know(self, rows: IntArray, classes: IntArray) -> None:
        """Start from classes that are known without asking, one per row; the model is trained on them."""
        self.state.know(rows, classes)
        if self.experts and self.settings.calibrate and len(rows) >= LEAST_ITEMS:
            weights, l2 = self.state.answer_likelihood[rows], self.settings.l2
            self.calibration.begin(held_out_known(self.x, weights, rows, self.experts, l2=l2, seed=self.seed))
        self.retrain()
        self._begin_informed()

    def record_gold(self, log: Log, truth: IntArray) -> None:
        """Take in answers on items of known class, which say how often people err; they are not trained on."""
        self._gold = joined([self._gold, log], self.state.num_classes)
        self._truth = np.concatenate([self._truth, truth])

    def retrain(self) -> None:
        """Calibrate on the answers the model has not seen, then train on all of them."""
        new = self.calibration.fit(self.settings.calibrate_least if self.experts or self._undecided else 1)
        if new is not None and self._undecided and self.state.questions >= TRIED:
            self._decide(worthwhile=knowledge(new, self.pool) >= WORTHWHILE)
        if self.settings.learn_mistakes:
            self._learn_mistakes()
        if self.settings.explore:
            self._learn_share()
        rows = self.state.informative
        if len(rows):
            self._train(rows)
        self.version += 1
        if len(self.audit.rows):
            self.audit.past.append((self.state.questions, self.model.predict(self.x[self.audit.rows])))

    def _train(self, rows: IntArray) -> None:
        """Train on these items, from where the last training ended.

        Under mistakes P(answers) has many optima: a model ignores what it finds hard to believe, and one of few answers
        finds nearly all of them so. It therefore starts from a model that takes the likeliest classes as right.
        """
        settings, answers = self.settings, self.state.answer_likelihood.take(rows)
        x = self.x if len(rows) == self.state.num_items else self.x[rows]  # no copy of the whole data
        trained = partial(fit, x, l2=settings.l2 / len(rows), max_iterations=settings.iterations)
        start = self.model
        if self.state.mistakes and len(rows) < settings.trusting * self.state.num_classes:
            start = self._trusting = trained(answers.likeliest(), start=self._trusting)
        self.model = trained(answers, start=start)

    def score(self) -> Score | None:
        """The accuracy of the present model on items that it has not learned from; None before the sample says it."""
        logits = self.model.logits(self.x[self.audit.rows]) / np.float32(self.pool.temperature)
        return self.audit.score(self.state, logits, self.settings.sure)

    def doubts(self) -> Doubts:
        """Answers that a model trained on the other items disagrees with, the least credible first.

        Of very many items, as many as `MOST_JUDGED` are looked at, others each time.
        """
        state = self.state
        own = np.random.Generator(np.random.PCG64([self.seed, 9, state.questions]))  # looking changes no question
        rows = np.sort(own.permutation(state.informative)[:MOST_JUDGED])
        weights = state.answer_likelihood.take(rows).likeliest()
        said = np.where(state.known[rows], NONE, state.answer[rows])
        return hard_to_believe(self.x, weights.table(), said, rows, l2=self.settings.l2, seed=self.seed)

    def questions_for(self, points: float) -> float | None:
        """About how many more questions raise that accuracy by so many percentage points.

        None: it cannot be told yet, nothing grows, or the items that are left do not take so many questions.
        """
        rows, state = self.audit.rows, self.state
        beliefs = self.beliefs(rows)
        resolved = beliefs.max(axis=1) >= self.settings.sure if state.mistakes else state.certain[rows]
        more = self.audit.questions_for(points, state, np.where(resolved, beliefs.argmax(axis=1), NONE))
        left, each = len(self.open_items()), state.questions / max(int(np.count_nonzero(state.asked)), 1)
        return None if more is None or more > left * each else more

    def _learn_share(self) -> None:
        """How many items the model knows nothing about."""
        asked = self.state.informative
        vain = asked[self.state.answer[asked] == NONE]
        answers = self.state.answer_likelihood.take(vain)
        explained = np.log(answers.weighted(background(self.state.counts)) + FEW)
        self.share = stray_share(self.log_model[vain], explained, len(asked) - len(vain))

    def _learn_mistakes(self) -> None:
        """Weigh all answers by the rates of mistakes that they speak for now."""
        log = self.state.log()
        rates = learn_rates(
            log[~self.state.held[log.items]],
            lambda rows: self._prior(rows, self.model.logits(self.x[rows])),
            (self._gold, self._truth),
            self.state.num_classes,
            start=self.state.mistakes,
            expected=self.settings.mistakes,
        )
        if rates is not None:
            self.state.remodel(rates)


def _checked(x: Any) -> Any:
    """The features as numbers that a model can be trained on."""
    x = x if hasattr(x, "toarray") else np.asarray(x, np.float32)
    if x.ndim != 2:
        raise InputError(f"x: expected a table of items by features, got shape {x.shape}")
    if not np.isfinite(x.sum(dtype=np.float64)):
        row = next((row for row in range(x.shape[0]) if not np.isfinite(x[row].sum())), 0)
        raise InputError(f"x: row {row} has a feature that is NaN or infinite, expected finite numbers")
    return x
