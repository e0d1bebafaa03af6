"""`shortlist annotate`: a project of items, people and answers. Each command imports what it needs when it runs."""

import gc
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from shortlist.cli.annotate_backup import Folder, backup, check, restore
from shortlist.cli.options import Features

app = typer.Typer()

Strict = Annotated[bool, typer.Option("--strict", help="Refuse the import if any item is bad, instead of skipping it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
TextColumn = Annotated[str | None, typer.Option(help="The column of a table that holds the text (text).")]
ItemColumn = Annotated[
    str | None, typer.Option(help="The column that names the item (item, or else row numbers from 0).")
]
Policy = Annotated[
    str | None, typer.Option(help="adaptive, information or top: a model chooses the lists; uniform: chance does.")
]
Epsilon = Annotated[float | None, typer.Option(help="Share of uniform lists mixed in with the model's.")]
Test = Annotated[str | None, typer.Option(help="Labelled data to score the model on, for the curve of the admin page.")]
Instructions = Annotated[
    Path | None, typer.Option(help="Plain text (UTF-8) that annotators read before they begin and can open again.")
]
Known = Annotated[
    Path | None, typer.Option(help="A table with item and class: labels you have. Learned from, and not asked about.")
]
Scores = Annotated[
    Path | None,
    typer.Option(
        help="What another model thinks: a table with item and one column per class, .npz, Label Studio's tasks with "
        "predictions, what `shortlist predict` wrote, or a folder of `shortlist train`."
    ),
]
Gold = Annotated[Path | None, typer.Option(help="A table with item and gold: known answers, to measure annotators.")]


@app.callback(invoke_without_command=True)
def begin(
    context: typer.Context,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Without a command: where the page listens.")] = 8080,
) -> None:
    """Let people answer shortlists in a browser.

    Without a command: a page on this machine that makes a project from a table of texts, and then serves it.

    Example: shortlist annotate init birds --items images/ --classes classes.txt --size 5; shortlist annotate serve
    birds
    """
    if context.invoked_subcommand is None:
        from shortlist.annotate import run_first_steps

        run_first_steps(typer.echo, port=port)


@app.command()
def init(
    project: Folder,
    items: Annotated[Path, typer.Option(help="A folder of images or sounds, or a table (.csv, .jsonl, ...) of texts.")],
    classes: Annotated[
        Path, typer.Option(help="classes.txt: one class name per line; or a table with class and description.")
    ],
    size: Annotated[int | None, typer.Option(help="Classes on a shortlist (5 if not given).")] = None,
    overlap: Annotated[int, typer.Option(help="How many annotators answer each item.")] = 1,
    gold: Gold = None,
    gold_every: Annotated[
        int, typer.Option(help="On average one question in N is about a gold item.", metavar="N")
    ] = 10,
    instructions: Instructions = None,
    title: Annotated[
        str | None, typer.Option(help="Shown on the pages; the folder's name, as words, if not given.")
    ] = None,
    database: Annotated[str | None, typer.Option(help="postgresql://... instead of SQLite in the folder.")] = None,
    policy: Policy = None,
    epsilon: Epsilon = None,
    test: Test = None,
    features: Features = None,
    names: Annotated[
        bool, typer.Option(help="Texts: the names of the classes choose the first lists, as long as they help.")
    ] = True,
    score: Annotated[
        bool, typer.Option(help="Score the model by a sample of the items: asked about, not learned from.")
    ] = True,
    known: Known = None,
    scores: Scores = None,
    typing: Annotated[
        bool | None,
        typer.Option(help="People may type a class that is not on the list (if not said: where a model chooses it)."),
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Ask by full lists, by search and by shortlists, to see what each costs.")
    ] = False,
    text_column: TextColumn = None,
    item_column: ItemColumn = None,
    strict: Strict = False,
) -> None:
    """Make a project.

    Example: shortlist annotate init birds --items images/ --classes classes.txt --size 5
    """
    from shortlist.annotate import Additions, init_project

    additions = Additions(items, classes, gold, instructions, known, scores, text_column, item_column, strict)
    with _progress("importing") as progress:
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
            progress=progress,
        )
    _print_outcome(outcome.added, outcome.skipped)
    _print_given(outcome.known, outcome.scored)
    share = settings.size / outcome.classes
    rarely = settings.live is None and 4 * share < 1  # people who mostly say None get used to saying it
    if rarely:
        lists = f"Random lists of {settings.size} of {outcome.classes} classes"
        typer.echo(f"{lists}: about {1 - share:.0%} of answers will be None.", err=True)
    typer.echo(f"Next: shortlist annotate serve {project}{' --policy adaptive' if rarely else ''}", err=True)


@app.command()
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
    with Project.open(project) as opened, _progress("importing") as progress:
        outcome = add_to_project(opened, additions, progress)
    if classes is not None:
        typer.echo(f"{outcome.classes} classes now", err=True)
    if items is not None or gold is not None:
        _print_outcome(outcome.added, outcome.skipped, "gold answers" if items is None else "items")
    else:
        _print_skipped(outcome.skipped)
    _print_given(outcome.known, outcome.scored)


@app.command()
def rename(
    project: Folder,
    old: Annotated[str, typer.Argument(help="The class.")],
    new: Annotated[str, typer.Argument(help="What it is called from now on.")],
) -> None:
    """Rename a class, even while the server runs; its answers stay.

    Example: shortlist annotate rename birds "pelikan" "pelican"
    """
    from shortlist.annotate import Project, rename_by_name

    with Project.open(project) as opened:
        rename_by_name(opened, old, new)


@app.command()
def serve(
    project: Folder,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free port.")] = 8080,
    certificate: Annotated[Path | None, typer.Option(help="TLS certificate (PEM).")] = None,
    key: Annotated[Path | None, typer.Option(help="TLS key (PEM).")] = None,
    allow_plain_http: Annotated[
        bool, typer.Option("--allow-plain-http", help="Listen on a public address without TLS.")
    ] = False,
    public_url: Annotated[
        str | None, typer.Option(help="The address that people open, if a proxy is in front.")
    ] = None,
    proxy: Annotated[
        str | None, typer.Option(help="The IP address of a proxy whose X-Forwarded-For says who asks.")
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="Processes that answer; more than one on PostgreSQL only.")
    ] = 1,
    backup_every: Annotated[
        str | None, typer.Option(help="Back up into the project's folder, for instance every 30m, 1h or 1d.")
    ] = None,
    keep: Annotated[int, typer.Option(min=1, help="How many of these backups to keep.")] = 24,
    policy: Policy = None,
    epsilon: Epsilon = None,
    test: Test = None,
    features: Features = None,
) -> None:
    """Serve a project.

    At the first start it prints a link for an owner, which works once.

    With a policy, a model that is trained alongside chooses the shortlists, and after None other classes are shown.

    Example: shortlist annotate serve birds --policy adaptive
    """
    gc.disable()  # it would look through all that the imports bring, again and again; `serve` turns it on
    from shortlist.annotate import Address, Project, serve_project

    address = Address(host, port, certificate, key, allow_plain_http, public_url, proxy)
    with Project.open(project) as opened:
        serve_project(
            opened,
            address,
            typer.echo,
            policy=policy,
            epsilon=epsilon,
            test=test,
            features=features,
            workers=workers,
            backup_every=backup_every,
            keep=keep,
        )


