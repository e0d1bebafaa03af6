"""A class that was typed: an answer of its own kind, stored, taken back and counted as any other."""

import pytest
from sqlalchemy import select

from shortlist.annotate.db.schema import Answer, Item
from shortlist.annotate.problems import Conflict, Invalid
from shortlist.annotate.project.stats import Stats
from shortlist.annotate.queue.chooser import UniformChooser

from ..conftest import people


class AsksAgain(UniformChooser):
    """After None with other classes, as a model does."""

    def asks_again(self, num_classes, refused):
        return len(refused) < num_classes - 1


def log(project) -> list[tuple[str, int | None]]:
    with project.store.read() as connection:
        return [tuple(row) for row in connection.execute(select(Answer.kind, Answer.class_id).order_by(Answer.id))]


def absent(question) -> int:
    return next(k for k in range(6) if k not in question.shortlist)


def test_a_typed_class_settles_the_item_and_is_taken_back(make_project, database):
    project = make_project(database, items=2, typing=True)
    (ada,) = people(project, "ada")
    queue = project.queue()
    (q,) = queue.next(ada)
    stored, _ = queue.answer(ada, q.id, 0, absent(q), 4.0, typed=True)
    assert (stored.kind, stored.answer) == ("typed", absent(q))
    assert queue.answer(ada, q.id, 0, absent(q), 9.0, typed=True)[0] == stored, "sent again, stored once"
    for other, typed in ((q.shortlist[0], True), (q.shortlist[0], False), (None, False)):
        with pytest.raises(Conflict):
            queue.answer(ada, q.id, 0, other, 1.0, typed=typed)
    status = Stats(project.store).status()
    assert status["progress"] == {"done": 1, "total": 2}
    assert (status["annotators"][0]["answers"], status["annotators"][0]["nones"]) == (1, 0)
    assert (status["typed_share"], status["seconds_by_size"]) == (1.0, []), "no time of a list"
    undone, (again,) = queue.undo(ada, hold=1)
    assert (undone.kind, again.id, again.attempt) == ("undo", q.id, 1)
    queue.answer(ada, q.id, 1, None, 1.0)
    assert log(project) == [("typed", absent(q)), ("undo", None), ("answer", None)]
    assert Stats(project.store).status()["annotators"][0]["nones"] == 1
    assert project.store.check() == []


def test_a_class_on_the_list_or_refused_before_may_be_typed(make_project, database):
    project = make_project(database, items=1)
    (ada,) = people(project, "ada")
    queue = project.queue(AsksAgain(3))
    (q,) = queue.next(ada)
    _, (again,) = queue.answer(ada, q.id, 0, None, 1.0, hold=1)
    assert again.turn == 1
    queue.answer(ada, again.id, 0, q.shortlist[0], 1.0, typed=True)
    with project.store.read() as connection:
        assert connection.execute(select(Item.state)).scalar() == "done"
    queue.undo(ada)
    stored, _ = queue.answer(ada, again.id, 1, again.shortlist[0], 1.0, typed=True)
    assert stored.kind == "typed", "what was done, also where picking would have done"
    assert queue.take_back(ada) == 2
    assert log(project)[-2:] == [("undo", None)] * 2


def test_what_may_not_be_typed(make_project):
    project = make_project(items=1, typing=True)
    (ada,) = people(project, "ada")
    queue = project.queue()
    (q,) = queue.next(ada)
    for bad in (None, -1, 6):
        with pytest.raises(Invalid, match=f"there is no class {bad}"):
            queue.answer(ada, q.id, 0, bad, 1.0, typed=True)
    assert log(project) == []


def test_uniform_lists_take_no_typed_class_unless_told(make_project):
    plain, told, forbidden = make_project(), make_project(typing=True), make_project(typing=False)
    chosen = AsksAgain(3)
    assert [project.queue().typing for project in (plain, told, forbidden)] == [False, True, False]
    assert [project.queue(chosen).typing for project in (plain, told, forbidden)] == [True, True, False]
    (ada,) = people(plain, "ada")
    queue = plain.queue()
    (q,) = queue.next(ada)
    with pytest.raises(Invalid, match="only classes that are on the list"):
        queue.answer(ada, q.id, 0, q.shortlist[0], 1.0, typed=True)
