"""What a live project knows before the first answer by the names of its classes."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np

from shortlist.annotate.live.chooser import LiveChooser
from shortlist.annotate.live.plan import HISTORY, live_plan
from shortlist.annotate.live.trainer import Trainer
from shortlist.annotate.project.additions import Additions, add_to_project
from shortlist.annotate.project.classes import rename_class
from shortlist.annotate.project.people import People

from ..conftest import people
from ..running import Caller, Server, free_port
from ..test_annotate_commands import run
from .conftest import wait_for
from .starting import CODES, COUNT, NAMES, hits, known_file, published, truth


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
