"""The statistics of ways find the rates that were planted, and their intervals hold them as often as they say."""

import numpy as np
import pytest

from shortlist.annotate.project.ways import compare_ways

RATES = {"full": (12.0, 0.05), "search": (5.0, 0.2), "shortlist": (3.0, 0.1)}
"""Seconds per question and the share of wrong answers on gold."""
MISSES = 0.4
"""Of the shortlists, asked again after None."""


def planted(seed: int, items: int = 150) -> list[dict]:
    rng = np.random.default_rng(seed)
    rows: list[dict] = []

    def add(slot, way, class_id, gold=None, shortlist=()):
        seconds = RATES[way][0] * rng.lognormal(-0.125, 0.5)  # of mean 1
        rows.append(
            {"slot_id": slot, "way": way, "class_id": class_id, "seconds": seconds, "is_gold": gold is not None}
        )
        rows[-1] |= {"gold": gold, "shortlist": list(shortlist)}

    for slot in range(items):
        way = list(RATES)[slot % 3]
        while way == "shortlist" and rng.random() < MISSES:
            add(slot, way, None)
        add(slot, way, 1)
    for slot in range(items, 2 * items):
        way = list(RATES)[slot % 3]
        wrong, shown = rng.random() < RATES[way][1], {"full": range(12), "search": ()}.get(way, (4, 0, 2))
        taken = {"full": int(rng.choice([1, 2, 11])), "search": 3}.get(way, 4)
        add(slot, way, taken if wrong else 0, 0, shown)
    return rows


def test_planted_rates_are_found():
    found = {way["way"]: way for way in compare_ways(planted(0, 6000))}
    for way, (seconds, wrong) in RATES.items():
        per_item = seconds / (1 - MISSES) if way == "shortlist" else seconds
        assert found[way]["seconds"]["value"] == pytest.approx(per_item, rel=0.04)
        assert found[way]["wrong"]["value"] == pytest.approx(wrong, abs=0.02)
    assert found["search"]["taken"] is None, "nothing is shown"
    assert found["full"]["taken"]["value"] == found["full"]["wrong"]["value"]
    assert [one["place"] for one in found["shortlist"]["by_place"]] == [1, 3], "the right one stands second"
    first, third = found["shortlist"]["by_place"]
    assert (first["taken"] / first["shown"], third["taken"]) == (pytest.approx(0.1, abs=0.02), 0)
    places = {one["place"]: one for one in found["full"]["by_place"]}
    assert max(places) == 11, "all later ones together"
    assert places[11]["shown"] == 2 * 2000
    assert places[11]["taken"] + places[2]["taken"] + places[3]["taken"] == round(
        found["full"]["wrong"]["value"] * 2000
    )


def test_the_intervals_hold_them_as_often_as_they_say():
    held = {(way, name): 0 for way in RATES for name in ("seconds", "wrong")}
    for seed in range(200):
        for way in compare_ways(planted(seed)):
            seconds, wrong = RATES[way["way"]]
            truth = {"seconds": seconds / (1 - MISSES) if way["way"] == "shortlist" else seconds, "wrong": wrong}
            for name, value in truth.items():
                held[way["way"], name] += way[name]["low"] <= value <= way[name]["high"]
    assert all(178 <= count <= 199 for count in held.values()), held


def test_who_went_away_is_left_out_and_none_is_wrong_only_where_the_class_was_shown():
    row = {
        "slot_id": 1,
        "way": "full",
        "class_id": 1,
        "seconds": 2.0,
        "is_gold": False,
        "gold": None,
        "shortlist": [0, 1],
    }
    away = {**row, "slot_id": 2, "seconds": 4000.0}
    found = compare_ways([row, {**row, "slot_id": 3, "seconds": 4.0}, away, {**away, "slot_id": 4, "seconds": None}])[0]
    assert (found["items"], found["seconds"]["value"], found["wrong"]) == (2, 3.0, None)
    gold = {**row, "way": "shortlist", "is_gold": True, "class_id": None}
    shown, absent = {**gold, "gold": 0}, {**gold, "gold": 5}
    assert compare_ways([shown, absent])[2]["wrong"]["value"] == 0.5
    assert compare_ways([{**row, "way": None}]) == []
