"""`shortlist label`: simulate a labelling loop on labelled data and say what it would have cost."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shortlist.cli.options import (
    USUAL_SECONDS,
    AsJson,
    Data,
    Features,
    ImageColumn,
    ImageSize,
    ItemColumn,
    LabelColumn,
    Miss,
    Seconds,
    Slip,
    TextColumn,
    data_option,
    in_hours,
    note,
    people_option,
    print_json,
    print_table,
)
from shortlist.cli.progress import Progress, progress

if TYPE_CHECKING:
    from shortlist.data import Dataset
    from shortlist.policies import Expert
    from shortlist.policies.simulation import Comparison


list_option = partial(typer.Option, rich_help_panel="Lists and items")
start_option = partial(typer.Option, rich_help_panel="Known at the start")

Policies = Annotated[
    list[str] | None, typer.Option(help="adaptive (if not stated), uniform, top, information; may be repeated.")
]
Budget = Annotated[
    int | None, typer.Option(help="Stop after this many class names shown (default: when all items are resolved).")
]
LongestList = Annotated[
    int | None,
    typer.Option(help="Classes on a list (longest, for adaptive, information); 8, or all but one, if not stated."),
]
Seeds = Annotated[int, typer.Option(max=1000, help="How many runs, each with its own seed (for the bands).")]
Out = Annotated[
    Path | None,
    typer.Option(help="A folder for curve.csv (as it grows), .json, .svg, .png; goes on where it was interrupted."),
]
Rivals = Annotated[bool, typer.Option(help="Also run random shortlists, to compare.")]
Jobs = Annotated[int, typer.Option(min=1, help="Runs at a time, each in a process of its own.")]
RayAddress = Annotated[
    str | None, typer.Option(help="Runs, patches and embeddings by a Ray cluster: its address, auto, or local.")
]

Hit = Annotated[float, list_option(help="adaptive: the probability that the right class is on the list.")]
Epsilon = Annotated[float, list_option(help="Share of uniform lists mixed in.")]
Floor = Annotated[float, list_option(help="Least chance of each class still possible to be shown.")]
Order = Annotated[str, list_option(help="Items: mixed, random, savings, uncertainty, diversity.")]
RetrainEvery = Annotated[int, list_option(help="Questions between two trainings, at most.")]
Pinned = Annotated[str | None, list_option(help="A class on every list beside the others, such as 'out of scope'.")]

Typed = Annotated[
    float, people_option(help="Share of the misses after which people type the class (wrongly at --slip).")
]

Names = Annotated[
    bool, start_option(help="Texts: let the names of the classes choose the first lists, as long as they help.")
]
Known = Annotated[
    Path | None, start_option(help="A table of item and class: labels known from the start; they cost nothing.")
]
Scores = Annotated[
    Path | None,
    start_option(help="What any model thinks: a table of item and one column per class, .npz, a trained folder."),
]

Score = Annotated[
    int, data_option(help="Items drawn to score the model without test data: asked about, not learned from.")
]
TestData = Annotated[Path | None, data_option(help="Your test data, to score on.")]


def label(
    data: Data,
    policy: Policies = None,
    budget: Budget = None,
    size: LongestList = None,
    hit: Hit = 0.8,
    epsilon: Epsilon = 0.0,
    floor: Floor = 0.0,
    order: Order = "mixed",
    seeds: Seeds = 3,
    miss: Miss = 0.0,
    slip: Slip = 0.0,
    typed: Typed = 0.0,
    retrain_every: RetrainEvery = 500,
    seconds: Seconds = USUAL_SECONDS,
    out: Out = None,
    rivals: Rivals = True,
    jobs: Jobs = 1,
    ray: RayAddress = None,
    pinned: Pinned = None,
    names: Names = True,
    known: Known = None,
    scores: Scores = None,
    score: Score = 0,
    test: TestData = None,
    text_column: TextColumn = None,
    image_column: ImageColumn = None,
    label_column: LabelColumn = None,
    item_column: ItemColumn = None,
    image_size: ImageSize = None,
    features: Features = None,
    as_json: AsJson = False,
) -> None:
    """Simulate labelling by shortlists and say what it costs.

    On labelled data: accuracy against reads and seconds. Answers come from the true classes (with mistakes if asked);
    full labels and random shortlists are run beside the policy.

    Example: shortlist label banking77 --policy adaptive --budget 60000 --out economy
    """
    from shortlist.data import load
    from shortlist.internal.cluster import cluster
    from shortlist.internal.files import make_folder
    from shortlist.policies import LoopSettings, Mistakes, Policy, TimeModel, loop_data, read_known
    from shortlist.policies.simulation import Comparison, Start

    dataset = load(
        data,
        test=test,
        text_column=text_column,
        image_column=image_column,
        label_column=label_column,
        item_column=item_column,
        image_size=image_size,
    )
    longest, time = _longest(size, dataset), TimeModel(*seconds)
    first, *others = (
        Policy(kind, size=longest, hit=hit, max_size=longest, epsilon=epsilon, floor=floor, time=time)
        for kind in dict.fromkeys(policy or ["adaptive"])
    )
    comparison = Comparison(
        LoopSettings(policy=first, order=order, retrain_every=retrain_every, time=time),
        budget=budget,
        seeds=seeds,
        size=longest,
        mistakes=Mistakes(miss, slip, typed=slip if typed else 0.0),
        rivals=rivals,
        others=tuple(others),
        score=score,
        typed=typed,
        pinned=_number(pinned, dataset),
    )
    if out is not None:
        make_folder(out)
    with nullcontext() if ray is None else cluster(ray):  # one for features and runs, looked for before the work begins
        items = loop_data(dataset, features=features, ray=ray)
        labels = None if known is None else read_known(known, items.items, items.class_names, item_column, data)
        start = Start(_experts(items, dataset, names, features, scores), labels)
        comparison = replace(comparison, start=start)
        curves = _run(comparison, items, out, jobs, ray)
    _finish(comparison.report(items, curves), curves, out, as_json)


def _experts(
    items: Any, dataset: "Dataset", names: bool, features: str | None, scores: Path | None
) -> "tuple[Expert, ...]":
    """What is known beside the model: the names of the classes, and scores from elsewhere."""
    from shortlist.policies import experts_from_scores, names_expert, read_scores

    experts: list[Expert] = []
    if names and items.texts:
        experts.append(names_expert(items.texts, items.class_names, items.x, features=features))
    if scores is not None:
        inputs = (dataset.train.items.tolist(), dataset.train.x)
        experts += experts_from_scores(read_scores(scores, items.items, items.class_names, inputs))
    return tuple(experts)


def _run(comparison: "Comparison", items: Any, out: Path | None, jobs: int, ray: str | None) -> list[Any]:
    """All runs, with a progress bar over them."""
    runs = len(comparison.runs(items))
    try:
        with progress(runs, "labelling", lines=True) as bar:
            return comparison.run(items, _teller(bar, runs), out, jobs, ray)
    except KeyboardInterrupt:
        note("interrupted" if out is None else f"interrupted: the same command goes on from {out}")
        raise


def _longest(stated: int | None, dataset: "Dataset") -> int:
    """The most classes on a list: fewer than all, which would be a full list."""
    from shortlist.errors import InputError

    most = dataset.num_classes - 1
    if most < 1:
        column = "" if dataset.num_classes else ": give the column that has them (--label-column)"
        raise InputError(f"{dataset.name}: {most + 1} classes, expected at least 2 to simulate answers from{column}")
    size = min(8, most) if stated is None else stated
    if not 1 <= size <= most:
        raise InputError(f"size: expected 1 to {most} for {most + 1} classes, got {size}")
    return size


def _number(pinned: str | None, dataset: "Dataset") -> int | None:
    from shortlist.errors import unknown_name

    if pinned is not None and pinned not in dataset.class_names:
        raise unknown_name("class to pin", pinned, dataset.class_names)
    return None if pinned is None else dataset.class_names.index(pinned)


def _teller(bar: Progress, runs: int) -> Callable[[str, int, int], None]:
    """Shows after every training, on the progress bar, which run it was of and how far that is."""
    begun: set[tuple[str, int]] = set()

    def tell(way: str, seed: int, reads: int) -> None:
        begun.add((way, seed))
        bar.done = len(begun) - 1
        bar.note = f"run {len(begun)} of {runs}, seed {seed}: {way}, {reads:,} reads"

    return tell


def _finish(result: dict[str, Any], curves: list[Any], folder: Path | None, as_json: bool) -> None:
    if folder is not None:
        from shortlist.policies.simulation import write_curves

        write_curves(folder, curves, result)
        note(f"wrote {folder}/curve.csv, .json, .svg, .png")
    if as_json:
        print_json(result)
    else:
        _print(result)


def _print(result: dict[str, Any]) -> None:
    full = result["full_labels"]
    rows = []
    for way in result["ways"]:
        marks = ["never" if way[k] is None else f"{way[k]:.1%}" for k in ("mark_reads", "mark_seconds")]
        cost = [f"{way['reads']:.1%}", f"{way['seconds']:.1%}"]
        rows.append([way["way"], f"{way['accuracy']:.1%}", f"{way['resolved']:.0%}", *cost, *marks])
    print_table(("way", "accuracy", "resolved", "reads", "time", "99 %: reads", "time"), rows)
    typer.echo(
        f"\n{result['data']}: {result['items']:,} items, {result['classes']} classes, seeds {result['seeds']}. Reads "
        f"and time are shares of full labels: {full['reads']:,.0f} reads, {in_hours(full['seconds'] / 3600)} hours.\n"
        f"99 %: the cost from which on accuracy stays at 99 % of the {full['accuracy']:.1%} of full labels."
    )
    for scored in result["scores"]:
        typer.echo(_score_line(scored))


def _score_line(scored: dict[str, Any]) -> str:
    """What the sample says about the model of one run."""
    said = f"{scored['way']}, seed {scored['seed']}: "
    if "low" not in scored:
        return f"{said}no item of the sample was asked about yet"
    said += f"score {scored['accuracy']:.1%} ({scored['low']:.1%} to {scored['high']:.1%}) by {scored['items']} items"
    said += f", {scored['undecided']} undecided" if scored["undecided"] else ""
    more = scored["questions_for_a_point"]
    said += f"; test items {scored['true']:.1%}; one point more: "
    return said + ("not in sight" if more is None else f"about {float(f'{more:.1g}'):,.0f} more questions")
