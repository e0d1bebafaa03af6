"""The whole way of the issue: admin link, invite, 20 answers by keyboard, reload, undo, skip, export, train."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from shortlist import StochasticLabels
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.sources import find_sources

from .projects import DIGITS, digit_pictures, item_name, stored

pytestmark = pytest.mark.browser


def test_the_whole_way_by_keyboard(run_project, person, tmp_path):
    truth = digit_pictures(tmp_path / "digits", 40)
    site = run_project(items=0, classes=list(DIGITS), size=5, title="Digits")
    add_items(site.project, find_sources(tmp_path / "digits"), strict=True)

    # Both browsers are at ordinary windows; the admin's link works once.
    admin = person().go(site.admin_link)
    admin.page.wait_for_url("**/admin")
    assert "#" not in admin.page.url
    admin.tab("people")
    admin.tab_to("#name")
    admin.page.keyboard.type("ada")
    admin.press("Enter")
    link = admin.page.locator("#made-link").inner_text()
    admin.page.locator("#link", has_text="opens on this machine only").wait_for()

    ada = person().go(link)
    ada.page.wait_for_url(site.url + "/")
    ada.ready()
    kinds = {"class": 0, "none": 0}
    for number in range(20):
        if number == 7:  # a reload gives the same question with the same shortlist
            ada.wait_saved()
            before = ada.ready(), ada.choices()
            ada.page.reload()
            assert (ada.ready(), ada.choices()) == before
        if number == 12:  # undo, also across a reload
            ada.wait_saved()
            ada.page.reload()
            ada.ready()
            ada.decide("z")
            assert ada.ready().endswith(".1")
            ada.decide(right_key(ada, site, truth))
        ada.decide(right_key(ada, site, truth, kinds))
    assert kinds["none"] > 0
    assert kinds["class"] > 0
    before = ada.ready(), ada.choices()
    ada.decide("0")  # a slip of the finger, taken back at once
    ada.decide("z")
    assert ada.choices() == before[1]
    ada.decide("s")  # skip is not None
    ada.wait_saved()

    rows = stored(site.project)
    live = {row["id"] for row in rows if row["kind"] == "answer"} - {
        row["id"] for row in rows if row["kind"] == "answer" and undone(row, rows)
    }
    assert len(live) == 20
    assert [row["kind"] for row in rows].count("undo") == 2
    assert [row["kind"] for row in rows].count("skip") == 1
    assert all(0 < row["seconds"] < 60 for row in rows if row["kind"] == "answer")

    admin.page.reload()
    admin.page.wait_for_function("() => document.getElementById('people').textContent.includes('20')")
    admin.picture("admin", full_page=True)
    admin.tab("data")
    admin.page.wait_for_selector("#exports a")
    admin.tab_to("a[href$='answers.parquet']")
    with admin.page.expect_download() as download:
        admin.press("Enter")
    answers = tmp_path / "answers.parquet"
    download.value.save_as(answers)
    labels = StochasticLabels.read(answers)
    assert len(labels.answer) == 20
    for item, answer in zip(labels.items, labels.answer, strict=True):
        assert answer == -1 or labels.class_names[answer] == truth[str(item)]
    train(tmp_path / "digits", answers, tmp_path / "run")


def right_key(who, site, truth: dict[str, str], kinds: dict[str, int] | None = None) -> str:
    """Look at the picture, think, and find the key on the button."""
    source = who.page.locator("#item img").get_attribute("src")
    name = truth[item_name(site.project, int(source.rsplit("/", 1)[1].split("?")[0]))]
    shown = name in who.choices()
    if kinds is not None:
        kinds["class" if shown else "none"] += 1
    return who.key_for(name) if shown else "0"


def undone(row, rows) -> bool:
    return any(
        other["kind"] == "undo" and (other["question_id"], other["attempt"]) == (row["question_id"], row["attempt"])
        for other in rows
    )


def train(images: Path, answers: Path, out: Path) -> None:
    command = [sys.executable, "-m", "shortlist", "train", str(images), "--labels", str(answers), "--out", str(out)]
    command += ["--epochs", "2", "--device", "cpu", "--holdout", "0", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["epochs"] == 2
    assert (out / "card.md").is_file()
