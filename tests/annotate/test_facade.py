"""What others may use of `shortlist.annotate`, and what that costs."""

import subprocess
import sys

import shortlist.annotate as annotate

NO_TORCH = """
import importlib, pkgutil, sys

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, NotInstalled())
import shortlist.annotate
for module in pkgutil.walk_packages(shortlist.annotate.__path__, "shortlist.annotate."):
    if "migrations" not in module.name:
        importlib.import_module(module.name)
from pathlib import Path
from shortlist.annotate.live.plan import LivePlan
from shortlist.annotate.live.trainer import Trainer
with shortlist.annotate.Project.open(Path(sys.argv[1])) as project:
    assert Trainer(project, LivePlan(size=2)).step()
"""


def test_every_name_is_there():
    assert annotate.__all__ == sorted(annotate.__all__)
    assert all(getattr(annotate, name).__module__.startswith("shortlist.annotate.") for name in annotate.__all__)
    assert not hasattr(annotate, "nothing")


def test_importing_it_loads_nothing_heavy():
    script = (
        "import sys, shortlist.annotate; sys.exit(any(n in sys.modules for n in ('sqlalchemy', 'fastapi', 'scipy')))"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_all_of_it_and_a_training_work_without_torch(make_project):
    """Protects `pip install "shortlist[annotate]"`, which brings no torch."""
    project = make_project(items=12)
    subprocess.run([sys.executable, "-c", NO_TORCH, str(project.folder)], check=True)
