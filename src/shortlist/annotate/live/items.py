"""A project's items as features: texts by TF-IDF, images by their pixels; and others, known, to score on."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, func, select

from shortlist.annotate.db.schema import Item, LabelClass
from shortlist.annotate.db.statements import count_classes
from shortlist.annotate.live.chooser import FOLDER, LivePlan
from shortlist.annotate.project.project import Project
from shortlist.errors import InputError
from shortlist.policies import make_features

SMALL, SIDE = 32, 16
"""Images of one size, at most SMALL wide and high, stay as they are; others become SIDE x SIDE."""


@dataclass(frozen=True)
class LiveItems:
    """The N items to ask about, and those to score on (gold, or test data), whose answers are never trained on."""

    names: list[str]
    ids: list[int]
    x: NDArray[np.float32]
    num_classes: int
    x_score: NDArray[np.float32]
    y_score: NDArray[np.int64]
    scored_on: str


def shape(connection: Connection) -> tuple[int, int, int]:
    """How many classes, the last item, how many are gold: what a trainer must start anew for when it changes.

    All three only grow: what is there is never removed, and gold for good.
    """
    last = connection.execute(select(func.max(Item.id))).scalar()
    gold = connection.execute(select(func.count()).where(Item.gold.is_not(None))).scalar_one()
    return count_classes(connection), int(last or 0), int(gold)


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
    """Refuse what the trainer could only fail on, over and over and unseen, once the server runs."""
    if plan is None:
        return
    with project.store.read() as connection:
        kind = kind_of(connection)
        names = list(connection.execute(select(LabelClass.name).order_by(LabelClass.id)).scalars())
    if plan.test is not None:
        _test_data(plan.test, kind, names)


def check_added(project: Project, kinds: set[str]) -> None:
    """Refuse items of another kind where a model chooses, or chose, the lists: its trainer could not go on.

    A policy that was given to `serve` alone is known by the folder that the trainer leaves.
    """
    trained = project.folder / FOLDER
    if project.settings.live is None and not trained.exists():
        return
    with project.store.read() as connection:
        there = set(connection.execute(select(Item.kind).distinct()).scalars())
    if there and kinds - there:
        without = "" if project.settings.live else f" (or remove {trained} if no model is to choose here again)"
        raise InputError(
            f"a model chooses this project's lists and needs items of one kind; they are {there.pop()}, these "
            f"{sorted(kinds)[0]}: make another project of these{without}"
        )


def read_project(connection: Connection, media: Path, size: int, seed: int, test: str | None) -> LiveItems:
    """Everything the trainer needs of the items."""
    kind = kind_of(connection)
    rows = connection.execute(select(Item.id, Item.name, Item.text, Item.file, Item.gold).order_by(Item.id)).all()
    names = list(connection.execute(select(LabelClass.name).order_by(LabelClass.id)).scalars())
    asked, gold = [row for row in rows if row.gold is None], [row for row in rows if row.gold is not None]
    if not asked:
        raise InputError("every item is gold: there is nothing to ask about")
    x = _inputs(kind, asked, media)
    if test is not None:
        x_score, y_score = _test_data(test, kind, names, x.shape[1:] if kind == "image" else None)
    else:
        x_score, y_score = _inputs(kind, gold, media, like=x), np.array([row.gold for row in gold], np.int64)
    ready, ready_score = make_features(kind, x, x_score, size=size, seed=seed)
    where = "test data" if test is not None else "gold"
    return LiveItems([r.name for r in asked], [r.id for r in asked], ready, len(names), ready_score, y_score, where)


def _inputs(kind: str, rows: list[Any], media: Path, like: Any = None) -> Any:
    if kind == "text":
        return [row.text for row in rows]
    return _images([media / row.file for row in rows], None if like is None else like.shape[1:])


def _images(paths: list[Path], form: tuple[int, ...] | None) -> NDArray[np.uint8]:
    """(N, C, H, W); `form` is the (C, H, W) of others, to be like them."""
    from PIL import Image

    from shortlist.data import read_images

    if form is not None:
        return read_images(paths, (form[1], form[2]), form[0])
    sizes = set()
    for path in paths:
        with Image.open(path) as image:
            sizes.add(image.size)
    keep = len(sizes) == 1 and max(next(iter(sizes))) <= SMALL
    return read_images(paths, None if keep else SIDE)


def _test_data(
    test: str, kind: str, names: list[str], form: tuple[int, ...] | None = None
) -> tuple[Any, NDArray[np.int64]]:
    """The labelled part of other data, its classes by the project's names; `form` is the (C, H, W) of its images."""
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
        raise InputError(f"{test}: images of the form {np.shape(split.x)[1:]}, the project's are {form}")
    return split.x, np.array([place[name] for name in data.class_names], np.int64)[split.y]
