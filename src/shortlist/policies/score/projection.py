"""How many more questions a gain in accuracy takes, from the curve so far. Needs numpy only."""

import numpy as np
from numpy.typing import NDArray

RECENT = 3.0
"""Only the part of the curve after a third of the questions counts: its start says little about its end."""
LEAST_POINTS, LEAST_SPAN = 4, 1.5
LEAST_ERROR, MOST_TIMES = 1e-3, 1000


def questions_for(points: float, curve: NDArray[np.float64]) -> float | None:
    """About how many more questions would raise the accuracy by so many percentage points; None if unknown.

    As learning curves mostly do, the error is taken to fall as a power of the questions: error(q) = c q^-b, with c, b
    fitted to the curve after a third of the questions. So after q questions a gain g takes
    q ((error / (error - g))^(1/b) - 1) more. On the curves of `results/label_economy_*.csv` this did better than a
    straight line over the logarithm of the questions, and than 1 / questions.

    Args:
        points: percentage points.
        curve: (m, 2) questions so far, rising, and the accuracy after them.

    >>> questions = np.array([400.0, 600, 800, 1000])
    >>> round(questions_for(2, np.column_stack([questions, 1 - 3 / np.sqrt(questions)])))
    606
    """
    if not len(curve):
        return None
    now, gain = float(curve[-1, 0]), points / 100
    recent = curve[curve[:, 0] >= now / RECENT]
    if len(recent) < LEAST_POINTS or recent[0, 0] > now / LEAST_SPAN:
        return None
    error = np.log(np.maximum(1 - recent[:, 1], LEAST_ERROR))
    power, level = np.polyfit(np.log(recent[:, 0]), error, 1)
    left = float(np.exp(level + power * np.log(now)))
    if power >= 0 or left <= gain:
        return None
    times = float(np.log(left / (left - gain)) / -power)
    return now * float(np.expm1(times)) if times < np.log(MOST_TIMES) else None
