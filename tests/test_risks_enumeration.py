"""The expectations of the risks, exactly: every point x, every true class, every shortlist."""

import itertools
import math

import pytest
import torch

import naive
from shortlist import losses, risks, theory
from shortlist.labels import NONE

CLASSES = range(2, 8)
LOSSES = tuple(losses.LOSSES)


def close(got, want):
    want = torch.as_tensor(want, dtype=torch.float64)
    torch.testing.assert_close(torch.as_tensor(got), want, rtol=0, atol=1e-10)


def true_risk(world, L):
    return (world.share[:, None] * world.posterior * L).sum()


@pytest.mark.parametrize("K", CLASSES)
def test_the_population_is_one(K):
    for size in range(1, K + 1):
        world = naive.population(K, size)
        assert world.weight.sum().item() == pytest.approx(1, abs=1e-12)
        assert len(world.weight) == 3 * K * math.comb(K, size)
        # the share of None is 1 - l/K, whatever x and y
        assert world.prior[-1].item() == pytest.approx(1 - size / K, abs=1e-12)


@pytest.mark.parametrize("K", CLASSES)
def test_unbiased_risk_is_the_true_risk(K):
    for size, loss in itertools.product(range(1, K + 1), LOSSES):
        world = naive.population(K, size)
        L = losses.get(loss)(world.logits)
        close(risks.unbiased_risk(L[world.point], world.shown, world.answer, weight=world.weight), true_risk(world, L))


@pytest.mark.parametrize("K", CLASSES)
def test_total_risk_is_the_smoothed_risk(K):
    for size, loss in itertools.product(range(1, K + 1), LOSSES):
        world = naive.population(K, size)
        L = losses.get(loss)(world.logits)
        epsilon = 1 - size / (K - 1) if size < K else 0  # at l = K there is no None, and it is the plain risk
        smoothed = (1 - epsilon) * true_risk(world, L) + epsilon * (world.share @ L.mean(-1))
        close(risks.total_risk(L[world.point], world.shown, world.answer, weight=world.weight), smoothed)
        assert theory.smoothing(K, size) == pytest.approx(epsilon, abs=1e-15)


@pytest.mark.parametrize("K", CLASSES)
def test_total_risk_is_biased_unless_one_class_is_hidden(K):
    for size in range(1, K):
        world = naive.population(K, size)
        L = losses.cross_entropy(world.logits)
        gap = risks.total_risk(L[world.point], world.shown, world.answer, weight=world.weight) - true_risk(world, L)
        assert (gap.abs() < 1e-10) == (size == K - 1)


@pytest.mark.parametrize("K", CLASSES)
def test_paper_risk_has_its_own_expectation(K):
    """sum_j L_j [p_j P(s=j) + p_j/K + (1-p_j)(K-l-1)/(K(K-1))].

    Exact for a whole population: under uniform shortlists of one size, whether an item is answered depends neither on
    x nor on y, so dividing each group by its own share does not tilt the x in it.
    """
    for size, loss in itertools.product(range(1, K + 1), LOSSES):
        world = naive.population(K, size)
        L = losses.get(loss)(world.logits)
        prior = world.prior
        none_part = world.posterior / K + (1 - world.posterior) * (K - size - 1) / (K * (K - 1)) if size < K else 0
        weights = world.posterior * prior[:-1] + none_part
        got = risks.paper_risk(L[world.point], world.shown, world.answer, prior, weight=world.weight)
        close(got, (world.share[:, None] * weights * L).sum())
        for p, want in zip(world.posterior, weights, strict=True):
            close(theory.paper_weights(p.numpy(), prior.numpy(), size), want)


