"""Options that several commands share, and how results are printed."""

import json
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from shortlist.errors import InputError

data_option = partial(typer.Option, rich_help_panel="Your data")
people_option = partial(typer.Option, rich_help_panel="Simulated people")
USUAL_SECONDS = (1, 0.25)

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A known dataset (see `shortlist datasets`), a folder of class folders with images, a .csv, .tsv, .json, "
        ".jsonl, .parquet or .xlsx table with a text or image column, a folder that Hugging Face's datasets saved, "
        "or an .npz file.",
    ),
]
TextColumn = Annotated[str | None, data_option(help="The column of texts in a table (default 'text').")]
ImageColumn = Annotated[str | None, data_option(help="The column of image paths in a table (default 'image').")]
LabelColumn = Annotated[str | None, data_option(help="The column of classes in a table (default 'label').")]
ItemColumn = Annotated[
    str | None, data_option(help="The column that names the items (default 'item', or else row numbers).")
]
ImageSize = Annotated[int | None, data_option(min=1, max=10_000, help="Resize your images to this height and width.")]
Features = Annotated[
    str | None,
    data_option(
        help="What the model sees. Texts: tfidf, embeddings or the folder of a sentence encoder. Images: patches or "
        "pixels (only in label and annotate). Anything: an .npz or .parquet file of vectors by item."
    ),
]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, ...; auto uses the GPU if there is one.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Size = Annotated[int, typer.Option(help="Classes on a shortlist.")]
Seed = Annotated[int, typer.Option(help="Seeds everything that is drawn.")]
Seconds = Annotated[tuple[float, float], typer.Option(help="Seconds per question, per name looked at.")]
Miss = Annotated[float, people_option(help="How often a simulated annotator misses the right class and says None.")]
Slip = Annotated[float, people_option(help="How often a simulated annotator picks a wrong class of those shown.")]


def print_json(content: Any) -> None:
    """One JSON object, and nothing else, on stdout."""
    typer.echo(json.dumps(content, ensure_ascii=False))


def note(line: str) -> None:
    """Print a line for people, on stderr."""
    sys.stderr.write(line + "\n")


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print columns, each as wide as its widest cell is on a terminal."""
    from rich.cells import cell_len

    lines = [[" ".join(str(cell).splitlines()) for cell in row] for row in (header, *rows)]
    widths = [max(cell_len(line[i]) for line in lines) for i in range(len(header))]
    for line in lines:
        cells = (cell + " " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())


def in_hours(hours: float) -> str:
    """Hours with one decimal or, below one hour, two digits: a small project takes 0.053 rather than 0.1."""
    return f"{hours:,.1f}" if hours >= 1 else f"{hours:.2g}"


def keep_apart(out: Path | None, *read: str | Path | None) -> None:
    """Refuse to overwrite a file that is also read: it may be the only copy of somebody's data."""
    for path in read:
        if out is not None and path is not None and out.exists() and Path(path).exists() and out.samefile(path):
            raise InputError(f"{out}: is read, and would be written over: give another --out")


def key_values(pairs: Iterable[str], what: str) -> dict[str, Any]:
    """`["form=paper", "beta=2"]` -> `{"form": "paper", "beta": 2}`: values that are JSON are read as such.

    True and False may be spelled as in Python, as in the list that `shortlist methods` prints.
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise InputError(f"{what} {pair!r}: expected name=value")
        try:
            found[key] = json.loads(value.lower() if value in ("True", "False") else value)
        except ValueError:
            found[key] = value
    return found


def as_text(path: Path | None) -> str | None:
    """A path as it is kept in JSON."""
    return None if path is None else str(path)
