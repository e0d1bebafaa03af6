"""Many runs: together as a fleet on a GPU, elsewhere one after another by the single loop."""

import threading
from collections.abc import Callable, Sequence

from shortlist.data import Dataset
from shortlist.training.config import Engine, RunConfig, resolve_device
from shortlist.training.fleet.fleet import FleetResult
from shortlist.training.fleet.packs import packs, train_pack
from shortlist.training.history import check_score_every
from shortlist.training.loop import DivergedError, Interrupted, calibration_on_test, fit
from shortlist.training.prepared import prepare


def train_fleet(
    dataset: Dataset,
    configs: Sequence[RunConfig],
    *,
    engine: Engine | None = None,
    score_every: int = 1,
    on_epoch: Callable[[int, int], None] | None = None,
) -> list[FleetResult]:
    """Train all runs and return their results in the order of `configs`.

    Args:
        dataset: the data that all runs share; each may take only some of its classes.
        configs: what decides each run.
        engine: how to compute.
        score_every: epochs between scores; the last ten are always scored.
        on_epoch: on a GPU, called with (epochs done, runs left) after each epoch of a pack.
    """
    check_score_every(score_every)
    engine = engine or Engine()
    if not resolve_device(engine.device).startswith("cuda"):
        return [_alone(dataset, config, engine, score_every) for config in configs]
    resolved = engine.resolve(sum(c.epochs for c in configs) * len(dataset.train))
    results: dict[int, FleetResult] = {}
    for pack in packs(configs):
        results.update(train_pack(dataset, configs, pack, resolved, score_every, on_epoch))
    return [results[i] for i in range(len(configs))]


def _alone(dataset: Dataset, config: RunConfig, engine: Engine, score_every: int) -> FleetResult:
    """A run by the single loop; if it diverges, the result says so."""
    prepared = prepare(dataset, config, engine=engine)
    result, stopped = FleetResult(config), threading.Event()
    try:
        fit(prepared, on_epoch=result.history.append, on_stop=stopped.set, score_every=score_every)
    except DivergedError as error:
        result.failed = str(error)
        return result
    if stopped.is_set():  # after Ctrl-C in the last epoch this run is finished, but the next must not begin
        raise Interrupted(config.epochs)
    result.state = {name: tensor.cpu() for name, tensor in prepared.run.model.state_dict().items()}
    result.calibration_error = calibration_on_test(prepared)
    return result
