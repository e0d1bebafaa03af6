"""`shortlist demo`: the idea in two minutes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shortlist.cli.options import AsJson, note, print_json
from shortlist.cli.progress import progress

if TYPE_CHECKING:
    from shortlist.demo.rows import Line


def demo(
    out: Annotated[Path, typer.Option(help="The folder for report.html, its pictures and results.json.")] = Path(
        "demo"
    ),
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds each line is trained with.")] = 3,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of each run.")] = 40,
    json: AsJson = False,
) -> None:
    """See the idea at work on scikit-learn's digits.

    It prints a table and makes a page with two pictures.

    Example: shortlist demo --out demo
    """
    from rich.console import Console

    from shortlist.demo.report import run_demo, total_epochs
    from shortlist.demo.table import result_table
    from shortlist.training import Interrupted

    chosen = tuple(range(seeds))
    with progress(total_epochs(seeds=chosen, epochs=epochs), "digits") as bar:

        def on_epoch(line: "Line", seed: int) -> None:
            labels = line.kind if line.kind != "shortlists" else f"{line.size} shown"
            bar.note = f"{line.title}, {labels}, seed {seed}"
            bar.advance()

        try:
            result = run_demo(out, seeds=chosen, epochs=epochs, on_epoch=on_epoch)
        except Interrupted:
            note("stopped: nothing was written")
            raise typer.Exit(130) from None
    if json:
        print_json(result.figures)
    else:
        Console().print(result_table(result.figures))
    note(f"{result.figures['seconds']} s; the page with the pictures: {result.page}")
