"""What a live project knows before the first answer by labels and scores that its owner has."""

import csv
import stat
import sys

import pytest
from sqlalchemy import func, select

from shortlist.annotate.db.schema import Item, LabelClass, Slot
from shortlist.annotate.live.plan import LivePlan, live_plan
from shortlist.annotate.project.additions import Additions, add_to_project
from shortlist.annotate.project.backup import restore_backup, write_backup
from shortlist.annotate.project.classes import rename_class
from shortlist.annotate.project.project import SCORES, Project
from shortlist.annotate.project.stats import Stats
from shortlist.annotate.setup import export_file
from shortlist.errors import InputError
from shortlist.training import DataSource, Job, train

from ..conftest import people
from ..test_annotate_commands import refused, run
from .starting import COUNT, NAMES, hits, known_file, published, scores_file, text, truth

# -- labels that one has -----------------------------------------------------------------------------------------------


def test_known_items_make_the_first_model_and_are_not_asked_about(make, tmp_path, database):
    known = range(48)
    known_in = known_file(tmp_path / "known.csv", known)
    project, outcome = make(codes=True, names=False, database=database, known=known_in)
    assert outcome.known == 48
    trainer, chooser = published(project)
    assert hits(chooser, range(48, COUNT)) > 0.9
    assert trainer.loop.state.questions == 0
    assert set(chooser.loaded.snapshot.order.tolist()) == set(range(48, COUNT))
    (ada,) = people(project, "ada")
    queue, seen = project.queue(chooser), set()
    while held := queue.next(ada):
        seen.add(held[0].item_id - 1)
        right = truth(held[0].item_id - 1)
        queue.answer(ada, held[0].id, held[0].attempt, right if right in held[0].shortlist else None, 1.0)
    assert seen == set(range(48, COUNT))
    assert Stats(project.store).progress() == {"done": 72, "total": 72}
    status = Stats(project.store).status()
    assert (status["items"], status["items_done"]) == (COUNT, COUNT)
    assert export_file(project, tmp_path / "labels.csv", "labels") == COUNT
    assert (tmp_path / "labels.csv").read_text().count(",0,0,yes") == 48
    project.close()


def test_labels_that_come_later_are_in_the_next_publication(make, tmp_path):
    project, _ = make(codes=True, names=False)
    trainer, chooser = published(project)
    (ada,) = people(project, "ada")
    queue = project.queue(chooser)
    (held,) = queue.next(ada)
    assert hits(chooser) < 0.5
    known = {*range(48), held.item_id - 1}
    said = run("add", project.folder, "--known", known_file(tmp_path / "k.csv", known))
    assert said == f"{len(known)} items of known class: learned from, not asked about\n"
    assert trainer.step(), "without any answer"
    assert not trainer.step()
    assert chooser.refresh()
    assert hits(chooser) > 0.9
    wrong = (truth(held.item_id - 1) + 1) % len(NAMES)
    (tmp_path / "k.csv").write_text(f"item,class\nt{held.item_id - 1},{NAMES[wrong]}\n")
    run("add", project.folder, "--known", tmp_path / "k.csv")
    queue.answer(ada, held.id, held.attempt, None, 1.0)  # whoever held it may answer; nothing is learned from that
    trainer.trained_at = -1e9
    assert trainer.step()
    assert (trainer.loop.state.questions, trainer.answers) == (0, 1)
    assert trainer.loop.state.answer[held.item_id - 1] == wrong, "a label given again replaces the one before"
    project.close()


def test_a_known_item_that_comes_back_is_not_handed_out_again(make, tmp_path, database):
    """Its question was held when its class became known, and nobody answered it."""
    project, _ = make(database=database, overlap=2)
    _, chooser = published(project)
    ada, bob = people(project, "ada", "bob")
    now = [1000.0]
    queue = project.queue(chooser, clock=lambda: now[0])
    (held,) = queue.next(ada)
    add_to_project(project, Additions(known=known_file(tmp_path / "k.csv", [held.item_id - 1])))
    chooser.front.put(held.item_id)  # an older publication still wants it
    assert queue.next(bob)[0].item_id != held.item_id
    now[0] += 10_000
    queue.release(bob)
    for who in (bob, ada):
        while (question := queue.next(who)) and question[0].item_id != held.item_id:
            queue.answer(who, question[0].id, question[0].attempt, question[0].shortlist[0], 1.0)
        assert not question
    with project.store.read() as connection:
        states = connection.execute(select(Slot.state).where(Slot.item_id == held.item_id)).scalars().all()
    assert states == ["closed", "closed"]
    project.close()


# -- scores ------------------------------------------------------------------------------------------------------------


def test_scores_choose_the_first_lists_and_may_come_later(make, tmp_path):
    scores = scores_file(tmp_path / "s.npz", range(0, COUNT, 2))
    project, outcome = make(codes=True, names=False, scores=scores)
    assert outcome.scored == COUNT // 2
    assert stat.S_IMODE((project.folder / SCORES).stat().st_mode) == 0o600
    trainer, chooser = published(project)
    assert hits(chooser, range(0, COUNT, 2)) > 0.9
    assert hits(chooser, range(1, COUNT, 2)) < 0.5
    rename_class(project, 0, "renamed")
    assert f"scores of {COUNT} items" in run(
        "add", project.folder, "--scores", later_scores(tmp_path / "all.csv", "renamed")
    )
    assert trainer.step()
    assert chooser.refresh()
    assert hits(chooser) > 0.9
    project.close()


