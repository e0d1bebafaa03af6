r"""Lists of names as text: joined by `|`, with `\|` and `\\` for those characters inside a name; or for messages.

And names that are probably the same one, written otherwise.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence

from shortlist.errors import InputError

KNOWN = "known/1"
"""The policy of a row of an export whose class was known, so that nobody was asked."""
TOLD = 5
"""How many groups of similar names a remark lists at most, as it is one line."""
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
    """Without what is easily mistyped, or not seen: capitals, spaces, and the two codes of an accented letter.

    >>> plain_name("Cafe\N{COMBINING ACUTE ACCENT}  Noir") == plain_name("caf\N{LATIN SMALL LETTER E WITH ACUTE}noir")
    True
    """
    return "".join(unicodedata.normalize("NFC", name.casefold()).split())


def alike(names: Iterable[str], new: Collection[str] | None = None) -> list[list[str]]:
    """Groups of classes that differ only in capitals, spaces or zeros; with `new`, only groups that hold one of these.

    Spreadsheets write the number of a class with zeros before or behind it.

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
    """A remark on these classes, which are probably slips; empty if there are none."""
    found = [" and ".join(map(_spelled, group)) for group in alike(names, new)]
    more = f"; and {len(found) - TOLD} more" if len(found) > TOLD else ""
    return f"classes that differ by capitals, spaces or zeros only: {'; '.join(found[:TOLD])}{more}" if found else ""


def _spelled(name: str) -> str:
    """The name in quotes; escaped where an editor would hide the difference, as between the two codes of an accent."""
    return repr(name) if unicodedata.is_normalized("NFC", name) else ascii(name)
