"""What an owner looks for and finds: texts by their words, why an answer is suspicious, honest counts."""

import re
import time

import pytest
from sqlalchemy import insert, update

from shortlist.annotate.db.schema import Answer, Item
from shortlist.annotate.project.people import People
from shortlist.annotate.project.review.corrections import correct
from shortlist.annotate.project.second_look import write_doubts

from .test_browser_axe import check
from .test_browser_owner import SIZES, bank

pytestmark = pytest.mark.browser


@pytest.fixture
def looked_through(run_project):
    """Six texts: one answered, which the model does not believe, one skipped with a reason, one known."""
    site = bank(run_project, items=6, overlap=1, gold_every=1000, size=6)
    queue, ada = site.project.queue(), People(site.project).invite("Ada")[0]
    (first,) = queue.next(ada)
    queue.answer(ada, first.id, 0, 4, 1.0)
    (second,) = queue.next(ada)
    queue.skip(ada, second.id, 0)
    with site.project.store.write() as connection:
        connection.execute(update(Answer).where(Answer.kind == "skip").values(reason="unlisted"))
    site.project.live.mkdir(exist_ok=True)
    write_doubts(site.project.live, [(first.item_id, 4, 1, 0.0007)])
    return site, first.item_id, second.item_id


def test_a_text_is_found_by_its_words_and_opened_by_a_click_on_it(looked_through, person):
    site, *_ = looked_through
    owner = person().go(site.admin_link)
    owner.tab("items")
    owner.page.get_by_label("Search names and texts").fill("WALLET")
    owner.page.locator("#items-found", has_text=re.compile(r"^2 shown")).wait_for()  # a gold item has it, too
    text = owner.page.locator("#items .excerpt").first
    assert "Somebody took my wallet" in text.inner_text()
    sizes = "one => parseFloat(getComputedStyle(one).fontSize)"
    assert text.evaluate(sizes) > owner.page.locator("#items .open").first.evaluate(sizes), "the text, not its number"
    text.click()
    owner.page.wait_for_selector("#item[open]")
    shown = owner.page.locator("#item-shown p")
    assert shown.evaluate(sizes) > owner.page.locator("#item-name").evaluate(sizes)


def test_a_suspicious_answer_says_what_the_model_believes(looked_through, person):
    site, item, _ = looked_through
    owner = person().go(f"{site.admin_link}")
    owner.page.locator("#todo a", has_text="1 suspicious").click()
    owner.page.locator("#items .badge", has_text="Model: card lost or stolen").wait_for()
    assert owner.page.locator("#items tr").count() == 1
    owner.page.locator("#items button").click()
    said = owner.page.locator("#item-doubt")
    said.wait_for()
    assert said.inner_text() == (
        "A model that was not told this answer holds it for card lost or stolen; "
        "it gives the answer a chance of less than 0.1 %."
    )
    for width, height in SIZES.values():
        owner.page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            owner.page.emulate_media(color_scheme=scheme)
            check(owner)
    owner.press("Escape")
    owner.settle()
    owner.page.locator(f"#item-{item} .badge", has_text="Model: card lost or stolen").wait_for()


def test_a_skip_says_why_in_the_list_and_in_the_history(looked_through, person):
    site, _, item = looked_through
    owner = person().go(site.admin_link)
    owner.tab("items")
    owner.page.get_by_label("Skipped", exact=True).check()
    owner.page.locator("#items-found", has_text=re.compile(r"^1 shown")).wait_for()
    assert owner.page.locator(f"#item-{item} .badge").all_inner_texts() == ["Skipped: not in the list"]
    owner.page.locator("#items button").click()
    owner.page.locator("#history li", has_text="skipped it: not in the list").wait_for()


def test_items_that_were_answered_are_found(looked_through, person):
    site, *_ = looked_through
    owner = person().go(site.admin_link)
    owner.tab("items")
    owner.page.locator("#items .badge", has_text="no answer yet").first.wait_for()
    owner.page.get_by_label("Answered", exact=True).check()
    owner.page.locator("#items-found", has_text=re.compile(r"^1 shown")).wait_for()
    assert not owner.page.locator("#items .badge", has_text="no answer yet").count()


def test_counts_and_pace_mean_what_they_say(looked_through, person):
    site, *_ = looked_through
    correct(site.project.store, 6, 0, 1, "Grace", "")
    with site.project.store.write() as connection:
        connection.execute(update(Answer).values(answered_at=time.time() - 300))
    owner = person().go(site.admin_link)
    owner.page.locator("#progress", has_text="2 of 6 items done").wait_for()
    done = owner.page.locator("#figures > div", has_text="Items done").inner_text().split("\n")
    assert done == ["Items done", "2", "of 6, 1 known or corrected"]
    # one answer in five minutes, four to go
    owner.page.locator("#work-now", has_text="1 in the last 5 min; at this pace done in 20 min").wait_for()


def test_items_that_several_people_answer_are_not_taken_for_questions(run_project, person):
    site = bank(run_project, items=4, gold_every=1000, overlap=2)
    owner = person().go(site.admin_link)
    owner.page.locator("#todo a", has_text="Invite people").wait_for()
    check(owner)
    queue, ada = site.project.queue(), People(site.project).invite("Ada")[0]
    (held,) = queue.next(ada)
    queue.answer(ada, held.id, 0, held.shortlist[0], 1.0)
    owner.page.locator("#figures > div", has_text="of 4, 1 of 8 questions settled").wait_for()
    owner.page.locator("#progress", has_text="0 of 4 items done").wait_for()
    owner.page.locator("#to-go", has_text="4 items to go").wait_for()
    owner.page.locator("#todo", has_text="Nothing: no flags").wait_for()


