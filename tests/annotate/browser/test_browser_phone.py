"""A phone: answering by touch; figures, tabs and long names of classes are there to be read all the same."""

import re

import pytest

from shortlist.annotate.project.people import People

from .projects import stored
from .test_browser_page import come

pytestmark = pytest.mark.browser

PHONE = {"viewport": {"width": 390, "height": 844}}
NAMES = ["card_payment_not_recognised", "direct_debit_payment_not_recognised", "wrong_amount_of_cash_received"]
FITS = "element => element.scrollWidth <= element.clientWidth"


def test_answers_are_given_by_touch_and_nothing_goes_sideways(run_project, person):
    site = run_project(kinds="image text", size=6, items=8)
    phone = {"viewport": {"width": 360, "height": 640}, "has_touch": True, "is_mobile": True}
    ada = come(site, person, **phone)
    for _ in range(2):
        assert ada.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sideways"
        heights = ada.page.locator("#answers button:visible").evaluate_all("all => all.map(one => one.offsetHeight)")
        assert min(heights) >= 44
        before = ada.ready()
        ada.page.locator("#choices button").first.tap()
        ada.ready(before)
    ada.wait_saved()
    assert len(stored(site.project)) == 2


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


SMALL = {"viewport": {"width": 320, "height": 568}, "has_touch": True, "is_mobile": True, "locale": "de-DE"}
UNCUT = "buttons => buttons.every((one) => one.scrollHeight <= one.clientHeight + 1)"


def test_answers_below_the_screen_are_pointed_at_and_none_is_squeezed(run_project, person):
    """Or somebody who sees three of five says None."""
    names = [f"eine Klasse, deren Name mehr als eine Zeile braucht: die Nummer {k}" for k in range(5)]
    ada = come(run_project(classes=names, size=5, typing=True), person, **SMALL)
    last, dock = ada.page.locator("#choices button").last, ada.page.locator("#dock").bounding_box()
    assert last.bounding_box()["y"] > dock["y"], "out of sight"
    assert ada.page.locator("#choices button").evaluate_all(UNCUT)
    ada.page.locator("#choices.more").wait_for()
    assert "↓" in ada.page.evaluate("getComputedStyle(document.getElementById('dock'), '::before').content")
    last.scroll_into_view_if_needed()
    ada.page.locator("#choices:not(.more)").wait_for()
    last.tap()
    ada.page.locator("#choices.more").wait_for()
    assert ada.page.locator("#none").bounding_box()["y"] == ada.page.locator("#type").bounding_box()["y"], "one line"


def test_where_all_answers_are_in_view_nothing_points_at_more(run_project, person):
    ada = come(run_project(classes=["a", "b", "c"], size=3), person, **SMALL)
    ada.settle()
    assert ada.page.locator("#choices.more").count() == 0


def test_the_reasons_for_a_skip_leave_the_next_item_in_view(run_project, person):
    ada = come(run_project(), person, **SMALL)
    ada.page.locator("#skip").tap()
    ada.page.locator("#why").wait_for()
    reasons, item = ada.page.locator("#why").bounding_box(), ada.page.locator("#stage").bounding_box()
    assert reasons["height"] < 0.4 * item["height"]
    for reason in ada.page.locator("#why button").all():
        box = reason.bounding_box()
        assert reasons["x"] <= box["x"]
        assert box["x"] + box["width"] <= reasons["x"] + reasons["width"]
    ada.page.locator("#why button").last.tap()
    ada.page.locator("#toast", has_text="Danke").wait_for()


def test_what_the_server_refuses_is_said_in_the_language_of_the_page(run_project, person):
    site = run_project()
    ada = person(**SMALL).go(f"{site.url}/join#nobody.knows.this")
    ada.page.locator("#status", has_text="Er ist ungültig oder abgelaufen. Bitten Sie um einen neuen").wait_for()
    come(site, person)  # nobody's answers are hers
    ada = come(site, person, name="bo", **SMALL)
    ada.go("about:blank").go(f"{site.url}/join#{People(site.project).invite('cy')[1]}")
    ada.page.locator("#status", has_text="Sie sind als bo angemeldet.").wait_for()
    ada.page.locator("#stay").tap()
    ada.ready()
    ada.page.locator("#undo").tap()
    ada.page.locator("#notice", has_text="Nicht angenommen: es gibt keine Antwort").wait_for()
    ada.context.set_offline(True)
    ada.page.locator("#undo").tap()
    ada.page.locator("#notice", has_text="Keine Verbindung. Es wurde nichts zurückgenommen.").wait_for()
    ada.context.set_offline(False)
    ada.context.clear_cookies()
    ada.page.locator("#undo").tap()
    ada.page.locator("#item", has_text="Sie sind abgemeldet").wait_for()


def test_an_owner_reads_charts_and_ends_sessions_on_a_phone(run_project, person):
    site = run_project(items=9, classes=NAMES, size=2)
    come(site, person).decide("1")
    owner = person(**PHONE).go(site.admin_link)
    letters = owner.page.locator("#work text").first
    letters.wait_for()
    assert letters.evaluate("text => text.getBoundingClientRect().height") > 9
    owner.tab("people")
    end = owner.page.locator("#sessions button", has_text="End").first
    end.wait_for()
    box = end.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390


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
