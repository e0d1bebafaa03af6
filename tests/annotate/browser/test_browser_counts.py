"""The admin's table of classes: also a thousand of them, by keyboard, for a screen reader."""

import pytest

from shortlist.annotate.project.people import People

from .projects import stored
from .test_browser_axe import check

pytestmark = pytest.mark.browser


def test_how_often_each_of_a_thousand_classes_was_picked(run_project, person):
    site = run_project(classes=[f"class {k}" for k in range(1000)], size=3, items=12)
    ada = People(site.project).invite("ada")[0]
    queue = site.project.queue()
    picked: dict[str, int] = {}
    for turn in range(6):
        (q,) = queue.next(ada)
        queue.answer(ada, q.id, 0, q.shortlist[0] if turn % 2 else None, 1.0)
        if turn % 2:
            picked[q.names[0]] = picked.get(q.names[0], 0) + 1
    admin = person().go(site.admin_link)
    admin.page.wait_for_selector("#figures div")
    assert admin.page.locator("#classes tr").count() == 0, "nobody looks: nothing is counted"
    admin.tab_to("#tabs a[href$='#classes']")
    admin.press("Enter")
    admin.page.wait_for_selector("#classes tr")
    read = "rows => rows.map((row) => [...row.cells].slice(0, 3).map((cell) => cell.textContent))"
    rows = admin.page.locator("#classes tr").evaluate_all(read)
    assert len(rows) == 1001
    assert rows[0] == ["None", "3", "50.0 %"]
    top = rows[1 : len(picked) + 1]
    assert {name: int(times) for name, times, _ in top} == picked
    assert {times for _, times, _ in rows[len(picked) + 1 :]} == {"0"}
    table = admin.page.get_by_role("region", name="Table of classes")
    assert table.evaluate("box => box.clientHeight < 600 && box.scrollHeight > 10000")
    assert table.get_by_role("rowheader", name="class 7", exact=True).count() == 1
    table.evaluate("box => box.scrollTo(0, 5000)")
    admin.renewed("/api/v1/status")  # somebody who has scrolled stays where they are
    assert table.evaluate("box => box.scrollTop") == 5000
    admin.page.fill("#class-search", "class 77")
    names = admin.page.locator("#classes tr th").all_inner_texts()
    assert set(names) == {"class 77", *(f"class 77{k}" for k in range(10))}
    check(admin)
    assert len(stored(site.project)) == 6
