"""`shortlist annotate backup`, `check` and `restore`."""

from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[Path, typer.Argument(help="The project folder.")]


def backup(project: Folder, out: Annotated[Path, typer.Argument(help="The .zip to write.")]) -> None:
    """Save everything in one file, even while the server runs. Keep it private: it holds the project's secret.

    If pictures or sounds are gone from the disk, the rest is saved, they are named, and the exit status is 1.

    Example: shortlist annotate backup birds birds.zip
    """
    from shortlist.annotate import Project, write_backup

    with Project.open(project) as opened:
        saved = write_backup(opened, out)
    for name in saved.missing[:20]:
        typer.echo(f"not saved, its file is missing or cannot be read: {name}", err=True)
    if len(saved.missing) > 20:
        typer.echo(f"... and {len(saved.missing) - 20} more", err=True)
    typer.echo(f"{saved.rows} rows in {out}", err=True)
    if saved.missing:
        raise typer.Exit(1)


def check(project: Folder) -> None:
    """Look for damage in a project.

    The database's own check, figures that do not add up, files that are gone.

    Exits with 1 if anything is found. A server may be running.

    Example: shortlist annotate check birds
    """
    from shortlist.annotate import Project

    with Project.open(project) as opened:
        found = opened.check()
    for line in found:
        typer.echo(line, err=True)
    typer.echo(f"{len(found)} problems" if found else "no damage found", err=bool(found))
    if found:
        raise typer.Exit(1)


def restore(
    source: Annotated[Path, typer.Argument(help="What `backup` wrote.")],
    project: Annotated[Path, typer.Argument(help="A new project folder.")],
    database: Annotated[str | None, typer.Option(help="postgresql://... instead of SQLite in the folder.")] = None,
) -> None:
    """Make a project from a backup, in SQLite or PostgreSQL.

    Example: shortlist annotate restore birds.zip birds-again
    """
    from shortlist.annotate import restore_backup

    typer.echo(f"{restore_backup(source, project, database)} rows in {project}", err=True)
