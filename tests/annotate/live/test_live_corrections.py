"""What reviewers said and what became of classes, as the trainer reads it."""

import numpy as np

from shortlist.annotate.live.plan import LivePlan
from shortlist.annotate.live.trainer import Trainer
from shortlist.annotate.project.review.class_changes import merge_classes
from shortlist.annotate.project.review.corrections import correct, undo_correction

from ..conftest import people


def answer_all(project, choose):
    (ada,) = people(project, "ada")
    queue = project.queue()
    while held := queue.next(ada):
        queue.answer(ada, held[0].id, held[0].attempt, choose(held[0]), 1.0)


def test_a_correction_is_a_full_label_until_it_is_undone(make_project):
    project = make_project(items=40, size=3)
    answer_all(project, lambda question: question.shortlist[0])
    trainer = Trainer(project, LivePlan(size=3, score=False))
    assert trainer.step()
    row = trainer.rows[7]
    before = trainer.loop.state.answer[row]
    wanted = (int(before) + 1) % 6
    correct(project.store, 7, 0, wanted, "rev", "")
    correct(project.store, 8, 0, None, "rev", "of no class")
    assert trainer.step(), "at once, not with the next batch of answers"
    state = trainer.loop.state
    assert state.known[row]
    assert state.answer[row] == wanted
    assert trainer.rows[8] not in state.informative, "what is of no class is not learned from"
    undo_correction(project.store, 7, 1, "rev")
    assert trainer.step()
    assert not trainer.loop.state.known[row]
    assert trainer.loop.state.answer[row] == before


def test_a_corrected_item_stays_in_the_scored_sample_and_is_not_learned_from(make_project):
    project = make_project(items=100, size=3)
    answer_all(project, lambda question: question.shortlist[0])
    trainer = Trainer(project, LivePlan(size=3))
    assert trainer.step()
    sample = trainer.loop.audit.rows.tolist()
    row = sample[0]
    correct(project.store, trainer.items.ids[row], 0, 4, "rev", "")
    assert trainer.step()
    assert trainer.loop.audit.rows.tolist() == sample
    assert trainer.loop.state.answer[row] == 4
    assert row not in trainer.loop.state.informative


def test_a_corrected_gold_class_is_scored_by(make_project):
    project = make_project(items=30, gold=3, size=3)
    trainer = Trainer(project, LivePlan(size=3))
    assert trainer.step()
    before = trainer.items.y_score.copy()
    correct(project.store, 31, 0, 5, "rev", "")
    assert trainer.step()
    assert np.array_equal(trainer.items.y_score, [5, *before[1:]])


def test_merged_classes_are_one_to_the_model(make_project):
    project = make_project(items=40, size=3)
    answer_all(project, lambda question: 1 if 1 in question.shortlist else None)
    trainer = Trainer(project, LivePlan(size=3, score=False))
    assert trainer.step()
    picked = np.nonzero(trainer.loop.state.answer == 1)[0]
    assert len(picked)
    merge_classes(project, 1, 0)
    assert trainer.step()
    assert (trainer.loop.state.answer[picked] == 0).all()
    assert not (trainer.loop.state.answer == 1).any()
