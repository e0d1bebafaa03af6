"""What does not fit on a phone: figures, tabs and long names of classes are there to be read all the same."""

import re

import pytest

from .test_browser_page import come

pytestmark = pytest.mark.browser

PHONE = {"viewport": {"width": 390, "height": 844}}
NAMES = ["card_payment_not_recognised", "direct_debit_payment_not_recognised", "wrong_amount_of_cash_received"]
FITS = "element => element.scrollWidth <= element.clientWidth"


@pytest.mark.parametrize(
    ("language", "items", "words"),
    [
        ("en-GB", 300, r"12 of 300 done · 12 this visit · \d+/min"),
        ("de-DE", 3000, r"12 von 3\.000 erledigt · 12 diesmal · \d+/min"),
    ],
)
def test_progress_and_pace_are_not_cut_off(run_project, person, language, items, words):
    ada = come(run_project(items=items), person, name="Jörg Müller-Lüdenscheidt", locale=language, **PHONE)
    for _ in range(12):
        ada.decide("0")
    ada.page.wait_for_selector("#saved[data-state=saved]")
    progress = ada.page.locator("#progress")
    assert re.fullmatch(words, progress.inner_text())
    assert progress.evaluate(FITS)
    beside = ada.page.locator("#saved").bounding_box()
    assert beside["x"] - progress.bounding_box()["x"] - progress.bounding_box()["width"] < 12, "it has all the room"


@pytest.mark.parametrize(("width", "height"), [(844, 390), (667, 375)])
def test_longer_words_leave_all_buttons_on_a_phone_on_its_side(run_project, person, width, height):
    site = run_project(classes=[*NAMES, "a", "b"], size=5, typing=True)
    ada = come(site, person, **PHONE | {"locale": "de-DE", "viewport": {"width": width, "height": height}})
    ada.page.locator("#again").evaluate("line => { line.hidden = false; }")  # as after a None, where a model chooses
    for button in ("#none", "#type", "#undo", "#skip", "#note", "#help"):
        box = ada.page.locator(button).bounding_box()
        assert box["y"] + box["height"] <= height, button
        assert box["x"] + box["width"] <= width, button


def test_the_open_tab_is_in_view(run_project, person):
    site = run_project(classes=NAMES, size=2)
    owner = person(**PHONE).go(site.admin_link)
    owner.page.wait_for_selector("#tab-overview:not([inert])")
    for name in ("settings", "overview"):
        owner.go(f"{site.url}/admin#{name}")
        owner.page.wait_for_selector(f"#tab-{name}:not([hidden]):not([inert])")
        owner.settle()
        box = owner.page.locator("#tabs [aria-current]").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390


def test_names_of_classes_are_broken_between_their_words(run_project, person):
    owner = person(**PHONE).go(run_project(classes=NAMES, size=2).admin_link)
    owner.tab("classes")
    cells = owner.page.locator("#classes th", has_text="_")
    cells.first.wait_for()
    assert sorted(cells.all_inner_texts()) == NAMES
    parts = cells.evaluate_all(
        """cells => cells.flatMap((cell) => [...cell.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE)
          .map((node) => {
            const range = document.createRange();
            range.selectNode(node);
            return range.getClientRects().length;
          }))"""
    )
    assert len(parts) == 14
    assert set(parts) == {1}, "a word stands on one line"
