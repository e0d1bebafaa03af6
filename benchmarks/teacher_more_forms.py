"""Forms of the teacher that held-out answers have not judged yet: `teacher_ablation.py forms cifar10 --only ...`.

They have a file of their own because a stored run of one's own method is known by the whole file that the method is in.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from shortlist.methods import Batch, restricted_softmax
from shortlist.methods.teacher import Teacher


@dataclass(frozen=True)
class Settling(Teacher):
    """The memory goes from `memory` to `end` in step with the training.

    Growing, it keeps late beliefs from following a network that learns its own targets by heart. Falling, it keeps
    early ones, which are bad, from being learned (so does the memory of PiCO, Wang et al. 2022).
    """

    title = "teacher, whose memory changes its length"
    end: float = 0.95

    def confidence(self, logits: Tensor, batch: Batch) -> Tensor:
        if batch.progress is None:
            return super().confidence(logits, batch)
        assert batch.confidence is not None
        q = restricted_softmax(self._source(logits, batch), batch.candidates)
        memory = self.memory + (self.end - self.memory) * batch.progress.to(q.dtype)
        return torch.lerp(q, batch.confidence.to(q.dtype), memory[..., None, None])


@dataclass(frozen=True)
class HeavyAnswers(Teacher):
    """An answered item counts twice: its class is known, while the targets of None items are beliefs."""

    title = "teacher, answers count twice"
    heavy: float = 2.0

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        counts = torch.where(batch.answer >= 0, self.heavy, 1.0)
        weight = counts if batch.weight is None else counts * batch.weight
        return super().objective(logits, replace(batch, weight=weight))
