"""What the annotator's page does beside answering: time, keys, prefetching, text only, sound."""

import time

import pytest
from sqlalchemy import update

from shortlist.annotate.db.schema import Slot
from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.people import People
from shortlist.annotate.project.sources import Source

from .projects import CLASSES, stored

pytestmark = pytest.mark.browser
NASTY = '<img src=x onerror="alert(1)"><b>bold</b>'


def come(site, person, name: str = "ada", **options):
    who = person(**options).go(f"{site.url}/join#{People(site.project).invite(name)[1]}")
    who.ready()
    return who


def test_time_stands_still_while_the_page_is_hidden(run_project, person):
    site = run_project()
    ada = come(site, person)

    def visibility(state: str) -> None:
        ada.page.evaluate(
            """state => {
              Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
              document.dispatchEvent(new Event("visibilitychange"));
            }""",
            state,
        )

    ada.elapse(300)
    visibility("hidden")
    ada.elapse(1500)
    visibility("visible")
    ada.elapse(300)
    ada.press("1")
    all_of_it = ada.page.evaluate("performance.now()") / 1000  # since the page was opened
    ada.wait_saved()
    (row,) = stored(site.project)
    assert 0.6 <= row["seconds"] <= all_of_it - 1.5


def test_the_two_figures_of_progress_agree(run_project, person):
    ada = come(run_project(), person)
    progress = ada.page.locator("#progress")
    for words in ("1 of 12 done · 1 this visit", "2 of 12 done · 2 this visit"):
        ada.decide("0")
        ada.wait_saved()
        assert progress.inner_text().startswith(words)


def test_lists_longer_than_nine_have_letters_and_no_key_twice(run_project, person):
    classes = [f"class {k}" for k in range(60)]
    site = run_project(classes=classes, size=60)
    ada = come(site, person)
    keys = ada.page.locator("#choices kbd").all_inner_texts()
    assert keys[:12] == [*"123456789", "A", "B", "C"]
    assert len(keys) == len(set(keys)) == 57
    assert not {"0", "S", "Z"} & set(keys)
    names = ada.choices()
    ada.decide("b")
    ada.decide("Shift+B")
    ada.decide("s")
    ada.wait_saved()
    rows = stored(site.project)
    assert rows[0]["class_id"] == int(names[10].split()[1])
    assert rows[1]["class_id"] != rows[0]["class_id"] or rows[1]["question_id"] != rows[0]["question_id"]
    assert [row["kind"] for row in rows] == ["answer", "answer", "skip"]


def test_a_held_key_and_keys_with_control_answer_nothing_more(run_project, person):
    site = run_project()
    ada = come(site, person)
    before = ada.ready()
    ada.page.keyboard.down("1")
    ada.page.keyboard.down("1")  # the browser's repeat
    ada.page.keyboard.down("1")
    ada.page.keyboard.up("1")
    now = ada.ready(before)
    ada.press("Control+0")
    ada.press("9")  # no such button
    ada.settle()
    assert ada.ready() == now
    ada.wait_saved()
    assert len(stored(site.project)) == 1


def test_buttons_work_by_tab_and_enter_and_the_focus_is_not_lost(run_project, person):
    site = run_project()
    ada = come(site, person)
    before = ada.ready()
    ada.tab_to("#choices button:nth-child(2)")
    ada.press("Enter")
    ada.ready(before)
    assert ada.page.evaluate("document.activeElement.id") == "item"
    ada.tab_to("#none")
    ada.press("Space")
    ada.wait_saved()
    assert len(stored(site.project)) == 2
    assert "0 none of these" in ada.page.locator("#announce").inner_text()


def test_the_next_items_are_here_before_they_are_needed(run_project, person):
    site = run_project(kinds="image", items=8)
    who = person()
    fetched: list[str] = []
    who.page.on("requestfinished", lambda request: fetched.append(request.url))
    who.go(f"{site.url}/join#{People(site.project).invite('ada')[1]}")
    who.ready()
    who.page.wait_for_load_state("networkidle")
    assert len([url for url in fetched if "/media/" in url]) == 3
    who.context.set_offline(True)
    who.decide("1")
    assert who.page.locator("#item img").evaluate("image => image.naturalWidth") == 320


