import pytest
import torch

import naive
from shortlist import losses
from shortlist.errors import InputError

DTYPES = {torch.float16: 2e-6, torch.bfloat16: 2e-6, torch.float32: 2e-6, torch.float64: 1e-13}
OVR = [name for name in losses.LOSSES if name.startswith("ovr")]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", losses.LOSSES)
def test_every_loss_is_its_formula(name, dtype):
    logits = naive.sample(items=6, dtype=dtype, scale=2).logits
    got = losses.get(name)(logits)
    assert got.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    want = torch.tensor(naive.losses(name, logits.double().tolist()), dtype=torch.float64)
    torch.testing.assert_close(got.double(), want, rtol=DTYPES[dtype], atol=DTYPES[dtype])


@pytest.mark.parametrize("normalisation", ["sum", "mean", "negatives"])
@pytest.mark.parametrize("name", OVR)
def test_normalisations(name, normalisation):
    logits = naive.sample(items=4).logits
    got = losses.get(name)(logits, normalisation=normalisation)
    torch.testing.assert_close(got, torch.tensor(naive.losses(name, logits.tolist(), normalisation)).double())


def test_the_paper_square_loss_by_hand():
    # psi(1) = 0, psi(-1) = 1: a perfect output costs nothing, a swapped pair costs one for each of the two
    assert losses.ovr_square(torch.tensor([1.0, -1.0, -1.0])).tolist() == [0, 2, 2]


@pytest.mark.parametrize("name", losses.LOSSES)
def test_gradients(name):
    assert torch.autograd.gradcheck(losses.get(name), (naive.sample(items=3).logits.requires_grad_(),))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", losses.LOSSES)
def test_huge_logits_stay_finite(name, dtype):
    logits = torch.tensor([[1e4, -1e4, 0, 1e4], [-1e4] * 4, [1e4] * 4], dtype=dtype, requires_grad=True)
    value = losses.get(name)(logits)
    assert value.isfinite().all()
    assert (value >= 0).all()
    value.sum().backward()
    assert logits.grad.isfinite().all()


def test_huge_logits_have_the_right_value():
    logits = [[1e4, -1e4, 30.0], [-1e4, -1e4, 1e4]]
    for name in ("ovr_square", "ovr_logistic", "cross_entropy"):
        want = torch.tensor(naive.losses(name, logits))
        torch.testing.assert_close(losses.get(name)(torch.tensor(logits)), want, rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", losses.LOSSES)
def test_leading_dimensions(name):
    logits = naive.sample(items=12).logits
    loss = losses.get(name)
    torch.testing.assert_close(loss(logits.reshape(3, 4, 5)).reshape(12, 5), loss(logits))


def test_gce_lies_between_cross_entropy_and_mae():
    logits = naive.sample().logits
    torch.testing.assert_close(losses.gce(logits, 1e-9), losses.cross_entropy(logits), rtol=1e-6, atol=0)
    torch.testing.assert_close(losses.gce(logits, 1.0), losses.mae(logits) / 2)
    for q in (0, 1.5, float("nan")):
        with pytest.raises(InputError, match="q of gce"):
            losses.gce(logits, q)


def test_mae_sums_to_a_constant():
    """Which is why `total_risk` with MAE has the minimiser of the plain risk."""
    total = losses.mae(naive.sample(scale=3).logits).sum(-1)
    torch.testing.assert_close(total, torch.full_like(total, 2 * (5 - 1)))


# -- probabilities -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "link"), [("ovr_square", lambda p: 2 * p - 1), ("ovr_logistic", torch.logit)])
def test_link_undoes_the_minimiser_of_an_ovr_loss(name, link):
    """The expected loss is least at the outputs the link names, found here by gradient descent, not by formula."""
    p = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)
    f = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([f], max_iter=200, line_search_fn="strong_wolfe", tolerance_grad=1e-12)

    def closure():
        optimiser.zero_grad()
        risk = (p * losses.get(name)(f)).sum()
        risk.backward()
        return risk

    optimiser.step(closure)
    torch.testing.assert_close(f.detach(), link(p), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(losses.probabilities(name, f.detach()), p, rtol=1e-4, atol=1e-4)


def test_an_output_beyond_one_says_yes_for_sure_and_no_more():
    assert losses.probabilities("ovr_square", torch.tensor([3.0, 0.0, -3.0])).tolist() == pytest.approx(
        [2 / 3, 1 / 3, 0]
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", losses.LOSSES)
def test_probabilities_are_probabilities(name, dtype):
    rows = [[3, 1, -2], [-9, -8, -7], [0, 0, 0], [1e4, 1e4, -1e4], [-1e4, -1e4, -1e4]]
    logits = torch.tensor(rows, dtype=torch.float64).to(dtype)
    p = losses.probabilities(name, logits)
    assert (p >= 0).all()
    torch.testing.assert_close(p.sum(-1), torch.ones_like(p[:, 0]))
    assert p[0].argmax() == 0
    assert p[1].argmax() == 2  # no output says yes: the order is kept


def test_unknown_names_suggest_the_nearest():
    for call in (losses.get, lambda name: losses.probabilities(name, torch.zeros(2))):
        with pytest.raises(InputError, match="unknown loss 'ovr_sqare': did you mean 'ovr_square'"):
            call("ovr_sqare")
    with pytest.raises(InputError, match="unknown normalisation 'men': did you mean 'mean'"):
        losses.ovr_square(torch.zeros(2), normalisation="men")
