"""What is added to a project from files: items, classes, gold answers, instructions, known classes, scores."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from shortlist.annotate.db.schema import Item
from shortlist.annotate.db.statements import class_ids, class_names
from shortlist.annotate.project.gold_items import check_gold, mark_gold
from shortlist.annotate.project.importing import ImportOutcome, Progress, add_items, check_items, check_kinds, kinds
from shortlist.annotate.project.instructions import set_instructions
from shortlist.annotate.project.known_items import mark_known
from shortlist.annotate.project.project import Project, Settings
from shortlist.annotate.project.scores import set_scores
from shortlist.annotate.project.sources import (
    Source,
    find_sources,
    read_classes,
    read_gold,
    read_instructions,
)
from shortlist.errors import InputError
from shortlist.internal.names import tell_alike
from shortlist.policies import read_known, read_scores


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

    def named_as(self, settings: Settings) -> "Additions":
        """With the item column of the project's first table, unless another is stated."""
        return replace(self, item_column=self.item_column or settings.item_column)

    def read(self, there: Collection[str] = (), usual_text: str | None = None) -> "Read":
        """What the files hold; one that cannot be read is refused before anything is changed.

        If there is a project already, `there` are its classes and `usual_text` is the text column of its first table.
        """
        classes = {} if self.classes is None else read_classes(self.classes)
        columns = (self.text_column, self.item_column, usual_text)
        return Read(
            [] if self.items is None else list(find_sources(self.items, *columns, classes={*there, *classes})),
            classes,
            {} if self.gold is None else read_gold(self.gold, self.item_column),
            None if self.instructions is None else read_instructions(self.instructions),
        )

    def read_given(
        self, items: Sequence[str], classes: Sequence[str], contents: Sequence[str | Path], *, alone: bool = False
    ) -> "Given":
        """What is known of these items, which may be about to be added, with these classes and texts or files.

        Where the table of items is `alone`, no row number names an item of another table.
        """
        known = {}
        if self.known is not None:
            rows, labels = read_known(self.known, items, classes, self.item_column, self.items if alone else None)
            known = {items[row]: classes[k] for row, k in zip(rows.tolist(), labels.tolist(), strict=True)}
        inputs = (items, list(contents))
        return Given(items, known, None if self.scores is None else read_scores(self.scores, items, classes, inputs))


@dataclass(frozen=True)
class Read:
    """What the files hold."""

    items: list[Source]
    classes: Mapping[str, str | None]
    gold: Mapping[str, str]
    instructions: str | None


@dataclass(frozen=True)
class Given:
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


def add_to_project(
    project: Project, additions: Additions, progress: Progress = lambda done, total: None
) -> ImportOutcome:
    """Add classes, items, gold answers, instructions, known classes, scores; what is refused changes nothing.

    Gold answers are for the items that come in, or for existing ones if none do.
    """
    additions = additions.named_as(project.settings)
    wanted = ("items", "classes", "gold", "instructions", "known", "scores")
    if all(getattr(additions, name) is None for name in wanted):
        raise InputError("nothing to add: give --items, --classes, --gold, --instructions, --known or --scores")
    with project.store.read() as connection:
        there = class_names(connection)
    read = additions.read(there, project.settings.text_column)
    if additions.classes is not None and not read.classes:
        raise InputError(f"{additions.classes}: no classes found")
    check_kinds(project, kinds(read.items))
    something = additions.known is not None or additions.scores is not None
    given = additions.read_given(*_names(project, read)) if something else Given()
    if additions.items is None:
        outcome = mark_gold(project, read.gold, classes=read.classes, strict=additions.strict)
    else:
        outcome = add_read(project, read, additions.strict, progress)
    given.store(project, outcome)
    with project.store.read() as connection:
        outcome.remark = remark(additions, read, class_names(connection), outcome)
    if read.instructions is not None:
        set_instructions(project, read.instructions)
    return outcome


def remark(additions: Additions, read: Read, classes: Sequence[str], outcome: ImportOutcome) -> str:
    """What looks like a slip: two classes of nearly the same name, or new items whose class in the file is not used."""
    found = [tell_alike(classes, read.classes)] if read.classes else []
    known, left_out = set(classes), {where for where, _ in outcome.skipped}
    count = sum(source.label in known and source.where not in left_out for source in read.items)
    if count and additions.known is None:
        found.append(
            f"items that have a class in {_where(read.items)} already ({count}) will be asked about all the same: in a "
            "table of known labels (--known) they are learned from instead"
        )
    return "\n".join(filter(None, found))


def _where(sources: Sequence[Source]) -> str:
    """Of pictures and sounds, their folders' names may be their classes."""
    return "their table" if any(source.path is None for source in sources) else "the name of their folder"


def _names(project: Project, read: Read) -> tuple[list[str], list[str], list[str | Path]]:
    """The names of the items and of the classes that there will be, and the text or file of each item."""
    with project.store.read() as connection:
        there = connection.execute(select(Item.name, Item.text, Item.file).order_by(Item.id)).all()
        classes = class_names(connection)
    items: dict[str, str | Path] = {
        row.name: project.media / row.file if row.file is not None else row.text or "" for row in there
    }
    for source in read.items:
        items.setdefault(source.name, source.content)
    return list(items), list(dict.fromkeys([*classes, *read.classes])), list(items.values())


def add_read(project: Project, read: Read, strict: bool, progress: Progress) -> ImportOutcome:
    """Add items with their gold answers and classes."""
    return add_items(project, read.items, gold=read.gold, classes=read.classes, strict=strict, progress=progress)


def preview(project: Project, additions: Additions) -> ImportOutcome:
    """What `add_to_project` would do, without doing it; files of pictures are not opened."""
    additions = additions.named_as(project.settings)
    outcome = ImportOutcome()
    with project.store.read() as connection:
        classes, known = class_names(connection), class_ids(connection)
    read = additions.read(classes, project.settings.text_column)
    check_kinds(project, kinds(read.items))
    with project.store.read() as connection:
        outcome.classes = len({*classes, *read.classes})
        if additions.items is not None:
            outcome.added = len(check_items(connection, read.items, read.gold, {*known, *read.classes}, outcome))
        elif read.gold:
            outcome.added = len(check_gold(connection, read.gold, {*known, *read.classes}, outcome))
    outcome.remark = remark(additions, read, list(dict.fromkeys([*classes, *read.classes])), outcome)
    if additions.known is not None or additions.scores is not None:
        given = additions.read_given(*_names(project, read))
        outcome.known = len(given.known)
        outcome.scored = 0 if given.scores is None else int((~np.isnan(given.scores).all(axis=1)).sum())
    return outcome
