"""Nothing that a browser is sent tells gold items from others."""

import time
from collections import Counter

import uvloop
from sqlalchemy import select

from shortlist.annotate.db.schema import Item, Question
from shortlist.annotate.web.api import answering

from .test_security import png

SAME = ("content-type", "cache-control", "last-modified", "content-length", "accept-ranges")


def test_addresses_and_headers_of_gold_pictures_are_like_others(make_site):
    """An item's number would tell: gold items come in together and are asked about later than their neighbours."""
    site = make_site(items=0, classes=4, gold_every=2)
    admin, ada, bob = site.admin(), site.annotator("ada"), site.annotator("bob")
    raw = {"content-type": "application/octet-stream"}
    for number in range(30):
        gold = "&gold=class%201" if number >= 20 else ""
        assert admin.post(f"/api/v1/items/media?name={number}{gold}", content=png(), headers=raw).status_code == 201
    seen = []
    while held := ada.post("/api/v1/next", json={}).json()["questions"]:
        (q,) = held
        assert q["item"]["media"].split("?")[0] == f"/api/v1/media/{q['id']}"
        assert bob.get(q["item"]["media"]).status_code == 404
        got = ada.get(q["item"]["media"])
        assert got.status_code == 200
        assert got.headers["etag"] == f'"question-{q["id"]}"'
        seen.append(tuple(got.headers[name] for name in SAME))
        ada.post("/api/v1/answers", json={"question": q["id"], "answer": None})
        if len(seen) > 60:
            break
    assert len(set(seen)) == 1, "nothing but the question's own number differs"
    with site.project.store.read() as connection:
        order = select(Question.id).join(Item, Item.id == Question.item_id).where(Item.gold.is_not(None))
        assert len(connection.execute(order).all()) >= 5
    part = ada.get("/api/v1/media/1", headers={"range": "bytes=0-3", "if-range": '"question-1"'})
    assert (part.status_code, len(part.content)) == (206, 4), "sounds are played from anywhere"


def test_how_long_a_reply_takes_is_left_to_chance(make_site, monkeypatch):
    """Or the little that a gold question takes longer to find would tell."""
    monkeypatch.setattr(answering, "BLUR_MS", 100)
    ada = make_site(items=3, classes=4).annotator("ada")
    took = []
    for _ in range(12):
        begun = time.perf_counter()
        assert ada.post("/api/v1/next", json={}).status_code == 200
        took.append(time.perf_counter() - begun)
    assert max(took) - min(took) > 0.02, "all within a fifth of the time by chance: once in 10 million times"


def test_and_not_in_whole_milliseconds():
    """As event loops sleep: the rest would tell what was left to chance from what a reply took."""

    async def waits() -> list[float]:
        took = []
        for _ in range(200):
            begun = time.perf_counter()
            await answering.blur()
            took.append(1000 * (time.perf_counter() - begun))
        return took

    took = uvloop.run(waits())  # the loop that serves
    assert max(took) > answering.BLUR_MS / 2
    # evenly spread, each quarter of a millisecond would have 50; a loop's own timer has nearly all of them in one
    spread = Counter(int(4 * (ms % 1)) for ms in took)
    assert all(20 < spread[quarter] < 100 for quarter in range(4)), spread