@pytest.mark.parametrize(("kind", "words"), [("image", "cannot be shown"), ("audio", "cannot be played")])
def test_what_does_not_come_is_tried_again_and_can_be_skipped(run_project, person, kind, words):
    site = run_project(kinds=kind, items=4)
    ada = person()
    ada.hurry(3000)

    def lose(route) -> None:
        time.sleep(0.5)  # longer than an item takes to count as seen
        route.abort("connectionreset")

    ada.page.route("**/media/*", lose)
    ada.go(f"{site.url}/join#{People(site.project).invite('ada')[1]}")
    ada.page.wait_for_selector(f"text={words}", timeout=20_000)
    ada.press("1")  # what was not seen is not answered
    ada.press("s")
    ada.page.wait_for_selector(f"text={words}")
    ada.page.unroute("**/media/*")
    ada.ready()
    ada.decide("1")
    ada.wait_saved()
    assert [row["kind"] for row in stored(site.project)] == ["skip", "answer"]


def test_names_texts_and_titles_are_text_only(run_project, person):
    site = run_project(items=0, classes=[NASTY, *CLASSES], size=7, title=NASTY)
    add_items(site.project, [Source("a", "a", text=NASTY), Source("b", "b", text="b")])
    ada = come(site, person)
    asked: list[str] = []
    ada.page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    assert ada.page.locator("#item").inner_text() == NASTY
    assert NASTY in ada.choices()
    assert ada.page.locator("main img, main b").count() == 0
    admin = person().go(site.admin_link)
    admin.tab("people")
    admin.page.wait_for_selector("#people tr")
    assert admin.page.locator("h1").inner_text() == NASTY
    admin.page.fill("#name", NASTY)
    admin.press("Enter")
    admin.page.wait_for_selector("#people tr:nth-child(2)")
    admin.tab("items")
    admin.page.locator("#items button").first.click()
    admin.page.wait_for_selector("#item[open]")
    assert admin.page.locator("#item-shown").inner_text() == NASTY
    assert admin.page.locator("#tab-items img, #tab-people img, #tab-people b").count() == 0
    assert asked == []


def test_sounds_play_and_space_stops_them(run_project, person):
    site = run_project(kinds="audio", items=4)
    ada = come(site, person)
    sound = ada.page.locator("#item audio")
    ada.page.wait_for_function("() => document.querySelector('#item audio').readyState >= 2")
    ada.press("Space")
    ada.decide("1")
    assert sound.evaluate("sound => sound.duration") == 0.5
    ada.wait_saved()


def test_the_end_and_what_comes_after_it(run_project, person):
    site = run_project(items=1)
    ada = come(site, person)
    ada.press("1")
    ada.page.wait_for_function("() => document.getElementById('item').textContent.includes('Nothing left')")
    ada.wait_saved()
    ada.press("z")  # undo is still there
    assert ada.ready().endswith(".1")
    ada.press("0")
    ada.page.wait_for_function("() => document.getElementById('item').textContent.includes('Nothing left')")
    ada.wait_saved()
    assert [row["kind"] for row in stored(site.project)] == ["answer", "undo", "answer"]


def test_a_screen_reader_is_told_once_that_nothing_is_left(run_project, person):
    """The page goes on asking, every ten seconds."""
    ada = come(run_project(items=1), person)
    ada.press("0")
    ada.page.locator("#announce", has_text="Nothing left").wait_for()
    ada.wait_saved()
    ada.page.evaluate(
        """() => {
          window.said = 0;
          new MutationObserver(() => (window.said += 1)).observe(
            document.getElementById("announce"), { childList: true, characterData: true, subtree: true });
        }"""
    )
    for _ in range(3):  # one request at a time: when the third is sent, two replies were taken in
        with ada.page.expect_response("**/next"):
            ada.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    assert ada.page.evaluate("said") == 0


