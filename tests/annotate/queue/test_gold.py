"""Gold lists show the right class as often as not, are uniform otherwise, and nothing is trained on their answers."""

import csv
from collections import defaultdict
from functools import partial
from itertools import combinations, count

import numpy as np
import pytest
from scipy.stats import chisquare
from sqlalchemy import select

from shortlist.annotate.db.quick import Quick
from shortlist.annotate.db.schema import Item, Question, Slot
from shortlist.annotate.project.stats import Stats
from shortlist.annotate.queue.gold import choose_gold
from shortlist.annotate.setup import export_file

from ..conftest import people

ALL_GOLD = partial(count, 0, 2)  # seeds with which every question is gold, where every second one is


def even(counts) -> bool:
    """Whether the draws are spread as chance has it over what there is (one, or none, is even)."""
    return len(counts) < 2 or chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize(("size", "num_classes"), [(2, 5), (1, 4), (3, 4), (2, 3), (4, 4)])
def test_every_list_is_as_likely_as_any_other_of_its_kind(size, num_classes):
    """Held against all lists there are, with and without the class; and the probabilities stored are true."""
    truth, draws = 1, 6000
    found = [choose_gold(truth, size, num_classes, seed) for seed in range(draws)]
    assert all(len(set(choice.shortlist)) == size for choice in found)
    lists = [frozenset(choice.shortlist) for choice in found]
    holding = [shown for shown in lists if truth in shown]
    share = max(0.5, size / num_classes)
    assert len(holding) / draws == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / draws))
    every = [frozenset(shown) for shown in combinations(range(num_classes), size)]
    for kind in (True, False):
        possible = [shown for shown in every if (truth in shown) == kind]
        assert even([lists.count(shown) for shown in possible])
    for k in range(num_classes):
        said = {p for choice in found for j, p in zip(choice.shortlist, choice.inclusion, strict=True) if j == k}
        assert len(said) == 1
        often = sum(k in shown for shown in lists) / draws
        assert often == pytest.approx(said.pop(), abs=4 * np.sqrt(0.25 / draws))
    places = np.bincount([choice.shortlist.index(truth) for choice in found if truth in choice.shortlist])
    assert len(places) == size
    assert even(places), "its place gives nothing away"


def test_where_uniform_lists_hold_the_class_oftener_gold_lists_are_uniform():
    counts = np.zeros(10)
    every = {frozenset(shown): place for place, shown in enumerate(combinations(range(5), 3))}
    for seed in range(6000):
        choice = choose_gold(4, 3, 5, seed)
        counts[every[frozenset(choice.shortlist)]] += 1
        assert choice.inclusion == pytest.approx([0.6] * 3)
    assert even(counts)


def answer_all(project, who: int, miss: float = 0.0, stray: float = 0.0) -> None:
    """Every item's class is that of its number. Shown, it is picked unless missed; not shown, some pick another."""
    with project.store.read() as connection:
        classes = len({k for k in connection.execute(select(Item.gold)).scalars() if k is not None})
        numbers = {item: int(name.split()[1]) for item, name in connection.execute(select(Item.id, Item.name))}
    queue, dice = project.queue(), np.random.default_rng(0)
    while held := queue.next(who):
        truth, shown = numbers[held[0].item_id] % classes, held[0].shortlist
        right = truth if truth in shown else None
        errs = dice.random() < (stray if right is None else miss)
        wrong = shown[0] if right is None else None
        queue.answer(who, held[0].id, 0, wrong if errs else right, 1.0)


def test_mistakes_are_measured_where_there_are_many_classes(make_project, database):
    project = make_project(database, items=600, classes=150, gold=150, size=5, gold_every=4)
    (ada,) = people(project, "ada")
    answer_all(project, ada, miss=0.25, stray=0.1)
    (row,) = Stats(project.store).status()["annotators"]
    assert row["gold"] > 100
    assert row["gold_shown"] == pytest.approx(row["gold"] / 2, abs=4 * np.sqrt(row["gold"] / 4))
    assert row["misses"] / row["gold_shown"] == pytest.approx(0.25, abs=4 * np.sqrt(0.19 / row["gold_shown"]))
    assert row["slips"] == 0
    hidden = row["gold"] - row["gold_shown"]
    assert row["strays"] / hidden == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / hidden))
    with project.store.read() as connection:
        statement = select(Slot.gold, Question.shortlist, Question.policy).join(Slot, Slot.id == Question.slot_id)
        asked = connection.execute(statement).all()
    assert {(gold, len(shown), policy) for gold, shown, policy in asked} == {(True, 5, "gold"), (False, 5, "uniform")}


def test_what_is_trained_on_has_lists_that_do_not_depend_on_the_class(make_project, tmp_path):
    from shortlist import StochasticLabels

    project = make_project(items=1500, classes=20, gold=500, size=2, gold_every=4)
    (ada,) = people(project, "ada")
    answer_all(project, ada)
    for ending in ("csv", "jsonl", "parquet"):
        path = tmp_path / f"answers.{ending}"
        assert export_file(project, path, None) == 1500
        labels = StochasticLabels.read(path)
        assert all(str(item).startswith("item ") for item in labels.items), "no gold item"
        # of uniform lists of 2 of 20 classes a tenth holds the right one; with a gold item in five it were a fifth
        assert 1 - labels.none_share == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / 1500))


