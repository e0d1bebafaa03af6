"""Who is who, in a real browser: no silent change of person, names of any length, faults told from lost networks."""

from shortlist.annotate.project.people import People, join_link

from .test_browser_axe import check


def test_a_page_elsewhere_cannot_make_somebody_another_person(run_project, person):
    site = run_project(items=6)
    people = People(site.project)
    vic, mallory = (join_link(site.url, people.invite(name)[1]) for name in ("Vic", "Mallory"))
    victim = person().go(vic)
    victim.ready()
    # as a redirect or a click on somebody's page does it
    victim.page.goto("about:blank")
    victim.page.evaluate("address => location.assign(address)", mallory)
    victim.page.wait_for_selector("#swap")
    said = "You are signed in as Vic. This link signs somebody else in here."
    victim.page.locator("#status", has_text=said).wait_for()
    assert victim.page.evaluate("document.activeElement.id") == "stay", "what a hasty Enter does"
    victim.press("Enter")
    victim.page.wait_for_url(site.url + "/")
    victim.ready()
    assert victim.page.locator("#who").inner_text() == "Vic"
    victim.go(mallory)
    victim.page.locator("#swap").click()
    victim.page.wait_for_url(site.url + "/")
    victim.ready()
    assert victim.page.locator("#who").inner_text() == "Mallory"


def test_an_owners_link_that_was_used_leads_its_owner_on(run_project, person):
    site = run_project(items=3)
    owner, ada = person().go(site.admin_link), person().go(join_link(site.url, People(site.project).invite("Ada")[1]))
    owner.page.wait_for_url("**/admin")
    ada.ready()
    for who, leads_on in ((owner, True), (ada, False)):
        who.go("about:blank").go(site.admin_link)
        who.page.get_by_role("heading", name="This link does not work").wait_for()
        who.page.wait_for_load_state("networkidle")
        assert who.page.get_by_role("link", name="Manage the project").is_visible() == leads_on
    check(owner)
    owner.page.get_by_role("link", name="Manage the project").click()
    owner.page.wait_for_selector("#tab-overview:not([inert])")


def test_a_long_name_leaves_the_buttons_on_the_screen(run_project, person):
    site = run_project(items=3)
    People(site.project).invite("Wolfeschlegelsteinhausenbergerdorff" * 12)
    admin = person(viewport={"width": 1280, "height": 800}).go(site.admin_link)
    admin.tab("people")
    admin.page.wait_for_selector("#people button")
    box = admin.page.locator("#people button").nth(1).bounding_box()
    assert box["x"] + box["width"] <= 1280
    table = admin.page.get_by_role("region", name="Table of annotators")
    assert table.evaluate("element => element.scrollWidth <= element.clientWidth")
    admin.page.set_viewport_size({"width": 390, "height": 800})
    name = admin.page.locator("#people th").bounding_box()
    assert name["width"] < 0.5 * 390, "figures show beside it"
    assert name["height"] < 100


def test_a_server_that_fails_is_not_called_a_lost_connection(run_project, person):
    site = run_project(items=6)
    ada = person().go(join_link(site.url, People(site.project).invite("Ada")[1]))
    ada.ready()
    reply = {"status": 503, "content_type": "application/json", "body": '{"code": "storage", "message": "full"}'}
    ada.page.route("**/api/v1/answers", lambda route: route.fulfill(**reply))
    ada.decide("0")
    ada.page.wait_for_function("document.getElementById('notice').textContent.startsWith('The server has a problem.')")
    ada.page.unroute("**/api/v1/answers")
    ada.wait_saved()
