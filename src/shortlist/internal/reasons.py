"""Somebody else's error as the last words of one of ours."""


def reason(error: BaseException) -> str:
    """What an error says, without its kind, in one line; its kind where it says nothing.

    >>> reason(ValueError("no such key\\ntry another")), reason(EOFError())
    ('no such key', 'EOFError')
    """
    said = (getattr(error, "strerror", None) or str(error)).strip()
    return said.splitlines()[0] if said else type(error).__name__
