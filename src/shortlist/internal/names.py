r"""Lists of names as text: joined by `|`, with `\|` and `\\` for those characters inside a name; or for messages."""

import re
from collections.abc import Iterable, Sequence

from shortlist.errors import InputError

KNOWN = "known/1"
"""The policy of a row of an export whose class was known, so that nobody was asked."""
_TOKEN = re.compile(r"(?:[^\\|]|\\.)*", re.DOTALL)


def join_names(names: Iterable[str]) -> str:
    r"""Names joined by `|`, with `|` and `\` escaped.

    >>> join_names(["cat", "a|b"])
    'cat|a\\|b'
    """
    return "|".join(name.replace("\\", "\\\\").replace("|", "\\|") for name in names)


def split_names(text: str) -> list[str]:
    r"""Undo `join_names`; the empty text is the empty list.

    >>> split_names('cat|a\\|b')
    ['cat', 'a|b']
    """
    if "\\" not in text:
        return text.split("|") if text else []
    names: list[str] = []
    position = 0
    while position <= len(text):
        match = _TOKEN.match(text, position)
        assert match is not None  # the pattern matches the empty text
        names.append(re.sub(r"\\(.)", r"\1", match.group(), flags=re.DOTALL))
        if match.end() < len(text) and text[match.end()] != "|":
            raise InputError(f"the list {text!r} ends in a lone backslash")
        position = match.end() + 1
    return names


def shown_names(names: Sequence[str], most: int = 5) -> str:
    """A few of the names, for messages.

    >>> shown_names(["feb", "jan"]), shown_names(["a", "b", "c"], most=2)
    ("'feb', 'jan'", "'a', 'b', ...")
    """
    return ", ".join([*(repr(name[:80]) for name in names[:most]), *(["..."] if len(names) > most else [])])
