"""What the command line does with a project: make it, add to it, invite, rename, export."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from shortlist.annotate.db.schema import Item
from shortlist.annotate.db.statements import class_ids, class_names
from shortlist.annotate.formats import EXPORTS
from shortlist.annotate.formats.answers import PSEUDONYMS
from shortlist.annotate.live.items import check_live
from shortlist.annotate.live.plan import live_plan
from shortlist.annotate.project.audit import CommandLine, audit_alone
from shortlist.annotate.project.classes import rename_class
from shortlist.annotate.project.gold_items import mark_gold
from shortlist.annotate.project.importing import ImportOutcome, Progress, add_items, check_kinds, kinds
from shortlist.annotate.project.instructions import set_instructions
from shortlist.annotate.project.known_items import mark_known
from shortlist.annotate.project.people import People, join_link
from shortlist.annotate.project.project import Project, Settings, unfinished
from shortlist.annotate.project.scores import set_scores
from shortlist.annotate.project.sources import Source, find_sources, read_classes, read_gold, read_instructions
from shortlist.annotate.queue.ways import MOST_LISTED
from shortlist.errors import InputError
from shortlist.internal.files import atomic_path
from shortlist.policies import read_known, read_scores

USUAL_SIZE = 5


@dataclass(frozen=True)
class Additions:
    """The files from which a project is made, or which are added to one; see `shortlist annotate add --help`."""

    items: Path | None = None
    classes: Path | None = None
    gold: Path | None = None
    instructions: Path | None = None
    known: Path | None = None
    scores: Path | None = None
    text_column: str | None = None
    item_column: str | None = None
    strict: bool = False

    def read(self) -> "_Read":
        """What the files hold; one that cannot be read is refused before anything is changed."""
        return _Read(
            [] if self.items is None else list(find_sources(self.items, self.text_column, self.item_column)),
            {} if self.classes is None else read_classes(self.classes),
            {} if self.gold is None else read_gold(self.gold),
            None if self.instructions is None else read_instructions(self.instructions),
        )

    def read_given(self, items: Sequence[str], classes: Sequence[str]) -> "_Given":
        """What is known of these items, which may be about to be added, with these classes."""
        known = {}
        if self.known is not None:
            rows, labels = read_known(self.known, items, classes)
            known = {items[row]: classes[k] for row, k in zip(rows.tolist(), labels.tolist(), strict=True)}
        return _Given(items, known, None if self.scores is None else read_scores(self.scores, items, classes))


@dataclass(frozen=True)
class _Read:
    items: list[Source]
    classes: Mapping[str, str | None]
    gold: Mapping[str, str]
    instructions: str | None


@dataclass(frozen=True)
class _Given:
    """Known classes by item, and an (N, K) table of scores, if any."""

    items: Sequence[str] = ()
    known: Mapping[str, str] = field(default_factory=dict)
    scores: NDArray[np.float32] | None = None

    def store(self, project: Project, outcome: ImportOutcome) -> None:
        """Put it where the trainer looks for it."""
        outcome.known, skipped = mark_known(project, self.known)
        outcome.skipped += skipped
        if self.scores is not None:
            outcome.scored = set_scores(project, self.items, self.scores)


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
    progress: Progress = lambda done, total: None,
    **settings: Any,
) -> tuple[Settings, ImportOutcome]:
    """Make a project with its classes and items; if that fails, nothing is left of it.

    Args:
        folder: where; it must not hold a project yet.
        additions: items and classes, at least two, are needed.
        title: the folder's name if not given.
        size: classes on a shortlist, 5 if not given.
        policy: the policy by which a model chooses the lists; none: chance does.
        epsilon: share of uniform lists mixed in with the model's.
        test: labelled data to score the model on.
        names: texts: let the names of the classes choose the first lists.
        score: keep a sample of the items out of training, to score the model by it.
        features: the word for what the model sees (`policies.make_features`).
        progress: called with how many items are done, and of how many.
        settings: overlap, gold_every, database, typing and compare, as in `Settings`.
    """
    read = additions.read()
    if len(read.classes) < 2:
        raise InputError(f"{additions.classes}: {len(read.classes)} classes, expected at least two, one per line")
    if size is not None and size > len(read.classes):
        raise InputError(f"size {size}: expected at most the {len(read.classes)} classes of {additions.classes}")
    if not read.items:
        raise InputError(f"{additions.items}: no items found")
    if settings.get("compare") and len(read.classes) > MOST_LISTED:
        raise InputError(
            f"{additions.classes}: {len(read.classes)} classes: full lists are compared with at most {MOST_LISTED}"
        )
    # more classes may come later, so the usual size may be more than there are now
    chosen = Settings(title or folder.resolve().name, USUAL_SIZE if size is None else size, **settings)
    live = live_plan(chosen, policy, epsilon, test, None if names else False, None if score else False, features)
    chosen = replace(chosen, live=None if live is None else live.to_dict())
    given = additions.read_given([source.name for source in read.items], list(read.classes))
    with unfinished(folder):
        project = Project.create(folder, chosen)
        try:
            set_instructions(project, read.instructions or "")
            outcome = _add_items(project, read, additions.strict, progress)
            if not outcome.added:
                where, reason = outcome.skipped[0]
                raise InputError(f"{additions.items}: not one good item; the first: {where}: {reason}")
            check_live(project, live)
            given.store(project, outcome)
        except BaseException:
            project.discard()
            raise
        project.close()
    return chosen, outcome


def add_to_project(
    project: Project, additions: Additions, progress: Progress = lambda done, total: None
) -> ImportOutcome:
    """Add classes, items, gold answers, instructions, known classes, scores; what is refused changes nothing.

    Gold answers are for the items that come in, or for existing ones if none do.
    """
    wanted = ("items", "classes", "gold", "instructions", "known", "scores")
    if all(getattr(additions, name) is None for name in wanted):
        raise InputError("nothing to add: give --items, --classes, --gold, --instructions, --known or --scores")
    read = additions.read()
    if additions.classes is not None and not read.classes:
        raise InputError(f"{additions.classes}: no classes found")
    check_kinds(project, kinds(read.items))
    something = additions.known is not None or additions.scores is not None
    given = additions.read_given(*_names(project, read)) if something else _Given()
    if additions.items is None:
        outcome = mark_gold(project, read.gold, classes=read.classes, strict=additions.strict)
    else:
        outcome = _add_items(project, read, additions.strict, progress)
    given.store(project, outcome)
    if read.instructions is not None:
        set_instructions(project, read.instructions)
    return outcome


def _names(project: Project, read: _Read) -> tuple[list[str], list[str]]:
    """Of the items and classes that there will be."""
    with project.store.read() as connection:
        items = list(connection.execute(select(Item.name).order_by(Item.id)).scalars())
        classes = class_names(connection)
    items += [source.name for source in read.items]
    return list(dict.fromkeys(items)), list(dict.fromkeys([*classes, *read.classes]))


def _add_items(project: Project, read: _Read, strict: bool, progress: Progress) -> ImportOutcome:
    return add_items(project, read.items, gold=read.gold, classes=read.classes, strict=strict, progress=progress)


def rename_by_name(project: Project, old: str, new: str) -> None:
    """Rename the class `old` to `new`."""
    with project.store.read() as connection:
        class_id = class_ids(connection).get(old.strip())
    if class_id is None:
        raise InputError(f"the project has no class {old!r}")
    rename_class(project, class_id, new)


def make_invitation(project: Project, name: str | None, token: bool, url: str, role: str = "annotator") -> str:
    """A link or a token for the annotator of this name, added if new; without a name, for an owner.

    Owners and reviewers get links that work once.
    """
    role = "owner" if name is None else role
    if token and role == "reviewer":
        raise InputError("a token is an annotator's or an owner's: a reviewer needs a link")
    people = People(project)
    who = None if name is None or role != "annotator" else people.ensure(name)
    subject = f"annotator {who}" if who is not None else name or "owner"
    audit_alone(project.store, CommandLine(), "make token" if token else "make link", subject, role=role)
    if token:
        return people.make_token(name or "command line", who)
    return join_link(url, people.admin_link(name or "owner", role) if who is None else people.renew_invite(who))


def export_file(project: Project, out: Path, format_name: str | None = None, *, pseudonyms: bool = False) -> int:
    """Write one of the exports, completely or not at all; returns the number of rows.

    With `pseudonyms`, people are numbers that only the project can tell.
    """
    name = f"{format_name or 'answers'}{out.suffix.lower()}"
    if name not in EXPORTS:
        raise InputError(f"{out}: no such export, expected the format and ending of one of: {', '.join(EXPORTS)}")
    if not out.parent.is_dir():
        raise InputError(f"{out.parent}: no such folder")
    before = PSEUDONYMS.set(pseudonyms)
    try:
        with atomic_path(out) as temporary:
            return EXPORTS[name](project, temporary)
    finally:
        PSEUDONYMS.reset(before)
