"""The report's page in a real browser: dark and light, wide and narrow."""

import os
import shutil
from dataclasses import replace

import pytest

from shortlist.study.plan.grid import Wanted, planned
from shortlist.study.plan.recipes import Recipes
from shortlist.study.report.page import write_report
from shortlist.study.run.ledger import Ledgers

from ..conftest import fake_row

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WIDE, NARROW = 1280, 390
SOURCE = "search: best of 19 points, mean held-out accuracy 90.11 at sizes 5 and 3 (for sl+aug on fashion)"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Opens the report of a small study at a width, in light or dark."""
    api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    folder = tmp_path_factory.mktemp("page")
    lines = ("sl", "rc", "likelihood", "sl+aug", "likelihood+aug+ema", "ol")
    wanted = [Wanted((table,), ("fashion",), methods=lines, trials=1) for table in ("table1", "table2", "beyond")]
    ledger = Ledgers(folder).of("fashion")
    for run in (run for part in wanted for run in planned(part, Recipes())):
        ledger.append(fake_row(replace(run, source=SOURCE)))
    address = write_report(folder).page.as_uri()
    with api.sync_playwright() as playwright:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--disable-gpu", *sandbox])

        def opened(width=WIDE, scheme="light"):
            made = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
            made.goto(address)
            return made

        yield opened
        browser.close()


def test_every_part_is_in_the_contents(page):
    shown = page()
    names = shown.eval_on_selector_all("nav a", "links => links.map(a => a.hash)")
    assert [name for name in names if shown.locator(name).count() != 1] == []
    parts = shown.eval_on_selector_all("h2", "all => all.map(h => [h.textContent, h.id])")
    assert {"Table 1 at a glance", "Beyond the paper", "What was to be shown"} <= {text for text, _ in parts}
    assert [text for text, name in parts if text != "Tables" and f"#{name}" not in names] == []
    in_page = shown.evaluate("names => names.map(n => document.querySelector(n).offsetTop)", names)
    assert in_page == sorted(in_page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_dark_where_the_reader_wants_it_and_pictures_on_white(page, scheme):
    shown = page(scheme=scheme)

    def brightness(where, what):
        return shown.eval_on_selector(
            where, f"e => Math.max(...getComputedStyle(e).{what}.match(/[0-9.]+/g).slice(0, 3).map(Number))"
        )

    assert brightness("figure", "backgroundColor") == 255
    for where in ("body", "tr.group th"):
        ground, ink = brightness(where, "backgroundColor"), brightness(where, "color")
        assert (ground < 64 and ink > 192) if scheme == "dark" else (ground > 192 and ink < 64)


def test_settings_are_whole_on_a_usual_screen(page):
    box = page().locator("[aria-label=Settings]")
    assert box.evaluate("e => e.scrollWidth <= e.clientWidth")


def test_a_small_screen_scrolls_pictures_instead_of_shrinking_them(page):
    shown = page(NARROW)
    assert shown.evaluate("document.documentElement.scrollWidth") == NARROW
    for figure in shown.locator("figure").all():
        assert figure.evaluate("e => e.scrollWidth > e.clientWidth")
        heights = "e => [...e.querySelectorAll('text')].map(t => t.getBoundingClientRect().height)"
        assert min(figure.evaluate(heights)) > 11
