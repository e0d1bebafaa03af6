"""`shortlist annotate`: a project of items, people and answers. Thin; each command imports what it needs as it runs."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from shortlist.errors import InputError

app = typer.Typer(
    help="Let people answer shortlists in a browser.\n\nExample: shortlist annotate init birds --items images/ "
    "--classes classes.txt --size 5; shortlist annotate serve birds",
    no_args_is_help=True,
)

Folder = Annotated[Path, typer.Argument(help="The project folder.")]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse the import if any item is bad, instead of skipping it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
TextColumn = Annotated[str | None, typer.Option(help="The column of a table that holds the text (text).")]
ItemColumn = Annotated[
    str | None, typer.Option(help="The column that names the item (item; where there is none, row numbers from 0).")
]
Policy = Annotated[
    str | None, typer.Option(help="adaptive, information or top: a model chooses the lists; uniform: chance does.")
]
Epsilon = Annotated[float | None, typer.Option(help="Share of uniform lists mixed in with the model's.")]
Test = Annotated[str | None, typer.Option(help="Labelled data to score the model on, for the curve of the admin page.")]
Instructions = Annotated[
    Path | None, typer.Option(help="Plain text (UTF-8) that annotators read before they begin, and on demand.")
]
Gold = Annotated[Path | None, typer.Option(help="CSV with item and gold: known answers, to measure annotators.")]


@app.command()
def init(
    project: Folder,
    items: Annotated[Path, typer.Option(help="A folder of images or sounds, or a table (.csv, .jsonl, ...) of texts.")],
    classes: Annotated[
        Path, typer.Option(help="classes.txt: one class name a line; or a table with class and description.")
    ],
    size: Annotated[int | None, typer.Option(help="Classes on a shortlist (5 where not given).")] = None,
    overlap: Annotated[int, typer.Option(help="How many annotators answer each item.")] = 1,
    gold: Gold = None,
    gold_every: Annotated[int, typer.Option(help="One question in so many is a gold item.")] = 10,
    instructions: Instructions = None,
    title: Annotated[str | None, typer.Option(help="Shown on the pages; the folder's name where not given.")] = None,
    database: Annotated[str | None, typer.Option(help="postgresql://... instead of SQLite in the folder.")] = None,
    policy: Policy = None,
    epsilon: Epsilon = None,
    test: Test = None,
    text_column: TextColumn = None,
    item_column: ItemColumn = None,
    strict: Strict = False,
) -> None:
    """Make a project.

    Example: shortlist annotate init birds --items images/ --classes classes.txt --size 5
    """
    from shortlist.annotate.live.chooser import live_plan
    from shortlist.annotate.project.project import Settings
    from shortlist.annotate.project.sources import read_classes
    from shortlist.annotate.setup import init_project

    number = len(read_classes(classes))
    if size is not None and size > number:
        raise InputError(f"--size {size}: expected at most the {number} classes of {classes}")
    size = 5 if size is None else size  # classes may come later, so the usual size may be more than there are now
    settings = Settings(title or project.resolve().name, size, overlap, gold_every, database)
    live = live_plan(settings, policy, epsilon, test)
    settings = replace(settings, live=None if live is None else live.to_dict())
    with _progress("importing") as progress:
        report = init_project(
            project,
            settings,
            items,
            classes,
            gold,
            text_column,
            item_column,
            instructions=instructions,
            strict=strict,
            progress=progress,
        )
    _print_report(report.added, report.skipped)
    rarely = live is None and 4 * size < number  # a person who mostly says None learns to say it
    if rarely:
        typer.echo(
            f"Random lists of {size} of {number} classes: some {1 - size / number:.0%} of answers will be None.",
            err=True,
        )
    typer.echo(f"Next: shortlist annotate serve {project}{' --policy adaptive' if rarely else ''}", err=True)


@app.command()
def add(
    project: Folder,
    items: Annotated[Path | None, typer.Option(help="More items: a folder or a table.")] = None,
    classes: Annotated[
        Path | None, typer.Option(help="More classes, as for init; a known class with a description gets that one.")
    ] = None,
    gold: Gold = None,
    instructions: Instructions = None,
    text_column: TextColumn = None,
    item_column: ItemColumn = None,
    strict: Strict = False,
) -> None:
    """Add items, classes, gold or instructions while the server runs.

    Without --items, --gold is for items that are there, as long as nobody was asked about them. Instructions take the
    place of those there are.

    Example: shortlist annotate add birds --items more/ --classes more.txt
    """
    from shortlist.annotate.project.project import Project
    from shortlist.annotate.setup import add_to_project

    with Project.open(project) as opened, _progress("importing") as progress:
        report = add_to_project(
            opened,
            items,
            classes,
            gold,
            text_column,
            item_column,
            instructions=instructions,
            strict=strict,
            progress=progress,
        )
    if classes is not None:
        typer.echo(f"{report.classes} classes now", err=True)
    if items is not None or gold is not None:
        _print_report(report.added, report.skipped, "gold answers" if items is None else "items")


@app.command()
def rename(
    project: Folder,
    old: Annotated[str, typer.Argument(help="The class.")],
    new: Annotated[str, typer.Argument(help="What it is called from now on.")],
) -> None:
    """Rename a class, also while the server runs; its answers stay.

    Example: shortlist annotate rename birds "pelikan" "pelican"
    """
    from shortlist.annotate.project.project import Project
    from shortlist.annotate.setup import rename_by_name

    with Project.open(project) as opened:
        rename_by_name(opened, old, new)


@app.command()
def serve(
    project: Folder,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free one.")] = 8080,
    certificate: Annotated[Path | None, typer.Option(help="TLS certificate (PEM).")] = None,
    key: Annotated[Path | None, typer.Option(help="TLS key (PEM).")] = None,
    allow_plain_http: Annotated[
        bool, typer.Option("--allow-plain-http", help="Listen on a public address without TLS.")
    ] = False,
    public_url: Annotated[str | None, typer.Option(help="How people reach it, if a proxy is in front.")] = None,
    policy: Policy = None,
    epsilon: Epsilon = None,
    test: Test = None,
) -> None:
    """Serve a project; prints the admin's one-time link.

    With a policy, a model that is trained beside the server chooses the shortlists, and None is asked again.

    Example: shortlist annotate serve birds --policy adaptive
    """
    from shortlist.annotate.live.chooser import live_plan
    from shortlist.annotate.live.items import check_live
    from shortlist.annotate.project.project import Project
    from shortlist.annotate.web.serve import Address, admin_url, listen
    from shortlist.annotate.web.serve import serve as run

    wanted = Address(host, port, certificate, key, allow_plain_http, public_url)
    with Project.open(project) as opened:
        live = live_plan(opened.settings, policy, epsilon, test)
        check_live(opened, live)
        listener, address = listen(wanted)
        typer.echo(f"Admin (works once): {admin_url(opened, address)}")
        run(opened, address, listener, live)


@app.command()
def invite(
    project: Folder,
    name: Annotated[str | None, typer.Argument(help="The annotator; without a name, another admin.")] = None,
    token: Annotated[bool, typer.Option("--token", help="An API token for a program instead of a link.")] = False,
    url: Annotated[str, typer.Option(help="Where the server is reached.")] = "http://127.0.0.1:8080",
    as_json: AsJson = False,
) -> None:
    """Make an invite link for an annotator, or an admin's link.

    A known name gets a new link, and the old one ends; an admin's link works once.

    Example: shortlist annotate invite birds ada
    """
    from shortlist.annotate.project.project import Project
    from shortlist.annotate.setup import make_invitation

    with Project.open(project) as opened:
        made = make_invitation(opened, name, token, url)
    typer.echo(json.dumps({"token" if token else "link": made}) if as_json else made)


@app.command()
def status(project: Folder, as_json: AsJson = False) -> None:
    """Progress, annotators, agreement.

    Example: shortlist annotate status birds --json
    """
    from shortlist.annotate.project.project import Project
    from shortlist.annotate.project.stats import Stats

    with Project.open(project) as opened:
        found = Stats(opened.store).status()
        title = opened.settings.title
    if as_json:
        typer.echo(json.dumps({"title": title, **found}))
        return
    done, total = found["progress"]["done"], found["progress"]["total"]
    typer.echo(f"{title}: {done:,} of {total:,} done, {found['items_done']:,} of {found['items']:,} items")
    if found["hours"] is not None:
        typer.echo(f"  time spent: {found['hours']:.1f} hours")
    if found["agreement"]["pairs"]:
        typer.echo(f"  agreement: {found['agreement']['share']:.1%} of {found['agreement']['pairs']:,} pairs")
    for who in found["annotators"]:
        typer.echo(
            f"  {who['name']}: {who['answers']} answers, {who['nones']} None besides gold, {who['skips']} skipped, "
            f"gold {who['gold']} ({who['slips']} slips, {who['misses']} misses of {who['gold_shown']} shown, "
            f"{who['strays']} strays of {who['gold'] - who['gold_shown']} not shown)"
        )


@app.command()
def export(
    project: Folder,
    out: Annotated[Path, typer.Argument(help="The file to write; its ending (or --format) says how.")],
    format_name: Annotated[
        str | None,
        typer.Option(
            "--format", help="answers, gold-answers, labels, label-studio or crowd-kit (answers where not given)."
        ),
    ] = None,
) -> None:
    """Write the answers, the labels or tasks for other tools.

    The answers as .csv, .jsonl or .parquet; those on gold items, which are not among them (--format gold-answers), and
    one label an item (--format labels) as .csv; Label Studio's tasks as .json and its config as .xml; crowd-kit's table
    as .csv.

    Example: shortlist annotate export birds answers.parquet
    """
    from shortlist.annotate.project.project import Project
    from shortlist.annotate.setup import export_file

    with Project.open(project) as opened:
        rows = export_file(opened, out, format_name)
        chosen = opened.settings.live
    typer.echo(f"{rows} rows in {out}", err=True)
    if format_name == "label-studio" and out.suffix == ".json" and chosen:
        typer.echo("the lists of these tasks are random: a model chooses lists on Shortlist's own page only", err=True)


@app.command(name="import")
def import_answers(
    project: Folder,
    file: Annotated[Path, typer.Argument(help="Label Studio's export: JSON, JSON_MIN (.json) or CSV (.csv).")],
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Bring Label Studio's answers in; safe to run twice.

    Example: shortlist annotate import birds project-1.json
    """
    from shortlist.annotate.formats.label_studio_answers import import_file
    from shortlist.annotate.project.project import Project

    with Project.open(project) as opened:
        report = import_file(opened, file, strict=strict)
    if as_json:
        typer.echo(json.dumps({"added": report.added, "known": report.known, "skipped": report.skipped}))
        return
    known = f", {report.known} known already" if report.known else ""
    _print_report(report.added, report.skipped, "answers", known)


