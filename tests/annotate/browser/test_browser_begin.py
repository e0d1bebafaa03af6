"""An owner who never opens a terminal: from a CSV to labels and a model's accuracy, all in the browser."""

import csv
import re
import signal
import subprocess
from pathlib import Path

import pytest

from ..running import COMMAND
from ..test_first_steps import WORDS
from .person import PATIENCE
from .projects import picture
from .test_browser_axe import check

pytestmark = pytest.mark.browser
COUNT = 100  # items: from so many on there is a score


def test_from_a_file_to_labels_and_a_models_accuracy(person, tmp_path):
    path = tmp_path / "customer_messages.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["Ticket ID", "day", "message"])
        rows.writerows(
            [f"T{i}", "Monday", f"{list(WORDS.values())[i % 3]}, please help, case {i}"] for i in range(COUNT)
        )
    process = subprocess.Popen([*COMMAND, "--port", "0"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        owner = person(viewport={"width": 1000, "height": 900}).go(process.stdout.readline().split()[-1])
        check(owner)
        owner.page.set_input_files("#file", path)
        owner.page.locator("#read", has_text=f"{COUNT} rows").wait_for()
        assert "#" not in owner.page.url
        assert owner.page.locator("#title").input_value() == "customer messages"
        named = owner.page.locator("#item-column")
        assert named.input_value() == "Ticket ID"
        named.select_option("day")
        owner.page.locator("#notice", has_text="column 'day' cannot name the rows").wait_for()
        named.select_option("Ticket ID")
        owner.page.locator("#notice").wait_for(state="hidden")
        (tmp_path / "excel.csv").write_bytes("message;day\nGrüße;Montag\n".encode("cp1252"))
        owner.page.set_input_files("#file", tmp_path / "excel.csv")
        owner.page.locator("#notice", has_text="excel.csv is not UTF-8 text").wait_for()
        assert owner.page.get_by_role("button", name="Make the project").is_hidden(), "of the file before"
        owner.page.set_input_files("#file", path)
        owner.page.locator("#wishes").wait_for()
        assert owner.page.locator("#notice").is_hidden()
        owner.page.set_viewport_size({"width": 1000, "height": 600})
        owner.page.get_by_role("button", name="Make the project").click()
        refused = owner.page.locator("#notice", has_text="0 classes: expected at least two")
        refused.wait_for()
        box = refused.bounding_box()
        assert 0 <= box["y"] < 600, "in view of whoever pressed the button at the foot of the page"
        owner.page.set_viewport_size({"width": 1000, "height": 900})
        owner.page.fill("#classes", "\n".join(WORDS))
        owner.page.locator("#guesses li").first.wait_for()
        owner.page.locator("#counted", has_text="3 classes").wait_for()
        owner.settle()
        check(owner)
        owner.picture("begin", full_page=True)
        owner.page.fill("#size", "2")
        owner.page.get_by_role("button", name="Make the project").click()
        owner.page.locator("#ready").wait_for()
        check(owner)
        with owner.context.expect_page() as opened:
            owner.page.locator("#to-you").click()
        owner.page, page = opened.value, owner.page
        owner.page.set_default_timeout(PATIENCE)
        answered = answer_all(owner)
        with page.context.expect_page() as opened:
            page.locator("#to-admin").click()
        opened.value.wait_for_url("**/admin*")
        page.locator("#to-admin").evaluate("link => { link.target = '_self'; link.click(); }")  # once more
        page.wait_for_url("**/admin*")
        page.get_by_text(re.compile("model right", re.IGNORECASE)).first.wait_for(timeout=3 * PATIENCE)
        assert answered >= COUNT
        reply = page.context.request.get(f"{page.url.split('/admin')[0]}/api/v1/status").json()
        assert reply["score"]["accuracy"] > 0.8
        page.locator("#tabs a[href$='#data']").click()
        page.locator("#upload-text[placeholder='message']").wait_for()
        assert page.locator("#upload-item").get_attribute("placeholder") == "Ticket ID"
        labels = page.context.request.get(f"{page.url.split('/admin')[0]}/api/v1/export/labels.csv").text()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
        process.stdout.close()
    right = list(csv.DictReader(labels.splitlines()))
    assert len(right) == COUNT
    for row in right:
        assert row["label" if "label" in row else "class"] == list(WORDS)[int(row["item"].removeprefix("T")) % 3]
    assert Path(tmp_path / "customer-messages" / "project.json").is_file()


def test_from_a_folder_of_pictures_to_a_question(person, tmp_path):
    for name in ("robin", "wren"):
        (tmp_path / "garden_birds" / name).mkdir(parents=True)
        for i in range(4):
            (tmp_path / "garden_birds" / name / f"{i}.png").write_bytes(picture(i))
    (tmp_path / "garden_birds" / "notes.txt").write_text("no picture")
    (tmp_path / "garden_birds" / "wren" / "cut.png").write_bytes(picture(0)[:200])
    process = subprocess.Popen([*COMMAND, "--port", "0"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        owner = person(viewport={"width": 360, "height": 740}).go(process.stdout.readline().split()[-1])
        owner.page.set_input_files("#whole", tmp_path / "garden_birds")
        owner.page.locator("#read", has_text=re.compile("^9 pictures$")).wait_for()
        assert owner.page.locator("#title").input_value() == "garden birds"
        assert owner.page.locator("#classes").input_value() == "robin\nwren"
        assert "nothing is left to ask" in owner.page.locator("#labelled").inner_text()
        assert owner.page.get_by_role("button", name="Make the project").is_disabled()
        assert owner.page.locator("#text-column").is_hidden()
        check(owner)
        owner.page.get_by_role("button", name="Ask about all of them").click()
        owner.page.locator("#labelled:text-is('')").wait_for(state="attached")
        assert owner.page.locator("#classes").input_value() == "robin\nwren"
        assert owner.page.get_by_role("button", name="Make the project").is_enabled()
        assert owner.page.get_by_role("button", name="Ask about all of them").is_hidden()
        owner.page.locator("#label-column").select_option("folder")
        owner.page.locator("#labelled", has_text="nothing is left to ask").wait_for()
        owner.page.locator("#label-column").select_option("")
        owner.page.locator("#counted", has_text="0 classes").wait_for()
        owner.page.fill("#classes", "robin\nwren\nRobin")
        owner.page.locator("#alike", has_text="“robin” – “Robin”").wait_for()
        owner.page.fill("#classes", "robin\nwren\nother")
        owner.page.locator("#counted", has_text="3 classes").wait_for()
        owner.page.get_by_role("button", name="Make the project").click()
        owner.page.locator("#ready").wait_for()
        assert owner.page.locator("#left-out li").all_inner_texts() == ["wren/cut.png: a broken image (OSError)"]
        assert owner.page.locator("#again").inner_text() == f"shortlist annotate serve {tmp_path / 'garden-birds'}"
        check(owner)
        owner.page.locator("#to-you").evaluate("link => { link.target = '_self'; link.click(); }")
        owner.ready()
        assert owner.page.locator("#item img").evaluate("image => image.naturalWidth") == 320
        assert sorted(owner.choices()) == ["other", "robin", "wren"]
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
        process.stdout.close()


def answer_all(owner) -> int:
    """Read, think, press a key; None where the right class is not on the list."""
    count = 0
    while True:
        owner.page.wait_for_function(
            "() => document.getElementById('item')?.dataset.ready || document.querySelector('#item .state .good')"
        )
        if owner.page.locator("#item .state").count():
            return count
        text, before = owner.page.locator("#item .text").inner_text(), owner.ready()
        name = next(name for name, words in WORDS.items() if words in text)
        owner.press(owner.key_for(name) if name in owner.choices() else "0")
        owner.page.wait_for_function("before => document.getElementById('item').dataset.ready !== before", arg=before)
        count += 1
