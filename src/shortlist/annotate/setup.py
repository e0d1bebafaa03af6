"""What the command line does with a project: make it, add to it, invite, rename, export."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from shortlist.annotate.db.statements import class_names
from shortlist.annotate.formats import EXPORTS
from shortlist.annotate.formats.answers import PSEUDONYMS
from shortlist.annotate.live.items import check_live
from shortlist.annotate.live.plan import live_plan
from shortlist.annotate.project.additions import Additions, Read, add_read, remark
from shortlist.annotate.project.audit import CommandLine, audit_alone
from shortlist.annotate.project.classes import rename_class
from shortlist.annotate.project.importing import ImportOutcome, Progress
from shortlist.annotate.project.instructions import set_instructions
from shortlist.annotate.project.people import People, join_link
from shortlist.annotate.project.project import Project, Settings, check_target, unfinished
from shortlist.annotate.queue.ways import MOST_LISTED
from shortlist.annotate.web.serve import Address, opens_here_only, served_at
from shortlist.errors import InputError
from shortlist.internal.files import atomic_path
from shortlist.internal.names import tell_alike

USUAL_SIZE = 5


def init_project(
    folder: Path,
    additions: Additions,
    *,
    title: str | None = None,
    size: int | None = None,
    policy: str | None = None,
    epsilon: float | None = None,
    test: str | None = None,
    names: bool = True,
    score: bool = True,
    features: str | None = None,
    pinned: str | None = None,
    progress: Progress = lambda done, total: None,
    **settings: Any,
) -> tuple[Settings, ImportOutcome]:
    """Make a project with its classes and items; if that fails, nothing is left of it.

    Args:
        folder: where; it must not hold a project yet.
        additions: items and classes, at least two, are needed.
        title: the folder's name, as words, if not given.
        size: classes on a shortlist, 5 if not given.
        policy: the policy by which a model chooses the lists; none: chance does.
        epsilon: share of uniform lists mixed in with the model's.
        test: labelled data to score the model on.
        names: texts: let the names of the classes choose the first lists.
        score: keep a sample of the items out of training, to score the model by it.
        features: the word for what the model sees (`policies.make_features`).
        pinned: the class that is on every list.
        progress: called with how many items are done, and of how many.
        settings: overlap, gold_every, database, typing and compare, as in `Settings`.
    """
    read = additions.read()
    _check(additions, read, size, bool(settings.get("compare")))
    # more classes may come later, so the usual size may be more than there are now
    size = USUAL_SIZE if size is None else size
    settings |= {"text_column": additions.text_column, "item_column": additions.item_column}
    chosen = Settings(title or _readable(folder), size, pinned=_number(pinned, read.classes), **settings)
    live = live_plan(chosen, policy, epsilon, test, None if names else False, None if score else False, features)
    chosen = replace(chosen, live=None if live is None else live.to_dict())
    contents = [source.content for source in read.items]
    given = additions.read_given([source.name for source in read.items], list(read.classes), contents, alone=True)
    with unfinished(folder):
        project = Project.create(folder, chosen)
        try:
            set_instructions(project, read.instructions or "")
            outcome = add_read(project, read, additions.strict, progress)
            if not outcome.added:
                where, reason = outcome.skipped[0]
                raise InputError(f"{additions.items}: not one good item; the first: {where}: {reason}")
            check_live(project, live)
            given.store(project, outcome)
            outcome.remark = remark(additions, read, list(read.classes), outcome)
        except BaseException:
            project.discard()
            raise
        project.close()
    return chosen, outcome


def _check(additions: Additions, read: Read, size: int | None, compare: bool) -> None:
    """Refuse what makes no project."""
    count = len(read.classes)
    if count < 2:
        raise InputError(f"{additions.classes}: {count} classes, expected at least two, one per line")
    if size is not None and size > count:
        raise InputError(f"size {size}: expected at most the {count} classes of {additions.classes}")
    if not read.items:
        raise InputError(f"{additions.items}: no items found")
    if compare and count > MOST_LISTED:
        raise InputError(f"{additions.classes}: {count} classes: full lists are compared with at most {MOST_LISTED}")


def _number(pinned: str | None, classes: Collection[str]) -> int | None:
    if pinned is None:
        return None
    if pinned not in classes:
        raise InputError(f"pinned: no class is named {pinned!r}; a class that is on every list is a line of its own")
    return list(classes).index(pinned)


def _readable(folder: Path) -> str:
    """The folder's name as a title: my_birds-2 becomes My birds 2."""
    name = folder.resolve().name
    words = name.replace("_", " ").replace("-", " ").strip() or name
    return words[0].upper() + words[1:]


def rename_by_name(project: Project, old: str, new: str) -> str:
    """Rename the class `old` to `new`; returns a remark if it now looks like another one."""
    with project.store.read() as connection:
        names = class_names(connection)
    if old.strip() not in names:
        raise InputError(f"the project has no class {old!r}")
    rename_class(project, names.index(old.strip()), new)
    with project.store.read() as connection:
        return tell_alike(class_names(connection), {new.strip()})


def make_invitation(
    project: Project, name: str | None, token: bool, url: str | None = None, role: str = "annotator"
) -> tuple[str, str]:
    """A link or a token for the annotator of this name, added if new, and a remark; without a name, for an owner.

    Owners and reviewers get links that work once. Without `url` the link leads to where the project is being served,
    and the remark says if that is nowhere, or for this machine only.
    """
    role = "owner" if name is None else role
    if token and role == "reviewer":
        raise InputError("a token is an annotator's or an owner's: a reviewer needs a link")
    people = People(project)
    who = None if name is None or role != "annotator" else people.ensure(name)
    subject = f"annotator {who}" if who is not None else name or "owner"
    if token:
        secret = people.make_token(name or "command line", who)
    else:
        secret = people.admin_link(name or "owner", role) if who is None else people.renew_invite(who)
    audit_alone(project.store, CommandLine(), "make token" if token else "make link", subject, role=role)
    if token:
        return secret, ""
    if url is not None:
        return join_link(url, secret), ""
    # one that others can open, too, if there is one
    served, usual, remark = sorted(served_at(project), key=opens_here_only), Address().url, ""
    if not served:
        remark = f"{project.folder} is not being served: say with --url where it will be, if not at {usual}"
    elif opens_here_only(served[0]):
        remark = "this link opens on this machine only: for others see --host and --public-url of `serve`"
    if len(served) > 1:
        remark = f"also served at {' and '.join(served[1:])} (--url gives the link there)" + (remark and f"; {remark}")
    return join_link(served[0] if served else usual, secret), remark


def export_file(project: Project, out: Path, format_name: str | None = None, *, pseudonyms: bool = False) -> int:
    """Write one of the exports, completely or not at all; returns the number of rows.

    With `pseudonyms`, people are numbers that only the project can tell.
    """
    name = f"{format_name or 'answers'}{out.suffix.lower()}"
    if name not in EXPORTS:
        raise InputError(f"{out}: no such export, expected the format and ending of one of: {', '.join(EXPORTS)}")
    check_target(out)
    before = PSEUDONYMS.set(pseudonyms)
    try:
        with atomic_path(out) as temporary:
            return EXPORTS[name](project, temporary)
    except OSError as error:  # a full disk has no file's name in it
        raise InputError(f"{out}: cannot be written: {error.strerror or error}") from error
    finally:
        PSEUDONYMS.reset(before)
