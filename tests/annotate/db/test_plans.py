"""SQLite goes from a question to its answers by an index: reading all of them would slow every request down in time."""

from sqlalchemy import event
from sqlalchemy.dialects import sqlite

from shortlist.annotate.db.statements import _REFUSED
from shortlist.annotate.project.review.browse import Filter, browse, history
from shortlist.annotate.project.second_look import second_look
from shortlist.annotate.queue.chooser import UniformChooser

from ..conftest import people


class AsksAgain(UniformChooser):
    def asks_again(self, num_classes, refused):
        return len(refused) < num_classes


def test_no_request_reads_all_answers(make_project):
    project = make_project(items=8)
    (ada,) = people(project, "ada")
    said = []
    event.listen(project.store.engine, "before_cursor_execute", lambda *given: said.append((given[2], given[3])))
    queue = project.queue(AsksAgain(2))
    (question,) = queue.next(ada)
    _, (again,) = queue.answer(ada, question.id, question.attempt, None, 1.0, hold=1)
    assert again.item_id == question.item_id
    queue.skip(ada, again.id, again.attempt)
    queue.undo(ada, again.id, again.attempt)
    wanted = [Filter(), Filter(none=True), Filter(person=ada), Filter(disagreement=True), Filter(slower=1.0)]
    with project.store.read() as connection:
        for one in [*wanted, Filter(skipped=True), Filter(class_id=1)]:
            browse(connection, one)
        history(connection, question.item_id)
    second_look(project, among=[question.item_id])
    looks = [(words, given) for words, given in said if words.lstrip().startswith("SELECT") and "answers" in words]
    assert len(looks) > 10
    with project.store.read() as connection:
        for words, given in looks:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {words}", given).all()
            steps = [row[3] for row in plan]
            assert not [step for step in steps if step == "SCAN answers" or "AUTOMATIC" in step], (words, steps)


def test_what_was_refused_is_found_by_the_slot(make_project):
    """By the queue's own connection, which is asked again and again while people say None."""
    words = str(_REFUSED.params(slot=1).compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True}))
    with make_project().store.read() as connection:
        steps = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {words}").all()]
    assert any("answers_once" in step for step in steps), steps
