"""A table that is wider or longer than its box has a shade where it goes on, and none at its end."""

import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import shortlist

STATIC = Path(shortlist.__file__).parent / "annotate/web/pages/static"
WIDTH, HEIGHT = 300, 200
CELLS = "<tr>" + "<td>a cell that keeps its width</td>" * 9 + "</tr>"
ENDS = {"right": (WIDTH - 3, HEIGHT // 2), "bottom": (WIDTH // 2, HEIGHT - 3)}
"""A pixel just inside each end of the box."""


@pytest.fixture
def box(chromium: Any) -> Any:
    """A box in the corner of a page, with a table that is too large for it both ways."""
    context = chromium.new_context(viewport={"width": 400, "height": 300}, color_scheme="light")
    page = context.new_page()
    styles = "".join(f"<style>{(STATIC / name).read_text()}</style>" for name in ("theme.css", "app.css", "admin.css"))
    place = f"position: fixed; inset: 0 auto auto 0; width: {WIDTH}px; height: {HEIGHT}px; scrollbar-width: none"
    page.set_content(f'{styles}<div class="scroll" style="{place}"><table>{CELLS * 30}</table></div>')
    yield page.locator(".scroll")
    context.close()


def shades(box: Any) -> dict[str, int]:
    """How much darker than the surface each end is."""
    shown = Image.open(io.BytesIO(box.screenshot())).convert("L")
    return {end: 255 - int(shown.getpixel(place)) for end, place in ENDS.items()}


def test_the_shade_is_where_the_table_goes_on(box: Any) -> None:
    text = "td { color: transparent; border-color: transparent !important; }"  # so that a pixel is the background's
    box.page.add_style_tag(content=text)
    begun = shades(box)
    assert min(begun.values()) > 20, begun
    box.evaluate("box => box.scrollTo(box.scrollWidth, 0)")
    assert shades(box)["right"] == 0
    assert shades(box)["bottom"] == begun["bottom"]
    box.evaluate("box => box.scrollTo(0, box.scrollHeight)")
    assert shades(box) == {"right": begun["right"], "bottom": 0}
