"""`shortlist label`: simulate a labelling loop on labelled data and say what it would have cost."""

from pathlib import Path
from typing import Annotated, Any

import typer


def label(
    data: Annotated[str, typer.Argument(help="A known dataset (see `shortlist datasets`) or a file or folder.")],
    policy: Annotated[str, typer.Option(help="uniform, top, adaptive or information.")] = "adaptive",
    budget: Annotated[
        int | None, typer.Option(help="Class names to show at most; none: until all is resolved.")
    ] = None,
    size: Annotated[int, typer.Option(help="Classes on a list (longest, for adaptive and information).")] = 8,
    hit: Annotated[float, typer.Option(help="adaptive: the probability that the right class is on the list.")] = 0.8,
    epsilon: Annotated[float, typer.Option(help="Share of uniform lists mixed in.")] = 0.0,
    floor: Annotated[float, typer.Option(help="Least chance of each class still possible to be shown.")] = 0.0,
    order: Annotated[str, typer.Option(help="Items: mixed, random, savings, uncertainty, diversity.")] = "mixed",
    seeds: Annotated[int, typer.Option(help="Runs, for the bands.")] = 3,
    miss: Annotated[float, typer.Option(help="How often annotators overlook the right class.")] = 0.0,
    slip: Annotated[float, typer.Option(help="How often they pick a wrong one.")] = 0.0,
    retrain_every: Annotated[int, typer.Option(help="Questions between two trainings, at most.")] = 500,
    seconds: Annotated[tuple[float, float], typer.Option(help="Time model: a question, a name looked at.")] = (1, 0.25),
    out: Annotated[Path | None, typer.Option(help="A folder for curve.csv, curve.json, curve.svg, curve.png.")] = None,
    test: Annotated[Path | None, typer.Option(help="Own data to score on.")] = None,
    text_column: Annotated[str | None, typer.Option(help="Column of texts in own data.")] = None,
    label_column: Annotated[str | None, typer.Option(help="Column of classes in own data.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Simulate labelling by shortlists on labelled data: accuracy against reads and seconds.

    Answers come from the true classes (with mistakes if asked); full labels and random shortlists are run beside the
    policy.

    Example: shortlist label banking77 --policy adaptive --budget 60000 --out economy
    """
    from shortlist.data import load
    from shortlist.errors import InputError
    from shortlist.policies.choose import Policy
    from shortlist.policies.economy import Comparison, compare, report
    from shortlist.policies.features import loop_data
    from shortlist.policies.loop import LoopSettings
    from shortlist.policies.noise import Mistakes
    from shortlist.policies.time_model import TimeModel

    if seeds < 1:
        raise InputError(f"seeds: expected at least 1, got {seeds}")
    if budget is not None and budget < 1:
        raise InputError(f"budget: expected at least 1 read, got {budget}")
    time = TimeModel(*seconds)
    how = Policy(policy, size=size, hit=hit, max_size=size, epsilon=epsilon, floor=floor, time=time)  # type: ignore[arg-type]
    settings = LoopSettings(policy=how, order=order, retrain_every=retrain_every, time=time)
    wanted = Comparison(settings, budget, seeds, size, Mistakes(miss, slip))
    folder = _folder(out)
    features = loop_data(load(data, test=test, text_column=text_column, label_column=label_column))
    if size >= features.num_classes:
        raise InputError(
            f"size: expected 1 to {features.num_classes - 1} for {features.num_classes} classes, got {size}"
        )
    with _progress() as progress:
        curves = compare(features, wanted, progress)
    _finish(report(features, wanted, curves), curves, folder, as_json)


def _finish(result: dict[str, Any], curves: list[Any], folder: Path | None, as_json: bool) -> None:
    import json

    if folder is not None:
        _write(folder, curves, result)
    if as_json:
        typer.echo(json.dumps(result))
    else:
        _print(result)


def _folder(out: Path | None) -> Path | None:
    from shortlist.errors import InputError

    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{out} cannot be made a folder: {error.strerror or error}") from error
    return out


def _write(folder: Path, curves: list[Any], result: dict[str, Any]) -> None:
    import json

    from shortlist.files import atomic_write
    from shortlist.policies.curves import curves_csv
    from shortlist.policies.plot import draw_curves

    atomic_write(folder / "curve.csv", curves_csv(curves))
    atomic_write(folder / "curve.json", json.dumps(result, indent=1) + "\n")
    draw_curves(curves, folder / "curve", title=f"{result['data']}, {result['classes']} classes")
    typer.echo(f"wrote {folder}/curve.csv, .json, .svg, .png", err=True)


def _print(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    full = result["full_labels"]
    table = Table(
        title=f"{result['data']}: {result['items']} items, {result['classes']} classes, seeds {result['seeds']}"
    )
    for name in ("way", "accuracy", "resolved", "reads", "time", "99 %: reads", "time"):
        table.add_column(name, justify="left" if name == "way" else "right", no_wrap=name == "way")
    for way in result["ways"]:
        marks = ["never" if way[k] is None else f"{way[k]:.1%}" for k in ("mark_reads", "mark_seconds")]
        cost = [f"{way['reads']:.1%}", f"{way['seconds']:.1%}"]
        table.add_row(way["way"], f"{way['accuracy']:.1%}", f"{way['resolved']:.0%}", *cost, *marks)
    console = Console()
    console.print(table)
    console.print(
        f"Shares are of full labels: {full['reads']:,.0f} reads, {full['seconds'] / 3600:,.1f} hours. The mark: from "
        f"there on accuracy stays at 99 % of {full['accuracy']:.1%}."
    )


def _progress() -> Any:
    """A context that gives a progress callback, drawn on stderr."""
    from contextlib import contextmanager

    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    @contextmanager
    def shown() -> Any:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("features", total=None)

            def tell(way: str, seed: int, reads: int) -> None:
                bar.update(task, description=f"seed {seed}: {way}, {reads:,} reads")

            yield tell

    return shown()
