"""`shortlist annotate init` and `serve` with a policy."""

import json
import subprocess
import sys

import pytest
from PIL import Image
from sqlalchemy import func, select

from shortlist.annotate.db.schema import LabelClass
from shortlist.annotate.live.plan import LivePlan
from shortlist.annotate.live.supervisor import Supervisor
from shortlist.annotate.project.importing import store_media
from shortlist.annotate.project.project import Project
from shortlist.errors import InputError


@pytest.fixture
def birds(tmp_path, monkeypatch):
    """The folder that commands run in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.csv").write_text("text\na red bird\na blue bird\n")
    (tmp_path / "classes.txt").write_text("red\nblue\ngreen\n")
    return tmp_path


def test_init_stores_the_policy(shortlist, birds):
    made = ("annotate", "init", "p", "--items", "texts.csv", "--classes", "classes.txt", "--size", "2")
    done = shortlist(*made, "--policy", "adaptive", "--epsilon", "0.1")
    assert done.code == 0
    assert done.err.splitlines()[0] == "2 items added, 0 skipped", "no trace of a bar where there is no terminal"
    live = json.loads((birds / "p" / "project.json").read_text())["live"]
    assert (live["policy"], live["size"], live["epsilon"]) == ("adaptive", 2, 0.1)


def test_a_size_above_the_classes_is_one_line_and_leaves_nothing(shortlist, birds):
    made = ("annotate", "init", "p", "--items", "texts.csv", "--classes", "classes.txt", "--size")
    found = shortlist(*made, "4")
    assert found.code == 2
    assert found.err == "shortlist: size 4: expected at most the 3 classes of classes.txt\n"
    assert not (birds / "p").exists()
    assert shortlist(*made, "3").code == 0


def test_a_bad_policy_is_one_line_and_leaves_nothing(shortlist, birds):
    made = ("annotate", "init", "p", "--items", "texts.csv", "--classes", "classes.txt", "--policy", "best")
    found = shortlist(*made)
    assert found.code == 2
    assert "best" in found.err
    assert "Traceback" not in found.err
    assert not (birds / "p").exists()


def test_serve_refuses_options_without_a_policy(shortlist, birds):
    assert shortlist("annotate", "init", "p", "--items", "texts.csv", "--classes", "classes.txt").code == 0
    found = shortlist("annotate", "serve", "p", "--port", "0", "--epsilon", "0.1")
    assert found.code == 2
    assert "--policy" in found.err
    assert not found.out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("words\na red bird\n", "no column 'text'"),
        (
            "text\na red bird\n",
            "expected labelled items of the kind text to score on (a column text and a column label)",
        ),
        ("text,label\na red bird,rde\n", "class 'rde' is not one of the project's"),
    ],
)
def test_bad_test_data_is_refused_before_anything_runs(shortlist, birds, content, message):
    """The trainer would fail on it again and again, and people would be asked with uniform lists."""
    (birds / "test.csv").write_text(content)
    made = ("annotate", "init", "p", "--items", "texts.csv", "--classes", "classes.txt")
    assert shortlist(*made).code == 0
    wanted = ("--policy", "adaptive", "--test", "test.csv")
    served = shortlist("annotate", "serve", "p", "--port", "0", *wanted)
    again = shortlist("annotate", "init", "q", *made[3:], *wanted)
    for found in (served, again):
        assert (found.code, found.out) == (2, "")
        assert message in found.err
    assert not (birds / "q").exists()


def test_test_data_is_found_from_elsewhere(shortlist, birds):
    (birds / "test.csv").write_text("text,label\na red bird,red\n")
    made = ("annotate", "init", "p", "--items", "texts.csv", "--classes", "classes.txt")
    assert shortlist(*made, "--policy", "top", "--test", "test.csv").code == 0
    assert json.loads((birds / "p" / "project.json").read_text())["live"]["test"] == str(birds / "test.csv")


def test_pictures_do_not_join_texts_that_a_model_chooses_lists_for(shortlist, birds):
    """The trainer could not go on, and lists would stay as they were for ever."""
    pictures = birds / "pictures"
    pictures.mkdir()
    Image.new("L", (8, 8)).save(pictures / "a.png")
    (birds / "more.txt").write_text("grey\n")
    made = ("--items", "texts.csv", "--classes", "classes.txt")
    assert shortlist("annotate", "init", "p", *made, "--policy", "adaptive").code == 0
    assert shortlist("annotate", "init", "q", *made).code == 0
    add = ("--items", "pictures", "--classes", "more.txt")
    assert shortlist("annotate", "add", "q", *add).code == 0, "no model was asked for"
    assert shortlist("annotate", "init", "r", *made).code == 0
    with Project.open(birds / "r") as project:
        Supervisor(project, LivePlan())  # what `serve --policy adaptive` begins with
        with pytest.raises(InputError, match="they are text, these image"):
            store_media(project, "a.png", (pictures / "a.png").read_bytes())
    for name, more in (("p", ""), ("r", " (or remove r/live if no model is to choose here again)")):
        found = shortlist("annotate", "add", name, *add)
        assert found.code == 2
        assert found.err == (
            "shortlist: a model chooses this project's lists and needs items of one kind; they are text, "
            f"these image: make another project for these{more}\n"
        )
        with Project.open(birds / name) as project, project.store.read() as connection:
            assert connection.execute(select(func.count()).select_from(LabelClass)).scalar_one() == 3
        (birds / "more.csv").write_text(f"item,text\n{name},a green bird\n")
        assert shortlist("annotate", "add", name, "--items", "more.csv").code == 0


def test_a_trainer_that_cannot_go_on_says_one_line(shortlist, birds):
    assert shortlist("annotate", "init", "p", "--items", "texts.csv", "--classes", "classes.txt").code == 0
    command = [sys.executable, "-m", "shortlist.annotate.live.trainer", str(birds / "p"), '{"test": "nowhere.csv"}']
    trainer = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert trainer.wait(timeout=120) == 2  # with its input still open, as the server holds it
    _, said = trainer.communicate()
    assert len(said.splitlines()) == 1


def test_init_says_when_random_lists_would_mostly_be_none(shortlist, birds):
    (birds / "many.txt").write_text("".join(f"class {k}\n" for k in range(50)))
    made = ("--items", "texts.csv", "--classes")
    said = shortlist("annotate", "init", "p", *made, "many.txt").err.splitlines()
    assert said[-2:] == [
        "Random lists of 5 of 50 classes: about 90% of answers will be None.",
        "Next: shortlist annotate serve p --policy adaptive",
    ]
    for place, rest in enumerate((("classes.txt",), ("many.txt", "--policy", "top"))):
        said = shortlist("annotate", "init", f"q{place}", *made, *rest).err.splitlines()
        assert said == ["2 items added, 0 skipped", f"Next: shortlist annotate serve q{place}"]
