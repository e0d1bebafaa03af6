"""Single keys can be turned off (WCAG 2.1.4), and stay off until they are turned on again."""

import pytest

from shortlist.annotate.project.people import People

from .projects import stored
from .test_browser_axe import check

pytestmark = pytest.mark.browser


def test_single_keys_are_turned_off_by_keyboard_and_stay_off(run_project, person):
    site = run_project(items=8)
    ada = person().go(f"{site.url}/join#{People(site.project).invite('ada')[1]}")
    ada.ready()
    assert ada.page.locator("[aria-keyshortcuts]:visible").count() == 8, "three classes, None, undo, skip, note, help"

    ada.open_menu()
    assert ada.page.get_by_role("checkbox", name="Single keys answer, undo and skip").is_checked()
    check(ada)
    ada.tab_to("#keys")
    ada.press("Space")
    ada.press("Escape")
    nothing_is_said_of_keys(ada)
    no_key_answers(ada, site)
    ada.page.reload()
    before = ada.ready()
    nothing_is_said_of_keys(ada)
    no_key_answers(ada, site)
    check(ada)

    ada.tab_to("#choices button:nth-child(2)")  # everything else works as before
    ada.press("Enter")
    after = ada.ready(before)
    nothing_is_said_of_keys(ada)
    ada.page.locator("#undo").click()
    again = ada.ready(after)
    ada.page.locator("#skip").click()
    ada.ready(again)
    ada.wait_saved()
    assert [row["kind"] for row in stored(site.project)] == ["answer", "undo", "skip"]

    ada.open_menu()
    ada.tab_to("#keys")
    ada.press("Space")
    ada.press("Escape")
    ada.decide("0")
    ada.wait_saved()
    assert [row["kind"] for row in stored(site.project)][3:] == ["answer"]
    assert ada.page.locator("#announce").inner_text().endswith(", 0 none of these.")


def strike(who, key: str, code: str, **more) -> None:
    """A key of a keyboard that Playwright does not have."""
    devtools = who.context.new_cdp_session(who.page)
    for kind in ("keyDown", "keyUp"):
        devtools.send("Input.dispatchKeyEvent", {"type": kind, "key": key, "code": code, **more})


def test_keys_of_other_alphabets_and_of_the_number_pad(run_project, person):
    site = run_project(classes=[f"class {k}" for k in range(12)], size=11)
    ada = person().go(f"{site.url}/join#{People(site.project).invite('ada')[1]}")
    before, tenth = ada.ready(), ada.choices()[9]
    strike(ada, "ArrowDown", "Numpad2")  # without Num Lock: somebody scrolls
    ada.settle()
    assert ada.ready() == before
    strike(ada, "ф", "KeyA")  # Cyrillic: the key of A
    before = ada.ready(before)
    strike(ada, "ζ", "KeyZ")  # Greek: undo
    before = ada.ready(before)
    strike(ada, "2", "Numpad2")
    before = ada.ready(before)
    strike(ada, "ы", "KeyS")
    ada.ready(before)
    ada.wait_saved()
    rows = stored(site.project)
    assert [row["kind"] for row in rows] == ["answer", "undo", "answer", "skip"]
    assert f"class {rows[0]['class_id']}" == tenth


def nothing_is_said_of_keys(ada) -> None:
    assert ada.page.locator("[aria-keyshortcuts]").count() == 0
    assert ada.page.locator("kbd:visible").count() == 0


def no_key_answers(ada, site) -> None:
    rows, before = stored(site.project), ada.ready()
    for key in ("1", "0", "s", "z", "!", "?"):
        ada.press(key)
    ada.settle()
    assert ada.ready() == before
    assert stored(site.project) == rows


def test_space_stops_no_sound_where_single_keys_are_off(run_project, person):
    site = run_project(kinds="audio", items=2)
    ada = person().go(f"{site.url}/join#{People(site.project).invite('ada')[1]}")
    ada.ready()
    ada.page.evaluate("() => { document.querySelector('#item audio').loop = true; }")
    playing = "() => !document.querySelector('#item audio').paused"
    ada.page.wait_for_function(playing)
    ada.page.locator("#more").click()
    ada.page.locator("#keys").uncheck()
    ada.press("Escape")
    ada.page.evaluate("document.activeElement.blur()")
    ada.press("Space")
    ada.settle()
    assert ada.page.evaluate(playing)
    ada.page.locator("#more").click()
    ada.page.locator("#keys").check()
    ada.press("Escape")
    ada.page.evaluate("document.activeElement.blur()")
    ada.press("Space")
    ada.page.wait_for_function(f"() => !({playing})()")