def test_after_skipping_the_last_item_the_page_does_not_say_that_all_is_done(run_project, person):
    ada = come(run_project(items=2), person)
    ada.decide("s")
    ada.press("0")
    ada.page.locator("#item", has_text="Nothing left for you just now. The rest is for others").wait_for()
    ada.wait_saved()
    ada.press("z")
    ada.decide("z")  # the skip, too
    ada.decide("0")
    ada.press("0")
    ada.page.locator("#item", has_text="Nothing left to answer for now. Thank you!").wait_for()


def test_one_browser_can_be_an_admin_and_an_annotator(run_project, person):
    site = run_project()
    me = person().go(site.admin_link)
    me.page.wait_for_url("**/admin")
    me.tab("people")
    me.tab_to("#name")
    me.page.keyboard.type("me")
    me.press("Enter")
    link = me.page.locator("#made-link").inner_text()
    admin_page = me.page
    me.open_page()
    me.go(link).ready()
    me.decide("1")
    me.wait_saved()
    admin_page.reload()
    admin_page.wait_for_selector("#people tr")
    assert admin_page.locator("#notice").is_hidden()
    admin_page.locator("#sign-out").click()
    admin_page.wait_for_url("**/join")
    me.decide("0")  # the annotator is still there
    me.wait_saved()
    admin_page.goto(f"{site.url}/admin")
    admin_page.wait_for_url(f"{site.url}/")


def test_long_names_are_broken_between_words_beside_their_key(run_project, person):
    long = "balance_not_updated_after_cheque_or_cash_deposit"
    site = run_project(classes=[long, f"{long}s"], size=2)
    ada = come(site, person, viewport={"width": 375, "height": 667})
    assert sorted(ada.choices()) == [long, f"{long}s"]
    key, name = (ada.page.locator(f"#choices button >> nth=0 >> {tag}").bounding_box() for tag in ("kbd", "span"))
    assert name["x"] >= key["x"] + key["width"], "beside it, not below"
    lines = ada.page.locator("#choices span >> nth=0").evaluate(
        """span => {
          const range = document.createRange(), lines = new Map();
          for (const node of span.childNodes) if (node.nodeType === 3) for (let i = 0; i < node.length; i++) {
            range.setStart(node, i); range.setEnd(node, i + 1);
            const top = Math.round(range.getBoundingClientRect().top);
            lines.set(top, (lines.get(top) ?? "") + node.data[i]);
          }
          return [...lines.values()];
        }"""
    )
    assert len(lines) > 1
    assert all(line.endswith("_") for line in lines[:-1])


def test_a_class_says_what_it_means_below_its_name(run_project, person):
    site = run_project(classes=["card_arrival", "card_linking"], size=2)
    add_classes(site.project, {"card_arrival": f"It has not come yet. {NASTY}"})
    ada = come(site, person, viewport={"width": 375, "height": 667})
    ada.ready()
    assert sorted(ada.choices()) == ["card_arrival", "card_linking"]
    (words,) = ada.page.locator("#choices small").all_inner_texts()
    assert words == f"It has not come yet. {NASTY}"
    name, below = (ada.page.locator(f"#choices button:has(small) {part}").bounding_box() for part in ("span", "small"))
    assert below["y"] >= name["y"] + name["height"] - 1
    assert below["x"] == name["x"], "beside the key, not below it"


def test_the_page_says_whose_answers_these_are(run_project, person):
    """On a shared machine the next one would go on under another's name."""
    ada = come(run_project(), person)
    ada.ready()
    assert ada.page.locator("#who").inner_text() == "ada"
    ada.page.locator("#more").click()
    ada.page.locator("#sign-out").click()
    ada.page.locator("#item", has_text="You are signed out").wait_for()
    assert ada.page.locator("#who").inner_text() == ""


