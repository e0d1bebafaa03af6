"""`shortlist plan`: what labelling would cost, before any of it is done."""

from pathlib import Path
from typing import Annotated

import typer


def plan(
    classes: Annotated[int, typer.Option(help="K.")],
    items: Annotated[int, typer.Option(help="Items to label.")],
    size: Annotated[list[int] | None, typer.Option(help="Sizes of random shortlists to show; may be repeated.")] = None,
    seconds: Annotated[tuple[float, float], typer.Option(help="Time model: a question, a name looked at.")] = (1, 0.25),
    log: Annotated[Path | None, typer.Option(help="Fit the time model to an export of the annotation app.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what full labels, random shortlists and model-chosen ones would cost in reads and hours.

    Example: shortlist plan --classes 77 --items 10000
    """
    import json
    from dataclasses import asdict

    from shortlist.policies import plan as plans
    from shortlist.policies.time_model import TimeModel

    time = TimeModel(*seconds) if log is None else plans.read_time_log(log)
    rows = plans.plan(classes, items, time, tuple(size or ()))
    source = "stated" if log is None else f"fitted to {log}"
    if as_json:
        result = {
            "classes": classes,
            "items": items,
            "time": {**asdict(time), "source": source},
            "ways": [asdict(row) for row in rows],
            "limits": plans.limits(),
        }
        typer.echo(json.dumps(result))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{items:,} items, {classes} classes")
    for name in ("way", "questions", "reads", "hours", "classes known", "bits an item", "reads a bit", ""):
        table.add_column(name, justify="left" if name in ("way", "") else "right")
    for row in rows:
        figures = (f"{row.questions:,.0f}", f"{row.reads:,.0f}", f"{row.hours:,.1f}", f"{row.answered:.0%}")
        table.add_row(row.way, *figures, f"{row.bits:.2f}", f"{row.reads_per_bit:.1f}", row.basis)
    console = Console()
    console.print(table)
    console.print(f"Time model ({source}): {time.base:.2f} s a question + {time.per_class:.2f} s a name looked at.")
    for line in plans.limits():
        console.print(f"- {line}")
