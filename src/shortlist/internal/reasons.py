"""Why something failed or was left out, in one line."""

from collections.abc import Iterable, Iterator

NAMED = 3  # things named per reason
MOST = 20  # reasons


def reason(error: BaseException) -> str:
    """The first line of what an error says, without its kind; its kind if it says nothing.

    >>> reason(ValueError("no such key\\ntry another")), reason(EOFError())
    ('no such key', 'EOFError')
    """
    said = (getattr(error, "strerror", None) or str(error)).strip()
    return said.splitlines()[0] if said else type(error).__name__


def by_reason(left_out: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Each reason once, after the first of the names left out for it.

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
