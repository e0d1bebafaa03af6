"""By finger and mouse: nobody answers what they have not seen."""

import pytest

from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.people import People

from .projects import stored

pytestmark = pytest.mark.browser
PHONE = {"viewport": {"width": 360, "height": 640}, "has_touch": True, "is_mobile": True}


def come(site, person, **options):
    who = person(**options).go(f"{site.url}/join#{People(site.project).invite('ada')[1]}")
    who.ready()
    return who


def test_none_undo_and_skip_stay_in_reach_beside_a_list_that_is_longer_than_the_screen(run_project, person):
    site = run_project(kinds="text image", classes=[f"class {k}" for k in range(150)], size=150)
    add_classes(site.project, {f"class {k}": "what it means, in a sentence that takes two lines" for k in range(20)})
    ada = come(site, person, **PHONE)
    for _ in range(2):
        before = ada.ready()
        assert ada.page.locator("#choices").evaluate("list => (list.scrollTop = 3000, list.scrollTop)") == 3000
        for button in ("#none", "#undo", "#skip", "#item"):
            box = ada.page.locator(button).bounding_box()
            assert 0 <= box["y"] < box["y"] + box["height"] <= PHONE["viewport"]["height"]
        assert ada.page.evaluate("document.documentElement.scrollHeight <= innerHeight"), "only the list scrolls"
        assert ada.page.locator("kbd:visible").count() == 0, "there is no keyboard"
        ada.page.locator("#none").tap()
        ada.ready(before)
        assert ada.page.locator("#choices").evaluate("list => list.scrollTop") == 0, "the next list from its beginning"
    ada.wait_saved()
    assert [row["class_id"] for row in stored(site.project)] == [None, None]


def test_what_was_tapped_does_not_look_chosen_for_the_next_question(run_project, person):
    ada = come(run_project(), person, **PHONE)
    look = "button => [getComputedStyle(button).backgroundColor, getComputedStyle(button).borderColor]"
    for button in map(ada.page.locator, ("#none", "#skip")):
        before, showing = button.evaluate(look), ada.ready()
        button.tap()
        ada.ready(showing)
        assert button.evaluate(look) == before


def test_a_double_click_answers_one_question(run_project, person):
    site = run_project()
    ada = come(site, person)
    before = ada.ready()
    box = ada.page.locator("#none").bounding_box()
    ada.hold()
    for _ in range(2):  # the second one meets the next question, just painted
        ada.page.mouse.click(box["x"] + 20, box["y"] + 20)
        ada.settle()
    assert "Too quick" in ada.page.locator("#toast").inner_text(), "what was dropped is said"
    ada.release()
    ada.ready(before)
    ada.wait_saved()
    assert len(stored(site.project)) == 1
    ada.decide("0")  # and then the next
    ada.wait_saved()
    assert len(stored(site.project)) == 2
