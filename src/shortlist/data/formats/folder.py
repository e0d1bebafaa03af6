"""A folder of images: one folder per class, named after it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from shortlist.data.dataset import Dataset
from shortlist.data.formats.classes import RawSplit, assemble
from shortlist.data.formats.images import IMAGE_SUFFIXES, ImageSize, read_splits
from shortlist.errors import InputError


def load_folder(
    path: Path,
    test: Path | None = None,
    image_size: ImageSize = None,
    class_names: Sequence[str] | None = None,
) -> Dataset:
    """The images under `path`, by class folder; or under its train/ and test/, if these are all it has.

    Images in `path` itself, in no class folder, are items whose class is not known. An item is named by the path of its
    image relative to the folder of the class folders, such as "cat/001.png".
    """
    folders = {child.name for child in _folders(path)}
    train = path
    if "train" in folders and folders <= {"train", "test"}:
        if test is not None and "test" in folders:
            raise InputError(f"{path} has a test folder already, and the test data {test} is stated too")
        train = path / "train"
        test = path / "test" if "test" in folders else test
    roots = [train] if test is None else [train, test]
    listed = [_list(root) for root in roots]
    for root, (files, _) in zip(roots, listed, strict=True):
        if not files:
            raise InputError(f"{root} holds no images (looked for {', '.join(sorted(IMAGE_SUFFIXES))})")
    images = read_splits([files for files, _ in listed], image_size)
    raws = [
        RawSplit(x, labels, [file.relative_to(root).as_posix() for file in files], str(root))
        for root, x, (files, labels) in zip(roots, images, listed, strict=True)
    ]
    return assemble(path.resolve().name, "image", raws[0], raws[1] if len(raws) > 1 else None, class_names)


def _list(root: Path) -> tuple[list[Path], list[str | None]]:
    """Every image under `root` and its class, None if it is in no class folder."""
    files: list[Path] = _images(root.iterdir())
    labels: list[str | None] = [None] * len(files)
    for folder in _folders(root):
        found = _images(folder.rglob("*"))
        files += found
        labels += [folder.name] * len(found)
    return files, labels


def _folders(path: Path) -> list[Path]:
    return sorted(child for child in path.iterdir() if child.is_dir() and not child.name.startswith("."))


def _images(paths: Iterable[Path]) -> list[Path]:
    return sorted(
        path
        for path in paths
        if path.suffix.lower() in IMAGE_SUFFIXES and not path.name.startswith(".") and path.is_file()
    )
