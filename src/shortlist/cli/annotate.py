"""`shortlist annotate`: a project of items, people and answers. Each command imports what it needs when it runs."""

import gc
import json
from pathlib import Path
from typing import Annotated

import typer

from shortlist.cli.annotate_backup import Folder, backup, check, restore
from shortlist.cli.annotate_items import Epsilon, Policy, Test, add, import_answers, init
from shortlist.cli.app import App
from shortlist.cli.options import AsJson, Features

app = App()


@app.callback(invoke_without_command=True)
def begin(
    context: typer.Context,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port of that page.")] = 8080,
) -> None:
    """Let people answer shortlists in a browser.

    Without a command it serves a page on this machine that makes a project from texts, pictures or sounds.

    Example: shortlist annotate init birds --items images/ --classes classes.txt --size 5; shortlist annotate serve
    birds
    """
    if context.invoked_subcommand is None:
        from shortlist.annotate import run_first_steps

        run_first_steps(typer.echo, port=port)


app.command()(init)
app.command()(add)


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
        remark = rename_by_name(opened, old, new)
    if remark:
        typer.echo(remark, err=True)


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

    With a policy, a model that is trained alongside chooses the shortlists; after a None it asks again with others.

    Example: shortlist annotate serve birds --policy adaptive
    """
    gc.disable()  # it would go through everything imported again and again; `serve_project` turns it on
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
    url: Annotated[
        str | None, typer.Option(help="The address of the server; if not given, where the project is being served.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a link for an annotator, a reviewer or an owner.

    If the annotator has a link already, the old one ends. The link of an owner or a reviewer works once.

    Example: shortlist annotate invite birds ada
    """
    from shortlist.annotate import Project, make_invitation

    with Project.open(project) as opened:
        made, remark = make_invitation(opened, name, token, url, role)
    typer.echo(json.dumps({"token" if token else "link": made}) if as_json else made)
    if remark:
        typer.echo(remark, err=True)


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
        bool, typer.Option("--pseudonyms", help="Write numbers for people, which only the project can resolve.")
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
    typer.echo(f"{rows} {'row' if rows == 1 else 'rows'} in {out}", err=True)
    if format_name == "label-studio" and out.suffix == ".json" and chosen:
        typer.echo("the lists of these tasks are random: a model chooses lists only on Shortlist's own page", err=True)


app.command(name="import")(import_answers)
for _command in (backup, check, restore):
    app.command()(_command)


@app.command()
def demo(
    robots: Annotated[int, typer.Option(min=0, max=200, help="A simulated crowd that answers through the API.")] = 0,
    size: Annotated[int, typer.Option(min=1, max=10, help="Classes on a shortlist.")] = 5,
    think: Annotated[float, typer.Option(min=0.0, help="Seconds that a robot thinks, on average.")] = 2.5,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free port.")] = 8080,
    folder: Annotated[Path | None, typer.Option(help="Keep the project here (by default it is deleted).")] = None,
) -> None:
    """Answer handwritten digits in a browser.

    With --robots, simulated people answer beside you, and the owner's page draws the accuracy as it grows.

    Example: shortlist annotate demo --robots 20
    """
    from shortlist.annotate import run_demo

    run_demo(typer.echo, robots=robots, size=size, port=port, think=think, folder=folder)
