"""The confusion matrix as an SVG picture, small enough a file for a hundred classes."""

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

SIDE = 560
"""Width of the matrix in pixels, whatever K."""
NAMED = 40
"""With more classes than this, their names are left out."""
NUMBERED = 12
"""With more classes than this, the counts in the cells are left out."""
LONGEST = 22


def confusion_svg(confusion: NDArray[np.int64], class_names: Sequence[str]) -> str:
    """Rows are true classes, columns what they were taken for; each cell is shaded by its share of the row.

    Args:
        confusion: (n, 3) as `Measures` has it.
        class_names: K names.
    """
    K = len(class_names)
    totals = np.bincount(confusion[:, 0], confusion[:, 2], minlength=K)
    cell, named = SIDE / K, K <= NAMED
    short = [name if len(name) <= LONGEST else name[: LONGEST - 1] + "…" for name in class_names]
    margin = 30 + (7 * max(map(len, short), default=0) if named else 0)
    size = margin + SIDE + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" width="{size}" height="{size}" '
        'font-family="sans-serif" font-size="11" role="img">',
        "<title>Confusion matrix: rows are the true classes, columns the predicted ones</title>",
        f'<rect width="{size}" height="{size}" fill="#fff"/>',
        f'<rect x="{margin}" y="{margin}" width="{SIDE}" height="{SIDE}" fill="#f6f7f9" stroke="#999"/>',
    ]
    for i, j, count in confusion.tolist():
        parts.append(_cell(i, j, margin, cell, count / float(totals[i]), count, class_names, K <= NUMBERED))
    if named:
        parts += [_names(k, name, margin, cell) for k, name in enumerate(short)]
    middle = margin + SIDE / 2
    parts.append(f'<text x="{middle:.0f}" y="13" text-anchor="middle">predicted</text>')
    parts.append(f'<text transform="translate(13 {middle:.0f}) rotate(-90)" text-anchor="middle">true</text>')
    return "\n".join([*parts, "</svg>\n"])


def _cell(
    i: int, j: int, margin: int, cell: float, share: float, count: int, names: Sequence[str], numbered: bool
) -> str:
    x, y = margin + j * cell, margin + i * cell
    colour = "#1f6f43" if i == j else "#b3261e"
    hint = escape(f"{names[i]} taken for {names[j]}: {count}")
    shape = (
        f'<rect x="{x:.2f}" y="{y:.2f}" width="{cell:.2f}" height="{cell:.2f}" fill="{colour}" '
        f'fill-opacity="{0.08 + 0.92 * share:.3f}"><title>{hint}</title></rect>'
    )
    if not numbered:
        return shape
    ink = "#fff" if share > 0.45 else "#222"
    return shape + (
        f'<text x="{x + cell / 2:.1f}" y="{y + cell / 2 + 4:.1f}" text-anchor="middle" fill="{ink}">{count}</text>'
    )


def _names(k: int, name: str, margin: int, cell: float) -> str:
    centre, text = margin + (k + 0.5) * cell, escape(name)
    return (
        f'<text x="{margin - 5}" y="{centre + 4:.1f}" text-anchor="end">{text}</text>'
        f'<text transform="translate({centre + 4:.1f} {margin - 5}) rotate(-90)">{text}</text>'
    )
