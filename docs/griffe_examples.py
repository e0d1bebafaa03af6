"""Examples in docstrings (`>>>`) as code: Markdown would take them for quotations, and their output for links."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^( *)>>> .*\n?(?:^\1\S.*(?:\n|\Z))*", re.MULTILINE)


class Examples(griffe.Extension):
    """Puts a fence around every example."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called by griffe for each object it reads."""
        if obj.docstring and ">>>" in obj.docstring.value:
            obj.docstring.value = EXAMPLE.sub(_fenced, obj.docstring.value)


def _fenced(found: re.Match[str]) -> str:
    indent = found[1]
    return f"\n{indent}```pycon\n{found[0].rstrip()}\n{indent}```\n"