def test_a_list_that_is_asked_again_says_so(run_project, person):
    """Without a word the same item after a None looks as if the key had done nothing."""
    site = run_project(items=1)
    with site.project.store.write() as connection:
        connection.execute(update(Slot).values(turn=1))
    ada = come(site, person)
    assert ada.page.locator("#again").inner_text() == "Asked again, with other classes."
    assert ada.page.locator("#announce").inner_text().startswith("Asked again, with other classes. Text number 0. 1 ")
    add_items(site.project, [Source("b", "b", text="b")])
    ada.press("1")
    ada.page.locator("#item", has_text="b").wait_for()
    assert not ada.page.locator("#again").is_visible()


def test_an_admin_removes_somebody_and_takes_their_answers_back(run_project, person):
    site = run_project()
    sly = come(site, person, "sly")
    sly.decide("1")
    sly.wait_saved()
    me = person().go(site.admin_link)
    me.tab("people")
    back = me.page.get_by_role("button", name="Take answers back: sly")
    remove = me.page.get_by_role("button", name="Remove: sly")
    remove.wait_for()
    assert not back.is_visible(), "first they are signed out"
    remove.focus()
    me.press("Enter")
    me.page.locator("#ask-go").click()
    back.wait_for()
    assert me.page.evaluate("document.activeElement.ariaLabel") == "Invite again: sly", "the focus stays in the row"
    back.click()
    me.page.locator("#ask-go").click()
    me.page.locator("#link", has_text="Answers of sly taken back: 1.").wait_for()
    me.page.locator("#progress", has_text="0 of 12 items done").wait_for()
    back.wait_for(state="hidden")
    me.page.get_by_role("button", name="Invite again: sly").wait_for()
    assert [row["kind"] for row in stored(site.project)] == ["answer", "undo"]


def test_the_curve_of_accuracy_goes_on_from_what_is_left_after_answers_were_taken_back(run_project, person):
    site = run_project()
    ada = come(site, person)
    me = person().hurry(3000).go(site.admin_link)  # where it renews its figures
    header = {"X-Shortlist": "1"}

    def measure(value: float) -> None:
        reply = me.context.request.post(
            f"{site.url}/api/v1/measures", data={"name": "accuracy", "value": value}, headers=header
        )
        assert reply.ok

    def drawn(words: str) -> list[float]:
        me.page.locator("#accuracy-now", has_text=words).wait_for()
        points = me.page.locator("#curve polyline").get_attribute("points")
        return [float(point.split(",")[0]) for point in points.split()]

    for value in (0.2, 0.4, 0.6):
        ada.decide("1")
        ada.wait_saved()
        measure(value)
    assert len(drawn("60.0 % after 3 answers")) == 3
    ada.decide("z")
    ada.decide("z")
    ada.wait_saved()
    measure(0.3)
    assert len(drawn("30.0 % after 1 answer")) == 1
    ada.decide("1")
    ada.wait_saved()
    measure(0.5)
    points = drawn("50.0 % after 2 answers")
    assert len(points) == 2
    assert points == sorted(points)


def test_who_is_signed_out_sees_the_way_back_and_nothing_else_to_press(run_project, person):
    site = run_project()
    nobody = person().go(site.url)
    nobody.page.locator("#item", has_text="You are signed out").wait_for()
    assert nobody.page.locator("button:visible").all_inner_texts() == ["Sign in with a link"]
    assert "of 0" not in nobody.page.inner_text("body")
    ada = come(site, person)
    ada.page.locator("#more").click()
    ada.page.locator("#sign-out").click()
    ada.page.locator("#item", has_text="You are signed out").wait_for()
    assert ada.page.locator("button:visible").count() == 1
    ada.page.get_by_role("button", name="Sign in with a link").click()
    ada.page.wait_for_selector("#paste:not([hidden])")
    ada.page.fill("#link", f"{site.url}/join#{People(site.project).renew_invite(1)}")
    ada.press("Enter")
    ada.ready()
