"""Minimise a smooth function of many numbers by L-BFGS, without bounds. Needs numpy only.

scipy's L-BFGS-B takes the same steps, but spends most of them on the bounds that are not there: on a few thousand items
it took as long as the loss itself. It also multiplies with a BLAS of its own, whose threads and those of numpy's wait
busily for each other on the same cores (docs/labelling.md).

The step along a direction is that of J. J. Moré and D. J. Thuente, Line search algorithms with guaranteed sufficient
decrease, ACM Transactions on Mathematical Software 20 (1994), with the constants of L-BFGS-B.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Objective = Callable[[Vector], tuple[float, Vector]]

DECREASE, CURVATURE, WIDTH = 1e-3, 0.9, 0.1
"""Of a step that is accepted: the decrease, the slope, and how narrow the search may become."""
LONGEST = 1e10
TRIALS = 20
"""Steps tried along one direction."""
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Found:
    """Where the search ended."""

    x: Vector
    value: float
    iterations: int
    evaluations: int


class Memory:
    """The last steps and what they did to the gradient: enough to guess the inverse Hessian.

    Args:
        size: of a vector.
        length: how many steps are kept.
    """

    def __init__(self, size: int, length: int) -> None:
        self.length = length
        self._steps: list[Vector] = []
        self._changes: list[Vector] = []
        self._inner: list[float] = []
        self._scale = 1.0
        self._scratch = np.empty(size)

    def __len__(self) -> int:
        return len(self._steps)

    def clear(self) -> None:
        """Forget all."""
        self._steps, self._changes, self._inner, self._scale = [], [], [], 1.0

    def add(self, step: Vector, change: Vector, inner: float) -> None:
        """Keep one step, the change of the gradient and their product (above 0)."""
        if len(self) == self.length:
            for kept in (self._steps, self._changes, self._inner):
                del kept[0]
        self._steps.append(step)
        self._changes.append(change)
        self._inner.append(inner)
        self._scale = inner / float(change @ change)

    def direction(self, gradient: Vector) -> Vector:
        """Minus the inverse Hessian times the gradient, by the two loops of Nocedal."""
        d, scratch = -gradient, self._scratch
        weights = [0.0] * len(self)
        for i in range(len(self) - 1, -1, -1):
            weights[i] = float(self._steps[i] @ d) / self._inner[i]
            d -= np.multiply(self._changes[i], weights[i], out=scratch)
        d *= self._scale
        for i in range(len(self)):
            weight = weights[i] - float(self._changes[i] @ d) / self._inner[i]
            d += np.multiply(self._steps[i], weight, out=scratch)
        return d


def minimise(
    objective: Objective,
    start: Vector,
    *,
    max_iterations: int,
    gradient_tolerance: float,
    tolerance: float,
    memory: int,
) -> Found:
    """Where L-BFGS ends: after so many iterations, or when no more is gained.

    Args:
        objective: a point -> the value there and its gradient (a new array each time).
        start: where to start.
        max_iterations: at most.
        gradient_tolerance: stop when no entry of the gradient is larger.
        tolerance: stop when an iteration gains no more than that, relative to the larger of the value and 1.
        memory: how many steps the Hessian is guessed from.
    """
    x = np.array(start, np.float64)
    value, gradient = objective(x)
    evaluations, iterations = 1, 0
    kept = Memory(len(x), memory)
    while iterations < max_iterations and _largest(gradient) > gradient_tolerance:
        d = kept.direction(gradient)
        slope = float(gradient @ d)
        first = min(1 / float(np.sqrt(d @ d)), LONGEST) if iterations == 0 else 1.0
        search, good = Search(value, slope, first), False
        # a slope that is not below 0: rounding has spoiled the direction
        while slope < 0 and not good and search.trials < TRIALS and np.isfinite(search.step):
            here, there = objective(x + search.step * d)
            evaluations += 1
            new_slope = float(there @ d)
            good = search.tell(here, new_slope)
        if not good:
            if not len(kept):
                break  # not even downhill along the gradient: this is as far as it goes
            kept.clear()
            continue
        iterations += 1
        d *= search.step
        gain, before, inner = value - here, value, (new_slope - slope) * search.step
        x, value, change, gradient = x + d, here, there - gradient, there
        if gain <= tolerance * max(abs(before), abs(value), 1.0):
            break
        if inner > -EPS * slope * search.step:
            kept.add(d, change, inner)
    return Found(x, value, iterations, evaluations)


def _largest(gradient: Vector) -> float:
    return max(float(gradient.max()), -float(gradient.min()))


@dataclass
class _End:
    """One end of the interval searched: the step, the value and the slope there."""

    step: float
    value: float
    slope: float

    def tilted(self, by: float) -> "_End":
        """The same for the function minus `by` times the step."""
        return _End(self.step, self.value - by * self.step, self.slope - by)


class Search:
    """The step along one direction: `step` is tried, `tell` says what was found there, until it is good.

    Args:
        value: at step 0.
        slope: at step 0, below 0.
        first: the step tried first.
    """

    def __init__(self, value: float, slope: float, first: float) -> None:
        self.step, self.trials = first, 0
        self._value, self._slope, self._wanted = value, slope, DECREASE * slope
        self._best, self._other = _End(0.0, value, slope), _End(0.0, value, slope)
        self._bracketed, self._early = False, True
        self._low, self._high = 0.0, 5 * first
        self._width, self._width_before = LONGEST, 2 * LONGEST

    def tell(self, value: float, slope: float) -> bool:
        """Take in the value and the slope at `step`: True if it is good or as good as it gets; else there is a next."""
        self.trials += 1
        step, bound = self.step, self._value + self.step * self._wanted
        far = step == LONGEST and value <= bound and slope <= self._wanted
        if self._spent(step) or far or (value <= bound and abs(slope) <= -CURVATURE * self._slope):
            return True
        if self._early and value <= bound and slope >= 0:
            self._early = False
        here = _End(step, value, slope)
        # early on, where the value falls but not enough, the search looks for a point below the line of enough
        by = self._wanted if self._early and bound < value <= self._best.value else 0.0
        ends = self._best.tilted(by), self._other.tilted(by), here.tilted(by)
        try:
            best, other, following, self._bracketed = _next(*ends, self._bracketed, self._low, self._high)
        except ZeroDivisionError:  # flat to the last digit
            self.step = float("nan")
            return False
        self._best, self._other = best.tilted(-by), other.tilted(-by)
        self._narrow(following)
        return False

    def _narrow(self, step: float) -> None:
        best, other = self._best.step, self._other.step
        if self._bracketed:
            if abs(other - best) >= 0.66 * self._width_before:
                step = best + 0.5 * (other - best)
            self._width_before, self._width = self._width, abs(other - best)
            self._low, self._high = min(best, other), max(best, other)
        else:
            self._low, self._high = step + 1.1 * (step - best), step + 4 * (step - best)
        step = min(max(step, 0.0), LONGEST)
        self.step = best if self._spent(step) else step

    def _spent(self, step: float) -> bool:
        """The interval is too narrow to find anything better in it."""
        inside = self._low < step < self._high
        return self._bracketed and not (inside and self._high - self._low > WIDTH * self._high)


def _next(
    best: _End, other: _End, here: _End, bracketed: bool, low: float, high: float
) -> tuple[_End, _End, float, bool]:
    """The ends of the next interval, the step to try in it, and whether it holds a minimum (Moré and Thuente)."""
    turned = here.slope * best.slope < 0
    if here.value > best.value:  # a minimum lies between: nearer to the best end
        cubic, quadratic = _cubic(best, here), _quadratic(best, here)
        near = abs(cubic - best.step) <= abs(quadratic - best.step)
        step, bracketed = cubic if near else cubic + (quadratic - cubic) / 2, True
    elif turned:  # between, too: nearer to here
        cubic, secant = _cubic(here, best), _secant(best, here)
        step, bracketed = cubic if abs(cubic - here.step) > abs(secant - here.step) else secant, True
    elif abs(here.slope) < abs(best.slope):  # flatter: beyond
        cubic, secant = _beyond(best, here, low, high), _secant(best, here)
        if bracketed:
            step = cubic if abs(cubic - here.step) < abs(secant - here.step) else secant
            limit = here.step + 0.66 * (other.step - here.step)
            step = min(limit, step) if here.step > best.step else max(limit, step)
        else:
            farther = cubic if abs(cubic - here.step) > abs(secant - here.step) else secant
            step = min(max(farther, low), high)
    elif bracketed:
        step = _cubic(here, other)
    else:
        step = high if here.step > best.step else low
    if here.value > best.value:
        return best, here, step, bracketed
    return here, best if turned else other, step, bracketed


def _cubic(a: _End, b: _End) -> float:
    """The minimum of the cubic through both ends, seen from a."""
    theta = 3 * (a.value - b.value) / (b.step - a.step) + a.slope + b.slope
    scale = max(abs(theta), abs(a.slope), abs(b.slope))
    root = scale * float(np.sqrt(max(0.0, (theta / scale) ** 2 - (a.slope / scale) * (b.slope / scale))))
    gamma = -root if b.step < a.step else root
    ratio = ((gamma - a.slope) + theta) / (((gamma - a.slope) + gamma) + b.slope)
    return a.step + ratio * (b.step - a.step)


def _beyond(best: _End, here: _End, low: float, high: float) -> float:
    """The minimum of the cubic beyond `here`, or the bound where it falls without end or has none there."""
    theta = 3 * (best.value - here.value) / (here.step - best.step) + best.slope + here.slope
    scale = max(abs(theta), abs(best.slope), abs(here.slope))
    root = scale * float(np.sqrt(max(0.0, (theta / scale) ** 2 - (best.slope / scale) * (here.slope / scale))))
    gamma = -root if here.step > best.step else root
    ratio = ((gamma - here.slope) + theta) / ((gamma + (best.slope - here.slope)) + gamma)
    if ratio < 0 and gamma != 0:
        return here.step + ratio * (best.step - here.step)
    return high if here.step > best.step else low


def _quadratic(a: _End, b: _End) -> float:
    """The minimum of the parabola through both values and the slope at a."""
    return a.step + (a.slope / ((a.value - b.value) / (b.step - a.step) + a.slope)) / 2 * (b.step - a.step)


def _secant(a: _End, b: _End) -> float:
    """Where the line through both slopes is 0, seen from b."""
    return b.step + b.slope / (b.slope - a.slope) * (a.step - b.step)
