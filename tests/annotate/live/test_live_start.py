"""What a live project knows before the first answer: names of classes, labels and scores that its owner has."""

import csv
import json
import os
import stat
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import func, select

from shortlist.annotate.db.schema import Item, LabelClass, Slot
from shortlist.annotate.live.chooser import LiveChooser
from shortlist.annotate.live.plan import HISTORY, LivePlan, live_plan
from shortlist.annotate.live.trainer import Trainer
from shortlist.annotate.project.additions import Additions, add_to_project
from shortlist.annotate.project.backup import restore_backup, write_backup
from shortlist.annotate.project.classes import rename_class
from shortlist.annotate.project.people import People
from shortlist.annotate.project.project import SCORES, Project
from shortlist.annotate.project.stats import Stats
from shortlist.annotate.setup import export_file, init_project
from shortlist.errors import InputError
from shortlist.training import DataSource, Job, train

from ..conftest import people
from ..running import Caller, Server, free_port
from ..test_annotate_commands import refused, run
from .conftest import wait_for

NAMES = [
    *("lost_card", "wrong_exchange_rate", "cancel_transfer", "change_pin", "top_up_failed", "verify_identity"),
    *("cash_withdrawal_fee", "virtual_card_order", "refund_missing", "close_account", "apple_pay", "direct_debit"),
]
CODES = [*("zebu yak", "fjord kelp", "quartz mica", "tuba oboe", "gouda brie", "kiwi plum", "judo golf", "hemp jute")]
CODES += [*("mauve ochre", "gnome ogre", "sloop yawl", "cumin basil")]
FRAMES = ["hello, {} please", "I have a question on {}", "what about my {}?", "{} does not work", "help me with {} now"]
COUNT = 10 * len(NAMES)


def truth(row: int) -> int:
    return row % len(NAMES)


def text(row: int, codes: bool) -> str:
    """With `codes`, words that no name of a class has."""
    words = CODES[truth(row)] if codes else NAMES[truth(row)].replace("_", " ")
    return f"{FRAMES[row // len(NAMES) % len(FRAMES)].format(words)} {row}"


@pytest.fixture
def make(tmp_path):
    """A project of texts: item i is of class i % 12; with `codes` its text says so in words of its own."""

    def make(folder="p", codes=False, database=None, names=True, overlap=1, **files):
        with (tmp_path / "items.csv").open("w", newline="") as file:
            rows = [(f"t{row}", text(row, codes)) for row in range(COUNT)]
            csv.writer(file).writerows([("item", "text"), *rows])
        (tmp_path / "classes.txt").write_text("\n".join(NAMES))
        additions = Additions(tmp_path / "items.csv", tmp_path / "classes.txt", **files)
        how = {"policy": "top", "size": 2, "database": database, "names": names, "overlap": overlap}
        outcome = init_project(tmp_path / folder, additions, **how)[1]
        return Project.open(tmp_path / folder), outcome

    return make


def known_file(path, rows):
    path.write_text("item,class\n" + "".join(f"t{row},{NAMES[truth(row)]}\n" for row in rows))
    return path


def scores_file(path, rows, sure=3.0):
    items = np.array([f"t{row}" for row in rows])
    scores = sure * np.eye(len(NAMES))[[truth(row) for row in rows]]
    np.savez(path, scores=scores, items=items, classes=np.array(NAMES))
    return path


def published(project):
    """Train until there is nothing to do; the chooser with the latest publication."""
    plan = live_plan(project.settings)
    trainer = Trainer(project, plan)
    while trainer.step():
        pass
    chooser = LiveChooser(project.live, plan)
    assert chooser.refresh()
    return trainer, chooser


def hits(chooser, rows=range(COUNT)):
    """How often a list holds the right class; the item in row i has the id i + 1. By chance in one case of 6."""
    return np.mean([truth(row) in chooser.choose(row + 1, len(NAMES), [], 7).shortlist for row in rows])


# -- names -------------------------------------------------------------------------------------------------------------


def test_the_first_lists_come_from_the_names(make, tmp_path):
    project, _ = make()
    trainer, chooser = published(project)
    assert trainer.answers == 0
    assert hits(chooser) > 0.9
    project.close()
    without, _ = make("q", names=False)
    assert json.loads((tmp_path / "q" / "project.json").read_text())["live"]["names"] is False
    assert hits(published(without)[1]) < 0.4
    without.close()


def test_descriptions_count_too(make, tmp_path):
    project, _ = make(codes=True)
    before = hits(published(project)[1])
    described = [f"{name},{CODES[k]}" for k, name in enumerate(NAMES)]
    (tmp_path / "more.csv").write_text("\n".join(["class,description", *described]))
    add_to_project(project, Additions(classes=tmp_path / "more.csv"))
    assert hits(published(project)[1]) > 0.9 > before + 0.4
    project.close()


def test_a_sentence_encoder_compares_names_too(make, encoder_of, tmp_path):
    project, _ = make(codes=True)
    encoder_of([f"{name.replace('_', ' ')} {CODES[k]}" for k, name in enumerate(NAMES)])
    plan = replace(live_plan(project.settings), features=str(tmp_path))  # the folder of the encoder
    Trainer(project, plan).step()
    chooser = LiveChooser(project.live, plan)
    assert chooser.refresh()
    assert hits(chooser) > 0.9
    project.close()


