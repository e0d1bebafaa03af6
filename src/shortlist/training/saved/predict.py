"""Using a trained model on other data: what it takes, and how that is read."""

import csv
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.data import IMAGE_SUFFIXES, TABLE_SUFFIXES, Dataset, Split, is_table, read_images
from shortlist.errors import InputError, unknown_name
from shortlist.internal.files import read_text, separator_of
from shortlist.training.saved.folder import Trained
from shortlist.training.saved.measures import Measures, measure
from shortlist.training.saved.predictions import Items, Predictions
from shortlist.training.saved.source import DataSource, with_features

STDIN = "-"


def evaluate_on(trained: Trained, data: str, split: str | None = None, **columns: str | None) -> tuple[Measures, str]:
    """Scores on a split of `data`, and which split that was.

    Args:
        trained: the model.
        data: a known dataset, or own data of the form it was trained on.
        split: `train` or `test`; by default the test split if there is one, else `all` of it.
        columns: names of columns that differ from those it was trained with.
    """
    if split not in (None, "train", "test"):
        raise unknown_name("split", split, ("train", "test"))
    dataset = _read(trained, data, columns, trained.class_names)
    where = split or ("all" if dataset.test is None else "test")
    part = dataset.test if where == "test" else dataset.train
    if part is None:
        raise InputError(f"{data} has no test split")
    if part.y is None:
        how = "give the folder that has one for each class, or the column of a table that has them (--label-column)"
        raise InputError(f"{data}: the classes of its items are not known, so there is nothing to score: {how}")
    return measure(trained.predict(_inputs(trained, dataset, part)), part.y, trained.class_names), where


def predict_files(trained: Trained, files: Sequence[str], top_k: int = 3, **columns: str | None) -> Predictions:
    """The likeliest classes of items in files; the arguments are those of `read_items`, and `top_k` is cut at K."""
    return Predictions.of(trained, read_items(trained, files, **columns), top_k)


def read_items(trained: Trained, files: Sequence[str], **columns: str | None) -> Items:
    """Read what `shortlist predict` is given, for this model.

    Args:
        trained: the model.
        files: images, folders, tables, .txt, .npz, names of datasets, or "-" for stdin.
        columns: names of columns that differ from those it was trained with.
    """
    if not files:
        raise InputError("no files to predict")
    images = [file for file in files if trained.kind == "image" and Path(file).suffix.lower() in IMAGE_SUFFIXES]
    if len(images) == len(files):
        return _images(trained, images)
    parts = [_part(trained, file, columns) for file in files]
    for file, part in zip(files, parts, strict=True):
        if not isinstance(part.x, list) and part.x.shape[1:] != trained.in_shape:
            raise InputError(f"{file}: expected inputs of shape {trained.in_shape}, got {part.x.shape[1:]}")
    names = [
        name if len(files) == 1 else f"{file}:{name}"
        for file, part in zip(files, parts, strict=True)
        for name in part.names
    ]
    return Items(_stack([part.x for part in parts]), names)


def _part(trained: Trained, file: str, columns: dict[str, str | None]) -> Items:
    if file == STDIN:
        return _lines(trained, _stdin(), "stdin", columns)
    path = Path(file)
    if trained.kind == "image" and path.suffix.lower() in IMAGE_SUFFIXES:
        return _images(trained, [file])
    if path.suffix.lower() == ".txt":
        return _lines(trained, read_text(path), file, columns)
    dataset = _read(trained, file, {**columns, "label_column": None}, None)
    part = dataset.train if dataset.test is None or not DataSource(file).known else dataset.test
    return Items(_inputs(trained, dataset, part), part.items.tolist())


def _stdin() -> str:
    """All that is piped in, as UTF-8 like files, whatever the locale."""
    if sys.stdin is None:
        raise InputError("stdin is closed: nothing can be read from it")
    text = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig")
    try:
        return text.read()
    except UnicodeDecodeError as error:
        raise InputError(f"stdin is not UTF-8 text: {error.reason} at byte {error.start}") from error
    finally:
        text.detach()  # or stdin would be closed with it


def _read(trained: Trained, data: str, columns: dict[str, str | None], class_names: Sequence[str] | None) -> Dataset:
    if (
        not DataSource(data).known
        and Path(data).is_file()
        and Path(data).suffix.lower() not in (*TABLE_SUFFIXES, ".npz")
    ):
        raise InputError(f"{data}: cannot be read for a model of {trained.kind} inputs")
    if trained.kind == "text" and Path(data).is_dir() and not is_table(Path(data)):
        raise InputError(f"{data} is a folder of images, the model takes text")
    source = DataSource(**trained.data["source"]).other(data, **columns)
    if trained.kind == "image" and not source.known and Path(data).suffix.lower() != ".npz":
        source = source.other(data, **columns, image_size=trained.in_shape[1:])
    dataset = source.read(class_names)
    if trained.kind == "features" and dataset.kind != "features":
        dataset, _ = with_features(dataset, source.features)  # from a file, by item
    if dataset.kind != trained.kind:
        raise InputError(f"{data} holds {dataset.kind} items, the model takes {trained.kind}")
    return dataset


def _inputs(trained: Trained, dataset: Dataset, part: Split) -> Any:
    """The items of a split as `Trained.predict` takes them: images with as many channels as the model has."""
    if trained.kind != "image" or not isinstance(part.x, np.ndarray):
        return part.x
    wanted, got = trained.in_shape[0], part.x.shape[1]
    if (got, wanted) == (1, 3):
        return np.repeat(part.x, 3, axis=1)
    if (got, wanted) == (3, 1):
        grey = np.einsum("nchw,c->nhw", part.x.astype(np.float64), (0.299, 0.587, 0.114))
        return np.rint(grey).astype(np.uint8)[:, None]
    return part.x


def _images(trained: Trained, files: Sequence[str]) -> Items:
    channels, height, width = trained.in_shape
    x: NDArray[np.uint8] = read_images([Path(file) for file in files], (height, width), channels)
    return Items(x, list(files))


def _lines(trained: Trained, text: str, where: str, columns: dict[str, str | None]) -> Items:
    """Texts, one per line or as a CSV whose first line names the text column; for a model of images, their paths."""
    lines = text.split("\n")  # not splitlines: U+2028 or a form feed may stand inside a text
    if trained.kind == "features":
        raise InputError("a model of features takes .npz files with an array x, not lines of text")
    if trained.kind == "image":
        return _images(trained, [line.strip() for line in lines if line.strip()])
    source = DataSource(**trained.data["source"])
    column = columns.get("text_column") or source.text_column or "text"
    mark = separator_of(lines[0])
    header = [name.strip() for name in next(csv.reader(lines[:1], delimiter=mark), [])]  # as in tables of one's own
    if column not in header:
        kept = [(str(number), line) for number, line in enumerate(lines) if line.strip()]
        return Items([line for _, line in kept], [name for name, _ in kept])
    rows = list(csv.DictReader(io.StringIO(text), header, delimiter=mark))[1:]
    for number, row in enumerate(rows, 2):
        if row[column] is None:
            raise InputError(f"{where}, row {number}: no value for the column {column!r}")
    item = columns.get("item_column") or source.item_column or "item"
    names = [row.get(item) or str(number) for number, row in enumerate(rows)]
    return Items([row[column] for row in rows], names)


def _stack(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], list):
        return [text for part in parts for text in part]
    return np.concatenate(parts)
