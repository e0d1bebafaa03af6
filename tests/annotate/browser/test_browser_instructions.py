"""Annotators read what the owner tells them: before the first question, when it was changed, and on demand."""

import pytest
from sqlalchemy import func, select

from shortlist.annotate.db.schema import Question
from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.instructions import instructions_of, set_instructions
from shortlist.annotate.project.people import People

from .projects import stored
from .test_browser_axe import check

pytestmark = pytest.mark.browser
TEXT = "Take the main animal.\nIgnore the others.\n\n<b>More</b>: https://birds.example/guide?a=1. Thanks (https://x.example)!"


def asked(site) -> int:
    with site.project.store.read() as connection:
        return int(connection.execute(select(func.count()).select_from(Question)).scalar_one())


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_before_the_first_question_and_on_demand(run_project, person, scheme):
    site = run_project()
    set_instructions(site.project, TEXT)
    ada = person(color_scheme=scheme).go(f"{site.url}/join#{People(site.project).invite('ada')[1]}")
    ada.page.wait_for_selector("#instructions[open]")
    paragraphs = ada.page.locator("#instructions-text p")
    assert [text.splitlines() for text in paragraphs.all_inner_texts()] == [
        ["Take the main animal.", "Ignore the others."],
        ["<b>More</b>: https://birds.example/guide?a=1. Thanks (https://x.example)!"],
    ]
    links = ada.page.locator("#instructions-text a")
    hrefs = [link.get_attribute("href") for link in links.all()]
    assert hrefs == ["https://birds.example/guide?a=1", "https://x.example"]
    assert links.first.get_attribute("rel") == "noopener noreferrer"
    check(ada)
    sent = []
    ada.page.on("request", lambda request: sent.append(request.url))
    ada.press("0")
    ada.page.evaluate("dispatchEvent(new Event('online'))")
    ada.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # as from a link they followed
    ada.settle()
    assert not any(url.endswith("/next") for url in sent)
    assert asked(site) == 0, "nothing is leased while they read"
    begun = ada.page.evaluate("performance.now()")
    ada.press("Enter")
    before = ada.ready()

    ada.press("?")
    ada.page.wait_for_selector("#instructions[open]")
    for key in ("0", "1", "s", "z", "?"):
        ada.press(key)
    ada.elapse(700)
    ada.press("Escape")
    ada.page.wait_for_selector("#instructions:not([open])", state="attached")
    assert ada.ready() == before, "no key reached the question behind"
    ada.press("0")
    all_of_it = (ada.page.evaluate("performance.now()") - begun) / 1000
    ada.ready(before)
    ada.wait_saved()
    (row,) = stored(site.project)
    assert 0 < row["seconds"] < all_of_it - 0.7, "reading is not answering"

    ada.page.reload()
    ada.ready()
    assert not ada.page.locator("#instructions").is_visible(), "read once"
    set_instructions(site.project, "Now the *small* animal.")
    ada.page.locator("#help").click()
    ada.page.wait_for_selector("#instructions-text:has-text('Now the *small* animal.')")
    ada.press("Enter")
    ada.page.reload()
    ada.page.wait_for_selector("#instructions[open]")  # changed: to be read again
    ada.press("Enter")
    ada.ready()


def test_without_any_the_work_begins_at_once_and_help_tells_of_classes_and_keys(run_project, person):
    site = run_project(items=6)
    add_classes(site.project, {"cat": "It purrs.", "dog": "It barks."})
    ada = person().go(f"{site.url}/join#{People(site.project).invite('ada')[1]}")
    ada.ready()
    taken = ada.choices()[0]
    ada.decide("1")
    ada.press("?")
    help = ada.page.locator("#instructions")
    assert help.locator("#classes dt").all_inner_texts() == ada.choices()
    words = {"cat": "It purrs.", "dog": "It barks."}
    said = help.locator("#classes dd:not(:has(q))").all_inner_texts()
    assert said == [words[name] for name in ada.choices() if name in words]
    mine = help.locator("#classes", has_text="You picked it for Text number 0")
    assert mine.count() == (taken in ada.choices())
    assert help.locator("#keymap").is_visible()
    check(ada)


def test_classes_that_nothing_is_known_of_are_not_listed_in_help(run_project, person):
    site = run_project(items=6)
    ada = person().go(f"{site.url}/join#{People(site.project).invite('ada')[1]}")
    ada.ready()
    ada.press("?")
    assert ada.page.locator("#keymap").is_visible()
    assert not ada.page.locator("#meanings").is_visible()
    check(ada)


def test_a_long_text_on_a_phone_leaves_the_button_in_view(run_project, person):
    site = run_project()
    set_instructions(site.project, "\n\n".join(f"Paragraph {i} of many." for i in range(60)))
    phone = {"viewport": {"width": 360, "height": 640}, "has_touch": True, "is_mobile": True}
    ada = person(**phone).go(f"{site.url}/join#{People(site.project).invite('ada')[1]}")
    ada.page.wait_for_selector("#instructions[open]")
    box = ada.page.locator("#instructions button").bounding_box()
    assert box["y"] + box["height"] <= 640
    assert ada.page.locator("#instructions .body").evaluate(
        "text => [text.scrollTop, text.scrollWidth <= text.clientWidth]"
    ) == [0, True]
    ada.page.locator("#instructions button").tap()
    ada.ready()


def test_an_admin_writes_them(run_project, person):
    site = run_project()
    set_instructions(site.project, "Old words.")
    admin = person().go(site.admin_link)
    admin.tab("instructions")
    admin.page.wait_for_selector("#instructions:not([disabled])")
    assert admin.page.locator("#instructions").input_value() == "Old words."
    admin.tab_to("#instructions")
    admin.press("Control+a")
    admin.page.keyboard.type("New words.\n\nAnd more. ")
    admin.renewed("/api/v1/status")  # the figures, while what is being written stays
    admin.press("Tab")
    admin.press("Enter")
    admin.page.wait_for_selector("#instructed:has-text('Saved')")
    assert instructions_of(site.project) == "New words.\n\nAnd more."
    check(admin)
