"""`shortlist predict`: classes of new items."""

from pathlib import Path
from typing import Annotated

import typer

from shortlist.cli.evaluate import Folder
from shortlist.cli.options import Device, Features, ImageColumn, ItemColumn, TextColumn, keep_apart, note
from shortlist.cli.progress import progress


def predict(
    folder: Folder,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES...|-",
            help="Images, folders of images, tables with a text or image column, .txt files with one text per line, "
            ".npz files, the name of a known dataset; or - for stdin: texts (or paths of images) one per "
            "line, or a CSV.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Write .csv, .jsonl or .parquet; CSV on stdout where not stated.")
    ] = None,
    top_k: Annotated[int, typer.Option(help="How many of the likeliest classes to write.")] = 3,
    text_column: TextColumn = None,
    image_column: ImageColumn = None,
    item_column: ItemColumn = None,
    features: Features = None,
    device: Device = "auto",
    json: Annotated[bool, typer.Option("--json", help="JSON lines instead of CSV on stdout.")] = False,
) -> None:
    """Write the class of each item, and how probable it is.

    Also the likeliest classes and their probabilities.

    Example: echo "my card is lost" | shortlist predict runs/banking -
    """
    from shortlist.training import load_folder, predict_files

    keep_apart(out, *files, features)
    with progress(None, "predicting", lines=True):
        trained = load_folder(folder, device)
        columns = {"text_column": text_column, "image_column": image_column, "item_column": item_column}
        columns["features"] = features
        found = predict_files(trained, files, top_k, **columns)
    if out is None:
        typer.echo(found.to_jsonl() if json else found.to_csv(), nl=False)
    else:
        found.write(out)
        note(f"{out}: {len(found.items):,} predictions")
