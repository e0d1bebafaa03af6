"""Run under torchrun by test_distributed.py: trains each method and writes what every process ends with."""

import json
import sys

import torch
from safetensors.torch import save_file

from shortlist.training.config import Engine, RunConfig
from shortlist.training.distributed import processes
from shortlist.training.loop import fit
from shortlist.training.prepared import prepare

METHODS = [
    ("sl", {"form": "paper"}),
    ("sl_unbiased", {}),
    ("likelihood", {}),
    ("rc", {}),
    ("proden", {}),
    ("lw", {}),
    ("cc", {}),
]


def train(method, options, group=None):
    from training.conftest import blobs

    # an odd number of items: the shuffle leaves one over
    config = RunConfig(
        method=method, method_options=options, size=2, epochs=3, batch_size=16, lr=0.05, model="mlp", holdout=0.1
    )
    prepared = prepare(blobs(count=121), config, engine=Engine(device="cpu"), group=group)
    history = fit(prepared)
    return prepared.run.state_dict(), [row.risk for row in history], [row.validation_log_likelihood for row in history]


if __name__ == "__main__":
    torch.set_num_threads(1)
    with processes("cpu") as group:
        assert group.world == 2
        assert group.any(group.rank == 1)
        assert not group.any(False)
        for method, options in METHODS:
            state, risks, scores = train(method, options, group)
            save_file(
                {name: tensor.contiguous() for name, tensor in state.items()},
                f"{sys.argv[1]}/{method}-{group.rank}.safetensors",
                metadata={"risks": json.dumps(risks), "scores": json.dumps(scores)},
            )
