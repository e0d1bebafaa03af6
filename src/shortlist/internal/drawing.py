"""What all figures share: colours, style, and the way to SVG text.

The colours are Okabe and Ito's, which the colour-blind can tell apart. Every method also has its own stroke and marker,
so nothing depends on colour alone.
"""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

Look = tuple[str, Any, str]
"""Colour, stroke, marker."""
LOOKS: dict[str, Look] = {
    "sl": ("#D55E00", "-", "^"),
    "likelihood": ("#0072B2", "-", "o"),
    "cc": ("#009E73", "--", "D"),
    "rc": ("#CC79A7", "-.", "v"),
    "proden": ("#56B4E9", "--", "P"),
    "log": ("#E69F00", ":", "s"),
    "exp": ("#8C6D00", (0, (5, 1)), "X"),
    "lw": ("#7F7F7F", (0, (3, 1, 1, 1)), "*"),
    "crdpll": ("#44AA99", (0, (1, 1)), "d"),
    "teacher": ("#AA0000", "-", "p"),
    "ol": ("#000000", "-", "s"),
}
SPARE: tuple[Look, ...] = (
    ("#332288", (0, (1, 1)), "h"),
    ("#882255", (0, (4, 2, 1, 2)), "<"),
    ("#117733", (0, (6, 2)), ">"),
)
"""For variants without a look of their own, such as a user's method, in this order."""
COLLAPSED = 15
"""Points below the best. Axes are not stretched for curves that end lower, which would flatten all the others."""
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: it can be searched, and read aloud
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "path.simplify": True,
}


@contextmanager
def drawing_style(name: str, font_size: int = 9) -> Iterator[None]:
    """Inside, figures have our common style; `name` keeps the parts of two figures on one page apart."""
    with mpl.rc_context({**_STYLE, "font.size": font_size, "svg.hashsalt": name}):
        yield


def as_it_stands(text: str) -> str:
    r"""Text that matplotlib draws as it is: between dollars it would read a formula, and fail on a wrong one.

    >>> as_it_stands("for $x$")
    'for \\$x\\$'
    """
    return text.replace("$", r"\$")


def svg_text(drawing: Figure, title: str) -> str:
    """The <svg> element alone, to be put into a page, with a title for those who cannot see it."""
    buffer = io.StringIO()
    drawing.savefig(buffer, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    text = buffer.getvalue()
    text = re.sub(r"(\d\.\d\d)\d+", r"\1", text[text.index("<svg") :])  # a hundredth of a point is enough
    return re.sub(r"(<svg[^>]*)>", rf'\1 role="img" aria-label="{title}">', text, count=1)
