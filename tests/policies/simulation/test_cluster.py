"""Runs and features on a Ray cluster: the same figures as here."""

from dataclasses import replace

import numpy as np
import pytest

from shortlist.internal.cluster import LOCAL, cluster
from shortlist.policies import LoopSettings, Policy, make_features
from shortlist.policies.simulation import Comparison

pytestmark = pytest.mark.slow


def test_runs_and_patches_by_ray_are_those_of_this_process(blobs, tmp_path):
    pytest.importorskip("ray")
    few = replace(blobs, x=blobs.x[:120], y=blobs.y[:120])
    settings = LoopSettings(policy=Policy("adaptive", max_size=3), retrain_every=60)
    wanted = Comparison(settings, seeds=2, size=3, rivals=False)
    images = np.random.default_rng(0).integers(0, 256, (2100, 1, 8, 8), np.uint8)
    told = []
    with cluster(LOCAL) as ray:
        curves = wanted.run(few, lambda *said: told.append(said), tmp_path, ray=LOCAL)
        made = make_features("image", images, images[:5], size=20, ray=LOCAL)
        assert ray.is_initialized(), "whoever joins does not stop it"
    assert not ray.is_initialized()
    assert sorted(map(repr, curves)) == sorted(map(repr, wanted.run(few)))  # as text: there are NaNs
    assert {(way, seed) for way, seed, _ in told} == {
        ("adaptive", 0),
        ("adaptive", 1),
        ("full labels", 0),
        ("full labels", 1),
    }
    assert (tmp_path / "curve.csv").read_text().count("\nadaptive,") == sum(
        len(curve.points) for curve in curves if curve.way == "adaptive"
    )
    for here, there in zip(make_features("image", images, images[:5], size=20), made, strict=True):
        np.testing.assert_allclose(there, here, atol=1e-6)