def test_out_of_scope_is_a_class_that_is_typed_until_the_model_offers_it(make, tmp_path):
    """What docs/annotate.md says about items of no class."""
    project, _ = make(names=False)
    (tmp_path / "more.csv").write_text("class\nout of scope\n")
    strange = [f"s{i},{('lovely', 'awful')[i % 2]} weather in town {i}" for i in range(30)]
    (tmp_path / "strange.csv").write_text("\n".join(["item,text", *strange]))
    add_to_project(project, Additions(items=tmp_path / "strange.csv", classes=tmp_path / "more.csv"))
    outside, (ada,) = len(NAMES), people(project, "ada")
    chooser, left = published(project)[1], set(range(COUNT + 1, COUNT + 31))

    def offered():
        return np.mean([outside in chooser.choose(item, outside + 1, [], 7).shortlist for item in left])

    assert offered() < 0.5, "by chance in one case of 6"
    queue = project.queue(chooser)
    while len(left) > 20:
        (question,) = queue.next(ada)
        right = outside if question.item_id in left else truth(question.item_id - 1)
        queue.answer(ada, question.id, question.attempt, right, 1.0, typed=right not in question.shortlist)
        left.discard(question.item_id)
    chooser = published(project)[1]
    assert offered() > 0.9
    project.close()


def test_names_that_mislead_lose_their_weight_also_after_a_restart(make):
    project, _ = make()
    for k, name in enumerate(NAMES):  # each class by the name of another
        rename_class(project, k, f"moved {name}")
    for k in range(len(NAMES)):
        rename_class(project, k, NAMES[(k + 5) % len(NAMES)])
    (ada,) = people(project, "ada")
    trainer, chooser = published(project)
    assert hits(chooser) < 0.3
    queue = project.queue(chooser)
    while len(trainer.loop.open_items()) > 20:
        (question,) = queue.next(ada)
        right = truth(question.item_id - 1)
        queue.answer(ada, question.id, question.attempt, right if right in question.shortlist else None, 1.0)
        trainer.trained_at = -1e9
        trainer.step()
        chooser.refresh()
    assert trainer.loop.pool.weights[0] < 0.2
    again, chooser = published(project)
    assert again.loop.pool.weights[0] < 0.5, "fitted to the latest answers, which a model was trained for"
    assert hits(chooser) > 0.6
    project.close()


def test_a_real_server_asks_by_names_before_the_first_answer(make, tmp_path):
    project, _ = make()
    auth = People(project)
    tokens = [auth.make_token("robot", auth.invite(f"robot {i}")[0]) for i in range(30)]
    project.close()
    server = Server(tmp_path / "p", free_port())
    try:
        assert "/join#" in server.process.stdout.readline()
        assert server.process.stdout.readline().startswith("The model is being prepared: until its first training")
        server.wait()
        history = tmp_path / "p" / "live" / HISTORY
        wait_for(history.exists)
        wait_for(lambda: hit(server.port, tokens[0]))  # until the server has it in hand
        first = [hit(server.port, token) for token in tokens[1:]]
        assert last_line(history)["answers"] == 0
        assert np.mean(first) > 0.8, "by chance it would be 0.17"
        known = known_file(tmp_path / "known.csv", range(60))
        run("add", tmp_path / "p", "--known", known)
        wait_for(lambda: last_line(history)["resolved"] == 0.5)  # without any answer
        for pid in (server.process.pid, *children(server.process.pid)):
            with open(f"/proc/{pid}/maps") as maps:  # noqa: PTH123
                assert "libtorch" not in maps.read()
    finally:
        server.process.terminate()
        server.process.wait(20)
        server.process.stdout.close()


def last_line(history):
    return json.loads(history.read_text().splitlines()[-1])


def hit(port, token):
    """Whether the list that somebody is shown holds the right class; they skip it."""
    caller = Caller(port, token)
    _, reply = caller.post("/next", {"hold": 1})
    (question,) = reply["questions"]
    shown = [NAMES.index(choice["name"]) for choice in question["shortlist"]]
    right = truth(int(question["item"]["text"].split()[-1]))
    caller.post("/skips", {"question": question["id"], "attempt": question["attempt"]})
    caller.close()
    return right in shown


def children(pid):
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    found = [int(word) for word in listed.stdout.split()]
    assert found, "the trainer runs beside the server"
    return found


def test_the_trainer_needs_no_torch(make, tmp_path):
    make()[0].close()
    code = (
        "import sys\nfrom pathlib import Path\nfrom shortlist.annotate.live.plan import LivePlan\n"
        "from shortlist.annotate.live.trainer import Trainer\nfrom shortlist.annotate.project.project import Project\n"
        "assert Trainer(Project.open(Path(sys.argv[1])), LivePlan(size=2)).step()\nprint('torch' in sys.modules)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "p")]
    assert subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ)).stdout == "False\n"


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
        ("--known", "item,class\nt1,nonsense\n", "row 1: unknown class 'nonsense'"),
        ("--known", "item,class\nelsewhere,lost_card\n", "none of its items is in the data, whose first is 't0'"),
        ("--known", "name,class\nt1,lost_card\n", "has no column 'item' (its columns: name, class)"),
        ("--scores", "item,lost_card\nt1,much\n", "row 1, column lost_card: expected a number"),
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