def test_a_trained_model_chooses_the_first_lists(make, tmp_path, monkeypatch):
    with (tmp_path / "train.csv").open("w", newline="") as file:
        rows = [(text(row, True), NAMES[truth(row)]) for row in range(COUNT)]
        csv.writer(file).writerows([("text", "label"), *rows])
    settings = {"size": 6, "epochs": 30, "model": "linear"}
    train(Job(DataSource(str(tmp_path / "train.csv")), tmp_path / "model", settings, device="cpu"))
    project, outcome = make(codes=True, names=False, scores=tmp_path / "model")
    assert outcome.scored == COUNT
    assert hits(published(project)[1]) > 0.9
    assert f"scores of {COUNT} items" in run("add", project.folder, "--scores", tmp_path / "model")
    project.close()
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in [name for name in sys.modules if name.startswith("shortlist.training.saved")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(InputError, match=r"needs torch.*pip install.*shortlist predict") as error:
        make("r", scores=tmp_path / "model")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "r").exists()


def later_scores(path, first):
    names = [first, *NAMES[1:]]
    lines = [",".join(["item", *names])]
    for row in range(COUNT):
        lines.append(",".join([f"t{row}", *("9" if k == truth(row) else "" for k in range(len(names)))]))
    path.write_text("\n".join(lines))
    return path


def both(folder):
    known, scores = known_file(folder / "k.csv", range(12)), scores_file(folder / "s.npz", range(COUNT))
    return {"known": known, "scores": scores}


def test_a_renamed_class_keeps_its_scores_and_labels(make, tmp_path):
    project, _ = make(codes=True, **both(tmp_path))
    rename_class(project, 3, "something else")
    trainer, chooser = published(project)
    assert hits(chooser, range(3, COUNT, len(NAMES))) > 0.8
    assert trainer.loop.state.known.sum() == 12
    project.close()


def test_a_backup_has_labels_and_scores(make, tmp_path, database):
    project, _ = make(codes=True, names=False, database=database, **both(tmp_path))
    write_backup(project, tmp_path / "b.zip")
    project.close()
    restore_backup(tmp_path / "b.zip", tmp_path / "again")
    with Project.open(tmp_path / "again") as again:
        assert stat.S_IMODE((again.folder / SCORES).stat().st_mode) == 0o600
        trainer, chooser = published(again)
        assert hits(chooser) > 0.9
        assert trainer.loop.state.known.sum() == 12


# -- bad files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "content", "message"),
    [
        ("--known", None, "cannot be read"),
        ("--known", "item,class\nt1,nonsense\n", "row 2: unknown class 'nonsense'"),
        ("--known", "item,class\nelsewhere,lost_card\n", "none of its items is in the data, whose first is 't0'"),
        ("--known", "name,class\nt1,lost_card\n", "has no column 'item' (its columns: name, class)"),
        ("--scores", "item,lost_card\nt1,much\n", "row 2, column lost_card: expected a number"),
        ("--scores", "item,nonsense\nt1,1\n", "none of its columns is a class"),
        ("--scores", None, "cannot be read"),
    ],
)
def test_a_bad_file_is_one_line_and_changes_nothing(make, tmp_path, option, content, message):
    project, _ = make()
    path = tmp_path / "bad.csv"
    if content is not None:
        path.write_text(content)
    (tmp_path / "more.csv").write_text("item,text\nnew,another text\n")
    (tmp_path / "more.txt").write_text("another class\n")
    more = ("--items", tmp_path / "more.csv", "--classes", tmp_path / "more.txt")
    line = refused("add", project.folder, *more, option, path)
    assert message in line
    assert "\n" not in line
    with project.store.read() as connection:
        count = select(func.count()).select_from
        assert connection.execute(count(Item)).scalar() == COUNT
        assert connection.execute(count(LabelClass)).scalar() == len(NAMES)
    assert not (project.folder / SCORES).exists()
    project.close()
    made = ("--items", tmp_path / "items.csv", "--classes", tmp_path / "classes.txt", "--policy", "top")
    assert message in refused("init", tmp_path / "q", *made, option, path)
    assert not (tmp_path / "q").exists()


def test_gold_items_are_not_learned_from(make, tmp_path):
    (tmp_path / "gold.csv").write_text(f"item,gold\nt5,{NAMES[5]}\n")
    project, outcome = make(gold=tmp_path / "gold.csv", known=known_file(tmp_path / "k.csv", range(12)))
    assert (outcome.known, outcome.skipped) == (11, [("t5", "a gold item: it is not learned from")])
    assert published(project)[0].loop.state.known.sum() == 11
    project.close()


def test_no_names_without_a_policy_is_refused(make):
    assert LivePlan.parse({"policy": "top"}).names, "also where a project was made before this could be set"
    with pytest.raises(InputError, match="--features, --no-names and --no-score belong to model-chosen shortlists"):
        live_plan(make()[0].settings.__class__("t", 3), names=False)
