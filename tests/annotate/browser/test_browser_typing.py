"""A class that is not on the list is typed, by keyboard alone."""

import pytest

from shortlist.annotate.project.people import People

from .projects import CLASSES, stored
from .test_browser_axe import check

pytestmark = pytest.mark.browser


def test_a_class_is_typed_taken_back_and_clicked(run_project, person):
    site = run_project(items=6, typing=True)
    ada = person().go(f"{site.url}/join#{People(site.project).invite('ada')[1]}")
    before = ada.ready()
    absent = next(name for name in CLASSES if name not in ada.choices())
    ada.press("/")
    assert ada.page.locator("#typed").evaluate("box => box === document.activeElement")
    ada.page.wait_for_selector("#matches li")
    assert ada.page.locator("#matches .badge").all_inner_texts() == ["on the list"] * 3
    check(ada)
    ada.page.keyboard.type(absent)  # letters of single keys (s, z, a) are letters here
    ada.press("Enter")  # before the matches are there, as people do
    after = ada.ready(before)
    assert ada.page.locator("#typing").is_hidden()
    ada.wait_saved()
    ada.press("z")
    again = ada.ready(after)
    ada.press("/")
    ada.page.wait_for_selector("#matches li")
    ada.press("Escape")
    assert ada.page.locator("#typing").is_hidden()
    assert ada.ready() == again
    ada.page.get_by_role("button", name="Another class").click()
    ada.page.keyboard.type("zzz")
    ada.page.get_by_text("No class matches.").wait_for()
    ada.page.locator("#typed").fill("")
    ada.page.wait_for_function("() => document.querySelectorAll('#matches li').length === 6")
    ada.press("ArrowDown")
    second = ada.page.locator("#matches [aria-selected=true] span").first.inner_text()
    ada.page.locator("#matches [aria-selected=true]").click()
    ada.ready(again)
    ada.wait_saved()
    rows = stored(site.project)
    assert [row["kind"] for row in rows] == ["typed", "undo", "typed"]
    assert [CLASSES[rows[place]["class_id"]] for place in (0, 2)] == [absent, second]
    assert rows[0]["seconds"] > 0


def test_all_classes_can_be_browsed(run_project, person):
    """Down to the last of very many, those that were read on the list last; nothing dead stands below them."""
    names = [f"class {k:03}" for k in range(260)]
    site = run_project(items=3, typing=True, classes=names, size=4)
    ada = person().go(f"{site.url}/join#{People(site.project).invite('ada')[1]}")
    before, listed = ada.ready(), ada.choices()
    ada.press("/")
    ada.page.wait_for_function("() => document.querySelectorAll('#matches li').length === 50")
    assert ada.page.locator("#matches .badge").count() == 0
    assert ada.page.locator("#dock").is_hidden()
    ring = """box => {
      const [inner, outer] = [box.getBoundingClientRect(), document.getElementById("typing").getBoundingClientRect()];
      return Math.min(inner.left - outer.left, outer.right - inner.right);
    }"""
    assert ada.page.locator("#typed").evaluate(ring) >= 5, "3 px, 2 px away"
    check(ada)
    for wanted in (200, 260):
        while ada.page.locator("#matches li").count() < wanted:
            ada.press("ArrowDown")
    options = ada.page.locator("#matches li span:first-child").all_inner_texts()
    assert sorted(options) == names
    assert sorted(options[-4:]) == sorted(listed)
    assert ada.page.locator("#typed").bounding_box()["y"] > 0, "the box stays in sight"
    marked = ada.page.locator("#matches [aria-selected=true]")
    assert marked.count() == 1
    taken = marked.inner_text()
    ada.press("Enter")
    ada.ready(before)
    ada.wait_saved()
    assert names[stored(site.project)[0]["class_id"]] == taken


def test_without_a_list_the_first_letter_belongs_to_the_search(run_project, person):
    site = run_project(items=30, compare=True)
    ada = person().go(f"{site.url}/join#{People(site.project).invite('ada')[1]}")
    showing = ada.ready()
    while ada.choices():
        showing = ada.decide("s")
    assert ada.page.locator("#none").is_hidden()
    ada.page.wait_for_function("() => document.activeElement?.id === 'typed'")
    ada.page.keyboard.type("fox")
    ada.press("Enter")
    ada.ready(showing)
    ada.wait_saved()
    assert [(row["kind"], row["class_id"]) for row in stored(site.project)][-1] == ("typed", CLASSES.index("fox"))


def test_where_typing_is_forbidden_nothing_offers_it(run_project, person):
    site = run_project(items=2)
    ada = person().go(f"{site.url}/join#{People(site.project).invite('ada')[1]}")
    ada.ready()
    assert ada.page.locator("#type").is_hidden()
    ada.press("/")
    assert ada.page.locator("#typing").is_hidden()
