"""Why something failed or was left out, in one line each."""

from collections.abc import Iterable, Iterator

NAMED = 3  # things that were left out for the same reason
MOST = 20  # reasons


def reason(error: BaseException) -> str:
    """What an error says, without its kind, in one line; its kind where it says nothing.

    >>> reason(ValueError("no such key\\ntry another")), reason(EOFError())
    ('no such key', 'EOFError')
    """
    said = (getattr(error, "strerror", None) or str(error)).strip()
    return said.splitlines()[0] if said else type(error).__name__


def by_reason(left_out: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Each reason once, after the first of those (name, reason) that it is true of.

    >>> list(by_reason([("a.png", "broken"), ("b.txt", "no picture"), ("c.png", "broken")]))
    ['a.png, c.png: broken', 'b.txt: no picture']
    """
    reasons: dict[str, list[str]] = {}
    for name, why in left_out:
        reasons.setdefault(why, []).append(name)
    for why, names in list(reasons.items())[:MOST]:
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        yield f"{', '.join(names[:NAMED])}{more}: {why}"
    if len(reasons) > MOST:
        yield f"others for {len(reasons) - MOST} more reasons"
