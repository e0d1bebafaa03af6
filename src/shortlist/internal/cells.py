"""Cells of CSV files that a spreadsheet would run as formulas.

A spreadsheet runs a cell that begins with = + - @, a tab or a carriage return, unless an apostrophe comes first. So
names from anybody get an apostrophe, which reading takes away again. Plain numbers are left alone.
"""

import re

_FORMULA = re.compile(r"'*[=+\-@\t\r](?!(?<=[+-])[0-9.]+(?:[eE][+-]?[0-9]+)?\Z)", re.DOTALL)


def guard_cell(text: str) -> str:
    """`text` so that a spreadsheet does not run it.

    >>> guard_cell("=1+1"), guard_cell("-5"), guard_cell("'=x")
    ("'=1+1", '-5', "''=x")
    """
    return f"'{text}" if _FORMULA.match(text) else text


def plain_cell(text: str) -> str:
    """Undo `guard_cell`.

    >>> plain_cell("'=1+1"), plain_cell("'tis")
    ('=1+1', "'tis")
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