def test_the_answers_on_gold_items_have_a_file_of_their_own(make_site, tmp_path):
    site = make_site(items=60, classes=6, gold=20, gold_every=3)
    (ada,) = people(site.project, "ada")
    answer_all(site.project, ada)
    path = tmp_path / "gold-answers.csv"
    written = export_file(site.project, path, "gold-answers")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == written > 5
    assert all(row["item"].startswith("gold ") and row["policy"] == "gold/1" for row in rows)
    assert all(row["answer"] in ("", row["gold"]) for row in rows)
    assert site.admin().get("/api/v1/export/gold-answers.csv").content == path.read_bytes()


def gold_of(project, who: int) -> list[int]:
    """The gold items that somebody was asked about, in that order."""
    statement = select(Question.item_id).join(Slot, Slot.id == Question.slot_id)
    with project.store.read() as connection:
        asked = statement.where(Slot.gold, Question.annotator_id == who).order_by(Question.id)
        return list(connection.execute(asked).scalars())


def test_everybody_gets_the_gold_items_in_an_order_of_their_own(make_project, database):
    """In one order for all, the classes on a list and its place in the session tell that it is gold."""
    project = make_project(database, items=3, gold=12, gold_every=2)
    somebody = people(project, *"abcd")
    queue, orders = project.queue(seeds=ALL_GOLD().__next__), []
    for who in somebody:
        for _ in range(12):
            (q,) = queue.next(who)
            queue.answer(who, q.id, 0, None, 1.0)
        orders.append(tuple(gold_of(project, who)))
    assert len({frozenset(order) for order in orders}) == 1, "all of them"
    assert len(orders[0]) == 12
    assert len(set(orders)) == 4


def test_of_many_gold_items_any_may_come_first_and_nearly_all_come(make_project, database):
    project = make_project(database, items=3, gold=150, gold_every=2)
    somebody = people(project, *map(str, range(40)))
    queue = project.queue(seeds=ALL_GOLD().__next__)
    first = {queue.next(who)[0].item_id for who in somebody}
    assert len(first) > 20
    with project.store.read() as connection:
        ids = connection.execute(select(Item.id).where(Item.gold.is_not(None)).order_by(Item.id)).scalars().all()
    assert {ids.index(item) // 50 for item in first} == {0, 1, 2}
    ada = somebody[0]
    for _ in range(140):
        (q,) = queue.next(ada)
        queue.answer(ada, q.id, 0, None, 1.0)
    asked = gold_of(project, ada)
    assert len(asked) == len(set(asked)) > 130


def test_a_gold_question_takes_the_same_statements_as_another(make_project, database, monkeypatch):
    """Time tells as well: what is asked of the database for one kind is asked for the other."""
    project = make_project(database, items=60, gold=20, gold_every=2)
    (ada,) = people(project, "ada")
    with project.store.read() as connection:
        gold = set(connection.execute(select(Item.id).where(Item.gold.is_not(None))).scalars())
    run, ran = Quick.execute, []

    def noting(self, *given):
        ran.append(given)
        return run(self, *given)

    queue, counts = project.queue(), defaultdict(set)
    (held,) = queue.next(ada)
    monkeypatch.setattr(Quick, "execute", noting)
    for way in ("answer", "skip"):
        for _ in range(15):
            ran.clear()
            act = queue.skip if way == "skip" else partial(queue.answer, answer=None)
            _, (after,) = act(ada, held.id, 0, seconds=1.0, hold=1)
            counts[way, held.item_id in gold, after.item_id in gold].add(len(ran))
            held = after
    for way in ("answer", "skip"):
        seen = [counts[way, before, after] for before in (True, False) for after in (True, False)]
        assert len(set().union(*seen)) == 1, counts
    assert len(counts) > 5, "of nearly every kind"


def test_nothing_that_is_sent_to_an_annotator_says_which_question_is_gold(make_site):
    site = make_site(items=200, classes=40, gold=40, gold_every=2, size=4)
    ada = site.annotator("ada")
    with site.project.store.read() as connection:
        gold = set(connection.execute(select(Item.text).where(Item.gold.is_not(None))).scalars())
    seen: dict[bool, set[tuple]] = {True: set(), False: set()}
    for _ in range(60):
        (q,) = ada.post("/api/v1/next", json={}).json()["questions"]
        shape = (*sorted(q), *sorted(q["item"]), q["item"]["kind"], len(q["shortlist"]), q["again"], q["attempt"])
        seen[q["item"]["text"] in gold].add(shape)
        ada.post("/api/v1/answers", json={"question": q["id"], "answer": None})
    assert seen[True] == seen[False]
    assert len(seen[True]) == 1
