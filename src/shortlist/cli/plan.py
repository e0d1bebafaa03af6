"""`shortlist plan`: what labelling would cost, before any of it is done."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shortlist.cli.options import (
    USUAL_SECONDS,
    AsJson,
    ImageColumn,
    ImageSize,
    LabelColumn,
    Seconds,
    TextColumn,
    in_hours,
    note,
    print_json,
    print_table,
)
from shortlist.cli.progress import progress

if TYPE_CHECKING:
    from shortlist.data import Dataset
    from shortlist.policies import TimeModel


Classes = Annotated[int | None, typer.Option(max=1_000_000, help="The number of classes.")]
Items = Annotated[int | None, typer.Option(help="The number of items to label.")]
OwnData = Annotated[
    str | None,
    typer.Option(help="Your items. Labelling is simulated on those with a class; class names are tried."),
]
Names = Annotated[Path | None, typer.Option(help="All class names, one per line, where --data lacks some.")]
Sizes = Annotated[list[int] | None, typer.Option(help="Sizes of random shortlists to show; may be repeated.")]
TimedLog = Annotated[Path | None, typer.Option(help="Fit the time model to an export of the annotation app.")]


def plan(
    classes: Classes = None,
    items: Items = None,
    data: OwnData = None,
    names: Names = None,
    text_column: TextColumn = None,
    image_column: ImageColumn = None,
    label_column: LabelColumn = None,
    image_size: ImageSize = None,
    size: Sizes = None,
    seconds: Seconds = USUAL_SECONDS,
    log: TimedLog = None,
    as_json: AsJson = False,
) -> None:
    """Say what labelling would cost in reads and hours.

    With full labels, with random shortlists and with model-chosen ones.

    If a hundred items or more of --data have a class, the model-chosen rows come from these: labelling is simulated on
    them, and the cost per item is extrapolated to all --items.

    Example: shortlist plan --classes 77 --items 10000, or shortlist plan --data mine.csv --items 50000
    """
    from shortlist.errors import InputError
    from shortlist.policies import TimeModel, plan_labelling

    if log is not None and tuple(seconds) != USUAL_SECONDS:
        raise InputError("--seconds and --log: both say how long a question takes, give one of them")
    time = TimeModel(*seconds) if log is None else TimeModel.read(log)
    dataset = clear = own = counted = None
    if data is not None:
        columns = {"text_column": text_column, "image_column": image_column, "label_column": label_column}
        dataset, found, clear = _look_at(data, names, {**columns, "image_size": image_size})
        counted = _about_classes(dataset) if names is None and classes is None else None
        classes, items = found if classes is None else classes, len(dataset.train) if items is None else items
        if classes < found:
            raise InputError(f"classes: {classes} stated, and {names or data} has {found}")
        own = _play(dataset, items, time) if items > 0 else None
    elif names is not None:
        raise InputError("--names without --data: give the texts, too")
    if classes is None or items is None:
        raise InputError("give --classes and --items, or --data")
    rows = plan_labelling(classes, items, time, tuple(size or ()), clear, own)
    result = {
        "classes": classes,
        "items": items,
        "clarity": clear,
        "time": {**asdict(time), "source": "stated" if log is None else f"fitted to {log}"},
        "ways": [asdict(row) for row in rows],
        "limits": _limits(None if own is None else dataset, classes),
    }
    if as_json:
        print_json(result)
    else:
        _print(result, counted)


def _print(plan: dict[str, Any], counted: str | None) -> None:
    """The plan as a table, and below it what it rests on."""
    lines = []
    for way in plan["ways"]:
        figures = (f"{way['questions']:,.0f}", f"{way['reads']:,.0f}", in_hours(way["hours"]), f"{way['answered']:.0%}")
        lines.append((way["way"], *figures, f"{way['bits']:.2f}", f"{way['reads_per_bit']:.1f}", way["basis"]))
    print_table(("way", "questions", "reads", "hours", "known", "bits/item", "reads/bit", "basis"), lines)
    time = plan["time"]
    typer.echo(
        f"\nTime model ({time['source']}): {time['base']:.2f} s per question + {time['per_class']:.2f} s per name "
        f"looked at, {time['typing']:.2f} s to type a class."
    )
    if counted is not None:
        typer.echo(counted)
    if plan["clarity"] is not None:
        typer.echo(_about_names(plan["clarity"]))
    for limit in plan["limits"]:
        typer.echo(f"- {limit}")


def _look_at(data: str, names: Path | None, options: dict[str, Any]) -> tuple["Dataset", int, float | None]:
    """The items, the number of classes and, if the items are texts, the `clarity` of the class names."""
    from shortlist.data import load
    from shortlist.errors import InputError
    from shortlist.internal.files import read_text
    from shortlist.policies import clarity

    dataset = load(data, **options)
    found = dataset.class_names
    if names is not None:
        found = tuple(line.strip() for line in read_text(names).splitlines() if line.strip())
    if len(found) < 2:
        how = "give --label-column or --names" if names is None else "one per line"
        raise InputError(f"{names or data}: {len(found)} class names, expected at least 2: {how}")
    for name, count in Counter(found).items():
        if count > 1:
            raise InputError(f"{names}: class {name!r} occurs {count} times")
    unnamed = [name for name in dataset.class_names if name not in found]
    if unnamed:
        raise InputError(f"{names}: class {unnamed[0]!r} of {data} is missing")
    texts = list(dataset.train.x) if dataset.kind == "text" else []
    clear = clarity(texts, found) if texts else None  # names say nothing about anything else
    return dataset.with_classes(found), len(found), clear


def _play(dataset: "Dataset", items: int, time: "TimeModel") -> Any:
    """The cost of all items, projected from those that have a class."""
    from shortlist.data import UNLABELLED
    from shortlist.policies.simulation import project_cost

    labelled = 0 if dataset.train.y is None else int((dataset.train.y != UNLABELLED).sum())
    if items < labelled:
        note(f"{items:,} items to label, fewer than the {labelled:,} of {dataset.name} that have a class already")
    with progress(3, "playing", lines=True) as bar:
        return project_cost(dataset, items, time, tick=bar.advance)


def _limits(played: "Dataset | None", classes: int) -> list[str]:
    """What the figures do and do not say; `played`: the items that the model-chosen rows were simulated on."""
    from shortlist.data import UNLABELLED
    from shortlist.policies import plan_limits

    limits = plan_limits(played is not None)
    if played is not None and played.train.y is not None:
        found = len({*played.train.y.tolist()} - {UNLABELLED})
        if found < classes:
            limits.append(f"Your labelled items are of {found} of the {classes} classes: items of others cost more.")
    return limits


def _about_classes(dataset: "Dataset") -> str | None:
    """If only some items have a class: a line that says which the number of classes was counted on."""
    from shortlist.data import UNLABELLED

    if dataset.train.y is None or not (dataset.train.y == UNLABELLED).any():
        return None
    labelled, count = int((dataset.train.y != UNLABELLED).sum()), len(dataset.train)
    return (
        f"\nClasses: {dataset.num_classes}, those of the {labelled:,} of {count:,} items that have one: if there are "
        "more, give --names or --classes, as every row depends on their number."
    )


def _about_names(clear: float) -> str:
    if clear > 0.3:
        promise = "they will help from the first question on"
    else:
        promise = "they may help a little" if clear > 0.1 else "they say nothing about these items"
    return (
        f"\nNames: how clearly they tell the texts apart is {clear:.2f} (BANKING77's 0.55, codes below 0.02): "
        f"{promise}. Whether they are the right ones only answers tell; wrong ones cost little and fade."
    )
