"""`shortlist report`: tables and pictures from the ledger."""

from pathlib import Path
from typing import Annotated

import typer

from shortlist.cli.options import AsJson, note, print_json


def report(
    results: Annotated[Path, typer.Argument(help="The folder that holds the ledger.")] = Path("results"),
    json: AsJson = False,
) -> None:
    """Write the study's report: ours against the paper's.

    report.html, report.md and the pictures: cell by cell, and what is missing.

    Example: shortlist report results
    """
    from shortlist.study import write_report

    written = write_report(results, note)
    if json:
        print_json({**written._asdict(), "page": str(written.page), "text": str(written.text)})
        return
    typer.echo(f"{written.page}: {written.cells} cells of {written.runs} runs; {written.missing} cells are missing")
