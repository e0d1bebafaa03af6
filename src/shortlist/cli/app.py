"""The parts of typer that are ours: options under headings in --help, and numbers that nobody can mean refused."""

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand

from shortlist.errors import InputError

LARGEST = 10**12
"""Numbers above this, infinity and NaN pass as numbers for Python, and end in tracebacks or nonsense further down."""


class Command(TyperCommand):
    """A command in plain text, without typer's boxes."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Also check that every number is one."""
        rest: list[str] = super().parse_args(ctx, args)
        for option in self.params:
            given = ctx.params.get(option.name)
            for value in given if isinstance(given, list | tuple) else [given]:
                if isinstance(value, int | float) and not abs(value) <= LARGEST:
                    raise InputError(f"{option.opts[0]}: expected a finite number of at most 10^12, got {value}")
        return rest

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Each option under the heading that its `rich_help_panel` names; those without one come first."""
        headings: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):
            usual = "Arguments" if param.param_type_name == "argument" else "Options"
            if (line := param.get_help_record(ctx)) is not None:
                headings.setdefault(getattr(param, "rich_help_panel", None) or usual, []).append(line)
        for heading, lines in headings.items():
            if lines:
                with formatter.section(heading):
                    formatter.write_dl(lines)


class App(typer.Typer):
    """A typer application whose commands are ours."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Register a function as a command."""
        return super().command(name, cls=Command, **settings)
