"""What a reviewer sees on the owner's pages: what they may do, and nothing that the server would refuse."""

import pytest

from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.people import People
from shortlist.annotate.project.review.class_changes import retire_class

from .test_browser_axe import check
from .test_browser_owner import answered, bank

pytestmark = pytest.mark.browser
TABS = {"overview": "Overview", "people": "People", "items": "Items and answers", "classes": "Classes"}
TABS |= {"instructions": "Instructions"}


@pytest.fixture
def site(run_project):
    site = bank(run_project, items=12)
    answered(site, 12)
    add_classes(site.project, ["lost PIN"])
    retire_class(site.project, 6)
    people = People(site.project)
    people.remove(people.invite("Eve")[0])
    return site


def come(site, person, name, role):
    return person().go(f"{site.url}/join#{People(site.project).admin_link(name, role)}")


def pressed(who, place: str) -> set[str]:
    """What can be pressed there, by its visible words; headings that sort a table left out."""
    found = who.page.locator(f"{place} :is(button, [download], input[type=file]):visible:not(thead *)")
    return {text.strip() for text in found.all_inner_texts()}


def test_a_reviewer_is_offered_what_they_may_do(site, person):
    rita = come(site, person, "Rita", "reviewer")
    refused = []
    rita.page.on("response", lambda reply: refused.append(reply.url) if reply.status == 403 else None)
    rita.page.wait_for_selector("#work svg")
    assert rita.page.locator("#tabs a:visible").all_inner_texts() == [*TABS.values()]
    for tab in TABS:
        rita.tab(tab)
        check(rita)
        assert tab == "items" or pressed(rita, "main") == set(), tab
    assert not rita.page.locator("#instructions").is_editable()
    rita.tab("classes")
    assert rita.page.locator("#class-head th:visible").all_inner_texts()[-1] == "Known"
    rita.tab("items")
    rita.page.get_by_role("button", name="message 002", exact=True).click()
    rita.page.wait_for_selector("#item[open]")
    assert pressed(rita, "#item") == {"Close", "Correct", "Comment", "Previous", "Next"}
    rita.page.select_option("#correct-class", label="pin blocked")
    rita.page.get_by_role("button", name="Correct", exact=True).click()
    rita.page.locator("#history li", has_text="corrected it to pin blocked").wait_for()
    rita.go(f"{site.url}/admin#settings")
    rita.page.wait_for_selector("#tab-overview:not([inert])")
    assert refused == []


def test_an_owner_is_offered_the_rest(site, person):
    olga = come(site, person, "Olga", "owner")
    olga.tab("people")
    assert {"New link", "Remove", "Invite again", "Erase", "Make a link"} <= pressed(olga, "#tab-people")
    olga.page.set_viewport_size({"width": 1280, "height": 800})
    table = olga.page.locator("#people-table")
    assert table.evaluate("table => table.scrollWidth <= table.clientWidth"), "no button is out of sight"
    left = {olga.page.locator(one).first.bounding_box()["x"] for one in ("header img", ".card:visible")}
    assert len(left) == 1, "bar and cards begin at one line"
    olga.tab("classes")
    assert {"Rename", "Retire", "Restore", "Add"} <= pressed(olga, "#tab-classes")
    for tab in ("data", "settings"):
        olga.tab(tab)


def test_a_reviewer_ends_their_own_sessions(site, person):
    rita, elsewhere = (come(site, person, "Rita", "reviewer") for _ in range(2))
    come(site, person, "Olga", "owner").page.wait_for_selector("#work svg")
    elsewhere.page.wait_for_selector("#work svg")
    rita.tab("people")
    rita.page.get_by_role("heading", name="Where you are signed in").wait_for()
    rows = rita.page.locator("#sessions tbody tr")
    assert rows.count() == 2, "not that of the owner"
    rita.page.get_by_role("button", name="End: Rita").click()
    rita.page.wait_for_function("() => document.querySelectorAll('#sessions tbody tr').length === 1")
    elsewhere.page.reload()
    elsewhere.page.get_by_role("heading", name="You are signed out").wait_for()
    check(elsewhere)
    assert not elsewhere.page.locator("#tabs").is_visible()
    elsewhere.page.get_by_role("link", name="Sign in with a link").click()
    elsewhere.page.wait_for_url("**/join")


def test_an_annotator_has_no_business_there(site, person):
    ada = person().go(f"{site.url}/join#{People(site.project).invite('Ada B')[1]}")
    ada.ready()
    ada.go(f"{site.url}/admin")
    ada.page.wait_for_url(site.url + "/")
    ada.ready()
