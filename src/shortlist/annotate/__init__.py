"""The annotation app: people answer shortlists in a browser; no answer is lost, and nobody gets in uninvited.

>>> from pathlib import Path
>>> from shortlist.annotate import Project, export_file
>>> with Project.open(Path("birds")) as project:  # doctest: +SKIP
...     export_file(project, Path("answers.csv"))

Its rooms, each built on those after it: `first_steps`, `setup` and `demo` (what the command line does), `web` (pages,
API, signing in), `live` (a model that chooses the shortlists) and `formats` (exports), `project` (items, classes,
people), `queue` (lease, answer, undo), `db` (tables, transactions), `problems` (refusals). Nothing here imports torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shortlist.annotate.demo import run_demo
    from shortlist.annotate.first_steps import run_first_steps
    from shortlist.annotate.formats.label_studio_answers import import_file
    from shortlist.annotate.project.additions import Additions, add_to_project
    from shortlist.annotate.project.backup import restore_backup, write_backup
    from shortlist.annotate.project.project import Project
    from shortlist.annotate.setup import export_file, init_project, make_invitation, rename_by_name
    from shortlist.annotate.web.serve import Address, serve_project

__all__ = [
    "Additions",
    "Address",
    "Project",
    "add_to_project",
    "export_file",
    "import_file",
    "init_project",
    "make_invitation",
    "rename_by_name",
    "restore_backup",
    "run_demo",
    "run_first_steps",
    "serve_project",
    "write_backup",
]

# Loaded when first used: the trainer's process and the command line need little of it.
_MODULES = {
    "demo": ("run_demo",),
    "first_steps": ("run_first_steps",),
    "formats.label_studio_answers": ("import_file",),
    "project.additions": ("Additions", "add_to_project"),
    "project.backup": ("restore_backup", "write_backup"),
    "project.project": ("Project",),
    "setup": ("export_file", "init_project", "make_invitation", "rename_by_name"),
    "web.serve": ("Address", "serve_project"),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
