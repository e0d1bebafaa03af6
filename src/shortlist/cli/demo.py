"""`shortlist demo`: the idea in two minutes."""

from pathlib import Path
from typing import Annotated

import typer

from shortlist.cli.options import AsJson, note, print_json
from shortlist.cli.progress import progress


def demo(
    out: Annotated[Path, typer.Option(help="The folder for report.html, its pictures and results.json.")] = Path(
        "demo"
    ),
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="How many seeds each row is trained with.")] = 3,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of each run.")] = 40,
    json: AsJson = False,
) -> None:
    """See the idea at work on scikit-learn's digits.

    It prints a table and makes a page with two pictures.

    Example: shortlist demo --out demo
    """
    from rich.console import Console

    from shortlist.demo import run_demo
    from shortlist.training import Interrupted

    chosen = tuple(range(seeds))
    with progress(None, "digits") as bar:

        def on_epoch(run: str, total: int) -> None:
            bar.note, bar.total = run, total
            bar.advance()

        try:
            result = run_demo(out, seeds=chosen, epochs=epochs, on_epoch=on_epoch)
        except Interrupted:
            note("stopped: nothing was written")
            raise typer.Exit(130) from None
    if json:
        print_json(result.figures)
    else:
        Console().print(result.table)
    note(f"{result.figures['seconds']} s; the page with the pictures: {result.page}")