def test_what_is_to_go_costs_what_was_spent_on_what_is_done(run_project, person):
    site = bank(run_project, items=20, overlap=1, gold_every=2)
    queue, ada, answers, done = site.project.queue(), People(site.project).invite("Ada")[0], 0, 0
    while not 1 < done < answers:  # gold questions take time as well, and bring the end no nearer
        (held,) = queue.next(ada)
        queue.answer(ada, held.id, 0, None, 40.0)
        answers += 1
        done = site.project.status()["progress"]["done"]
    owner = person().go(site.admin_link)
    wanted = f"{20 - done} items to go, about {round((20 - done) * 2 * answers / 3 / done)} min of work"
    owner.page.locator("#to-go", has_text=wanted).wait_for(timeout=10_000)
    # and another answer is in every figure of the page, not in half of them
    (held,) = queue.next(ada)
    owner.page.locator("#work-now", has_text=f"{answers} in the last").wait_for()
    queue.answer(ada, held.id, 0, None, 1.0)
    owner.page.locator("#figures > div", has_text=re.compile(rf"Answers in all\s*{answers + 1}")).wait_for()
    owner.page.locator("#work-now", has_text=f"{answers + 1} in the last").wait_for(timeout=10_000)


def test_the_log_names_items_as_the_pages_do(looked_through, person):
    site, *_ = looked_through
    with site.project.store.write() as connection:
        connection.execute(insert(Item).values(id=500, name="277", kind="text", text="x", state="open", pending=0))
    owner = person().go(site.admin_link)
    owner.tab("items")
    owner.page.get_by_label("Search names and texts").fill("277")
    owner.page.locator("#items-found", has_text=re.compile(r"^1 shown")).wait_for()
    owner.page.locator("#items tr").click()
    owner.page.wait_for_selector("#item[open]")
    correct_it = owner.page.get_by_role("button", name="Correct", exact=True)
    correct_it.click()
    assert owner.page.locator("#correct-class:invalid").count() == 1, "nobody said anything of it: no class is at hand"
    owner.page.select_option("#correct-class", label="pin blocked")
    correct_it.click()
    owner.page.locator("#history li", has_text="corrected it").wait_for()
    owner.press("Escape")
    owner.tab("settings")
    what = owner.page.locator("#audit td", has_text="correct item 277")
    what.wait_for()
    owner.page.set_viewport_size({"width": 390, "height": 844})
    box = what.bounding_box()
    assert box["x"] + box["width"] <= 390, "on a phone, too"


def test_a_list_longer_than_the_classes_is_refused(looked_through, person):
    site, *_ = looked_through
    owner = person().go(site.admin_link)
    owner.tab("settings")
    owner.page.fill("#set-size", "40")
    owner.press("Enter")
    owner.page.locator("#settings-said", has_text="size 40: expected at most the 6 classes of the project").wait_for()


def test_settings_take_no_input_before_they_are_filled_however_often_the_page_is_renewed(looked_through, person):
    site, *_ = looked_through
    owner, held = person().hurry(3000).go(site.admin_link), []
    owner.page.route("**/api/v1/settings", lambda route: held.append(route))
    owner.page.locator("#tabs a[href$='#settings']").click()
    owner.page.wait_for_selector("#tab-settings:not([hidden])")
    for _ in range(3):
        owner.renewed("/api/v1/status")
    assert owner.page.locator("#tab-settings").evaluate("tab => tab.inert"), "what is typed would be overwritten"
    held[0].continue_()
    owner.page.wait_for_selector("#tab-settings:not([inert])")
    assert owner.page.input_value("#set-size") == "6"


def test_owners_pages_hold_together_at_every_width(looked_through, person):
    """No name broken letter by letter, no header line with what belongs to a row, nothing cut that is to be read."""
    site, *_ = looked_through
    owner = person(viewport={"width": 390, "height": 844}).go(site.admin_link)
    owner.page.wait_for_selector("#figures div")
    bar = owner.page.locator("header").bounding_box()
    assert owner.page.locator("#sign-out").bounding_box()["y"] < bar["y"] + 30, "in the first line"
    owner.tab("classes")
    owner.page.wait_for_selector("#classes tr")
    assert owner.page.locator("#classes th").nth(1).bounding_box()["width"] >= 130
    heads = "heads => heads.map((one) => [getComputedStyle(one).position, one.textContent])"
    found = owner.page.locator("#class-head > *").evaluate_all(heads)
    assert {place for place, _ in found} == {"sticky"}
    assert found[-1][1] == "Change"
    owner.page.set_viewport_size({"width": 1280, "height": 800})
    owner.tab("settings")
    owner.page.wait_for_selector("#audit", state="attached")
    box = owner.page.locator("#set-policy")
    assert box.bounding_box()["width"] >= 360, "the longest of its words"
    owner.tab("overview")
    assert owner.page.locator("#accuracy").bounding_box()["height"] < 160, "one line, no tall empty card"
    owner.tab("data")
    groups = owner.page.locator("#exports h3").all_inner_texts()
    assert groups == ["Labels", "Answers", "To look at again", "For Label Studio"]
    assert owner.page.locator("#exports a").count() == 11
