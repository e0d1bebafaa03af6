"""`shortlist simulate`: shortlists and answers made from known classes."""

from pathlib import Path
from typing import Annotated

import typer

from shortlist.cli.options import (
    AsJson,
    Data,
    ImageColumn,
    ImageSize,
    ItemColumn,
    LabelColumn,
    Miss,
    Seed,
    Size,
    Slip,
    TextColumn,
    keep_apart,
    print_json,
)


def simulate(
    data: Data,
    size: Size,
    out: Annotated[Path, typer.Option(help="The labels file to write: .csv, .jsonl or .parquet.")],
    seed: Seed = 0,
    miss: Miss = 0.0,
    slip: Slip = 0.0,
    text_column: TextColumn = None,
    image_column: ImageColumn = None,
    label_column: LabelColumn = None,
    item_column: ItemColumn = None,
    image_size: ImageSize = None,
    json: AsJson = False,
) -> None:
    """Draw a shortlist for every item and answer it from its class.

    Only training items are used. With the same size and seed, `shortlist train --size --seed` draws the same
    shortlists.

    Example: shortlist simulate digits --size 5 --seed 0 --out labels.csv
    """
    from shortlist.training import DataSource, draw_labels

    keep_apart(out, data)
    source = DataSource(
        data,
        text_column=text_column,
        image_column=image_column,
        label_column=label_column,
        item_column=item_column,
        image_size=image_size,
    )
    labels = draw_labels(source.read(), size, seed, miss=miss, slip=slip, named=True)
    labels.write(out)
    summary = labels.summary()
    if json:
        print_json(
            {
                "out": str(out),
                "items": summary.items,
                "num_classes": summary.num_classes,
                "size": size,
                "none_share": summary.none_share,
                "reads": summary.reads,
            }
        )
    else:
        full = summary.items * summary.num_classes
        typer.echo(
            f"{out}: {summary.items:,} items, {size} of {summary.num_classes} classes each, "
            f"None {summary.none_share:.1%}, {summary.reads:,} reads (all classes: {full:,})"
        )
