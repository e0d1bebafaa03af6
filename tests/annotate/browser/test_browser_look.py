"""Looking closer: pictures enlarged and moved, sounds slower and faster; notes, reasons, another language."""

import pytest
from sqlalchemy import select

from shortlist.annotate.db.schema import Answer, Item, Note
from shortlist.annotate.project.people import People

from .projects import stored
from .test_browser_axe import check

pytestmark = pytest.mark.browser
SCALE = "image => new DOMMatrix(getComputedStyle(image).transform).a"
MOVED = "image => new DOMMatrix(getComputedStyle(image).transform).e"


def come(site, person, name: str = "ada", **options):
    who = person(**options).go(f"{site.url}/join#{People(site.project).invite(name)[1]}")
    who.ready()
    return who


def test_a_picture_is_enlarged_moved_and_answered_by_keyboard(run_project, person):
    site = run_project(kinds="image", items=4)
    ada = come(site, person)
    image = ada.page.locator("#item img")
    small = image.bounding_box()
    ada.press("+")
    large = image.bounding_box()
    assert (large["width"], large["height"]) == (1280, 720), "the whole screen"
    assert small["width"] < 900
    check(ada)
    ada.press("+")
    assert image.evaluate(SCALE) == 1.5
    ada.press("ArrowRight")
    assert image.evaluate(MOVED) == -80
    for _ in range(9):
        ada.press("ArrowRight")
    assert image.evaluate(MOVED) == -320, "not out of sight"
    ada.press("Escape")
    assert image.bounding_box() == small
    assert ada.page.evaluate("document.activeElement.ariaLabel") == "Enlarge the picture"
    ada.press("Enter")
    ada.page.wait_for_selector("#item.large")
    ada.decide("1")  # keys answer meanwhile
    assert ada.page.locator("#item.large").count() == 0, "the next one begins small"
    assert ada.page.evaluate("document.querySelector('#panel').inert") is False
    ada.wait_saved()
    assert len(stored(site.project)) == 1


