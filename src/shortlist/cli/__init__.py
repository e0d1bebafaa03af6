"""The command `shortlist`: it parses, calls and prints. Each command imports what it needs when it runs."""

import importlib
import os
import sys
from itertools import pairwise
from typing import Annotated

import typer

from shortlist import __version__
from shortlist.cli.annotate import app as annotate_app
from shortlist.cli.app import App
from shortlist.cli.listing import datasets, methods, models
from shortlist.errors import InputError
from shortlist.internal.extras import named_extra

__all__ = ["main"]

app = App(
    help="Label items with many classes by showing people a few of them, and train classifiers from their answers.\n\n"
    "Example: shortlist annotate demo, or shortlist train digits --size 3 --out runs/digits",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

COMMANDS = ("demo", "simulate", "train", "evaluate", "predict", "label", "reproduce", "report", "plan")
"""Each is a function of that name in shortlist.cli.<name>."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"shortlist {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Nothing by itself: the commands do the work."""


def _mount() -> None:
    for name in COMMANDS:
        app.command(name)(getattr(importlib.import_module(f"shortlist.cli.{name}"), name))
    app.add_typer(annotate_app, name="annotate")
    for listing in (methods, models, datasets):
        app.command(listing.__name__)(listing)


_mount()


def main() -> None:
    """Run the command line; bad input ends it with one line and exit code 2."""
    try:
        with named_extra():
            code = app(prog_name="shortlist", standalone_mode=False)
    except KeyboardInterrupt:
        _complain("stopped")
        code = 130
    except BrokenPipeError:  # `shortlist ... | head`: the reader has seen enough, which is fine
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except UnicodeEncodeError as error:  # the terminal is not UTF-8, and a name has letters that it lacks
        hint = "" if error.encoding == "utf-8" else ": try PYTHONUTF8=1"
        _complain(f"{error.object[error.start : error.end]!a} cannot be written as {error.encoding}{hint}")
        code = 2
    except (InputError, OSError) as error:
        _complain(_line(error))
        code = 2
    except Exception as error:
        code = _usage(error)
    sys.exit(code if isinstance(code, int) else 0)


def _line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(str(error).split())


def _usage(error: Exception) -> int:
    """Print the parser's complaint; told by names, not by click's classes, of which typer may bring its own copy."""
    if type(error).__name__ == "Abort":
        _complain("stopped")
        return 130
    if not hasattr(error, "format_message"):
        raise error
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(context.get_help() if context is not None else str(error), err=True)
        return 2
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    _complain(" ".join(error.format_message().split()) + _got(error) + hint)
    return int(getattr(error, "exit_code", 2))


def _got(error: Exception) -> str:
    """The value that the parser refused, which its own words leave out."""
    option = getattr(error, "param", None)
    if option is None or option.nargs != 1:
        return ""
    words = ((word, word.partition("="), after) for word, after in pairwise([*sys.argv, ""]))
    given = [after if word == name else value for word, (name, _, value), after in words if name in option.opts]
    return f", got {given[0]!r}" if len(given) == 1 else ""  # of an option that is repeated it may be any


def _complain(line: str) -> None:
    rank = os.environ.get("RANK", "0")
    where = "" if rank == "0" else f" (process {rank})"  # under torchrun
    sys.stderr.write(f"shortlist{where}: {line}\n")
