"""Other forms of the teacher, as methods of one's own; what held-out answers said of them is in docs/teacher.md.

`teacher_ablation.py forms` runs them. None is part of the package: each is what one would try next, in a few lines.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from shortlist.losses import cross_entropy
from shortlist.methods import Batch
from shortlist.methods.teacher import Teacher
from shortlist.risks import log_candidates


@dataclass(frozen=True)
class StrongOnly(Teacher):
    """The weak view, which the teacher judges by, learns the likelihood alone; the strong ones learn w."""

    title = "teacher, for strong views only"

    def objective_of_views(self, views: Sequence[Tensor], batch: Batch) -> Tensor:
        weak = batch.mean(-log_candidates(views[0], batch.candidates))
        return torch.stack([weak, *(self.objective(view, batch) for view in views[1:])]).mean(0)


@dataclass(frozen=True)
class BothViews(Teacher):
    """The network's own mean logits over the views are the teacher's."""

    title = "teacher, the network on both views"
    decay: float = 0.0

    def objective_of_views(self, views: Sequence[Tensor], batch: Batch) -> Tensor:
        return super().objective_of_views(views, replace(batch, teacher=_mean(views)))

    def confidence_of_views(self, views: Sequence[Tensor], batch: Batch) -> Tensor:
        return self.confidence(_mean(views), batch)


@dataclass(frozen=True)
class Annealed(Teacher):
    """The temperature falls from 1 in step with the training."""

    title = "teacher, sharpened bit by bit"
    end: float = 0.5

    def _source(self, logits: Tensor, batch: Batch) -> Tensor:
        source = super()._source(logits, batch)
        if batch.progress is None:
            return source
        return source / (1 - (1 - self.end) * batch.progress.to(source.dtype))[..., None, None]


@dataclass(frozen=True)
class SoftAnswers(Teacher):
    """Of what an answered item learns, a share is the teacher's belief in all classes."""

    title = "teacher, soft answers"
    soft: float = 0.2

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        answered = (batch.answer >= 0).unsqueeze(-1)
        target = self.confidence(logits.detach(), batch)
        believed = torch.softmax(self._source(logits.detach(), batch), -1)
        target = torch.where(answered, torch.lerp(target, believed.to(target.dtype), self.soft), target)
        losses = cross_entropy(logits)
        return batch.mean((target.to(losses.dtype) * losses).sum(-1))


@dataclass(frozen=True)
class Agreement(Teacher):
    """The likelihood of both views, and a pull of the strong one toward the teacher's belief in all classes."""

    title = "likelihood and agreement in all classes"
    memory: float = 0.0

    def objective_of_views(self, views: Sequence[Tensor], batch: Batch) -> Tensor:
        likely = torch.stack([batch.mean(-log_candidates(view, batch.candidates)) for view in views]).mean(0)
        if len(views) == 1:
            return likely
        q = torch.softmax(self._source(views[0].detach(), batch), -1)
        return likely + self.pull * batch.mean((q * cross_entropy(views[1])).sum(-1))


def _mean(views: Sequence[Tensor]) -> Tensor:
    return torch.stack([view.detach().float() for view in views]).mean(0)
