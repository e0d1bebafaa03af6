"""Scores that any model gave the items, matched to items and classes by name.

They come from a table, an .npz, what `shortlist predict` wrote, Label Studio's tasks with predictions, or a model that
`shortlist train` wrote, which then predicts them.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.data import item_names, read_images, read_table
from shortlist.errors import InputError
from shortlist.internal.archives import read_arrays
from shortlist.internal.extras import MissingExtraError
from shortlist.internal.files import first_row
from shortlist.internal.names import split_names
from shortlist.policies.given import places_of

Matrix = NDArray[np.float32]
TOP, TOP_PROBABILITIES = "top", "top_probabilities"
Inputs = tuple[Sequence[str], Any]
"""The names of the items, and the items as a model takes them: texts, paths of images, or an array."""


def read_scores(path: Path, items: Sequence[str], class_names: Sequence[str], inputs: Inputs | None = None) -> Matrix:
    """(N, K) scores of any model, NaN where there is none: empty cells, and items or classes that the file lacks.

    `path` is one of these:

    - a table (.csv, .tsv, .jsonl, .parquet) with a column `item` and one column per class;
    - an .npz with `scores` (items by classes) and, unless they are in the order of the data, `items` and `classes`;
    - what `shortlist predict --out` wrote: `item`, `top`, `top_probabilities`;
    - a .json of Label Studio's tasks whose `predictions` choose classes;
    - the folder of a model that `shortlist train` wrote: it is asked about `inputs`. Needs torch.
    """
    scores, rows, columns = _read(path, inputs)
    places, classes = places_of(items), places_of(class_names)
    if columns is not None and not set(columns) & set(classes):
        raise InputError(f"{path}: none of its columns is a class: expected {class_names[0]!r} and the like")
    for found, given, what in ((rows, items, "items"), (columns, class_names, "classes")):
        if found is None and scores.shape[0 if what == "items" else 1] != len(given):
            raise InputError(f"{path}: scores of shape {scores.shape} without {what}, expected {len(given)} {what}")
    rows = list(items) if rows is None else rows
    columns = list(class_names) if columns is None else columns
    table = np.full((len(items), len(class_names)), np.nan, np.float32)
    mine = [(i, places[item]) for i, item in enumerate(rows) if item in places]
    theirs = [(j, classes[name]) for j, name in enumerate(columns) if name in classes]
    if not mine:
        raise InputError(f"{path}: none of its items is in the data, whose first is {items[0]!r}")
    (i, to_rows), (j, to_columns) = (np.array(pairs).T for pairs in (mine, theirs))
    table[np.ix_(to_rows, to_columns)] = scores[np.ix_(i, j)]
    if np.isinf(table).any():
        row, column = (int(place[0]) for place in np.nonzero(np.isinf(table)))
        raise InputError(f"{path}: item {items[row]!r}, class {class_names[column]!r} is infinite, expected a number")
    return table


def _read(path: Path, inputs: Inputs | None) -> tuple[NDArray[np.float32], list[str] | None, list[str] | None]:
    if path.is_dir():
        return _ask_model(path, inputs)
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return _read_npz(path)
    return _spread(_read_label_studio(path)) if suffix == ".json" else _read_columns(path)


def _ask_model(path: Path, inputs: Inputs | None) -> tuple[NDArray[np.float32], list[str], list[str]]:
    """What a trained model predicts: probabilities, items and classes."""
    if inputs is None:
        raise InputError(f"{path} is a folder: expected a file of scores")
    try:
        from shortlist.training import load_folder
    except MissingExtraError as error:
        raise InputError(
            f"{path}: a trained model needs torch. {error}. Or give what `shortlist predict {path} ITEMS --top-k 1000 "
            "--out scores.csv` writes on a machine that has it"
        ) from error
    trained, (names, x) = load_folder(path), inputs
    if isinstance(x, list) and x and isinstance(x[0], Path):
        if trained.kind != "image":
            raise InputError(f"{path}: the model takes {trained.kind} inputs, the items are images")
        channels, height, width = trained.in_shape
        x = read_images(x, (height, width), channels)
    try:
        return trained.predict(x).astype(np.float32), list(map(str, names)), list(trained.class_names)
    except InputError as error:
        raise InputError(f"{path}: the model is of other items: {error}") from error


def _spread(
    given: Iterator[tuple[str, list[str], list[float]]],
) -> tuple[NDArray[np.float32], list[str], list[str]]:
    """Entries (item, classes, numbers) as a table; if an item comes twice, the last entry counts."""
    last = {item: (classes, numbers) for item, classes, numbers in given}
    columns = list(dict.fromkeys(name for classes, _ in last.values() for name in classes))
    places = places_of(columns)
    table = np.full((len(last), len(columns)), np.nan, np.float32)
    for row, (classes, numbers) in enumerate(last.values()):
        table[row, [places[name] for name in classes]] = numbers
    return table, list(last), columns


def _read_top(path: Path, names: Sequence[str], table: Any) -> Iterator[tuple[str, list[str], list[float]]]:
    """The entries of a file that `shortlist predict` wrote."""
    for row, (item, top, shares) in enumerate(
        zip(names, table[TOP], table[TOP_PROBABILITIES], strict=True), first_row(path)
    ):
        classes, numbers = _several(top), _several(shares)
        if len(classes) != len(numbers):
            raise InputError(f"{path}: row {row}: {len(classes)} classes in {TOP}, {len(numbers)} probabilities")
        yield item, classes, [_number(number, path, row, TOP_PROBABILITIES) for number in numbers]


def _several(value: Any) -> list[Any]:
    """The values in one cell: a list, a text with | between them as in a CSV (a number in a workbook), or nothing."""
    if isinstance(value, list):
        return value
    return [] if value is None else split_names(str(value))


def _read_label_studio(path: Path) -> Iterator[tuple[str, list[str], list[float]]]:
    """The latest prediction of each task that has one; a choice without a score counts 1."""
    try:
        tasks = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as Label Studio's tasks: {error}") from error
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise InputError(f"{path}: expected a list of Label Studio's tasks")
    for place, task in enumerate(tasks, 1):
        chosen = [found for one in _listed(task.get("predictions")) if (found := _choices(one))]
        if not chosen:
            continue
        data = task["data"] if isinstance(task.get("data"), dict) else {}
        ours = data.get("stochastic")
        item = ours.get("item_id") if isinstance(ours, dict) else data.get("item")
        if item is None:
            raise InputError(f"{path}: task {task.get('id', place)}: no item: expected `data.item`, or a task of ours")
        numbers = [_number(score, path, place, "score") for _, score in chosen[-1]]
        yield str(item), [name for name, _ in chosen[-1]], numbers


def _choices(prediction: Any) -> list[tuple[str, Any]]:
    """The classes that a prediction chooses, each with its own score or that of the prediction."""
    if not isinstance(prediction, dict):
        return []
    whole = prediction.get("score")
    found = []
    for part in _listed(prediction.get("result")):
        value = part.get("value") if isinstance(part, dict) else None
        choices = value.get("choices") if isinstance(value, dict) else None
        own = part.get("score", whole) if isinstance(part, dict) else None
        found += [(str(choice), 1.0 if own is None else own) for choice in _listed(choices)]
    return found


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _read_columns(path: Path) -> tuple[NDArray[np.float32], list[str], list[str]]:
    table = read_table(path)
    names = item_names(table, path)
    if names is None:
        raise InputError(f"{path}: expected a column item beside one column per class, found {', '.join(table)}")
    if TOP in table and TOP_PROBABILITIES in table:
        return _spread(_read_top(path, names, table))
    columns = [name for name in table if name != "item"]
    scores = np.array(
        [
            [_number(value, path, row, name) for row, value in enumerate(table[name], first_row(path))]
            for name in columns
        ]
    )
    return scores.T.astype(np.float32), names, columns


def _number(value: object, path: Path, row: int, column: str) -> float:
    if value is None or value == "":
        return np.nan
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(f"{path}: row {row}, column {column}: expected a number or nothing, got {value!r}") from None


def _read_npz(path: Path) -> tuple[NDArray[np.float32], list[str] | None, list[str] | None]:
    found = read_arrays(path, ("scores", "items", "classes"))
    scores = found["scores"]
    if scores.ndim != 2 or scores.dtype.kind not in "buif":
        raise InputError(f"{path}: scores of shape {scores.shape} and type {scores.dtype}, expected items by classes")
    named = []
    for what, count in zip(("items", "classes"), scores.shape, strict=True):
        names = found.get(what)
        if names is not None and names.shape != (count,):
            raise InputError(f"{path}: {what} of shape {names.shape} for scores of shape {scores.shape}")
        named.append(None if names is None else [str(name) for name in names.tolist()])
    return scores.astype(np.float32), named[0], named[1]
