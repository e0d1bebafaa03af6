r"""Names of classes and items: lists of them as text, and names that are probably the same, spelt differently.

In files a list is joined by `|`, with `\|` and `\\` for those characters inside a name.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence

from shortlist.errors import InputError

KNOWN = "known/1"
"""The policy in rows of an export whose class was known, so that nobody was asked."""
TOLD = 5
"""Groups of similar names that a remark, which is one line, lists at most."""
_TOKEN = re.compile(r"(?:[^\\|]|\\.)*", re.DOTALL)
_NUMBER = re.compile(r"0*(\d+)(?:\.0*)?")


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


def shown_names(names: Sequence[str]) -> str:
    """A few of the names, for messages.

    >>> shown_names(["feb", "jan"]), shown_names("abcdefg")
    ("'feb', 'jan'", "'a', 'b', 'c', 'd', 'e', ...")
    """
    return ", ".join([*(repr(name[:80]) for name in names[:5]), *(["..."] if len(names) > 5 else [])])


def plain_name(name: str) -> str:
    """The name without what is easily mistyped or overlooked: capitals, spaces, the two encodings of an accent.

    >>> plain_name("Cafe\N{COMBINING ACUTE ACCENT}  Noir") == plain_name("caf\N{LATIN SMALL LETTER E WITH ACUTE}noir")
    True
    """
    return "".join(unicodedata.normalize("NFC", name.casefold()).split())


def alike(names: Iterable[str], new: Collection[str] | None = None) -> list[list[str]]:
    """Groups of names that differ only in capitals, spaces or zeros; with `new`, only groups that contain one of these.

    Zeros, since spreadsheets write a number with zeros before or behind it.

    >>> alike(["Lost card", "top up", "lost  card", "refund", "1", "01", "1.0", "10"])
    [['Lost card', 'lost  card'], ['1', '01', '1.0']]
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        plain = plain_name(name)
        number = _NUMBER.fullmatch(plain)
        groups.setdefault(number[1] if number else plain, []).append(name)
    return [group for group in groups.values() if len(group) > 1 and (new is None or not {*group}.isdisjoint(new))]


def tell_alike(names: Iterable[str], new: Collection[str] | None = None) -> str:
    """A remark on such groups, which are probably slips; empty if there are none."""
    found = [" and ".join(map(_spelled, group)) for group in alike(names, new)]
    more = f"; and {len(found) - TOLD} more" if len(found) > TOLD else ""
    return f"classes that differ by capitals, spaces or zeros only: {'; '.join(found[:TOLD])}{more}" if found else ""


def _spelled(name: str) -> str:
    """The name in quotes; escaped if it looks like another on the screen, as with the two encodings of an accent."""
    return repr(name) if unicodedata.is_normalized("NFC", name) else ascii(name)
