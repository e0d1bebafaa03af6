"""`shortlist annotate` without a project: a page that makes one from uploaded files, and then serves it."""

import json
import os
import re
import shlex
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from shortlist.annotate.columns import class_column, item_column, names_rows
from shortlist.annotate.project.additions import Additions
from shortlist.annotate.project.people import People
from shortlist.annotate.project.project import Project
from shortlist.annotate.project.sources import Source, find_sources
from shortlist.annotate.setup import init_project
from shortlist.annotate.web.api.begin_models import FirstLook, Guess, Wishes
from shortlist.annotate.web.begin import Beginning
from shortlist.annotate.web.serve import Address, listen, make_server, serve_project
from shortlist.data import TABLE_SUFFIXES, item_names, read_table
from shortlist.errors import InputError
from shortlist.internal.names import alike
from shortlist.internal.reasons import by_reason
from shortlist.policies import make_features, names_expert

SHOWN = 5
LOOKED_AT = 2000  # texts: a first look is quick
LONGEST = 300  # characters of a text that is shown
POLICY = "adaptive"
FOLDER = "folder"
Column = list[str]


def look_at(path: Path, wishes: Wishes) -> FirstLook:
    """What an uploaded table holds, and what names of classes already say about its texts; or a folder of pictures."""
    if path.is_dir():
        return _look_at_folder(path, wishes)
    if path.suffix.lower() not in TABLE_SUFFIXES:
        what = f"a file {path.suffix or 'without an ending'}"
        raise InputError(f"{what}: expected a table ({', '.join(TABLE_SUFFIXES)}), pictures, sounds or a .zip of them")
    table = {name: ["" if value is None else str(value) for value in rows] for name, rows in read_table(path).items()}
    if not table or not next(iter(table.values())):
        raise InputError("the file has no rows")
    for name in filter(None, (wishes.text_column, wishes.label_column, wishes.item_column)):
        if name not in table:
            raise InputError(f"the file has no column {name!r} (its columns: {', '.join(table)})")
    text = wishes.text_column or _text_column(table)
    label = class_column(table, text) if wishes.label_column is None else wishes.label_column
    item = wishes.item_column or (item_column(table, text) if wishes.item_column is None or "item" in table else "")
    if item not in ("", "item") and not names_rows(table[item]):
        raise InputError(f"the column {item!r} cannot name the rows: it is empty in some, or the same in several")
    labels = [value.strip() for value in table[label]] if label else [""] * len(table[text])
    classes = _classes(wishes, labels)
    return FirstLook(
        kind="text",
        rows=len(labels),
        columns=list(table),
        text_column=text,
        label_column=label,
        item_column=item,
        classes=classes,
        alike=alike(classes),
        labelled=len(labels) - _unknown(labels, classes),
        to_ask=_unknown([one for one, words in zip(labels, table[text], strict=True) if words.strip()], classes),
        guesses=_guesses(table[text], classes),
    )


def _look_at_folder(folder: Path, wishes: Wishes) -> FirstLook:
    """Pictures and sounds; where each lies in one of several folders, those may be their classes."""
    sources = _good(folder)
    if not sources:
        raise InputError("no picture and no sound was found")
    folders = [_folder_of(source) for source in sources]
    several = "" not in folders and len(set(folders)) > 1
    label = (FOLDER if several else "") if wishes.label_column is None else wishes.label_column
    if label not in (("", FOLDER) if several else ("",)):
        raise InputError(f"there is no column {label!r}: pictures and sounds have their folders at the most")
    labels = folders if label else [""] * len(folders)
    classes, kinds = _classes(wishes, labels), {source.kind for source in sources}
    left = _unknown(labels, classes)
    return FirstLook(
        kind="both" if len(kinds) > 1 else kinds.pop(),  # type: ignore[arg-type]
        rows=len(sources),
        columns=[FOLDER] if several else [],
        text_column="",
        label_column=label,
        item_column="",
        classes=classes,
        alike=alike(classes),
        labelled=len(labels) - left,
        to_ask=left,
        guesses=[],
    )


def _classes(wishes: Wishes, labels: list[str]) -> list[str]:
    """Those that were typed, or else those that occur."""
    return list(dict.fromkeys(name.strip() for name in wishes.classes)) or sorted({*labels} - {""})


def _unknown(labels: list[str], classes: list[str]) -> int:
    known = set(classes)
    return sum(label not in known for label in labels)


def _good(folder: Path) -> list[Source]:
    return [source for source in find_sources(folder) if source.problem is None]


def _folder_of(source: Source) -> str:
    """The outermost folder; empty where the file lies in none."""
    first, _, rest = source.name.partition("/")
    return first if rest else ""


