"""What the command line does with a project: make it, add to it, invite, export."""

from dataclasses import replace
from pathlib import Path

from sqlalchemy import select

from shortlist.annotate.db.schema import Annotator, LabelClass
from shortlist.annotate.formats import EXPORTS
from shortlist.annotate.live.chooser import LivePlan
from shortlist.annotate.live.items import check_added, check_live
from shortlist.annotate.project.gold_items import mark_gold
from shortlist.annotate.project.importing import Progress, Report, add_classes, add_items, kinds, rename_class
from shortlist.annotate.project.instructions import set_instructions
from shortlist.annotate.project.project import Project, Settings
from shortlist.annotate.project.sources import find_sources, read_classes, read_gold, read_instructions
from shortlist.annotate.web.api.admin import join_link
from shortlist.annotate.web.auth import Auth
from shortlist.errors import InputError
from shortlist.files import atomic_path


def init_project(
    folder: Path,
    settings: Settings,
    items: Path,
    classes: Path,
    gold: Path | None = None,
    text_column: str | None = None,
    item_column: str | None = None,
    *,
    instructions: Path | None = None,
    strict: bool = False,
    progress: Progress = lambda done, total: None,
) -> Report:
    """Make a project with its classes and items; when that fails, nothing is left of it."""
    names = read_classes(classes)
    if len(names) < 2:
        raise InputError(f"{classes}: {len(names)} classes, expected at least two, one a line")
    found = list(find_sources(items, text_column, item_column))
    if not found:
        raise InputError(f"{items}: no items found")
    known = read_gold(gold) if gold is not None else None
    words = read_instructions(instructions) if instructions is not None else ""
    project = Project.create(folder, settings)
    try:
        set_instructions(project, words)
        add_classes(project, names)
        report = add_items(project, found, gold=known, strict=strict, progress=progress)
        if not report.added:
            where, reason = report.skipped[0]
            raise InputError(f"{items}: not one good item; the first: {where}: {reason}")
        check_live(project, LivePlan.parse(settings.live) if settings.live else None)
    except BaseException:
        project.discard()
        raise
    project.close()
    return report


def add_to_project(
    project: Project,
    items: Path | None,
    classes: Path | None,
    gold: Path | None = None,
    text_column: str | None = None,
    item_column: str | None = None,
    *,
    instructions: Path | None = None,
    strict: bool = False,
    progress: Progress = lambda done, total: None,
) -> Report:
    """Add classes, then items; what cannot be read is refused before anything is added.

    Gold answers are for the items that come in, or for those that are there where none do.
    """
    if all(given is None for given in (items, classes, gold, instructions)):
        raise InputError("nothing to add: give --items, --classes, --gold or --instructions")
    names = read_classes(classes) if classes is not None else {}
    if classes is not None and not names:
        raise InputError(f"{classes}: no classes found")
    found = list(find_sources(items, text_column, item_column)) if items is not None else []
    known = read_gold(gold) if gold is not None else {}
    words = read_instructions(instructions) if instructions is not None else None
    check_added(project, kinds(found))
    classes_now = add_classes(project, names)
    if items is None:
        report = mark_gold(project, known, strict=strict)
    else:
        report = add_items(project, found, gold=known, strict=strict, progress=progress)
    if words is not None:
        set_instructions(project, words)
    return replace(report, classes=classes_now)


def rename_by_name(project: Project, old: str, new: str) -> None:
    """Call the class `old` `new`."""
    with project.store.read() as connection:
        class_id = connection.execute(select(LabelClass.id).where(LabelClass.name == old.strip())).scalar()
    if class_id is None:
        raise InputError(f"the project has no class {old!r}")
    rename_class(project, class_id, new)


def make_invitation(project: Project, name: str | None, token: bool, url: str) -> str:
    """A link or a token: for the annotator of this name (made if new), or for an admin."""
    auth = Auth(project)
    if name is None:
        return auth.make_token("command line", None) if token else join_link(url, auth.admin_link())
    with project.store.read() as connection:
        known = connection.execute(select(Annotator.id).where(Annotator.name == name)).scalar()
    if token:
        return auth.make_token("command line", auth.invite(name)[0] if known is None else known)
    return join_link(url, auth.invite(name)[1] if known is None else auth.renew_invite(known))


def export_file(project: Project, out: Path, format_name: str | None) -> int:
    """Write one of the exports, whole or not at all; returns how many rows."""
    name = f"{format_name or 'answers'}{out.suffix.lower()}"
    if name not in EXPORTS:
        raise InputError(f"{out}: no such export, expected the format and ending of one of: {', '.join(EXPORTS)}")
    if not out.parent.is_dir():
        raise InputError(f"{out.parent}: no such folder")
    with atomic_path(out) as temporary:
        return EXPORTS[name](project, temporary)
