"""One browser, several projects: on ports of one machine, or one after another at the same address."""

from PIL import Image

from shortlist.annotate.project.people import People

WIDTH = "image => image.naturalWidth"


def test_two_projects_on_one_machine_do_not_sign_each_other_out(run_project, person):
    """Browsers send the cookies of a host to all of its ports."""
    one, two = run_project(title="One"), run_project(title="Two")
    me = person()
    for site in (one, two):
        me.go(site.admin_link).page.wait_for_url("**/admin")
        me.go(f"{site.url}/join#{People(site.project).invite('me')[1]}").ready()
    for site, title in ((one, "One"), (two, "Two")):
        me.go(f"{site.url}/admin").page.locator("#title", has_text=title).wait_for()
        assert me.page.title() == f"{title} · Admin · Shortlist"
        me.go(site.url).ready()
        assert me.page.locator("#title").inner_text() == title
        assert me.page.title() == f"{title} · Shortlist", "what the tab says"


def test_a_picture_of_another_project_at_the_same_address_is_not_shown(run_project, person):
    """The demo first, then one's own project: both at port 8080, both with an item 1, which browsers keep for a day."""
    one, two = (run_project(kinds="image", items=1) for _ in range(2))
    (picture,) = two.project.media.rglob("*.png")
    Image.new("RGB", (100, 80)).save(picture)
    me = person()
    widths = []
    for site in (one, two):
        for running in (one, two):
            running.kill()
        site.port = one.port
        site.start()
        me.go(f"{site.url}/join#{People(site.project).invite('me')[1]}").ready()
        widths.append(me.page.locator("#item img").evaluate(WIDTH))
    assert widths == [320, 100]
