"""People who type the class after a list that misses it."""

import pytest

from shortlist.errors import InputError
from shortlist.policies import LoopSettings, Mistakes, Policy
from shortlist.policies.simulation.economy import Comparison
from shortlist.policies.simulation.simulate import run_loop

SETTINGS = LoopSettings(policy=Policy("adaptive", max_size=3), representatives=0)


def test_where_everybody_types_every_question_settles_an_item(blobs):
    curve = run_loop(blobs, SETTINGS, way="w", seed=0, typed=1.0)
    end = curve.points[-1]
    assert end.questions == end.hits == len(blobs.y)
    assert (end.resolved, end.correct) == (1.0, 1.0)
    silent = run_loop(blobs, SETTINGS, way="w", seed=0)
    assert silent.points[-1].questions > 1.1 * end.questions
    early = [run.points[0].hits for run in (curve, silent)]
    assert early[0] == curve.points[0].questions > early[1]


def test_mistyped_classes_are_found_out_where_mistakes_are_modelled(blobs):
    makes = Mistakes(0.05, 0.02, typed=0.3)
    settings = LoopSettings(policy=Policy("adaptive", max_size=3, deduce=False), mistakes=makes, representatives=0)
    modelled = run_loop(blobs, settings, way="w", seed=0, typed=1.0, mistakes=makes)
    naive = run_loop(blobs, SETTINGS, way="w", seed=0, typed=1.0, mistakes=makes)
    assert modelled.points[-1].correct > naive.points[-1].correct + 0.02


def test_a_share_is_a_share(blobs):
    with pytest.raises(InputError, match="typed: expected a share"):
        Comparison(SETTINGS, typed=1.5)
    report = Comparison(SETTINGS, seeds=1, budget=60, size=3, rivals=False, typed=0.5)
    assert report.report(blobs, report.run(blobs))["typed"] == 0.5
