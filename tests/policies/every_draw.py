"""Every outcome of `choose` for one item, by running the real code with every order of its random keys."""

import itertools

import numpy as np

from shortlist.policies.choose import Policy, choose


class AllDraws:
    """Stands for a Generator: a coin of a stated value for the mixing, then every order of the keys, a row each."""

    def __init__(self, coin: float, orders: np.ndarray) -> None:
        self.coin, self.orders = coin, orders

    def random(self, shape):
        if isinstance(shape, tuple):
            return self.orders[: shape[0]]
        return np.full(shape, self.coin)


def outcomes(policy: Policy, p, possible) -> list[tuple[float, tuple[int, ...], np.ndarray]]:
    """(probability, list, stored inclusion probabilities of the list) of every draw; the probabilities sum to 1."""
    K = len(p)
    orders = np.array(list(itertools.permutations(np.arange(K) / K)))
    rows = len(orders)
    batch = np.tile(np.asarray(p, float), (rows, 1)), np.tile(np.asarray(possible, bool), (rows, 1))
    preferred = choose(policy, *batch, AllDraws(1.0, orders))
    epsilon = float(preferred.epsilon[0])
    found: dict[tuple[int, ...], tuple[float, np.ndarray]] = {}
    for weight, questions in ((1 - epsilon, preferred), (epsilon, choose(policy, *batch, AllDraws(-1.0, orders)))):
        if weight == 0:
            continue
        for i in range(rows):
            shortlist, inclusion = questions.row(i)
            before = found.get(tuple(shortlist), (0.0, None))[0]
            found[tuple(shortlist)] = before + weight / rows, np.array(inclusion)
    return [(weight, shortlist, inclusion) for shortlist, (weight, inclusion) in found.items()]
