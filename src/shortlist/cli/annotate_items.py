"""`shortlist annotate init`, `add` and `import`: make a project from files, and add to it."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from shortlist.cli.annotate_backup import Folder
from shortlist.cli.options import AsJson, Features, data_option
from shortlist.cli.progress import progress
from shortlist.internal.reasons import by_reason

people_option = partial(typer.Option, rich_help_panel="People")
model_option = partial(typer.Option, rich_help_panel="A model that chooses the lists")

Items = Annotated[Path, typer.Option(help="A folder of images or sounds, or a table (.csv, .jsonl, ...) of texts.")]
Classes = Annotated[
    Path, typer.Option(help="classes.txt: one class name per line; or a table with class and description.")
]
Size = Annotated[int | None, typer.Option(help="Classes on a shortlist (5 if not given).")]
Title = Annotated[str | None, typer.Option(help="Shown on the pages; the folder's name, as words, if not given.")]
Instructions = Annotated[
    Path | None, typer.Option(help="Plain text (UTF-8) that annotators read before they begin and can open again.")
]
Database = Annotated[str | None, typer.Option(help="postgresql://... instead of SQLite in the folder.")]

Overlap = Annotated[int, people_option(help="How many annotators answer each item.")]
Gold = Annotated[Path | None, people_option(help="A table with item and gold: known answers, to measure annotators.")]
GoldEvery = Annotated[int, people_option(help="On average one question in N is about a gold item.", metavar="N")]
Typing = Annotated[
    bool | None,
    people_option(help="People may type a class that is not on the list (if not said: where a model chooses it)."),
]
Compare = Annotated[
    bool, people_option("--compare", help="Ask by full lists, by search and by shortlists, to see what each costs.")
]
Pinned = Annotated[
    str | None, people_option(help="A class that is on every list, such as 'out of scope'.", metavar="CLASS")
]

Policy = Annotated[
    str | None, typer.Option(help="adaptive, information or top: a model chooses the lists; uniform: chance does.")
]
Epsilon = Annotated[float | None, model_option(help="Share of uniform lists mixed in with the model's.")]
Test = Annotated[str | None, model_option(help="Labelled data to score the model on, for the curve of the admin page.")]
Names = Annotated[
    bool, model_option(help="Texts: the names of the classes choose the first lists, as long as they help.")
]
Score = Annotated[bool, model_option(help="Score the model by a sample of the items: asked about, not learned from.")]
Known = Annotated[
    Path | None, model_option(help="A table with item and class: labels you have. Learned from, and not asked about.")
]
Scores = Annotated[
    Path | None,
    model_option(
        help="What another model thinks: a table with item and one column per class, .npz, Label Studio's tasks with "
        "predictions, what `shortlist predict` wrote, or a folder of `shortlist train`."
    ),
]

TextColumn = Annotated[str | None, data_option(help="The column of a table that holds the text (text).")]
ItemColumn = Annotated[
    str | None, data_option(help="The column that names the item (item, or else row numbers from 0).")
]
Strict = Annotated[bool, data_option("--strict", help="Refuse the import if any item is bad, instead of skipping it.")]


def init(
    project: Folder,
    items: Items,
    classes: Classes,
    size: Size = None,
    overlap: Overlap = 1,
    gold: Gold = None,
    gold_every: GoldEvery = 10,
    instructions: Instructions = None,
    title: Title = None,
    database: Database = None,
    policy: Policy = None,
    epsilon: Epsilon = None,
    test: Test = None,
    features: Features = None,
    names: Names = True,
    score: Score = True,
    known: Known = None,
    scores: Scores = None,
    typing: Typing = None,
    compare: Compare = False,
    pinned: Pinned = None,
    text_column: TextColumn = None,
    item_column: ItemColumn = None,
    strict: Strict = False,
) -> None:
    """Make a project.

    Example: shortlist annotate init birds --items images/ --classes classes.txt --size 5
    """
    from shortlist.annotate import Additions, init_project

    additions = Additions(items, classes, gold, instructions, known, scores, text_column, item_column, strict)
    with _importing() as tell:
        settings, outcome = init_project(
            project,
            additions,
            title=title,
            size=size,
            overlap=overlap,
            gold_every=gold_every,
            database=database,
            policy=policy,
            epsilon=epsilon,
            test=test,
            names=names,
            score=score,
            features=features,
            typing=typing,
            compare=compare,
            pinned=pinned,
            progress=tell,
        )
    _print_outcome(outcome.added, outcome.skipped)
    _print_given(outcome.known, outcome.scored, outcome.remark)
    if outcome.known == outcome.added:
        typer.echo("every item is of known class: nothing is left to ask", err=True)
    _print_next(project, settings.size, outcome.classes, by_chance=settings.live is None)


def add(
    project: Folder,
    items: Annotated[Path | None, typer.Option(help="More items: a folder or a table.")] = None,
    classes: Annotated[
        Path | None, typer.Option(help="More classes, as for init; existing classes get the descriptions given.")
    ] = None,
    gold: Gold = None,
    instructions: Instructions = None,
    known: Known = None,
    scores: Scores = None,
    text_column: TextColumn = None,
    item_column: ItemColumn = None,
    strict: Strict = False,
) -> None:
    """Add items, classes and what you know while the server runs.

    Without --items, --gold is for existing items that nobody was asked about yet. Instructions and scores replace the
    existing ones.

    Example: shortlist annotate add birds --items more/ --classes more.txt
    """
    from shortlist.annotate import Additions, Project, add_to_project

    additions = Additions(items, classes, gold, instructions, known, scores, text_column, item_column, strict)
    with Project.open(project) as opened, _importing() as tell:
        outcome = add_to_project(opened, additions, tell)
    if classes is not None:
        typer.echo(f"{outcome.classes} classes now", err=True)
    if items is not None or gold is not None:
        _print_outcome(outcome.added, outcome.skipped, "gold answers" if items is None else "items")
    else:
        _print_skipped(outcome.skipped)
    _print_given(outcome.known, outcome.scored, outcome.remark)


def import_answers(
    project: Folder,
    file: Annotated[Path, typer.Argument(help="Label Studio's export: JSON, JSON_MIN (.json) or CSV (.csv).")],
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Import answers from Label Studio; safe to run twice.

    Example: shortlist annotate import birds project-1.json
    """
    from shortlist.annotate import Project, import_file

    with Project.open(project) as opened:
        outcome = import_file(opened, file, strict=strict)
    if as_json:
        typer.echo(json.dumps({"added": outcome.added, "known": outcome.known, "skipped": outcome.skipped}))
        return
    known = f", {outcome.known} known already" if outcome.known else ""
    _print_outcome(outcome.added, outcome.skipped, "answers", known)


