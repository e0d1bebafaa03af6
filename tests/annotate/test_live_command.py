"""`shortlist annotate init` and `serve` with a policy."""

import json
import os
import subprocess
import sys

import pytest


@pytest.fixture
def birds(tmp_path):
    (tmp_path / "texts.csv").write_text("text\na red bird\na blue bird\n")
    (tmp_path / "classes.txt").write_text("red\nblue\ngreen\n")
    return tmp_path


def shortlist(*words, folder):
    command = [sys.executable, "-m", "shortlist", "annotate", *words]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=120, env=dict(os.environ)
    )


def test_init_stores_the_policy(birds):
    made = ("init", "p", "--items", "texts.csv", "--classes", "classes.txt", "--size", "2")
    assert shortlist(*made, "--policy", "adaptive", "--epsilon", "0.1", folder=birds).returncode == 0
    live = json.loads((birds / "p" / "project.json").read_text())["live"]
    assert (live["policy"], live["size"], live["epsilon"]) == ("adaptive", 2, 0.1)


def test_a_bad_policy_is_one_line_and_leaves_nothing(birds):
    made = ("init", "p", "--items", "texts.csv", "--classes", "classes.txt", "--policy", "best")
    found = shortlist(*made, folder=birds)
    assert found.returncode == 2
    assert "best" in found.stderr
    assert "Traceback" not in found.stderr
    assert not (birds / "p").exists()


def test_serve_refuses_options_without_a_policy(birds):
    assert shortlist("init", "p", "--items", "texts.csv", "--classes", "classes.txt", folder=birds).returncode == 0
    found = shortlist("serve", "p", "--port", "0", "--epsilon", "0.1", folder=birds)
    assert found.returncode == 2
    assert "--policy" in found.stderr
    assert not found.stdout
