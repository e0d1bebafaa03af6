"""axe finds no violation on any page, light and dark."""

import pytest

from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.people import People
from shortlist.annotate.project.sources import Source

pytestmark = pytest.mark.browser


LOOK = """rules => axe.run({ resultTypes: ["violations"], ...rules }).then(({ violations }) =>
  violations.flatMap(({ id, help, nodes }) => nodes.map((one) => [id, help, one.html, one.failureSummary])))"""


STYLE = """rules => {
  document.adoptedStyleSheets = [new CSSStyleSheet()];
  document.adoptedStyleSheets[0].replaceSync(rules);
}"""


def check(who, only=None) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    who.page.evaluate(STYLE, "* { transition: none !important; }")  # what fades has other colours on the way
    who.settle()
    if not who.page.evaluate("'axe' in window"):
        who.page.evaluate(axe.Axe().axe_script)
    found = who.page.evaluate(LOOK, {"runOnly": only} if only else {})
    who.page.evaluate(STYLE, "")
    assert found == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_violation(run_project, person, scheme):
    site = run_project(items=3, kinds="text image audio", size=4, overlap=2, title="Animals")
    add_items(site.project, [Source("gold", "gold", text="Text", gold="cat")])
    auth = People(site.project)

    ada = person(color_scheme=scheme).go(f"{site.url}/join#wrong")
    ada.page.wait_for_selector("h1:has-text('does not work')")
    check(ada)
    ada.go("about:blank")
    ada.go(f"{site.url}/join#{auth.invite('ada')[1]}")
    ada.ready()
    background = ada.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(243, 244, 248)") == (scheme == "light")
    for place in range(3):
        check(ada)
        if place < 2:
            ada.decide("1")
    ada.context.set_offline(True)
    ada.press("1")
    ada.page.wait_for_selector("#saved[data-state=waiting]")
    check(ada)  # with the warning
    ada.context.set_offline(False)
    ada.wait_saved()
    ada.press("0")
    ada.settle()
    ada.wait_saved()
    check(ada)

    admin = person(color_scheme=scheme).hurry(3000).go(site.admin_link)
    admin.page.wait_for_selector("#figures div")
    client = admin.context.request
    header = {"X-Shortlist": "1"}
    for value in (0.2, 0.6, 0.8):
        assert client.post(f"{site.url}/api/v1/measures", data={"name": "accuracy", "value": value}, headers=header).ok
    admin.page.wait_for_selector("#curve svg")
    check(admin)
    admin.tab("people")
    admin.tab_to("#name")
    admin.page.keyboard.type("ben")
    admin.press("Enter")
    admin.page.wait_for_selector("#made-link")
    check(admin)
