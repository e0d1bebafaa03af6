"""The settings of a labelling loop, fixed from its start to its end."""

from dataclasses import dataclass, field, replace
from typing import Self

from shortlist.errors import InputError
from shortlist.policies.choose import Policy
from shortlist.policies.items import check_order
from shortlist.policies.noise import PEOPLE, Mistakes
from shortlist.policies.time_model import TimeModel

TRUSTING = 20
"""With fewer items per class a training starts from a model that takes answers as right (chosen on held-out training
data of BANKING77)."""


@dataclass(frozen=True)
class LoopSettings:
    """The settings of a labelling loop.

    Args:
        policy: how shortlists are chosen.
        order: which items are asked about next: a name of `items.ORDERS`, or `diversity`.
        representatives: the number of typical items (k-means) that are asked about first, until they are resolved; None
            stands for 2 K.
        retrain_every: the most questions between two trainings.
        grow: early on, retrain after `grow` times the questions so far, but within `retrain_least` and `retrain_every`.
        retrain_least: the fewest questions between two trainings.
        l2: the penalty on the weights, in units of one item's loss: training minimises the sum of the losses of all
            items + (l2 / 2) |W|^2.
        iterations: steps of L-BFGS in one training; the next training goes on from its model.
        trusting: if mistakes are modelled, a training on fewer items per class than this starts from a model that takes
            answers as right: a model of few answers would take most of the next ones for mistakes.
        mistakes: the rates of annotators' mistakes that are modelled; if all are 0, answers are taken as right.
        learn_mistakes: estimate the rates from the answers as they come, starting at `mistakes`.
        sure: if mistakes are modelled, an item is resolved when a class has this posterior probability.
        most_questions: no item is asked about more often than this.
        worth: an item is asked about only if its best list promises at least this many bits per second.
        calibrate: learn the temperature from answers that the model has not seen.
        calibrate_least: if there are experts, the fewest answers between two fits of the temperature and the experts'
            weights: a handful of answers would throw them about.
        explore: show classes with few answers for items whose None answers surprised the model.
        time: the time model.
    """

    policy: Policy = field(default_factory=Policy)
    order: str = "mixed"
    representatives: int | None = None
    retrain_every: int = 500
    grow: float = 0.1
    retrain_least: int = 50
    l2: float = 0.1
    iterations: int = 30
    trusting: int = 0
    mistakes: Mistakes = field(default_factory=Mistakes)
    learn_mistakes: bool = False
    sure: float = 0.95
    most_questions: int = 1000
    worth: float = 0.0
    calibrate: bool = True
    calibrate_least: int = 1
    explore: bool = True
    time: TimeModel = field(default_factory=TimeModel)

    def __post_init__(self) -> None:
        check_order(self.order)
        for name in ("retrain_every", "retrain_least", "calibrate_least"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}: expected at least 1, got {getattr(self, name)}")
        if not self.grow >= 0:
            raise InputError(f"grow: expected at least 0, got {self.grow}")
        if not self.l2 > 0:
            raise InputError(f"l2: expected a penalty above 0, got {self.l2}")
        if not 0 < self.sure < 1:
            raise InputError(f"sure: expected a probability between 0 and 1, got {self.sure}")

    def modelling_mistakes(self) -> Self:
        """The same loop with mistakes modelled; their rates are learned on the way, best from gold items.

        A model of few answers may be sure of the wrong class, and then takes what contradicts it for mistakes. So until
        there are `TRUSTING` items per class each training starts from a model that takes answers as right.
        """
        policy = replace(self.policy, deduce=False)
        return replace(self, mistakes=PEOPLE, learn_mistakes=True, trusting=TRUSTING, policy=policy)
