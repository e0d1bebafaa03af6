"""The demo's page in a real browser, wide and on a phone."""

import json
import os
import shutil
from pathlib import Path

import pytest

from shortlist.demo.page import render_page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FIGURES = json.loads((Path(__file__).parents[1] / "results" / "demo.json").read_text())
WIDE, PHONE = 1280, 390


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Opens the page, without its pictures, at a width."""
    api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    file = tmp_path_factory.mktemp("demo") / "report.html"
    file.write_text(render_page(FIGURES, "", ""))
    with api.sync_playwright() as playwright:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--disable-gpu", *sandbox])

        def at(width):
            page = browser.new_page(viewport={"width": width, "height": 800})
            page.goto(file.as_uri())
            return page

        yield at
        browser.close()


def test_on_a_wide_screen_no_table_is_cut(opened):
    page = opened(WIDE)
    assert page.locator(".scroll").count() == 2
    for box in page.locator(".scroll").all():
        assert box.evaluate("box => box.scrollWidth <= box.clientWidth")


def test_on_a_phone_the_table_scrolls_and_its_caption_stays_in_view(opened):
    page = opened(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE, "the page itself does not scroll sideways"
    box, caption = page.locator("[aria-label=Results]"), page.locator("caption")
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    begun = caption.bounding_box()
    box.evaluate("box => box.scrollTo(box.scrollWidth, 0)")
    assert box.evaluate("box => box.scrollLeft") > 0
    for place in (begun, caption.bounding_box()):
        assert place["x"] >= 0
        assert place["x"] + place["width"] <= PHONE, "read without scrolling"
