"""The classes of a project: added, described, renamed; never removed."""

from collections.abc import Iterable, Mapping

from sqlalchemy import Connection, insert, update
from sqlalchemy.exc import IntegrityError

from shortlist.annotate.db.schema import LabelClass
from shortlist.annotate.db.statements import class_names, take_turns
from shortlist.annotate.problems import Conflict, NotFound
from shortlist.annotate.project.project import Project
from shortlist.annotate.project.sources import check_name
from shortlist.errors import InputError

MAX_CLASSES = 100_000
NONE_NAMES = frozenset({"none of these", "__none__"})  # what the button for None is called, here and in Label Studio


Names = Iterable[str] | Mapping[str, str | None]
"""Class names, or class names with their descriptions."""


def add_classes(project: Project, names: Names) -> int:
    """Add classes after the existing ones; returns how many there are now.

    A mapping gives descriptions as well. With at least one, existing classes may be among the names: the description
    given replaces theirs, an empty one removes it, None leaves it as it is.
    """
    with project.store.write() as connection:
        return insert_classes(connection, names)


def insert_classes(connection: Connection, names: Names) -> int:
    """The same within a transaction."""
    clean = [_check_class(name) for name in names]
    given = names.items() if isinstance(names, Mapping) else ()
    described = {name.strip(): words.strip() for name, words in given if words is not None}
    for name, words in described.items():
        if words:
            check_name(words, f"the description of {name!r}")
    take_turns(connection)
    known = class_names(connection)
    there, seen = set(known), set(known)
    for name in clean:
        if name in there and not described:
            raise InputError(f"the project has the class {name!r} already: give new ones only")
        if name in seen and name not in there:
            raise InputError(f"class {name!r} occurs twice")
        seen.add(name)
    if len(seen) > MAX_CLASSES:
        raise InputError(f"{len(seen)} classes: expected at most {MAX_CLASSES}")
    new = [name for name in clean if name not in there]
    if new:
        connection.execute(insert(LabelClass), [{"id": len(known) + i, "name": name} for i, name in enumerate(new)])
    for name, words in described.items():
        connection.execute(update(LabelClass).where(LabelClass.name == name).values(description=words or None))
    return len(seen)


def rename_class(project: Project, class_id: int, name: str) -> None:
    """Give a class another name; answers, lists and gold items refer to it by its id and stay."""
    name = _check_class(name)
    try:
        with project.store.write() as connection:
            changed = connection.execute(update(LabelClass).where(LabelClass.id == class_id).values(name=name))
    except IntegrityError as error:
        raise Conflict("name_taken", f"the project has the class {name!r} already: two cannot be made one") from error
    if not changed.rowcount:
        raise NotFound("no_class", f"there is no class {class_id}")


def _check_class(name: str) -> str:
    name = check_name(name.strip(), "class")
    if " ".join(name.casefold().split()) in NONE_NAMES:
        raise InputError(f"class {name!r}: this is what the answer None is called, expected another name")
    return name