def _text_column(table: dict[str, Column]) -> str:
    """`text`, or the column with the longest words in it."""
    return "text" if "text" in table else max(table, key=lambda name: sum(map(len, table[name])))


def _guesses(texts: Column, classes: list[str]) -> list[Guess]:
    """What the names suggest for some texts, evenly spread over the file."""
    some = [text for text in texts if text.strip()][:LOOKED_AT]
    if len(classes) < 2 or len(some) < 2 * SHOWN:
        return []
    x, _ = make_features("text", some, some[:0])
    rows = np.linspace(0, len(some) - 1, SHOWN).astype(np.int64)
    scores = names_expert(some, classes, x).scores(rows)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :3]
    return [
        Guess(text=_shortened(some[row]), classes=[classes[k] for k in found if np.ptp(scores[place]) > 0])
        for place, (row, found) in enumerate(zip(rows.tolist(), best.tolist(), strict=True))
    ]


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rstrip()} …"


def make_project(parent: Path, path: Path, wishes: Wishes, tell: Callable[[str], None] = lambda line: None) -> Path:
    """A project below `parent` from the table, or the folder of pictures and sounds.

    What has a class is known, the rest is asked about. `tell` is called with what was left out and why.
    """
    look = look_at(path, wishes)
    if len(look.classes) < 2:
        raise InputError(f"{len(look.classes)} classes: expected at least two, one per line")
    if look.labelled and not look.to_ask:
        what = "texts" if look.kind == "text" else "items"
        raise InputError(
            f"all {what} have a class already, so nothing is left to ask: say that no column holds classes"
        )
    title = wishes.title.strip() or "My project"
    folder = parent / (re.sub(r"[^\w]+", "-", title.lower()).strip("-") or "project")
    if folder.exists():
        raise InputError(f"{folder} exists already: choose another title")
    classes = path.with_name("classes.txt")
    classes.write_text("\n".join(look.classes) + "\n", encoding="utf-8")
    known = _write_known(path, look) if look.labelled else None
    text, item = look.text_column or None, look.item_column or None
    additions = Additions(items=path, classes=classes, known=known, text_column=text, item_column=item)
    learns = look.kind in ("text", "image")  # not from sounds, nor from both
    size = min(wishes.size, len(look.classes))
    _, outcome = init_project(folder, additions, title=title, size=size, policy=POLICY if learns else None)
    for line in by_reason(outcome.skipped):
        tell(line)
    return folder


def _write_known(path: Path, look: FirstLook) -> Path:
    """The rows that have a class, as a table with item and class."""
    if path.is_dir():
        names, labels = zip(*((source.name, _folder_of(source)) for source in _good(path)), strict=True)
    else:
        table = read_table(path)
        labels = tuple("" if value is None else str(value).strip() for value in table[look.label_column])
        names = tuple(item_names(table, path, look.item_column or None) or map(str, range(len(labels))))
    rows = [{"item": name, "class": label} for name, label in zip(names, labels, strict=True) if label in look.classes]
    known = path.with_name("known.jsonl")
    known.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return known


def run_first_steps(say: Callable[[str], None], *, port: int = 8080, parent: Path | None = None) -> None:
    """Serve the page until a project is made, below `parent` or here, then serve that project at the same address."""
    listener, address = listen(Address(port=port))
    made: list[Path] = []

    def make(path: Path, wishes: Wishes) -> dict[str, Any]:
        if made:
            raise InputError("the project is there already")
        left_out: list[str] = []
        made.append(make_project(parent or Path.cwd(), path, wishes, left_out.append))
        for line in left_out:
            say(f"skipped {line}")
        with Project.open(made[0]) as project:
            people = People(project)
            you = people.renew_invite(people.ensure("you"))
            links = {"admin": f"/join#{people.admin_link()}", "you": f"/join#{you}"}
        return {**links, "again": _again(made[0]), "left_out": left_out}

    beginning = Beginning(look_at, make, lambda: setattr(server, "should_exit", True))
    server = make_server(beginning.app(address.port), address)
    url = f"{address.url}/begin#{beginning.token}"
    say(f"Open this page to begin: {url}")
    _open_browser(url)
    try:
        server.run(sockets=[listener.dup()])  # which it closes, while whoever comes meanwhile waits at ours
    finally:
        beginning.close()
    if made:
        with Project.open(made[0]) as project:
            say(f"The project is in {made[0]}; to serve it again later: {_again(made[0])}")
            serve_project(project, address, say, listener=listener)


def _again(folder: Path) -> str:
    return shlex.join(("shortlist", "annotate", "serve", str(folder)))


def _open_browser(url: str) -> None:
    """Where there is a screen, and somebody in front of it."""
    screen = sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    if screen and sys.stdout.isatty():
        webbrowser.open(url)
