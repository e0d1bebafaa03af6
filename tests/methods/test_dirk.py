"""What DIRK promises about its targets; their formula is in `cases.py`."""

from dataclasses import replace

import torch
from hypothesis import given
from hypothesis import strategies as st

from shortlist.methods import Batch
from shortlist.methods.dirk import DIRK, rectified

CLASSES = 5


@given(
    st.lists(st.floats(-30, 30, width=32), min_size=CLASSES, max_size=CLASSES),
    st.sets(st.integers(0, CLASSES - 1), min_size=1),
)
def test_no_class_ruled_out_is_above_a_candidate(logits, candidates):
    mask = torch.tensor([k in candidates for k in range(CLASSES)])
    r = rectified(torch.tensor(logits, dtype=torch.float64), mask)
    torch.testing.assert_close(r.sum(), torch.tensor(1.0, dtype=torch.float64))
    assert (r >= 0).all()
    if len(candidates) < CLASSES:
        assert r[mask].amin() >= r[~mask].amax() - 1e-12
    if len(candidates) == 1:
        assert r[mask].item() == 1


def test_without_a_teacher_it_believes_itself_and_learns_nothing_from_that():
    shown = torch.tensor([[True, False, False, False], [True, True, False, False]])
    batch = Batch(shown, torch.tensor([-1, -1]), torch.full((5,), 0.2))
    logits = torch.randn(2, 4, requires_grad=True)
    said = logits.detach().clone()
    (own,) = torch.autograd.grad(DIRK().objective(logits, batch), logits)
    (taught,) = torch.autograd.grad(DIRK().objective(logits, replace(batch, teacher=said)), logits)
    assert torch.equal(own, taught)
