"""Every size of screen and letters, light and dark: all in view, nothing covered, nothing sideways, axe content."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.people import People
from shortlist.annotate.project.sources import Source

from .conftest import CHROMIUM, Running, arguments
from .person import Person
from .projects import make_project, stored
from .test_browser_axe import check

pytestmark = pytest.mark.browser
TOUCH = {"has_touch": True, "is_mobile": True}
LONG = ("A text of many words, which goes on. " * 140)[:5000]
ARABIC = "وصلت البطاقة متأخرة جداً " * 200
NAMES = [f"a_class_with_a_rather_long_name_of_its_own_number_{k}" if k % 3 else f"kind {k}" for k in range(150)]
SCREENS = [("wide", 1440, 900), ("tablet", 768, 1024), ("phone", 360, 740)]
PLACE = """selector => {
  const one = document.querySelector(selector);
  one.focus();
  const box = one.getBoundingClientRect();
  const [x, y] = [(box.left + box.right) / 2, (Math.max(box.top, 0) + Math.min(box.bottom, innerHeight)) / 2];
  const there = document.elementFromPoint(x, y);
  return {
    reached: document.activeElement === one, uncovered: one.contains(there), there: there?.outerHTML.slice(0, 80),
    seen: Math.min(box.bottom, innerHeight) - Math.max(box.top, 0), high: box.height,
    left: box.left, right: box.right,
  };
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Long lists of long names for a long text, one from right to left, a picture and a sound."""
    folder = tmp_path_factory.mktemp("sizes")
    project = make_project(folder / "project", items=3, kinds="text image audio", classes=NAMES, size=150, overlap=9)
    add_classes(project, {NAMES[k]: "what it means, in a sentence of some length" for k in range(0, 150, 7)})
    add_items(project, [Source(name, name, text=text) for name, text in (("long", LONG), ("arabic", ARABIC))])
    running = Running(project)
    yield running
    running.kill()
    project.close()


def join(site: Running, who: Person, name: str) -> Person:
    return who.go(f"{site.url}/join#{People(site.project).renew_invite(People(site.project).ensure(name))}")


def all_in_view(who: Person, width: int, height: int) -> None:
    assert who.page.evaluate("document.documentElement.scrollWidth") <= width, "nothing to scroll sideways"
    buttons = ("#choices button:nth-child(1)", "#choices button:nth-child(77)", "#choices button:last-child")
    for selector in (*buttons, "#none", "#undo", "#skip", "#note", "#help"):
        now = who.page.evaluate(PLACE, selector)
        where = f"{selector} at {width} x {height}: {now}"
        assert now["reached"], where
        assert now["uncovered"], where
        assert now["seen"] >= min(now["high"], 0.3 * height) - 1, where
        assert now["left"] >= -1, where
        assert now["right"] <= width + 1, where


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("name", "width", "height"), SCREENS, ids=[name for name, *_ in SCREENS])
def test_each_kind_of_item_on_each_screen(site, person, name, width, height, scheme):
    """By keyboard where there is one, else by finger."""
    touch = name == "phone"
    options = {"viewport": {"width": width, "height": height}, "color_scheme": scheme} | (TOUCH if touch else {})
    who = join(site, person(**options), f"{name} {scheme}")
    before = len(stored(site.project))
    for number in range(5):
        showing = who.ready()
        all_in_view(who, width, height)
        if number in (0, 1, 2) and (scheme == "light" or number == 1):
            check(who)
        content = who.page.locator("#item > *").first.bounding_box()
        assert content["y"] >= 0
        assert content["y"] + content["height"] <= height, "the item is in view whatever the list"
        if who.page.locator(".text").count() and len(who.page.locator(".text").inner_text()) > 1000:
            long_text(who, touch)
        button = who.page.locator("#choices button").nth(4 if number % 2 else 80)
        if touch:
            button.scroll_into_view_if_needed()
            button.tap()
        elif number % 2:
            who.press("5")
        else:
            button.focus()
            who.press("Enter")
        if number < 4:
            who.ready(showing)
    who.wait_saved()
    who.page.locator("#item .state").wait_for()
    assert len(stored(site.project)) == before + 5


def long_text(who: Person, touch: bool) -> None:
    """Faded where there is more; scrolled by keys."""
    text = who.page.locator(".text")
    who.page.locator(".text.more").wait_for()
    if "وصلت" in text.inner_text():
        assert text.evaluate("text => getComputedStyle(text).direction") == "rtl"
    if not touch:
        who.page.evaluate("document.activeElement.blur()")
        who.press("ArrowDown")
        low = text.evaluate("text => text.scrollTop")
        assert low > 20
        who.press("PageDown")
        assert text.evaluate("text => text.scrollTop") > 3 * low
        who.press("PageUp")
    text.evaluate("text => { text.scrollTop = text.scrollHeight; }")
    who.page.locator(".text:not(.more)").wait_for()


@pytest.fixture(params=[16, 32], ids=["text", "large text"])
def reader(request: pytest.FixtureRequest, chromium: Any) -> Iterator[Callable[..., Person]]:
    """Somebody who set the size of the letters in the browser: 32 pixels are 200 %."""
    size = f"--blink-settings=defaultFontSize={request.param}"
    browser = chromium.browser_type.launch(executable_path=CHROMIUM, args=[*arguments(), size])
    yield lambda **options: Person(browser.new_context(**options))
    browser.close()


def test_small_screens_large_letters_and_zoom(site, reader, request):
    """720 x 450 is 1440 x 900 at 200 %; 320 x 256 is 1280 x 1024 at 400 %."""
    who = join(site, reader(), request.node.name)
    for kind in ("text", "image"):
        showing = who.ready()
        assert (kind == "text") == (who.page.locator("#item .text").count() == 1)
        for width, height in ((360, 640), (390, 844), (640, 360), (844, 390), (1000, 700), (720, 450), (320, 256)):
            who.page.set_viewport_size({"width": width, "height": height})
            who.settle()
            all_in_view(who, width, height)
        who.press("s")
        who.ready(showing)
    assert who.complaints == []
    who.context.close()
