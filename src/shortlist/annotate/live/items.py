"""A project's items as features (texts by TF-IDF, images by patches, unless told otherwise); known ones to score on."""

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, func, select

from shortlist.annotate.db.schema import AuditEntry, Item
from shortlist.annotate.db.statements import class_names, count_classes
from shortlist.annotate.live.plan import LivePlan
from shortlist.annotate.project.erasing import ERASE
from shortlist.annotate.project.project import Project
from shortlist.data import Split
from shortlist.errors import InputError
from shortlist.policies import make_features

_LOG = logging.getLogger(__name__)
SIDE = 32
"""Images of one size, at most that wide and high, stay as they are; others become SIDE x SIDE."""
FEATURES = 400
"""Per item, as in the simulations of docs/labelling.md."""


@dataclass(frozen=True)
class LiveItems:
    """The N items to ask about, by rising id, and those to score on (gold or test data), which are never trained on."""

    ids: list[int]
    x: NDArray[np.float32]
    num_classes: int
    x_score: NDArray[np.float32]
    y_score: NDArray[np.int64]
    scored_on: str


def shape(connection: Connection) -> tuple[int, ...]:
    """The number of classes, the last item, the number of gold ones, of erasures: when one changes, all begins anew."""
    last = connection.execute(select(func.max(Item.id))).scalar()
    gold = connection.execute(select(func.count()).where(Item.gold.is_not(None))).scalar_one()
    erased = connection.execute(select(func.count()).where(AuditEntry.action == ERASE)).scalar_one()
    return count_classes(connection), int(last or 0), int(gold), int(erased)


def kind_of(connection: Connection) -> str:
    """text or image.

    Raises:
        InputError: a model cannot be trained on these items.
    """
    kinds = sorted(connection.execute(select(Item.kind).distinct()).scalars())
    if kinds not in (["text"], ["image"]):
        raise InputError(f"model-chosen shortlists need all items to be texts, or all images; here: {', '.join(kinds)}")
    return str(kinds[0])


def check_live(project: Project, plan: LivePlan | None) -> None:
    """Refuse now what the trainer would fail on, again and again and unseen, once the server runs."""
    if plan is None:
        return
    with project.store.read() as connection:
        kind = kind_of(connection)
        names = class_names(connection)
        items = list(connection.execute(select(Item.name)).scalars())
    if plan.test is not None:
        _test_data(plan.test, kind, names)
    if plan.features is not None:
        few: Any = ["some text", "another one"] if kind == "text" else np.zeros((2, 1, 2, 2), np.uint8)
        make_features(kind, few, few[:0], word=plan.features, items=(items, []))


def read_project(
    connection: Connection, media: Path, seed: int, test: str | None, features: str | None = None
) -> LiveItems:
    """Everything that the trainer needs to know about the items; `features` is the word for what the model sees."""
    kind, names = kind_of(connection), class_names(connection)
    rows = connection.execute(select(Item.id, Item.name, Item.text, Item.file, Item.gold).order_by(Item.id)).all()
    asked, gold = [row for row in rows if row.gold is None], [row for row in rows if row.gold is not None]
    if not asked:
        raise InputError("every item is gold: there is nothing to ask about")
    brought = features is not None and Path(features).is_file()  # then nobody looks at the images
    x: Any = [] if brought else _inputs(kind, asked, media)
    if test is not None:
        split = _test_data(test, kind, names, x.shape[1:] if kind == "image" and not brought else None)
        x_score, y_score, scored = split.x, split.y, split.items.tolist()
        assert y_score is not None
    else:
        x_score = [] if brought else _inputs(kind, gold, media, like=x)
        y_score, scored = np.array([row.gold for row in gold], np.int64), [row.name for row in gold]
    items = [row.name for row in asked], scored
    ready, ready_score = make_features(kind, x, x_score, word=features, items=items, size=FEATURES, seed=seed)
    where = "test data" if test is not None else "gold"
    return LiveItems([row.id for row in asked], ready, len(names), ready_score, y_score, where)


def read_gold_classes(connection: Connection, items: LiveItems) -> LiveItems:
    """The same items with today's gold classes: a reviewer may have corrected one."""
    gold = connection.execute(select(Item.gold).where(Item.gold.is_not(None)).order_by(Item.id)).scalars()
    return replace(items, y_score=np.array(list(gold), np.int64))


def _inputs(kind: str, rows: list[Any], media: Path, like: Any = None) -> Any:
    """Texts, or images as an array. One that is missing on the disk ends nothing: there are others to learn from."""
    if kind == "text":
        return [row.text for row in rows]
    there = np.array([(media / row.file).is_file() for row in rows], np.bool_)
    lost = [row.name for row, found in zip(rows, there, strict=True) if not found]
    if like is None and len(lost) == len(rows):
        raise InputError(f"{media}: every picture is missing")
    paths = [media / row.file for row, found in zip(rows, there, strict=True) if found]
    found = _images(paths, None if like is None else like.shape[1:])
    if not lost:
        return found
    words = "trainer: %d of %d pictures missing, such as %s: the model takes them for black ones"
    _LOG.warning(words, len(lost), len(rows), lost[0])
    x = np.zeros((len(rows), *found.shape[1:]), np.uint8)
    x[there] = found
    return x


def _images(paths: list[Path], form: tuple[int, ...] | None) -> NDArray[np.uint8]:
    """(N, C, H, W); with `form`, each of that (C, H, W)."""
    from PIL import Image

    from shortlist.data import read_images

    if form is not None:
        return read_images(paths, (form[1], form[2]), form[0])
    sizes = set()
    for path in paths:
        with Image.open(path) as image:
            sizes.add(image.size)
    keep = len(sizes) == 1 and max(next(iter(sizes))) <= SIDE
    return read_images(paths, None if keep else SIDE)


def _test_data(test: str, kind: str, names: list[str], form: tuple[int, ...] | None = None) -> Split:
    """The labelled part of other data, its classes numbered as in the project; `form`: the (C, H, W) of its images."""
    from shortlist.data import UNLABELLED, load

    size = None if kind != "image" else SIDE if form is None else (form[1], form[2])
    data = load(test, image_size=size) if Path(test).exists() else load(test)
    split = data.test if data.test is not None else data.train
    if data.kind != kind or split.y is None:
        raise InputError(
            f"{test}: expected labelled items of the kind {kind} to score on"
            + (" (a column text and a column label)" if kind == "text" else "")
        )
    place = {name: k for k, name in enumerate(names)}
    missing = [name for name in data.class_names if name not in place]
    if missing:
        raise InputError(f"{test}: class {missing[0]!r} is not one of the project's")
    split = split.take(split.y != UNLABELLED)
    assert split.y is not None  # take keeps what is there
    if form is not None and np.shape(split.x)[1:] != form:
        raise InputError(f"{test}: images of the shape {np.shape(split.x)[1:]}, those of the project are {form}")
    return replace(split, y=np.array([place[name] for name in data.class_names], np.int64)[split.y])
