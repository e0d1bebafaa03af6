"""A list longer than the screen: the item stays in view, and nothing that has the focus is behind it (WCAG 2.4.11)."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.people import People
from shortlist.annotate.project.sources import Source

from .conftest import CHROMIUM, arguments
from .person import Person

pytestmark = pytest.mark.browser
TOUCH = {"has_touch": True, "is_mobile": True}
PLACES = """() => {
  const box = (element) => element.getBoundingClientRect().toJSON();
  const content = document.querySelector("#item > *");
  return {
    item: box(content), cover: box(document.getElementById("item")), focus: box(document.activeElement),
    inside: content.contains(document.activeElement), id: document.activeElement.id,
    screen: innerHeight, stays: getComputedStyle(content.parentElement).position === "sticky",
    width: document.documentElement.scrollWidth,
    letters: parseFloat(getComputedStyle(document.documentElement).fontSize),
  };
}"""


@pytest.fixture(scope="module", params=[16, 32], ids=["text", "large text"])
def reader(request: pytest.FixtureRequest, chromium: Any) -> Iterator[Callable[..., Person]]:
    """Somebody who set the size of the letters in the browser: 32 pixels are 200 %."""
    size = f"--blink-settings=defaultFontSize={request.param}"
    browser = chromium.browser_type.launch(executable_path=CHROMIUM, args=[*arguments(), size])
    yield lambda **options: Person(browser.new_context(**options))
    browser.close()


@pytest.mark.parametrize(
    ("width", "height"), [(360, 640), (390, 844), (640, 360), (844, 390), (1000, 700), (320, 256)], ids=str
)
@pytest.mark.parametrize("kind", ["text", "image"])
def test_the_item_stays_in_view_and_covers_nothing(run_project, reader, width, height, kind):
    site = run_project(kinds=kind, items=1, classes=[f"class_of_number_{k}" for k in range(24)], size=24)
    add_classes(
        site.project, {f"class_of_number_{k}": "what it means, in a sentence of some length" for k in range(24)}
    )
    if kind == "text":
        add_items(site.project, [Source("long", "long", text="A text of many words. " * 60)])
    options = {"viewport": {"width": width, "height": height}} | (TOUCH if width < 1000 else {})
    ada = reader(**options).go(f"{site.url}/join#{People(site.project).invite('ada')[1]}")
    before = ada.ready()
    if kind == "text":
        ada.page.locator("#none").click()
        ada.ready(before)
    now = ada.page.evaluate(PLACES)
    assert now["width"] <= width, "nothing to scroll sideways"
    assert now["stays"] or width / now["letters"] < 11, "but for a magnifying glass"
    # to the end and back again; None may be reached from either side
    for key, last in (("Tab", "keys"), ("Shift+Tab", "none")):
        for _ in range(60):
            ada.press(key)
            ada.page.evaluate("() => new Promise(requestAnimationFrame)")
            now = ada.page.evaluate(PLACES)
            if now["id"] != "sign-out" and not now["inside"]:
                in_view(now)
            if now["id"] == last:
                break
        assert now["id"] == last
    for _ in range(24):  # through the list itself, upwards
        ada.press("Shift+Tab")
        in_view(ada.page.evaluate(PLACES))
    assert ada.complaints == []


def in_view(now: dict[str, Any]) -> None:
    focus, cover, item, height = now["focus"], now["cover"], now["item"], now["screen"]
    if now["stays"]:
        assert item["top"] >= -1, "the item is in view"
        assert item["bottom"] <= height + 1
    beside = focus["left"] >= cover["right"] - 1
    assert beside or focus["top"] >= cover["bottom"] - 1, f"{now['id']} is behind the item"
    seen = min(focus["bottom"], height) - max(focus["top"], 0)
    assert seen >= min(focus["bottom"] - focus["top"], 0.3 * height) - 1, f"{now['id']} is out of the screen"
