import os
from dataclasses import replace

import numpy as np

from shortlist.policies.choose import Policy, choose_one
from shortlist.policies.experts import LinearExpert, experts_from_scores
from shortlist.policies.linear import Linear
from shortlist.policies.loop import Loop
from shortlist.policies.noise import Mistakes, simulate_answers
from shortlist.policies.saved.snapshot import Snapshot
from shortlist.policies.settings import LoopSettings
from shortlist.policies.simulation.simulate import run_loop

QUICK = LoopSettings(policy=Policy("adaptive", max_size=3), retrain_every=300, l2=0.03)


def chosen_from(snapshot, row, refused, seed):
    """As the server chooses."""
    return choose_one(snapshot.policy, snapshot.beliefs(row), refused, seed)


def test_a_snapshot_is_swapped_whole_and_chooses_as_the_loop_would(blobs, tmp_path):
    loop = Loop(blobs.x, 12, replace(QUICK, representatives=0), seed=0)
    assert Snapshot.current(tmp_path) is None
    (tmp_path / f"v00000001-{os.getpid()}").mkdir()  # a trainer of the same number was killed while it wrote
    for round_ in range(4):
        rows, questions = loop.ask(80)
        answer = simulate_answers(loop.rng, questions.lists, questions.sizes, blobs.y[rows], 12, Mistakes())
        loop.record(rows, questions.lists, questions.sizes, answer)
        loop.retrain()
        Snapshot.publish(loop, tmp_path)
        snapshot = Snapshot.current(tmp_path, seen=round_)
        assert snapshot is not None
        assert snapshot.version == round_ + 1
    assert Snapshot.current(tmp_path, seen=4) is None
    assert len(list(tmp_path.glob("v*"))) == 2
    assert set(snapshot.order.tolist()) == set(loop.open_items().tolist())
    row = int(snapshot.order[0])
    chosen = chosen_from(snapshot, row, np.array([], int), seed=1)
    assert chosen[0] == loop.shortlists(np.array([row])).row(0)[0]
    again = chosen_from(snapshot, row, np.array(chosen[0]), seed=1)
    assert not set(again[0]) & set(chosen[0])
    assert chosen_from(snapshot, row, np.arange(12), seed=1) == ([], [])
    assert snapshot.policy == QUICK.policy


def test_what_killed_trainers_left_does_not_push_out_the_current_snapshot(blobs, tmp_path):
    for killed in ("v00000001-x", "v00000001-y"):  # sorted after any process number
        (tmp_path / killed).mkdir()
    loop = Loop(blobs.x, 12, QUICK)
    loop.retrain()
    Snapshot.publish(loop, tmp_path)
    assert Snapshot.current(tmp_path) is not None
    assert len(list(tmp_path.glob("v*"))) == 2


def test_a_server_that_drives_the_snapshot_gets_what_the_simulation_gets(blobs, tmp_path):
    """The live way of asking, one item at a time from a published table, resolves all at a like cost."""
    loop = Loop(blobs.x, 12, replace(QUICK, representatives=24), seed=0)
    for _ in range(60):
        loop.retrain()
        Snapshot.publish(loop, tmp_path)
        snapshot = Snapshot.current(tmp_path)
        assert snapshot is not None
        for row in snapshot.order[:40].tolist():
            refused = np.nonzero(loop.state.answer_likelihood[np.array([row])][0] == 0)[0]
            shortlist, _ = chosen_from(snapshot, row, refused, seed=row)
            answer = blobs.y[row] if blobs.y[row] in shortlist else -1
            lists = np.array([shortlist], np.int32)
            loop.record(np.array([row]), lists, np.array([len(shortlist)]), np.array([answer]))
        if not len(loop.open_items()):
            break
    assert loop.state.certain.all()
    simulated = run_loop(blobs, replace(QUICK, representatives=24), way="s", seed=0).points[-1]
    assert loop.state.reads < 1.5 * simulated.reads


def test_what_a_server_believes_of_an_item_is_what_the_loop_believes(blobs, tmp_path):
    """With experts of every kind, modelled mistakes and items that the model knows nothing about."""
    rng = np.random.default_rng(0)
    linear = LinearExpert(blobs.x, Linear(rng.standard_normal((blobs.x.shape[1], 12)).astype(np.float32), np.zeros(12)))
    experts = (linear, *experts_from_scores(rng.random((len(blobs.y), 12))))
    for mistakes in (Mistakes(), Mistakes(0.1, 0.05)):
        loop = Loop(blobs.x, 12, replace(QUICK, representatives=0, mistakes=mistakes), experts=experts)
        for _ in range(3):
            rows, questions = loop.ask(60)
            answer = simulate_answers(rng, questions.lists, questions.sizes, blobs.y[rows], 12, Mistakes(0.1, 0.1))
            loop.record(rows, questions.lists, questions.sizes, answer)
            loop.retrain()
        loop.share = 0.3
        Snapshot.publish(loop, tmp_path)
        snapshot = Snapshot.current(tmp_path)
        everything = np.arange(len(blobs.y))
        found = np.stack([snapshot.beliefs(row) for row in everything])
        np.testing.assert_allclose(found, loop.beliefs(everything), atol=3e-3)  # the scores are in half precision
        np.testing.assert_array_equal(snapshot.features.row(7), blobs.x[7])
        assert len(list(tmp_path.glob("features-*.npy"))) == 1, "those of the publication before are gone"
