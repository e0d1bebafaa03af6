"""The labelling loop: train, believe, choose items and shortlists, take in answers, and again. Needs numpy and scipy.

One round is `ask`, `record`, `retrain`:

    ask      the next items (`items`), and for each a shortlist (`choose`) from its beliefs (`beliefs`)
    record   P(answers | y) of the items (`state`, `noise`); the answers are also held out for the calibration
    retrain  the temperature and the experts' weights (`calibration`), the rates of mistakes (`noise`), the share of
             strays (`beliefs`), and then the linear model, on all answers (`linear`)

The simulation drives it and so does the web app, in a process of its own (`saved.snapshot`).
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
"""Further typical items for a crowd, asked about while all of the first ones are in somebody's hands."""
TRIED = 50
"""After so many answers it is decided whether experts and known labels make typical items superfluous."""
WORTHWHILE = 0.1
"""The nats per answer that must be known for that (`calibration.knowledge`)."""
GENTLE = 20
"""If something is known at the start, the first questions, so many per class, are about the likeliest classes by turns
instead of hard items: most lists hit, and no class stays unseen (chosen on held-out training data of BANKING77,
docs/labelling.md)."""


class Loop:
    """One labelling project: N items with features x, K classes.

    Args:
        x: (N, D) features, an array or scipy CSR; float32 arrays are not copied.
        num_classes: K.
        settings: the settings of the loop.
        seed: decides everything that is drawn.
        experts: other sources that know something about the classes of these items.
        sample: rows drawn at random (`draw_sample`) that are asked about, in this order, but not learned from; the
            `score` is computed on them.
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
        """The share of the items that the model knows nothing about (`beliefs.stray_share`)."""
        self.log_model = np.zeros(x.shape[0])
        """(N,) log of the chance that the model gave each item's answers before they came (`beliefs.log_chance`)."""
        count = 2 * num_classes if settings.representatives is None else settings.representatives
        self._typical: IntArray = self._representatives(count, self.rng) if count else np.empty(0, np.int64)
        self.first = self._typical
        """The items to ask about first: typical ones, unless something is known already."""
        self._undecided = self._informed = False
        self._spare: IntArray | None = None
        self._gold, self._truth = joined([], num_classes), np.empty(0, np.int64)
        if self.experts:
            self._begin_informed()

    draw_sample = staticmethod(draw_sample)

    def _begin_informed(self) -> None:
        """Start without typical items; `TRIED` answers will tell whether what is known is worth something."""
        self.first, self._undecided, self._informed = np.empty(0, np.int64), True, True

    def _decide(self, worthwhile: bool) -> None:
        """Go on without typical items or, if what was known is not worthwhile, ask about them now."""
        self._undecided = False
        if not worthwhile:
            self.first, self._informed = self._typical, False

    @property
    def pool(self) -> Pool:
        """The present temperature of the model and weights of the experts."""
        return self.calibration.pool

    # -- asking ------------------------------------------------------------------------------------------------------

    def beliefs(self, rows: IntArray) -> NDArray[np.float32]:
        """(B, K) the posterior of some items, from model, experts, background and their own answers (`posterior`)."""
        prior = self._prior(rows, self.model.logits(self.x[rows]))
        answers = self.state.answer_likelihood.take(rows)
        return posterior(prior, answers, self.log_model[rows], self.share, lambda: background(self.state.counts))

    def _each(self, rows: IntArray, measure: Callable[[NDArray[np.float32]], NDArray[Any]]) -> NDArray[Any]:
        """(B, ...) a measure of each row's beliefs, chunk by chunk, so that no (B, K) table is in memory at once."""
        parts = list(chunks(len(rows), self.state.num_classes)) or [slice(0, 0)]
        work = len(rows) * self.model.weight.size
        return np.concatenate(spread(lambda part: measure(self.beliefs(rows[part])), parts, work))

    def _prior(self, rows: IntArray, logits: NDArray[np.float32]) -> NDArray[np.float32]:
        """(B, K) softmax(logits / temperature + sum of weight x expert's score), without the items' own answers."""
        known = weighted_scores(self.experts, self.pool.weights, rows)
        return softmax(logits / np.float32(self.pool.temperature) + known)

    def open_items(self) -> IntArray:
        """The rows still worth a question: not known, not certain, and asked fewer than `most_questions` times.

        If mistakes are modelled, certain means that a class has the posterior probability `sure`.
        """
        state, settings = self.state, self.settings
        worth = (state.asked < settings.most_questions) & ~state.broken & ~state.known
        if not state.mistakes:
            return np.nonzero(worth & ~state.certain)[0]
        asked = np.nonzero(worth & (state.asked > 0))[0]
        worth[asked] = self._each(asked, sureness) < settings.sure
        return np.nonzero(worth)[0]

    def standing(self, truth: IntArray) -> tuple[float, float]:
        """The share of the items whose class is settled, and the share whose likeliest class is the true one."""
        state, rows = self.state, np.arange(self.state.num_items)
        tops = self._each(rows, lambda found: np.stack([found.argmax(axis=1), found.max(axis=1)], axis=1))
        settled = state.certain & ~state.broken
        if state.mistakes:
            settled = ((tops[:, 1] >= self.settings.sure) & (state.asked > 0)) | state.known
        return float(settled.mean()), float((tops[:, 0] == truth).mean())

    def batch_size(self) -> int:
        """The number of questions before the next training: grow x questions so far, within the settings' limits."""
        settings = self.settings
        if not settings.grow:
            return settings.retrain_every
        return min(settings.retrain_every, max(settings.retrain_least, int(settings.grow * self.state.questions)))

    def next_items(self, count: int) -> IntArray:
        """The rows to ask about next: first typical items, then by the order, with the sample's items in between."""
        rows = self.open_items()
        others = self._next_among(rows[~self.state.held[rows]], count)
        return self.audit.among(others, rows, self.state)[:count]

    def hand_out(self) -> tuple[IntArray, bool]:
        """Every row worth a question, in the order in which a crowd is given them, and whether this is the start.

        At the start typical items are open, but soon fewer than there are people. So that nobody waits, the others get
        further typical items, and then any item.
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
        """`count` typical items, none of them in the sample."""
        rows = np.nonzero(~self.state.held)[0]
        return rows[representatives(self.x if len(rows) == len(self.state.held) else self.x[rows], count, rng)]

    def _next_among(self, rows: IntArray, count: int) -> IntArray:
        """The first `count` of these open rows: typical ones, then classes by turns (`GENTLE`), then by the order."""
        first = np.intersect1d(rows, self.first, assume_unique=True)
        if len(first):
            # those asked about least often first, so that no hard item holds up the start
            turn = self.rng.permutation(len(first))
            return first[turn[np.argsort(self.state.asked[first][turn], kind="stable")]][:count]
        if not len(rows):
            return rows
        if self._informed and self.state.questions < GENTLE * self.state.num_classes:
            shuffled = self.rng.permutation(rows)
            turns = class_turns(self._each(shuffled, lambda found: found.argmax(axis=1)), self.state.counts)
            return shuffled[np.lexsort((turns, self.state.asked[shuffled] > 0))][:count]
        if self.settings.order == DIVERSITY:
            # fewer than `count` may come back; the rest of the batch waits for the next training
            return rows[representatives(self.x[rows], count, self.rng, rounds=3)]
        order = ORDERS[self.settings.order]
        scores = np.zeros(len(rows)) if order.score is None else self._each(rows, order.score)
        ranked = rows[order.rank(scores, self.rng)]
        if self.settings.worth:
            ranked = ranked[self._each(ranked, self._promise) >= self.settings.worth]
        return ranked[:count]

    def ask(self, count: int | None = None) -> tuple[IntArray, Questions]:
        """The next items and a shortlist for each; no items if nothing is worth asking any more."""
        rows = self.next_items(self.batch_size() if count is None else count)
        return rows, self.shortlists(rows)

    def shortlists(self, rows: IntArray) -> Questions:
        """A shortlist for each of the rows."""
        return choose(self.settings.policy, self.beliefs(rows), self.state.candidates(rows), self.rng)

    def _promise(self, beliefs: NDArray[np.float32]) -> NDArray[np.float64]:
        """(B,) max over l of H(answer to the l most likely classes) / E[seconds that it takes], in bits per second."""
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
        """Take in answers and typed classes (`LabelState.record`).

        Until the next training they are held out and tell how sure the model may be. With `held_out=False` they are
        only learned from: answers to the lists of an earlier model do not tell how sure this one may be.
        """
        new = Log(rows, lists, sizes, answer, typed)
        new.check(self.state.num_items, self.state.num_classes)
        if held_out and (self.version or self.experts):
            for part in chunks(len(rows), self.state.num_classes):
                self._hold_out(new[part])
        self.state.record(rows, lists, sizes, answer, typed)

    def _hold_out(self, new: Log) -> None:
        """Keep what was believed before these answers, for the calibration and the share of strays."""
        rows, state = new.items, self.state
        each = likelihood(state.mistakes, new, state.num_classes)
        logits, before = self.model.logits(self.x[rows]), state.before(rows, new.typed)
        scores = tuple(expert.scores(rows) for expert in self.experts)
        self.log_model[rows] += log_chance(update(self._prior(rows, logits), before), each)
        free = ~state.held[rows]  # not even how sure the model may be is learned from the sample
        if free.any() and self.settings.calibrate:
            self.calibration.hold_out(HeldOut(logits, scores, before, each)[free])

    def know(self, rows: IntArray, classes: IntArray) -> None:
        """Take in classes that are known without asking, one per row, and train on them."""
        n, K = self.state.num_items, self.state.num_classes
        for row, class_ in zip(rows.tolist(), classes.tolist(), strict=True):
            if not (0 <= row < n and 0 <= class_ < K):
                raise InputError(
                    f"item {row}, class {class_}: expected a row from 0 to {n - 1}, a class from 0 to {K - 1}"
                )
        self.state.know(rows, classes)
        if self.experts and self.settings.calibrate and len(rows) >= LEAST_ITEMS:
            weights, l2 = self.state.answer_likelihood[rows], self.settings.l2
            self.calibration.begin(held_out_known(self.x, weights, rows, self.experts, l2=l2, seed=self.seed))
        self.retrain()
        self._begin_informed()

    def record_gold(self, log: Log, truth: IntArray) -> None:
        """Take in answers on gold items, with their classes: they tell how often people err and are not trained on."""
        self._gold = joined([self._gold, log], self.state.num_classes)
        self._truth = np.concatenate([self._truth, truth])

    def retrain(self) -> None:
        """Calibrate on the answers that the model has not seen, then train on all."""
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
        """Train on these items, starting from the last model.

        If mistakes are modelled, P(answers) has many optima: a model ignores what it finds hard to believe, and one
        trained on few answers finds nearly everything so. With fewer than `trusting` items per class the training
        therefore starts from a model that takes the likeliest classes as right.
        """
        settings, answers = self.settings, self.state.answer_likelihood.take(rows)
        x = self.x if len(rows) == self.state.num_items else self.x[rows]  # no copy of the whole data
        trained = partial(fit, x, l2=settings.l2 / len(rows), max_iterations=settings.iterations)
        start = self.model
        if self.state.mistakes and len(rows) < settings.trusting * self.state.num_classes:
            start = self._trusting = trained(answers.likeliest(), start=self._trusting)
        self.model = trained(answers, start=start)

    def score(self) -> Score | None:
        """The present model's accuracy on the sample, from which it has not learned; None before any is asked about."""
        logits = self.model.logits(self.x[self.audit.rows]) / np.float32(self.pool.temperature)
        return self.audit.score(self.state, logits, self.settings.sure)

    def doubts(self) -> Doubts:
        """Answers that a model trained on other items disagrees with, the least credible first.

        At most `MOST_JUDGED` items are judged; if there are more, a random part of them, another one as answers come.
        """
        state = self.state
        own = np.random.Generator(np.random.PCG64([self.seed, 9, state.questions]))  # looking changes no question
        rows = np.sort(own.permutation(state.informative)[:MOST_JUDGED])
        weights = state.answer_likelihood.take(rows).likeliest()
        said = np.where(state.known[rows], NONE, state.answer[rows])
        return hard_to_believe(self.x, weights.table(), said, rows, l2=self.settings.l2, seed=self.seed)

    def questions_for(self, points: float) -> float | None:
        """About how many more questions would raise the `score` by so many percentage points.

        None if that cannot be told yet, if the accuracy does not grow, or if fewer questions are left to ask.
        """
        rows, state = self.audit.rows, self.state
        beliefs = self.beliefs(rows)
        resolved = beliefs.max(axis=1) >= self.settings.sure if state.mistakes else state.certain[rows]
        more = self.audit.questions_for(points, state, np.where(resolved, beliefs.argmax(axis=1), NONE))
        left, each = len(self.open_items()), state.questions / max(int(np.count_nonzero(state.asked)), 1)
        return None if more is None or more > left * each else more

    def _learn_share(self) -> None:
        """Fit the share of the items that the model knows nothing about to the items without a class so far."""
        asked = self.state.informative
        vain = asked[self.state.answer[asked] == NONE]
        answers = self.state.answer_likelihood.take(vain)
        explained = np.log(answers.weighted(background(self.state.counts)) + FEW)
        self.share = stray_share(self.log_model[vain], explained, len(asked) - len(vain))

    def _learn_mistakes(self) -> None:
        """Estimate the rates of mistakes, and compute P(answers | y) of all items again under them."""
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
    """The features as finite float32 numbers (a sparse matrix keeps its type); raises an InputError otherwise."""
    x = x if hasattr(x, "toarray") else np.asarray(x, np.float32)
    if x.ndim != 2:
        raise InputError(f"x: expected a table of items by features, got shape {x.shape}")
    if not np.isfinite(x.sum(dtype=np.float64)):
        row = next((row for row in range(x.shape[0]) if not np.isfinite(x[row].sum())), 0)
        raise InputError(f"x: row {row} has a feature that is NaN or infinite, expected finite numbers")
    return x