@pytest.mark.parametrize(("K", "size"), [(2, 1), (3, 1), (3, 2)])
def test_paper_risk_over_batches_of_two(K, size):
    """The expectation of Algorithm 1 itself, N_s counted in the batch: every pair of outcomes of one point.

    A batch with both groups has the population's value on average; one with a single group loses the other part.
    """
    world = naive.population(K, size, points=1)
    L, prior = losses.ovr_square(world.logits)[0], world.prior
    answered = sum((p * prior[j] * L[j]).item() for j, p in enumerate(world.posterior[0]))
    whole = (torch.from_numpy(theory.paper_weights(world.posterior[0], prior, size)) * L).sum().item()
    expectation = 0.0
    for a, b in itertools.product(range(len(world.weight)), repeat=2):
        pair = torch.tensor([a, b])
        value = risks.paper_risk(L.expand(2, K), world.shown[pair], world.answer[pair], prior)
        expectation += (world.weight[a] * world.weight[b] * value).item()
    r = size / K  # both answered: r^2, both None: (1-r)^2
    want = (1 - (1 - r) ** 2) * answered + (1 - r**2) * (whole - answered)
    assert expectation == pytest.approx(want, abs=1e-10)


def test_paper_risk_can_change_the_best_class():
    """With unequal class priors even the arg max can change."""
    p, prior = [0.45, 0.55, 0.0], [0.6, 0.05, 0.01, 0.34]
    assert theory.paper_weights(p, prior, 2).argmax() == 0


@pytest.mark.parametrize("K", CLASSES)
def test_likelihood_risk_is_minus_log_the_probability_of_the_answer(K):
    for size in range(1, K + 1):
        world = naive.population(K, size)
        p = torch.softmax(world.logits, -1)[world.point]
        got = -risks.log_candidates(world.logits[world.point], risks.candidates(world.shown, world.answer))
        for row, shown, answer, value in zip(p, world.shown, world.answer, got, strict=True):
            probability = row[answer] if answer != NONE else 1 - row[shown].sum()
            assert value.item() == pytest.approx(-math.log(probability), abs=1e-10)
        whole = risks.likelihood_risk(world.logits[world.point], world.shown, world.answer, weight=world.weight)
        close(whole, (world.weight * got).sum())


@pytest.mark.parametrize("K", CLASSES)
def test_the_probabilities_of_all_answers_to_a_list_sum_to_one(K):
    for size in range(1, K + 1):
        logits = naive.sample(items=1, K=K).logits
        for shortlist in itertools.combinations(range(K), size):
            answers = [*shortlist, NONE] if size < K else list(shortlist)
            shown = torch.zeros(len(answers), K, dtype=torch.bool)
            shown[:, list(shortlist)] = True
            possible = risks.candidates(shown, torch.tensor(answers))
            close(risks.log_candidates(logits.expand(len(answers), K), possible).exp().sum(), 1.0)


@pytest.mark.parametrize(("K", "size"), [(3, 1), (5, 2), (6, 4)])
def test_likelihood_is_least_at_the_true_posterior(K, size):
    world = naive.population(K, size, points=1)
    logits = world.posterior.log().requires_grad_()
    risks.likelihood_risk(logits[world.point], world.shown, world.answer, weight=world.weight).backward()
    close(logits.grad, torch.zeros_like(logits))


def test_mixed_sizes_stay_unbiased():
    """Two items, each with lists of another size, in one batch."""
    few, many = naive.population(5, 2, seed=1), naive.population(5, 4, seed=1)
    L_few, L_many = losses.ovr_square(few.logits), losses.ovr_square(many.logits)
    got = risks.unbiased_risk(
        torch.cat([L_few[few.point], L_many[many.point]]),
        torch.cat([few.shown, many.shown]),
        torch.cat([few.answer, many.answer]),
        weight=torch.cat([few.weight, many.weight]),
    )
    close(got, (true_risk(few, L_few) + true_risk(many, L_many)) / 2)


@pytest.mark.parametrize("K", CLASSES)
def test_the_linear_family_of_unbiased_forms(K):
    """Ours (a = 1, d = e = 0, b = -(K-1)/l, c = 1) satisfies the two conditions."""
    for size in range(1, K):
        r, q = size / K, (size - 1) / (K - 1)
        a, d, e, b, c = 1, 0, 0, -(K - 1) / size, 1
        assert r * (a - e * q) - (1 - r) * b * size / (K - 1) == pytest.approx(1)
        assert r * (d + e * q) + (1 - r) * (b * size / (K - 1) + c) == pytest.approx(0)