@app.command()
def backup(project: Folder, out: Annotated[Path, typer.Argument(help="The .zip to write.")]) -> None:
    """Save everything in one file, also while the server runs. Keep it private: it holds the project's secret.

    Where pictures or sounds are gone from the disk the rest is saved, they are named, and the exit status is 1.

    Example: shortlist annotate backup birds birds.zip
    """
    from shortlist.annotate.project.backup import write_backup
    from shortlist.annotate.project.project import Project

    with Project.open(project) as opened:
        saved = write_backup(opened, out)
    for name in saved.missing[:20]:
        typer.echo(f"not saved, its file is gone or cannot be read: {name}", err=True)
    if len(saved.missing) > 20:
        typer.echo(f"... and {len(saved.missing) - 20} more", err=True)
    typer.echo(f"{saved.rows} rows in {out}", err=True)
    if saved.missing:
        raise typer.Exit(1)


@app.command()
def restore(
    source: Annotated[Path, typer.Argument(help="What `backup` wrote.")],
    project: Annotated[Path, typer.Argument(help="A new project folder.")],
    database: Annotated[str | None, typer.Option(help="postgresql://... instead of SQLite in the folder.")] = None,
) -> None:
    """Make a project from a backup, on either database.

    Example: shortlist annotate restore birds.zip birds-again
    """
    from shortlist.annotate.project.backup import restore_backup

    typer.echo(f"{restore_backup(source, project, database)} rows in {project}", err=True)


@app.command()
def demo(
    robots: Annotated[int, typer.Option(min=0, max=200, help="A simulated crowd that answers through the API.")] = 0,
    size: Annotated[int, typer.Option(min=1, max=10, help="Classes on a shortlist.")] = 5,
    think: Annotated[float, typer.Option(min=0.0, help="Mean seconds a robot thinks.")] = 2.5,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free one.")] = 8080,
    folder: Annotated[Path | None, typer.Option(help="Keep the project here; thrown away where not given.")] = None,
) -> None:
    """Handwritten digits to answer in a browser.

    The admin page draws a live accuracy curve.

    Example: shortlist annotate demo --robots 20
    """
    from shortlist.annotate.demo import run_demo

    run_demo(typer.echo, robots=robots, size=size, port=port, think=think, folder=folder)


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr, where it is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _print_report(added: int, skipped: list[tuple[str, str]], what: str = "items", known: str = "") -> None:
    for item, reason in skipped[:20]:
        typer.echo(f"skipped {item}: {reason}", err=True)
    if len(skipped) > 20:
        typer.echo(f"... and {len(skipped) - 20} more", err=True)
    typer.echo(f"{added} {what} added{known}, {len(skipped)} skipped", err=True)
