"""The owner's pages: every tab at three sizes, light and dark; items corrected, classes changed, files read in."""

import csv
import io
import random
import zipfile
from typing import Any

import pytest
from sqlalchemy import insert, select

from shortlist.annotate.db.schema import Annotator, Item, LabelClass, Measure, Note
from shortlist.annotate.project.audit import CommandLine, audit_alone
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.people import People
from shortlist.annotate.project.review.corrections import correct
from shortlist.annotate.project.score import write_score
from shortlist.annotate.project.sources import Source

from .test_browser_axe import check

pytestmark = pytest.mark.browser

SIZES = {"wide": (1440, 900), "tablet": (768, 1024), "phone": (360, 740)}
TABS = ("overview", "people", "items", "classes", "instructions", "data", "settings")
CLASSES = ["card arrival", "card lost or stolen", "exchange rate", "pin blocked", "refund not showing up"]
CLASSES += ["top up failed"]
TEXTS = [
    "I ordered a card two weeks ago and it is still not here.",
    "Somebody took my wallet, and the card with it!",
    "Why did I get a different rate than the one I was shown?",
    "I typed the wrong number three times and now nothing works.",
    "The shop says that it sent the money back on Monday.",
    "My top-up was declined twice although there is enough on the account.",
]
NAMES = ["Ada Lovelace", "Ben Okafor", "Chiara Rossi", "Dae-jung Kim"]


