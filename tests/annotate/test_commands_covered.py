"""Every command and option has its page and its route, or a reason why not: the table in docs/annotate-owner.md."""

import re
from collections import defaultdict
from pathlib import Path

from typer.main import get_command

from shortlist.annotate.web.app import ROUTES
from shortlist.cli.annotate import app

PAGE = Path(__file__).parents[2] / "docs" / "annotate-owner.md"


def rows() -> list[tuple[str, str, str]]:
    """Commands, page and API of each row."""
    table = PAGE.read_text().partition("## Commands and their pages")[2]
    lines = [line for line in table.splitlines() if line.startswith("| `")]
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]


def test_every_option_is_in_the_table_and_nothing_else_is():
    written = defaultdict(set)
    for commands, _, _ in rows():
        for words in re.findall(r"`([^`]+)`", commands):
            name, *options = words.split()
            written[name] |= set(options)
    real = {}
    for name, command in get_command(app).commands.items():
        named = [one for one in command.params if one.param_type_name == "option"]
        real[name] = {word for one in named for word in (*one.opts, *one.secondary_opts)} - {"--help"}
    assert dict(written) == real


def test_every_route_named_there_exists_and_every_row_says_where_or_why():
    methods = {(method, route.path) for module in ROUTES for route in module.router.routes for method in route.methods}
    tabs = set(re.findall(r"^\| ([A-Z][a-z ]+) \|", PAGE.read_text(), re.M))
    for commands, page, api in rows():
        named = re.findall(r"`(GET|POST|PUT|PATCH|DELETE) ([^`]+)`", api)
        assert set(named) <= methods, commands
        assert bool(named) == bool(page), f"{commands}: a page and a route, or a reason"
        assert set(filter(None, page.split(", "))) <= tabs
        assert len(api) > 5, commands
