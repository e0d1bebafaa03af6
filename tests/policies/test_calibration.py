import numpy as np
import pytest

from shortlist.policies import calibration
from shortlist.policies.calibration import Calibration, HeldOut, fit_pool, fit_temperature


def _held(seed: int, count: int = 40, experts: int = 0) -> HeldOut:
    """Answers on full lists of 5 classes, by people who are right, to a model that is too sure of itself."""
    rng = np.random.default_rng(seed)
    logits = 3 * rng.standard_normal((count, 5)).astype(np.float32)
    y = (logits / 3 + rng.gumbel(size=(count, 5))).argmax(axis=1)
    scores = tuple(np.eye(5, dtype=np.float32)[np.where(rng.random(count) < 0.5, y, 0)] for _ in range(experts))
    return HeldOut(logits, scores, np.ones((count, 5), np.float32), np.eye(5)[y])


def test_a_temperature_moves_half_way_to_what_each_round_of_answers_says():
    found, expected = Calibration(()), 1.0
    for seed in range(3):
        new = _held(seed)
        fitted = fit_temperature(new.logits, new.before, new.answer_likelihood)
        assert fitted > 1.5
        expected = (expected * fitted) ** 0.5
        found.hold_out(new)
        found.fit(1)
        assert found.pool.temperature == pytest.approx(expected)
    assert found.pool.weights == ()


def test_beside_experts_earlier_rounds_count_half_as_much_each_time_until_they_are_forgotten():
    found, rounds = Calibration((1.0,)), [_held(seed, 20, experts=1) for seed in range(6)]
    expected = found.pool
    assert expected.temperature == 16
    for last, new in enumerate(rounds):
        counts = [(held, 0.5 ** (last - place)) for place, held in enumerate(rounds[: last + 1])]
        expected = fit_pool([(held, count) for held, count in counts if count >= 0.05], expected)
        found.hold_out(new)
        found.fit(1)
        assert found.pool == expected


def test_answers_wait_until_there_are_enough_of_them(monkeypatch):
    found, parts = Calibration(()), [_held(seed, 10) for seed in range(3)]
    assert found.fit(1) is None
    for part in parts[:2]:
        found.hold_out(part)
    assert found.fit(21) is None
    assert found.pool.temperature == 1
    found.hold_out(parts[2])
    together = found.fit(21)
    assert together is not None
    assert np.array_equal(together.logits, np.concatenate([part.logits for part in parts]))
    assert found.fit(1) is None  # each counts once
    monkeypatch.setattr(calibration, "PLENTY", 2 * 10 * 5)
    for part in parts:
        found.hold_out(part)
    latest = found.fit(1)
    assert latest is not None
    assert np.array_equal(latest.logits, np.concatenate([part.logits for part in parts[1:]]))