def _print_next(project: Path, size: int, classes: int, *, by_chance: bool) -> None:
    """The next command; with a policy if random lists would rarely hit: people who mostly say None get used to it."""
    rarely = by_chance and 4 * size < classes
    if rarely:
        lists = f"Random lists of {size} of {classes} classes"
        typer.echo(f"{lists}: about {1 - size / classes:.0%} of answers will be None.", err=True)
    typer.echo(f"Next: shortlist annotate serve {project}{' --policy adaptive' if rarely else ''}", err=True)


@contextmanager
def _importing() -> Iterator[Callable[[int, int], None]]:
    """A progress bar for imports, which are told a function of (items done, items in all)."""
    with progress(None, "importing") as bar:

        def tell(done: int, total: int) -> None:
            bar.done, bar.total = done, total

        yield tell


def _print_given(known: int, scored: int, remark: str) -> None:
    if known:
        typer.echo(f"{known} items of known class: learned from, not asked about", err=True)
    if scored:
        typer.echo(f"scores of {scored} items", err=True)
    if remark:
        typer.echo(remark, err=True)


def _print_outcome(added: int, skipped: list[tuple[str, str]], what: str = "items", known: str = "") -> None:
    _print_skipped(skipped)
    typer.echo(f"{added} {what} added{known}, {len(skipped)} skipped", err=True)


def _print_skipped(skipped: list[tuple[str, str]]) -> None:
    for line in by_reason(skipped):
        typer.echo(f"skipped {line}", err=True)