def test_a_picture_is_enlarged_by_mouse_and_finger(run_project, person):
    site = run_project(kinds="image", items=6)
    ada = come(site, person)
    image = ada.page.locator("#item img")
    image.click()
    ada.page.wait_for_selector("#item.large")
    image.click()  # nothing needs to be dragged
    assert image.evaluate(SCALE) == 2
    ada.page.mouse.move(400, 300)
    ada.page.mouse.wheel(0, -120)
    ada.page.wait_for_function(f"() => ({SCALE})(document.querySelector('#item img')) === 3")
    ada.page.mouse.down()
    ada.page.mouse.move(500, 340, steps=3)
    ada.settle()
    before = image.evaluate(MOVED)
    ada.page.mouse.move(520, 340)
    ada.page.mouse.up()
    ada.settle()
    assert image.evaluate(MOVED) == before + 20
    assert image.evaluate(SCALE) == 3, "a drag is no click"
    ada.page.get_by_role("button", name="Close").click()
    ada.page.wait_for_selector("#item:not(.large)")
    phone = come(site, person, "phone", viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    phone.page.locator("#item img").tap()
    phone.page.wait_for_selector("#item.large")
    phone.page.get_by_role("button", name="Larger").tap()
    phone.page.wait_for_function(f"() => ({SCALE})(document.querySelector('#item img')) === 1.5")
    phone.page.get_by_role("button", name="Close").tap()
    phone.page.locator("#none").tap()
    phone.wait_saved()


def test_a_sound_keeps_its_speed(run_project, person):
    ada = come(run_project(kinds="audio", items=3), person)
    sound = ada.page.locator("#item audio")
    ada.press(">")
    ada.press(">")
    assert sound.evaluate("sound => sound.playbackRate") == 1.5
    assert ada.page.locator("#item output").inner_text() == "1.5×"
    ada.decide("1")
    assert sound.evaluate("sound => sound.playbackRate") == 1.5, "and so do the next ones"
    ada.page.get_by_role("button", name="Slower").click()
    assert sound.evaluate("sound => sound.playbackRate") == 1.25


def test_a_note_a_flag_and_the_reason_for_a_skip_reach_the_owner(run_project, person):
    site = run_project(items=6)
    ada = come(site, person)
    before = ada.ready()
    ada.press("!")
    ada.page.wait_for_selector("#noting[open]")
    ada.page.keyboard.type("Two animals, 1 of them asleep.")  # letters and digits are words here
    check(ada)
    ada.tab_to("#note-flag")
    ada.press("Space")
    ada.press("Enter")  # saves, as in any form
    ada.page.locator("#toast", has_text="Noted").wait_for()
    assert ada.ready() == before, "a note is no answer"
    ada.press("!")
    ada.page.keyboard.type("never mind")
    ada.tab_to("#note-cancel")
    ada.press("Enter")
    ada.press("!")
    ada.page.keyboard.type("nor this")
    ada.press("Escape")
    after = ada.decide("s")
    ada.press("Shift+S")
    check(ada)
    ada.page.get_by_role("button", name="Not listed").focus()
    ada.press("Enter")
    assert ada.ready() == after, "the reason is about the one before"
    assert ada.page.locator("#why").is_hidden()
    ada.context.set_offline(True)
    ada.decide("s")  # the same without a network
    ada.page.get_by_role("button", name="Broken").click()
    ada.page.wait_for_selector("#saved[data-state=waiting]")
    ada.context.set_offline(False)
    ada.wait_saved()
    with site.project.store.read() as connection:
        notes = connection.execute(select(Note.kind, Note.text, Note.author, Item.name).join(Item)).all()
        reasons = connection.execute(select(Answer.reason).order_by(Answer.id)).scalars().all()
    assert notes == [("flag", "Two animals, 1 of them asleep.", "ada", "item 0")]
    assert reasons == ["unlisted", "broken"]


def test_a_note_pasted_with_control_characters_is_kept(run_project, person):
    site = run_project(items=2)
    ada = come(site, person)
    ada.press("!")
    ada.page.evaluate("document.getElementById('note-text').value = 'two\\x0bbirds\\n\\ttwo lines\\ud800'")
    ada.page.locator("#note-save").click()
    ada.page.locator("#toast", has_text="Noted").wait_for()
    ada.wait_saved()
    assert ada.page.locator("#notice").is_hidden()
    with site.project.store.read() as connection:
        assert connection.execute(select(Note.text)).scalars().all() == ["two birds\n\ttwo lines"]


def test_an_item_that_stood_open_for_longer_than_a_day_is_answered(run_project, person):
    site = run_project(items=3)
    ada = person()
    ada.context.clock.install()
    ada.go(f"{site.url}/join#{People(site.project).invite('ada')[1]}")
    before = ada.ready()
    ada.context.clock.fast_forward("25:00:00")
    ada.press("1")
    ada.ready(before)
    ada.wait_saved()
    assert [row["seconds"] for row in stored(site.project)] == [86_400]


def test_the_question_why_does_not_lie_over_the_items_after_the_next(run_project, person):
    ada = come(run_project(items=6, typing=True), person)
    ada.decide("s")
    why = ada.page.locator("#why")
    why.wait_for()
    ada.press("/")
    ada.page.wait_for_selector("#typing:not([hidden])")
    assert why.is_hidden(), "beside the matches the item is small"
    ada.press("Escape")
    why.wait_for()
    ada.decide("0")
    assert why.is_hidden(), "whoever answers has gone on"


def test_what_was_taken_stands_there_for_a_moment_and_a_key_too_early_says_so(run_project, person):
    site = run_project(items=6)
    ada = come(site, person)
    name, before = ada.choices()[1], ada.ready()
    ada.page.evaluate(
        """() => new MutationObserver(() => (window.opacity = Number(getComputedStyle(taken).opacity)))
          .observe(taken, { childList: true })"""
    )
    ada.hold()
    ada.press("2")
    taken = ada.page.locator("#taken")
    assert taken.inner_text() == f"✓ {name}"
    assert ada.page.evaluate("opacity") == 1, "as it was written"
    assert taken.evaluate("one => one.getAnimations().length") == 0, "what moves is drawn beside the next item"
    ada.press("1")  # nobody has seen the next one
    assert "Too quick" in ada.page.locator("#toast").inner_text()
    ada.settle()
    ada.release()
    ada.ready(before)
    ada.wait_saved()
    assert len(stored(site.project)) == 1
    ada.page.wait_for_function("() => getComputedStyle(document.getElementById('taken')).opacity === '0'")


def test_answers_taken_back_do_not_count(run_project, person):
    site = run_project(items=9)
    ada = come(site, person)
    for _ in range(4):
        ada.decide("1")
    ada.wait_saved()
    progress = ada.page.locator("#progress")
    assert "4 of 9 done · 4 this visit · " in progress.inner_text()
    for _ in range(3):
        ada.decide("z")
    ada.wait_saved()
    progress.get_by_text("1 of 9 done · 1 this visit", exact=True).wait_for()


def test_at_the_end_nothing_dead_is_offered(run_project, person):
    site = run_project(items=2)
    ada = come(site, person)
    ada.decide("1")
    ada.press("1")
    ada.page.get_by_role("heading", name="Nothing left to answer for now.").wait_for()
    assert ada.page.locator("#item").bounding_box()["width"] > 1200, "no room kept for answers"
    tools = ada.page.locator("#tools button:visible")
    assert [words.split()[-1] for words in tools.all_inner_texts()] == ["Undo", "Help"]
    ada.press("z")
    ada.page.locator("#skip").wait_for()
    assert ada.page.locator("#note").is_visible()
    assert ada.page.locator("#item").bounding_box()["width"] < 900


def test_only_what_does_not_fit_fades_from_its_first_frame_on(run_project, person):
    """A fade is a mask over the whole text: painted for a frame and taken away, it would cost half of each question."""
    ada = come(run_project(items=4), person)
    ada.page.evaluate(
        """() => {
          window.faded = [];
          new MutationObserver(() => faded.push(document.querySelector("#item .text").className.includes("more")))
            .observe(document.getElementById("item"), { childList: true, subtree: true, attributes: true });
        }"""
    )
    for _ in range(3):
        ada.decide("1")
    assert ada.page.evaluate("faded")
    assert not any(ada.page.evaluate("faded"))


def test_another_language(run_project, person):
    ada = come(run_project(items=3), person, locale="de-DE")
    assert ada.page.locator("#none").inner_text().endswith("Keine davon")
    ada.decide("0")
    ada.wait_saved_as("Gespeichert")
    assert "1 von 3 erledigt" in ada.page.locator("#progress").inner_text()
    ada.open_menu()
    ada.page.locator("#language").select_option("en")
    ada.page.wait_for_selector("html[lang=en]")
    ada.ready()
    assert ada.page.locator("#none").inner_text().endswith("None of these")
    ada.page.reload()
    ada.ready()
    assert ada.page.locator("html").get_attribute("lang") == "en", "it stays"


def test_what_a_page_loads_is_small(run_project, person):
    """60 kB of scripts and styles at most, as they are sent."""
    ada = come(run_project(items=2), person)
    sizes = ada.page.evaluate(
        """() => Object.fromEntries(performance.getEntriesByType("resource")
          .filter(({ name }) => /[.](js|css)$/.test(name)).map((one) => [one.name, one.encodedBodySize]))"""
    )
    assert len(sizes) > 10
    assert 10_000 < sum(sizes.values()) <= 60_000, sizes