def answered(site, items: int, wrong: float = 0.15) -> None:
    """Four people answer most of it, with mistakes; one flags an item."""
    dice, queue = random.Random(1), site.project.queue()
    with site.project.store.read() as connection:
        truth = {row.id: i % len(CLASSES) for i, row in enumerate(connection.execute(select(Item.id)))}
    for name in NAMES:
        who = People(site.project).invite(name)[0]
        for _ in range(items * 2 // len(NAMES) - 3):
            held = queue.next(who)
            if not held:
                break
            q, right = held[0], truth[held[0].item_id]
            said = right if right in q.shortlist else None
            said = dice.choice([None, *q.shortlist]) if dice.random() < wrong else said
            queue.answer(who, q.id, q.attempt, said, round(dice.uniform(0.8, 14), 1))


def bank(run_project, items=48, **settings):
    """Texts of a bank, with long and nasty ones among them."""
    options = {"items": 0, "classes": CLASSES, "size": 4, "overlap": 2, "gold_every": 8, "title": "Questions to a bank"}
    site = run_project(**{**options, **settings})
    texts = [f"{TEXTS[i % len(TEXTS)]}" for i in range(items)]
    texts[3] += " <b>bold</b> " + "Nothing works. " * 330  # 5,000 characters
    sources = [Source(f"message {i:03}", f"message {i:03}", text=text) for i, text in enumerate(texts)]
    gold = [Source(f"gold {i}", f"gold {i}", text=TEXTS[i], gold=CLASSES[i]) for i in range(6)]
    add_items(site.project, [*sources, *gold], strict=True)
    return site


def filled(run_project):
    site = bank(run_project)
    answered(site, 48)
    with site.project.store.write() as connection:
        note = {"item_id": 2, "author": NAMES[0], "kind": "flag", "text": "Two questions in one.", "at": 1.7e9}
        connection.execute(insert(Note).values(note))
        points = [(n, 0.35 + 0.55 * (1 - 0.94**n)) for n in range(2, 60, 4)]
        rows = [{"at": 1.7e9, "name": "score", "value": value, "answers": n} for n, value in points]
        connection.execute(insert(Measure), rows)
    audit_alone(site.project.store, CommandLine(), "invite", "annotator 1")
    correct(site.project.store, 5, 0, 4, "Grace Hopper", "Money that should come back is a refund.")
    return site


def test_a_score_that_waits_for_new_items_says_so(run_project, person):
    site = run_project(items=3)
    site.project.live.mkdir()
    score = {"accuracy": 1.0, "low": 0.4, "high": 1.0, "items": 4, "undecided": 0, "size": 300, "corrected": False}
    write_score(site.project.live, score | {"asked": 115, "answers": 900, "questions_for_a_point": None})
    owner = person().go(site.admin_link)
    said = "too early: 4 of 300 sampled items count so far: 115 are answered, some after new or skipped ones"
    owner.page.locator("#figures", has_text=said).wait_for()
    owner.page.locator("#accuracy-now", has_text="that are new or were skipped are asked about first").wait_for()


def test_every_tab_at_every_size(run_project, person):
    site = filled(run_project)
    owner = person(viewport={"width": 1440, "height": 900}, reduced_motion="reduce").go(site.admin_link)
    for size, (width, height) in SIZES.items():
        owner.page.set_viewport_size({"width": width, "height": height})
        for tab in TABS:
            owner.page.emulate_media(color_scheme="light")
            open_tab(owner, tab)
            wide = owner.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{tab} at {width}: {wide} wide"
            check(owner)
            if size == "wide":  # colours are the same at any size
                owner.page.emulate_media(color_scheme="dark")
                check(owner, only=["color-contrast"])
            owner.page.emulate_media(color_scheme="dark" if size == "tablet" else "light")
            owner.picture(f"owner-{tab}-{size}", full_page=size != "phone" and tab != "items")
        open_tab(owner, "items")
        owner.page.locator("#items button").nth(4).click()
        owner.page.wait_for_selector("#history li")
        check(owner)
        owner.picture(f"owner-item-{size}")
        owner.page.keyboard.press("Escape")


def test_a_correction_by_hand_and_two_reviewers(run_project, person):
    site = bank(run_project, items=6, overlap=1)
    answered(site, 6)
    ada = person().go(site.admin_link)
    ben = person().go(f"{site.url}/join#{People(site.project).admin_link('Ben', 'reviewer')}")
    for who in (ada, ben):
        who.tab("items")
        who.page.get_by_role("button", name="message 002", exact=True).click()
        who.page.wait_for_selector("#item[open]")
    ada.page.select_option("#correct-class", label="pin blocked")
    ada.page.fill("#correct-why", "It says so.")
    ada.press("Enter")
    ada.page.locator("#history li", has_text="corrected it to pin blocked: It says so.").wait_for()
    ben.page.select_option("#correct-class", label="exchange rate")
    ben.page.get_by_role("button", name="Correct", exact=True).click()
    ben.page.locator("#item-notice", has_text="said 'pin blocked' in the meantime (It says so.): look again").wait_for()
    assert ben.page.locator("#history li", has_text="corrected it to pin blocked").count() == 1, "and they see it"
    ben.page.get_by_role("button", name="Undo the correction").click()
    ben.page.locator("#history li", has_text="Ben took the correction back").wait_for()
    ben.page.select_option("#correct-class", label="None of the classes")
    ben.page.get_by_role("button", name="Correct", exact=True).click()
    ben.page.locator("#item-label .badge", has_text="Corrected: no class").wait_for()
    ben.page.fill("#comment-text", "A black page.")
    ben.press("Enter")
    ben.page.locator("#history li", has_text="commented").wait_for()
    ben.press("Escape")
    ben.page.locator("#items tr", has_text="Corrected: no class").wait_for()
    ben.page.get_by_label("Corrected", exact=True).check()
    ben.page.locator("#items-found", has_text="1 shown").wait_for()
    with site.project.store.read() as connection:
        assert connection.execute(select(Item.known).where(Item.id == 3)).scalar() == -1


def test_files_come_in(run_project, person):
    site = bank(run_project, items=6)
    answered(site, 6)
    owner = person().go(site.admin_link)
    owner.tab("data")
    table = io.StringIO()
    csv.writer(table).writerows([["item", "text"], *([f"new {i}", f"words {i}"] for i in range(300)), ["gold 1", "x"]])
    csv.writer(table).writerows([["empty", ""], *([f"message 00{i}", "x"] for i in range(5))])
    file = {"name": "more.csv", "mimeType": "text/csv", "buffer": table.getvalue().encode()}
    owner.page.set_input_files("#upload-file", file)
    owner.page.get_by_role("button", name="See what will happen").click()
    owner.page.locator("#upload-said", has_text="300 items will be added.").wait_for()
    there = "the project has an item of this name"
    lines = [
        f"row 302 (gold 1), row 304 (message 000), row 305 (message 001) and 3 more: {there}",
        "row 303 (empty): an empty text",
    ]
    assert owner.page.locator("#upload-said li").all_inner_texts() == lines
    owner.page.locator("p:text-is('7 left out:') + ul").wait_for()
    owner.page.get_by_role("button", name="Add items").click()
    owner.page.locator("#upload-said", has_text="300 items added.").wait_for()
    owner.page.locator("#upload-what").select_option("classes")
    owner.page.set_input_files("#upload-file", {"name": "c.txt", "mimeType": "text/plain", "buffer": b"Pin Blocked\n"})
    owner.page.get_by_role("button", name="See what will happen").click()
    owner.page.locator(
        "#upload-said", has_text="by capitals, spaces or zeros only: 'pin blocked' and 'Pin Blocked'"
    ).wait_for()
    assert owner.page.get_by_label("Column of texts").is_hidden()
    owner.page.get_by_role("button", name="Add classes").click()
    owner.page.locator("#upload-said", has_text="7 classes now.").wait_for()
    owner.page.get_by_label("Column of texts").wait_for()  # the form is one for items again


def test_what_was_done_on_one_tab_is_seen_on_the_others(run_project, person):
    site = bank(run_project, items=6, overlap=1, gold_every=1000)
    owner = person().go(site.admin_link)
    owner.tab("items")
    owner.page.locator("#items .badge", has_text="no answer yet").first.wait_for()
    owner.tab("settings")
    owner.tab("classes")
    owner.page.fill("#class-name", "lost PIN")
    owner.press("Enter")
    owner.page.locator("#class-said", has_text="lost PIN is on lists").wait_for()
    queue, ada = site.project.queue(), People(site.project).invite("Ada")[0]
    (held,) = queue.next(ada)
    queue.answer(ada, held.id, 0, held.shortlist[0], 1.0)
    owner.tab("settings")
    owner.page.locator("#set-pinned option", has_text="lost PIN").wait_for(state="attached")
    owner.page.fill("#set-title", "Written, not saved")
    owner.tab("items")
    owner.page.locator(f"#item-{held.item_id} .badge.accent").wait_for()
    for id, name in (("filter-class", "lost PIN"), ("correct-class", "lost PIN"), ("filter-person", "Ada")):
        assert owner.page.locator(f"#{id} option", has_text=name).count() == 1
    with owner.page.expect_response("**/settings"):
        owner.tab("settings")
    owner.settle()
    assert owner.page.input_value("#set-title") == "Written, not saved"


def test_classes_change(run_project, person):
    site = bank(run_project, items=6)
    answered(site, 6)
    owner = person().go(site.admin_link)
    owner.tab("classes")
    owner.page.get_by_role("button", name="Rename: pin blocked").click()
    assert owner.page.get_by_label("New name").input_value() == "pin blocked"
    check(owner)
    owner.page.keyboard.type("PIN blocked")  # over the old name, which is marked
    owner.press("Enter")
    owner.page.locator("#class-said", has_text="pin blocked is now called PIN blocked.").wait_for()
    owner.page.wait_for_function("() => document.activeElement?.ariaLabel === 'Rename: PIN blocked'")
    owner.page.get_by_role("button", name="Merge: top up failed").click()
    into = owner.page.get_by_label("Into which class")
    offered = ["Choose one", *CLASSES[:3], "PIN blocked", CLASSES[4]]
    assert into.locator("option").all_inner_texts() == offered, "by name"
    owner.page.locator("#ask-go").click()
    assert owner.page.locator("#ask[open]").count() == 1, "nothing was chosen"
    owner.page.locator("#ask-cancel").click()
    owner.page.wait_for_selector("#ask:not([open])", state="attached")
    assert owner.page.evaluate("document.activeElement.ariaLabel") == "Merge: top up failed"
    owner.press("Enter")
    into.select_option(label="exchange rate")
    check(owner)
    owner.page.locator("#ask-go").click()
    owner.page.locator("#classes tr", has_text="part of exchange rate").wait_for()
    owner.page.fill("#class-name", "lost PIN")
    owner.press("Enter")
    owner.page.get_by_role("button", name="Retire: lost PIN").click()
    assert owner.page.evaluate("document.activeElement.id") == "ask-cancel", "a key that bounces loses nothing"
    owner.press("Tab")
    owner.press("Enter")
    owner.page.locator("#classes tr", has_text="retired").wait_for()
    held: list[Any] = []
    owner.page.route("**/agreement", lambda route: held.append(route))  # the table comes when the person is elsewhere
    owner.page.get_by_role("button", name="Restore: lost PIN").click()
    owner.page.locator("#class-said", has_text="back in use").wait_for()
    owner.page.fill("#class-name", "Lost PIN")
    held[0].continue_()
    owner.page.unroute("**/agreement")
    owner.page.get_by_role("button", name="Rename: lost PIN").wait_for()
    assert owner.page.evaluate("document.activeElement.id") == "class-name", "who types goes on typing"
    owner.press("Enter")
    alike = "from the next question on. Probably a slip: classes that differ by capitals, spaces or zeros only"
    owner.page.locator("#class-said", has_text=alike).wait_for()
    with site.project.store.read() as connection:
        names = dict(connection.execute(select(LabelClass.name, LabelClass.merged_into)).all())
    assert names["top up failed"] == 2
    assert "PIN blocked" in names


def test_settings_backups_and_a_look_for_damage(run_project, person):
    site = bank(run_project, items=6)
    owner = person().go(site.admin_link)
    owner.tab("settings")
    owner.page.fill("#set-gold", "5")
    owner.press("Enter")
    owner.page.locator("#settings-said", has_text="Saved.").wait_for()
    owner.page.locator("#audit tr", has_text="change settings").wait_for()
    assert owner.page.locator("#set-model").is_hidden(), "chance chooses the lists"
    owner.page.select_option("#set-policy", "adaptive")
    owner.page.select_option("#set-pinned", "exchange rate")
    owner.page.uncheck("#set-score")
    owner.page.get_by_role("button", name="Save").locator("visible=true").click()
    owner.page.wait_for_function("() => document.querySelectorAll('#audit tr').length > 1")
    owner.page.locator("#settings-said", has_text="Saved.").wait_for()
    owner.page.reload()
    owner.page.wait_for_selector("#audit tr")
    assert owner.page.input_value("#set-pinned") == "exchange rate"
    assert (owner.page.input_value("#set-policy"), owner.page.is_checked("#set-score")) == ("adaptive", False)
    owner.page.get_by_role("button", name="Look for damage").click()
    owner.page.locator("#backup-said", has_text="No damage found.").wait_for()
    owner.page.get_by_role("button", name="Back up on the server").click()
    owner.page.locator("#backups li", has_text=".zip").wait_for()
    with owner.page.expect_download() as download:
        owner.page.get_by_role("link", name="Download a backup").click()
    assert zipfile.is_zipfile(download.value.path())


def test_an_item_of_each_kind_among_150_classes(run_project, person):
    names = [f"a class with a rather long name of its own, number {k}" for k in range(150)]
    site = run_project(items=3, kinds="text image audio", classes=names, size=150)
    ada, queue = People(site.project).invite("Ada")[0], site.project.queue()
    for _ in range(3):
        (q,) = queue.next(ada)
        queue.answer(ada, q.id, 0, 77, 2.0)
    owner = person().go(site.admin_link)
    owner.tab("items")
    owner.page.locator("#items button").first.click()
    shown = owner.page.locator("#item-shown")
    for size, (width, height) in SIZES.items():
        owner.page.set_viewport_size({"width": width, "height": height})
        for kind in ("p", "img", "audio"):
            shown.locator(kind).wait_for()
            owner.page.wait_for_function(
                """() => {
                  const made = document.querySelector("#item-shown > *");
                  return made.naturalWidth === 320 || made.duration === 0.5 || made.textContent === "Text number 0";
                }"""
            )
            owner.page.locator("#history li", has_text=f"Ada answered {names[77]} after 2.0 s").wait_for()
            for part in ("#item-close", "#correct-class", "#item-after"):  # the long list of what was shown is below
                box = owner.page.locator(part).bounding_box()
                assert box["x"] >= 0, (part, size)
                assert box["x"] + box["width"] <= width, (part, size)
            owner.page.locator("#item-after" if kind != "audio" else "#item-close").click()
        owner.page.locator("#items button").first.click()
        shown.locator("p").wait_for()
        check(owner)
    assert owner.page.locator("#correct-class option").count() == 152


def test_people_are_sorted_and_searched_when_asked(run_project, person):
    site = bank(run_project, items=24)
    answered(site, 24)
    owner = person().go(site.admin_link)
    owner.tab("people")
    rows = owner.page.locator("#people tr:visible th")
    owner.page.locator("#people tr >> nth=3").wait_for()
    assert rows.all_inner_texts() == NAMES, "as they came"
    owner.page.get_by_role("button", name="Name", exact=True).click()
    assert rows.all_inner_texts() == sorted(NAMES)
    owner.page.get_by_role("button", name="Median s").click()
    figures = [float(text) for text in owner.page.locator("#people td:nth-child(5)").all_inner_texts()]
    assert figures == sorted(figures, reverse=True)
    assert len(set(figures)) > 2
    owner.press("Enter")  # the other way round
    assert owner.page.locator("#people-head [aria-sort=ascending]").inner_text() == "Median s"
    assert [float(text) for text in owner.page.locator("#people td:nth-child(5)").all_inner_texts()] == sorted(figures)
    owner.page.get_by_label("Search people").fill("KIM")
    assert rows.all_inner_texts() == ["Dae-jung Kim"]
    owner.renewed("/api/v1/status")
    assert rows.all_inner_texts() == ["Dae-jung Kim"]
    check(owner)


def test_a_program_gets_a_token_and_people_and_items_are_erased(run_project, person):
    site = bank(run_project, items=6, overlap=1)
    answered(site, 6)
    owner = person().go(site.admin_link)
    owner.tab("people")
    owner.page.fill("#staff-name", "nightly export")
    owner.page.select_option("#staff-role", "program")
    owner.page.get_by_role("button", name="Make a token").click()
    token = owner.page.locator("#made-token").inner_text()
    header = {"Authorization": f"Bearer {token}"}
    assert owner.context.request.get(f"{site.url}/api/v1/status", headers=header).json()["items"] == 6
    owner.page.get_by_role("button", name="End: nightly export").click()
    owner.page.get_by_role("button", name="End: nightly export").wait_for(state="detached")
    stranger = person().context.request
    assert stranger.get(f"{site.url}/api/v1/status", headers=header).status == 401
    owner.page.get_by_role("button", name=f"Remove: {NAMES[0]}").click()
    owner.page.locator("#ask-cancel").click()
    owner.page.get_by_role("button", name=f"Remove: {NAMES[0]}").click()
    owner.page.locator("#ask-go").click()
    owner.page.get_by_role("button", name=f"Erase: {NAMES[0]}").click()
    owner.page.locator("#ask-go").click()
    owner.page.locator("#people tr", has_text=NAMES[0]).wait_for(state="detached")
    owner.tab("items")
    owner.page.get_by_role("button", name="message 002", exact=True).click()
    owner.page.get_by_role("button", name="Erase", exact=True).click()
    check(owner)
    owner.page.locator("#ask-go").click()
    owner.page.get_by_role("button", name="message 002", exact=True).wait_for(state="detached")
    with site.project.store.read() as connection:
        names = connection.execute(select(Item.name)).scalars().all()
        people = connection.execute(select(Annotator.name).where(Annotator.active)).scalars().all()
    assert "message 002" not in names
    assert NAMES[0] not in people


def open_tab(owner, tab: str) -> None:
    owner.page.locator(f"#tabs a[href='/admin#{tab}']").click()
    shown = {
        **{"overview": "#work svg", "people": "#people tr", "items": "#items tr", "classes": "#confusion .bar"},
        **{"instructions": "#instructions:enabled", "data": "#exports a", "settings": "#audit tr"},
    }
    owner.page.wait_for_selector(shown[tab])
    owner.settle()
