"""LOG and CC from None answers are one objective up to the factor (K - 1)/l: one training, at scaled settings."""

import torch

from shortlist.data import load
from shortlist.training import Engine, RunConfig, fit, prepare


def _weights(method: str, lr: float, weight_decay: float) -> list[torch.Tensor]:
    config = RunConfig(
        method, protocol="paper", size=3, epochs=2, batch_size=64, lr=lr, weight_decay=weight_decay, momentum=0.9
    )
    prepared = prepare(load("digits"), config, engine=Engine(device="cpu"))
    fit(prepared)
    return [part.detach() for part in prepared.run.model.parameters()]


def test_log_is_cc_at_another_rate():
    """lr (c g + d w) = lr c (g + d/c w): what the factor c does, another rate and decay undo, momentum included."""
    c = 9 / 3
    log, cc = _weights("log", 0.01, 1e-2), _weights("cc", c * 0.01, 1e-2 / c)
    plain = _weights("cc", 0.01, 1e-2)
    assert all(torch.allclose(one, other, rtol=1e-3, atol=1e-5) for one, other in zip(log, cc, strict=True))
    assert not all(torch.allclose(one, other, rtol=1e-3, atol=1e-5) for one, other in zip(log, plain, strict=True))