@app.command()
def invite(
    project: Folder,
    name: Annotated[
        str | None, typer.Argument(help="Whom to invite; without a name, the link or token is for an owner.")
    ] = None,
    token: Annotated[bool, typer.Option("--token", help="An API token for a program instead of a link.")] = False,
    role: Annotated[
        str, typer.Option(help="annotator, reviewer (sees and corrects answers) or owner (does everything).")
    ] = "annotator",
    url: Annotated[str, typer.Option(help="The address of the server.")] = "http://127.0.0.1:8080",
    as_json: AsJson = False,
) -> None:
    """Make a link for an annotator, a reviewer or an owner.

    If the annotator has a link already, the old one ends. The link of an owner or a reviewer works once.

    Example: shortlist annotate invite birds ada
    """
    from shortlist.annotate import Project, make_invitation

    with Project.open(project) as opened:
        made = make_invitation(opened, name, token, url, role)
    typer.echo(json.dumps({"token" if token else "link": made}) if as_json else made)


@app.command()
def status(project: Folder, as_json: AsJson = False) -> None:
    """Show progress, annotators, agreement, and the ways compared.

    Example: shortlist annotate status birds --json
    """
    from shortlist.annotate import Project
    from shortlist.cli.annotate_status import status_lines

    with Project.open(project) as opened:
        found = opened.status()
        title = opened.settings.title
    if as_json:
        typer.echo(json.dumps({"title": title, **found}))
        return
    for line in status_lines(title, found):
        typer.echo(line)


