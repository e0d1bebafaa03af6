"""What the trainer learns, beside a real server, with robots, and killed at any moment."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select

from shortlist.annotate.db.schema import Item
from shortlist.annotate.live.chooser import LiveChooser
from shortlist.annotate.live.plan import HISTORY, LivePlan, live_plan
from shortlist.annotate.live.supervisor import supervising
from shortlist.annotate.live.trainer import Trainer
from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.people import People
from shortlist.annotate.project.project import Project, Settings
from shortlist.annotate.project.sources import Source
from shortlist.annotate.project.stats import Stats
from shortlist.policies.noise import EXPECTED_GOLD

from ..conftest import people
from .conftest import WORDS, answer_all, wait_for


def test_gold_answers_set_the_rates_of_mistakes(make_project):
    project = make_project(items=0, overlap=2, gold_every=2)
    add_items(project, [Source(f"i{i}", f"i{i}", text=WORDS[i % 6]) for i in range(60)])
    known = [Source(f"g{i}", f"g{i}", text=WORDS[i % 6], gold=f"class {i % 6}") for i in range(300)]
    add_items(project, known)
    (ada,) = people(project, "ada")
    with project.store.read() as connection:
        names = dict(connection.execute(select(Item.id, Item.name)).all())
    queue = project.queue(seeds=iter(range(2, 10**6, 2)).__next__)  # every question is a gold one
    dice, missed, shown = np.random.default_rng(0), 0, 0
    for _ in range(150):
        (question,) = queue.next(ada)
        right = int(names[question.item_id][1:]) % 6
        miss = dice.random() < 0.3
        shown += right in question.shortlist
        missed += right in question.shortlist and miss
        queue.answer(ada, question.id, 0, right if right in question.shortlist and not miss else None, 1.0)
    plan = live_plan(project.settings, "top")
    trainer = Trainer(project, plan)
    trainer.step()
    found = trainer.loop.state.mistakes
    expected = plan.loop_settings().mistakes
    assert found.miss == pytest.approx((missed + EXPECTED_GOLD * expected.miss) / (shown + EXPECTED_GOLD))
    assert 0.001 <= found.slip < expected.slip, "never exactly 0"
    assert trainer.loop.state.questions == 0, "gold is not trained on"
    chooser = LiveChooser(project.live, plan)
    chooser.refresh()
    assert chooser.loaded.snapshot.mistakes == found


def test_the_trainer_is_started_again_after_a_kill_and_stopped_with_the_server(words):
    project = words(count=30)
    (ada,) = people(project, "ada")
    plan = LivePlan(size=3)
    with supervising(project, plan) as supervisor:
        supervisor.start()
        wait_for(lambda: supervisor.chooser.loaded is not None)
        version = supervisor.chooser.loaded.snapshot.version
        first = supervisor.trainer
        first.kill()
        answer_all(project, supervisor.chooser, ada, most=20)
        wait_for(lambda: supervisor.chooser.loaded.snapshot.version > version)
        assert supervisor.trainer is not first
        wait_for(
            lambda: any(
                m["name"] == "resolved" and m["answers"] >= 20 for m in Stats(project.store).status()["measures"]
            )
        )
        last = supervisor.trainer
    assert last.poll() is not None


@pytest.mark.parametrize("moment", ["loop.fit", "saved.snapshot._write_arrays"])
def test_a_trainer_killed_in_the_middle_of_a_training_loses_nothing(words, moment):
    """kill -9 while it trains, or while it publishes: the next one finds what this one would have found."""
    project = words()
    (ada,) = people(project, "ada")
    plan = LivePlan(size=3)
    trainer = Trainer(project, plan)
    trainer.step()
    chooser = LiveChooser(project.live, plan)
    chooser.refresh()
    answer_all(project, chooser, ada, most=50)
    Trainer(project, plan).step()
    chooser.refresh()
    expected = chooser.loaded.snapshot
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom shortlist.annotate.live.plan import LivePlan\n"
        "from shortlist.annotate.live.trainer import Trainer\nfrom shortlist.annotate.project.project import Project\n"
        "import shortlist.policies.loop, shortlist.policies.saved.snapshot\n"
        "place, name = sys.argv[2].rsplit('.', 1)\nmodule = sys.modules['shortlist.policies.' + place]\n"
        "work = getattr(module, name)\n"
        "def die(*args, **kwargs):\n    work(*args, **kwargs)\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "setattr(module, name, die)\n"
        "Trainer(Project.open(Path(sys.argv[1])), LivePlan(size=3)).step()\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(project.folder), moment]).returncode == -signal.SIGKILL
    assert not chooser.refresh(), "nothing half-written is taken in"
    again = Trainer(project, plan)
    again.step()
    assert again.answers == 50
    assert chooser.refresh()
    found = chooser.loaded.snapshot
    np.testing.assert_array_equal(found.model.weight, expected.model.weight)
    np.testing.assert_array_equal(found.order, expected.order)
    np.testing.assert_array_equal(found.answers.table(), expected.answers.table())
    assert len(list(project.live.glob("features-*.npy"))) == 1, "what was left behind is swept up"


def test_the_trainer_ends_when_the_server_is_killed(words):
    project = words(count=10)
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom shortlist.annotate.live.plan import LivePlan\n"
        "from shortlist.annotate.live.supervisor import Supervisor\n"
        "from shortlist.annotate.project.project import Project\n"
        "p = Project.open(Path(sys.argv[1])); s = Supervisor(p, LivePlan(size=3))\n"
        "s.start()\n"
        "while s.chooser.loaded is None: time.sleep(0.05)\n"
        "print(s.trainer.pid, 'torch' in sys.modules, 'scipy' in sys.modules, flush=True); time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(project.folder)], stdout=subprocess.PIPE, text=True)
    pid, torch, scipy = process.stdout.readline().split()
    assert (torch, scipy) == ("False", "False")
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    wait_for(lambda: not _alive(int(pid)), 20)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_robots_label_digits_live(tmp_path):
    """A short version of benchmarks/annotate_live.py: the command, robots through the API, the curve."""
    from PIL import Image

    from shortlist.annotate.demo import load_digits
    from shortlist.annotate.robots import Manner, reader, run_crowd

    from ..running import Server, free_port

    digits, names = load_digits(), list("0123456789")
    plan = LivePlan(size=3, l2=0.03, test="digits")
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for i in range(300):
        Image.fromarray(digits.x[i]).save(pictures / digits.names[i])
    folder = tmp_path / "project"
    with Project.create(folder, Settings("digits", 3, live=plan.to_dict())) as project:
        add_classes(project, names)
        add_items(project, [Source(n, n, path=pictures / n) for n in digits.names[:300]], strict=True)
        auth = People(project)
        tokens = [auth.make_token("robot", auth.invite(f"robot {i}")[0]) for i in range(6)]
    server = Server(folder, free_port())
    try:
        server.wait()
        history = folder / "live" / HISTORY
        wait_for(history.exists)
        known = {p.tobytes(): names[k] for p, k in zip(digits.x, digits.y, strict=True)}
        run_crowd(f"http://127.0.0.1:{server.port}", tokens, reader(known), Manner(0.05, 0, 0))
        lines = lambda: [json.loads(line) for line in history.read_text().splitlines()]  # noqa: E731
        wait_for(lambda: lines()[-1]["resolved"] > 0.98)
        with Project.open(folder) as project:
            wait_for(lambda: Stats(project.store).status()["measures"])
    finally:
        server.process.terminate()
        server.process.wait(20)
        server.process.stdout.close()
    last = lines()[-1]
    assert last["accuracy"] > 0.85
    assert last["reads"] < 0.5 * 300 * 10, "full labels read all ten"
    assert len(lines()) > 2
