"""The error that bad input raises: one line that says what was wrong, where, and what was expected."""

import difflib
from collections.abc import Iterable

__all__ = ["InputError", "first_line", "unknown_name"]


LISTED = 20
"""Known names that an error lists at most."""


class InputError(ValueError):
    """Something that the user gave is wrong; the message is one line to show as it is."""


def unknown_name(kind: str, name: object, known: Iterable[str]) -> InputError:
    """An `InputError` for a name that is not registered, suggesting the nearest one that is.

    >>> str(unknown_name("method", "likelyhood", ["sl", "likelihood"]))
    "unknown method 'likelyhood': did you mean 'likelihood'? (known: likelihood, sl)"
    """
    names = sorted(known)
    nearest = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    hint = f": did you mean {nearest[0]!r}?" if nearest else ""
    listed = ", ".join(names[:LISTED]) or "none"
    more = f", and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return InputError(f"unknown {kind} {name!r}{hint} (known: {listed}{more})")


def first_line(error: Exception) -> str:
    """Another library's error in one line.

    >>> first_line(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero'
    """
    return f"{type(error).__name__}: {error}".splitlines()[0]
