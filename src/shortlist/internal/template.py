"""Pages from templates: a single file that loads nothing."""

from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined


def render(package: str, filters: Mapping[str, Callable[..., Any]], **content: Any) -> str:
    """The `page.html` of a package, filled in; it may include `report.css`."""
    loader = ChoiceLoader([PackageLoader(package, ""), PackageLoader("shortlist.internal", "")])
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters.update(filters)
    return environment.get_template("page.html").render(**content)
