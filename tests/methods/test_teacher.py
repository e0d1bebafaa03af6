"""What ties the teacher to the likelihood: the identity of docs/teacher.md, to the last digits of float64."""

from dataclasses import replace

import pytest
import torch

import naive
from shortlist import methods
from shortlist.errors import InputError
from shortlist.methods import Batch, restricted_softmax


def case(items: int = 200) -> tuple[torch.Tensor, Batch]:
    sample = naive.sample(items=items)
    logits = 3 * torch.randn(sample.logits.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return logits.requires_grad_(), Batch(sample.shown, sample.answer, sample.prior)


def slope(method: methods.Method, logits: torch.Tensor, batch: Batch) -> torch.Tensor:
    (found,) = torch.autograd.grad(method.objective(logits, batch), logits)
    return found


@pytest.mark.parametrize("pull", [0.0, 0.4, 1.0])
def test_taught_by_itself_at_temperature_one_its_gradient_is_the_likelihoods(pull):
    """The same whether the logits come from a teacher or there is no teacher."""
    logits, batch = case()
    method = methods.get("teacher", memory=0.0, pull=pull)
    want = slope(methods.get("likelihood"), logits, batch)
    for given in (batch, replace(batch, teacher=logits.detach())):
        torch.testing.assert_close(slope(method, logits, given), want, rtol=0, atol=1e-12 * float(want.abs().max()))


def test_it_is_the_likelihood_plus_a_pull_toward_the_teacher():
    """-sum q log p = -log P_C + KL(q || p on C) + H(q), whatever q is."""
    logits, batch = case()
    teacher = torch.randn(logits.shape, dtype=torch.float64)
    q, own = (restricted_softmax(z, batch.candidates) for z in (teacher, logits.detach()))
    divergence = torch.where(q > 0, q * (q.clamp(min=1e-300) / own.clamp(min=1e-300)).log(), 0).sum(-1)
    entropy = -torch.where(q > 0, q * q.clamp(min=1e-300).log(), 0).sum(-1)
    want = methods.get("likelihood").objective(logits, batch) + (divergence + entropy).mean()
    got = methods.get("teacher", memory=0.0).objective(logits, replace(batch, teacher=teacher))
    torch.testing.assert_close(got, want, rtol=1e-12, atol=0)


def test_a_teacher_hands_over_no_gradient_and_answered_items_learn_their_class():
    logits, batch = case()
    teacher = torch.randn(logits.shape, dtype=torch.float64)
    answered = (batch.answer >= 0).nonzero().squeeze(-1)
    some = replace(batch, shown=batch.shown[answered], answer=batch.answer[answered], teacher=teacher[answered])
    want = methods.get("likelihood").objective(logits[answered], some)
    method = methods.get("teacher")
    some = replace(some, confidence=method.start(some))
    torch.testing.assert_close(method.objective(logits[answered], some), want)


def test_sharper_for_a_lower_temperature():
    logits, batch = case()
    batch = replace(batch, teacher=logits.detach())
    values = [
        methods.get("teacher", temperature=t, memory=0.0).objective(logits, batch).item() for t in (0.1, 0.5, 1.0, 2.0)
    ]
    assert values == sorted(values)


def test_it_asks_for_a_teacher_and_the_others_do_not():
    asked = {name: methods.get(name).teacher for name in methods.METHODS}
    assert {name: decay for name, decay in asked.items() if decay} == {"teacher": 0.99, "dirk": 0.99}
    assert methods.get("teacher", decay=0.9).teacher == 0.9


def test_the_memory_is_a_moving_average_of_what_the_teacher_says():
    logits, batch = case()
    teacher = torch.randn(logits.shape, dtype=torch.float64)
    method = methods.get("teacher", memory=0.75, temperature=0.5)
    told = replace(batch, teacher=teacher, confidence=method.start(batch))
    q = restricted_softmax(teacher / 0.5, batch.candidates)
    want = 0.75 * batch.candidates / batch.candidates.sum(-1, keepdim=True) + 0.25 * q
    renewed = method.confidence(logits.detach(), told)
    torch.testing.assert_close(renewed, want.double(), rtol=0, atol=1e-7)  # it starts in float32
    torch.testing.assert_close(renewed.sum(-1), torch.ones_like(renewed[:, 0]), rtol=0, atol=1e-7)
    late = methods.get("teacher", memory=0.75, temperature=0.5, fresh=False)
    later = replace(told, confidence=renewed)
    torch.testing.assert_close(late.objective(logits, later), method.objective(logits, told), rtol=1e-12, atol=0)


def test_aligned_beliefs_have_the_class_shares_of_the_answers():
    """Item by item and class by class; rows of zeros, which a fleet's table may have, change nothing."""
    logits, batch = case(items=40)
    teacher = torch.randn(logits.shape, dtype=torch.float64)
    table = restricted_softmax(torch.randn(logits.shape), batch.candidates)
    table = torch.cat([table, torch.zeros(5, table.shape[1])])
    told = replace(batch, teacher=teacher, confidence=table[:40], table=table)
    got = methods.get("teacher", memory=0.25, aligned=True).confidence(logits.detach(), told)
    answers, believed = batch.prior[:-1].tolist(), table.sum(0).tolist()
    for i in range(40):
        belief = {
            k: float(teacher[i, k].exp()) * (answers[k] / sum(answers)) / (believed[k] / sum(believed))
            for k in batch.candidates[i].nonzero().squeeze(-1).tolist()
        }
        for k in range(logits.shape[1]):
            want = 0.25 * float(table[i, k]) + 0.75 * belief.get(k, 0.0) / sum(belief.values())
            assert float(got[i, k]) == pytest.approx(want, abs=1e-6)


def test_only_with_a_memory_something_is_kept_of_each_item():
    none = {"memory": 0.0}
    kept = [{}, {**none, "fresh": False}, {"memory": 0.5, "decay": 0.0}, none, {**none, "decay": 0.0}]
    assert [methods.get("teacher", **options).refresh for options in kept] == ["forward"] * 3 + ["never"] * 2


@pytest.mark.parametrize("options", [{"memory": 1.0}, {"memory": -0.1}, {"decay": 1.0}, {"decay": -0.5}])
def test_decays_and_memories_are_below_one(options):
    with pytest.raises(InputError, match=f"{next(iter(options))} of teacher: expected 0 to below 1"):
        methods.get("teacher", **options)


def test_only_with_a_memory_it_is_aligned():
    with pytest.raises(InputError, match="aligned of teacher: needs a memory"):
        methods.get("teacher", memory=0.0, aligned=True)
