"""A browser whose network is cut, whose server is killed, whose tab is closed: nothing lost, nothing doubled."""

import pytest

from shortlist.annotate.project.audit import CommandLine
from shortlist.annotate.project.erasing import erase_item
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.people import People
from shortlist.annotate.project.sources import Source

from .projects import stored

pytestmark = pytest.mark.browser
ON_DISK = """count => new Promise((resolve) => {
  const request = indexedDB.open("shortlist-outbox", 2);
  request.onsuccess = () => {
    const counting = request.result.transaction("entries").objectStore("entries").count();
    counting.onsuccess = () => { request.result.close(); resolve(counting.result === count); };
  };
})"""
"""Whether that many answers wait in the browser's own storage."""


def invite(site, name: str) -> str:
    return f"{site.url}/join#{People(site.project).invite(name)[1]}"


def answered(site) -> list[tuple[str, int | None]]:
    return [(row["name"], row["class_id"]) for row in stored(site.project) if row["kind"] == "answer"]


def test_a_cut_network_and_a_killed_server_lose_nothing(run_project, person):
    site = run_project(items=12)
    ada = person().go(invite(site, "ada"))
    ada.ready()
    ada.decide("1")
    ada.wait_saved()

    ada.context.set_offline(True)
    ada.decide("2")  # the next two are here already
    ada.decide("0")
    before = ada.ready()
    ada.press("3")
    ada.page.wait_for_selector("#saved[data-state=waiting]")
    assert ada.page.locator("#saved").inner_text() == "Not saved yet: 3"
    assert "kept in this browser" in ada.page.locator("#notice").inner_text()
    assert len(answered(site)) == 1
    ada.context.set_offline(False)
    ada.ready(before)
    ada.wait_saved()
    assert len(answered(site)) == 4
    assert ada.page.locator("#notice").is_hidden()

    site.kill()  # the same with the server gone and back
    ada.decide("1")
    ada.press("z")  # decisions keep their order: answer, undo, another answer
    ada.ready()
    ada.decide("0")
    ada.page.wait_for_selector("#saved[data-state=waiting]")
    site.start()
    ada.wait_saved()
    rows = stored(site.project)
    assert [row["kind"] for row in rows] == ["answer"] * 5 + ["undo", "answer"]
    assert rows[-1]["class_id"] is None
    assert len({(row["question_id"], row["attempt"]) for row in rows if row["kind"] == "answer"}) == 6
    assert site.project.store.check() == []


def test_a_tab_closed_without_network_sends_when_it_is_opened_again(run_project, person):
    site = run_project(items=12)
    ada = person().go(invite(site, "ada"))
    ada.ready()
    ada.wait_saved()
    site.kill()  # not set_offline: Chromium lifts that as a tab closes, and its last retry gets through
    ada.decide("1")
    before = ada.ready()
    ada.press("0")
    ada.page.wait_for_function("before => document.getElementById('item')?.dataset.ready !== before", arg=before)
    ada.page.wait_for_selector("#saved[data-state=waiting]")
    ada.page.wait_for_function(ON_DISK, arg=2)  # closing by force skips the question whether to leave before that
    ada.page.close()
    assert answered(site) == []

    site.start()
    ada.open_page()
    ada.go(invite(site, "ben"))  # somebody else at the same computer does not send what is not theirs
    ada.page.locator("#swap").click()
    ada.ready()
    ada.wait_saved()
    assert answered(site) == []
    with site.project.store.read() as connection:
        ada_id = connection.exec_driver_sql("SELECT id FROM annotators WHERE name = 'ada'").scalar()
    ada.go("about:blank")
    ada.go(f"{site.url}/join#{People(site.project).renew_invite(ada_id)}")
    ada.page.locator("#swap").click()
    ada.ready()
    ada.wait_saved()
    assert [name for name, _ in answered(site)] == ["item 0", "item 1"]
    assert answered(site)[1][1] is None


def test_a_lost_reply_does_not_double_the_answer(run_project, person):
    site = run_project(items=6)
    ada = person().go(invite(site, "ada"))
    ada.ready()
    lost = []

    def lose(route) -> None:
        if len(lost) < 2:
            lost.append(route.fetch().status)  # it arrives, but the browser never hears of it
            route.abort("connectionreset")
        else:
            route.continue_()

    ada.page.route("**/api/v1/answers", lose)
    ada.decide("1")
    ada.wait_saved()
    assert lost == [200, 200]
    assert len(answered(site)) == 1


def test_saved_is_said_only_after_the_reply(run_project, person):
    site = run_project(items=6)
    ada = person().go(invite(site, "ada"))
    ada.ready()
    waiting = []
    ada.page.route("**/api/v1/answers", lambda route: waiting.append(route))
    with ada.page.expect_request("**/api/v1/answers"):  # the page saves a moment after the key
        ada.decide("1")
    assert ada.page.locator("#saved").inner_text() == "Saving …"
    assert answered(site) == []
    while not waiting:  # the request is out; who holds it up is told a moment later
        ada.settle()
    waiting[0].continue_()
    ada.wait_saved()
    assert len(answered(site)) == 1


def test_an_answer_given_while_an_older_one_is_taken_back_is_saved_at_once(run_project, person):
    site = run_project(items=6)
    link = invite(site, "ada")
    earlier = person().go(link)
    earlier.decide("1")
    earlier.wait_saved()
    ada = person().go(link)  # another browser: it has nothing to take back by itself
    ada.ready()
    ada.wait_saved()
    held = []
    ada.page.route("**/api/v1/undos", lambda route: held.append(route))
    ada.press("z")
    while not held:
        ada.settle()
    ada.press("2")
    ada.page.wait_for_selector("#saved[data-state=saving]")
    held[0].continue_()
    ada.page.wait_for_selector("#saved[data-state=saved]", timeout=10_000)
    ada.page.locator("#progress", has_text="1 of 6 done").wait_for()
    assert [row["kind"] for row in stored(site.project)] == ["answer", "undo", "answer"]


def test_an_answer_that_came_too_late_is_said_to_be_refused(run_project, person):
    site = run_project(items=6)
    ada = person().go(invite(site, "ada"))
    ada.ready()
    ada.wait_saved()
    ada.context.set_offline(True)
    ada.press("1")
    ada.page.wait_for_selector("#saved[data-state=waiting]")
    queue = site.project.queue()
    queue.release(1)  # as if the lease had run out, and ben had been given the item
    ben, _ = People(site.project).invite("ben")
    queue.next(ben, hold=4)
    queue.next(People(site.project).invite("carl")[0], hold=4)
    ada.context.set_offline(False)
    ada.page.wait_for_function("() => document.getElementById('notice').textContent.startsWith('Not accepted')")
    assert answered(site) == []
    ada.page.locator("#progress").get_by_text("0 of 6 done", exact=True).wait_for()  # and not "1 this visit"


def test_what_was_erased_while_it_was_shown_gives_place_to_the_next(run_project, person):
    """SQLite gives the number of its question to the next one: an answer would be stored for what was never read."""
    site = run_project(items=1)
    ada = person().go(invite(site, "ada"))
    ada.ready()
    site.kill()
    erase_item(site.project, 1, CommandLine())
    add_items(site.project, [Source("new", "new", text="Something else")])
    site.start()
    ada.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    ada.page.locator("#item", has_text="Something else").wait_for(timeout=10_000)
    ada.ready()
    ada.press("1")
    ada.page.locator("#item", has_text="Nothing left").wait_for()
    ada.wait_saved()
    assert [name for name, _ in answered(site)] == ["new"]