@app.command()
def export(
    project: Folder,
    out: Annotated[Path, typer.Argument(help="The file to write; its ending (or --format) says how.")],
    format_name: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="answers (if not given), gold-answers, labels, label-studio, crowd-kit; an unknown one lists all.",
        ),
    ] = None,
    pseudonyms: Annotated[
        bool, typer.Option("--pseudonyms", help="Call people by numbers that only the project can tell.")
    ] = False,
) -> None:
    """Write the answers, the labels or tasks for other tools.

    The answers as .csv, .jsonl or .parquet; those on gold items, which are kept apart (--format gold-answers), and one
    label per item (--format labels) as .csv; Label Studio's tasks as .json and its configuration as .xml; crowd-kit's
    table as .csv.

    Example: shortlist annotate export birds answers.parquet
    """
    from shortlist.annotate import Project, export_file

    with Project.open(project) as opened:
        rows = export_file(opened, out, format_name, pseudonyms=pseudonyms)
        chosen = opened.settings.live
    typer.echo(f"{rows} rows in {out}", err=True)
    if format_name == "label-studio" and out.suffix == ".json" and chosen:
        typer.echo("the lists of these tasks are random: a model chooses lists only on Shortlist's own page", err=True)


@app.command(name="import")
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


for _command in (backup, check, restore):
    app.command()(_command)


@app.command()
def demo(
    robots: Annotated[int, typer.Option(min=0, max=200, help="A simulated crowd that answers through the API.")] = 0,
    size: Annotated[int, typer.Option(min=1, max=10, help="Classes on a shortlist.")] = 5,
    think: Annotated[float, typer.Option(min=0.0, help="Seconds that a robot thinks, on average.")] = 2.5,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free port.")] = 8080,
    folder: Annotated[Path | None, typer.Option(help="Keep the project here; if not given, it is thrown away.")] = None,
) -> None:
    """Answer handwritten digits in a browser.

    The admin page draws the accuracy as it grows.

    Example: shortlist annotate demo --robots 20
    """
    from shortlist.annotate import run_demo

    run_demo(typer.echo, robots=robots, size=size, port=port, think=think, folder=folder)


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _print_given(known: int, scored: int) -> None:
    if known:
        typer.echo(f"{known} items of known class: learned from, not asked about", err=True)
    if scored:
        typer.echo(f"scores of {scored} items", err=True)


def _print_outcome(added: int, skipped: list[tuple[str, str]], what: str = "items", known: str = "") -> None:
    _print_skipped(skipped)
    typer.echo(f"{added} {what} added{known}, {len(skipped)} skipped", err=True)


def _print_skipped(skipped: list[tuple[str, str]]) -> None:
    for item, reason in skipped[:20]:
        typer.echo(f"skipped {item}: {reason}", err=True)
    if len(skipped) > 20:
        typer.echo(f"... and {len(skipped) - 20} more", err=True)
