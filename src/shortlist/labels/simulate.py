"""Simulated shortlists and answers for given true classes, with the arguments checked."""

import numpy as np
from numpy.typing import ArrayLike

from shortlist.errors import InputError
from shortlist.internal.arguments import integers, number, whole
from shortlist.labels.checks import LabelArrays, checked_count
from shortlist.labels.draw import answer_shortlists, draw_shortlists


def simulate_labels(
    y: ArrayLike, num_classes: int, size: int | ArrayLike, seed: int, miss: float, slip: float
) -> LabelArrays:
    """Uniform shortlists, answered from the true classes; see `StochasticLabels.draw`."""
    num_classes = checked_count(num_classes)
    truth = integers("y", y, (0, num_classes))
    if truth.ndim != 1:
        raise InputError(f"y: expected one class per item, got shape {truth.shape}")
    sizes = np.asarray(size)
    if sizes.ndim not in (0, 1) or (sizes.ndim == 1 and len(sizes) != len(truth)):
        raise InputError(f"size: expected one number or {len(truth)} of them, got shape {sizes.shape}")
    sizes = np.broadcast_to(integers("size", sizes, (1, num_classes + 1)), truth.shape)
    miss, slip = number("miss", miss), number("slip", slip)
    if not (miss >= 0 and slip >= 0 and miss + slip <= 1):  # as a positive, so that NaN is refused too
        raise InputError(f"miss and slip: expected shares with a sum of at most 1, got {miss} and {slip}")
    if whole("seed", seed) < 0:
        raise InputError(f"seed: expected a whole number of at least 0, got {seed}")
    # separate streams: asking for mistakes does not change the lists
    list_seed, mistake_seed = np.random.SeedSequence(seed).spawn(2)
    classes, offsets = draw_shortlists(np.random.Generator(np.random.PCG64(list_seed)), num_classes, sizes)
    rng = np.random.Generator(np.random.PCG64(mistake_seed))
    answer = answer_shortlists(rng, classes, offsets, truth, num_classes, miss, slip)
    # for lists of one size a single number is stored, seen once per class shown
    even = np.ndim(size) == 0 and len(sizes) > 0
    share = np.broadcast_to(sizes[0] / num_classes, classes.shape) if even else np.repeat(sizes / num_classes, sizes)
    return LabelArrays(classes, offsets, answer, num_classes, inclusion=share)
