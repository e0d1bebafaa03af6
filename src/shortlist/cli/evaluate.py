"""`shortlist evaluate`: how good a trained model is on labelled data."""

from pathlib import Path
from typing import Annotated

import typer

from shortlist.cli.options import (
    AsJson,
    Data,
    Device,
    Features,
    ImageColumn,
    ItemColumn,
    LabelColumn,
    TextColumn,
    print_json,
    print_table,
)
from shortlist.cli.progress import progress

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `shortlist train` made.")]


def evaluate(
    folder: Folder,
    data: Data,
    split: Annotated[
        str | None, typer.Option(help="train or test; test where the data has one, unless stated.")
    ] = None,
    text_column: TextColumn = None,
    image_column: ImageColumn = None,
    label_column: LabelColumn = None,
    item_column: ItemColumn = None,
    features: Features = None,
    device: Device = "auto",
    json: AsJson = False,
) -> None:
    """Score a trained model on items whose classes are known.

    Example: shortlist evaluate runs/digits digits --json
    """
    from shortlist.training import evaluate_on, load_folder

    with progress(None, "evaluating", lines=True):
        trained = load_folder(folder, device)
        measures, where = evaluate_on(
            trained,
            data,
            split,
            text_column=text_column,
            image_column=image_column,
            label_column=label_column,
            item_column=item_column,
            features=features,
        )
    if json:
        print_json({**measures.to_dict(), "split": where})
        return
    typer.echo(
        f"accuracy {measures.accuracy:.2%} on {measures.items:,} items of {data} ({where}), "
        f"calibration error {measures.calibration_error:.2%}, log loss {measures.log_loss:.4f}"
    )
    counts = measures.items_by_class.tolist()
    shares = ["none" if share is None else f"{share:.1%}" for share in measures.by_class.values()]
    print_table(("class", "items", "accuracy"), zip(measures.by_class, counts, shares, strict=True))
