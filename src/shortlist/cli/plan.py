"""`shortlist plan`: what labelling would cost, before any of it is done."""

from pathlib import Path
from typing import Annotated

import typer

from shortlist.cli.options import AsJson, print_json, print_table


def plan(
    classes: Annotated[int, typer.Option(help="K.")],
    items: Annotated[int, typer.Option(help="Items to label.")],
    size: Annotated[list[int] | None, typer.Option(help="Sizes of random shortlists to show; may be repeated.")] = None,
    seconds: Annotated[tuple[float, float], typer.Option(help="Seconds per question, per name looked at.")] = (1, 0.25),
    log: Annotated[Path | None, typer.Option(help="Fit the time model to an export of the annotation app.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say what labelling would cost in reads and hours.

    With full labels, with random shortlists and with model-chosen ones.

    Example: shortlist plan --classes 77 --items 10000
    """
    from dataclasses import asdict

    from shortlist.policies import TimeModel, plan_labelling, plan_limits, read_time_log

    time = TimeModel(*seconds) if log is None else read_time_log(log)
    rows = plan_labelling(classes, items, time, tuple(size or ()))
    source = "stated" if log is None else f"fitted to {log}"
    if as_json:
        result = {
            "classes": classes,
            "items": items,
            "time": {**asdict(time), "source": source},
            "ways": [asdict(row) for row in rows],
            "limits": plan_limits(),
        }
        print_json(result)
        return
    lines = []
    for row in rows:
        figures = (f"{row.questions:,.0f}", f"{row.reads:,.0f}", f"{row.hours:,.1f}", f"{row.answered:.0%}")
        lines.append([row.way, *figures, f"{row.bits:.2f}", f"{row.reads_per_bit:.1f}", row.basis])
    print_table(("way", "questions", "reads", "hours", "known", "bits/item", "reads/bit", ""), lines)
    typer.echo(
        f"\nTime model ({source}): {time.base:.2f} s per question + {time.per_class:.2f} s per name looked at, "
        f"{time.typing:.2f} s to type a class."
    )
    for line in plan_limits():
        typer.echo(f"- {line}")
