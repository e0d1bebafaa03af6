"""From the minimiser of the paper's loss back to the probabilities that it was minimised for."""

import pytest
import torch

from shortlist import methods
from shortlist.errors import InputError


@pytest.mark.parametrize("K", [2, 3, 10])
@pytest.mark.parametrize("normalisation", ["sum", "mean", "negatives"])
def test_the_minimiser_of_the_expected_loss_stands_for_the_probabilities(normalisation, K):
    """Of p (1 - f)^2 / 4 + (1 - p) w (1 + f)^2 / 4 in each output, w the weight of a negative."""
    p = torch.rand(50, K, dtype=torch.float64, generator=torch.Generator().manual_seed(K)) + 0.01
    p = p / p.sum(-1, keepdim=True)
    weight = 1 / (K - 1) if normalisation == "negatives" else 1.0
    f = (p - weight * (1 - p)) / (p + weight * (1 - p))
    method = methods.get("sl", normalisation=normalisation)
    torch.testing.assert_close(method.probabilities(f), p, rtol=1e-9, atol=0)


@pytest.mark.parametrize("normalisation", ["sum", "mean", "negatives"])
def test_outputs_beyond_one_say_no_more_than_one(normalisation):
    method = methods.get("sl", normalisation=normalisation)
    f = torch.tensor([[1.4, -0.5, -3.0, 0.0, -1.0], [4.0, 1.0, 0.2, -0.9, -7.0]], dtype=torch.float64)
    torch.testing.assert_close(method.probabilities(f), method.probabilities(f.clamp(-1, 1)), rtol=1e-12, atol=0)


@pytest.mark.parametrize("method", ["sl", "propensity"])
def test_a_misspelt_loss_is_refused_at_once(method):
    with pytest.raises(InputError, match="unknown loss 'ovr_sqare': did you mean 'ovr_square'"):
        methods.get(method, loss="ovr_sqare")
