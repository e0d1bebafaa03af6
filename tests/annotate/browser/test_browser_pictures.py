"""The pictures of the docs. Only where they are wanted:

SHORTLIST_SCREENSHOTS=docs/images pytest tests/annotate/browser/test_browser_pictures.py
"""

import math
import os
import random
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFilter

from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.people import People
from shortlist.annotate.project.project import Project, Settings
from shortlist.annotate.project.sources import Source

from ..running import COMMAND
from .conftest import Running

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif("SHORTLIST_SCREENSHOTS" not in os.environ, reason="for SHORTLIST_SCREENSHOTS=docs/images"),
]
WIDE = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
BIRDS = {
    "robin": "An orange breast and face, a brown back.",
    "wren": "Very small and round, the tail cocked up.",
    "great tit": "A black cap, white cheeks, a yellow belly with a black stripe.",
    "blackbird": "Black with a yellow bill; females are brown.",
    "goldfinch": "A red face, a yellow band on black wings.",
    "dunnock": "Streaked brown, the head and breast lead grey.",
    "blue tit": "A blue cap, a yellow belly.",
}
TOPICS = {
    "card_arrival": "It was ordered and has not come yet.",
    "lost_or_stolen_card": "It is gone, or somebody took it.",
    "card_linking": "It is here and is to be added to the app.",
    "cash_withdrawal_charge": "A fee at a cash machine.",
    "exchange_rate": "Which rate is used, and when.",
    "pin_blocked": "Too many wrong tries.",
    "transfer_timing": "When it will arrive.",
}
MESSAGE = "I ordered my new card over a week ago and it still has not come. Should I be worried?"


def drawn_bird(path: Path, seed: int) -> None:
    """A robin on a branch, drawn here: it belongs to nobody."""
    dice, (w, h), s = random.Random(seed), (1200, 900), 2
    image = Image.new("RGB", (w * s, h * s))
    pen = ImageDraw.Draw(image)
    for y in range(h * s):
        t = y / (h * s)
        pen.line((0, y, w * s, y), fill=(int(186 + 40 * t), int(214 + 14 * t), int(226 - 60 * t)))
    for _ in range(60):
        x, y, r = dice.randrange(w * s), dice.randrange(h * s), dice.randrange(40, 190) * s // 2
        shade = dice.randrange(130, 190)
        pen.ellipse((x - r, y - r, x + r, y + r), fill=(shade - 40, shade + 25, shade - 50))
    image = image.filter(ImageFilter.GaussianBlur(70))
    pen = ImageDraw.Draw(image)

    def oval(x: float, y: float, a: float, b: float, tilt: float, colour: tuple[int, int, int]) -> None:
        turn = [
            (x + a * math.cos(t) * math.cos(tilt) - b * math.sin(t) * math.sin(tilt),
             y + a * math.cos(t) * math.sin(tilt) + b * math.sin(t) * math.cos(tilt))
            for t in (2 * math.pi * i / 120 for i in range(120))
        ]  # fmt: skip
        pen.polygon([(px * s, py * s) for px, py in turn], fill=colour)

    pen.line([(px * s, py * s) for px, py in ((-20, 720), (420, 690), (800, 712), (1220, 640))], (94, 70, 54), 34 * s)
    pen.line([(px * s, py * s) for px, py in ((-20, 712), (420, 682), (800, 704), (1220, 632))], (124, 96, 74), 12 * s)
    for x, y, tilt in ((930, 610, -0.7), (1040, 585, 0.4), (150, 655, -0.5), (265, 742, 0.6)):
        oval(x, y, 62, 24, tilt, (112, 148, 72))
    for x in (560, 622):
        pen.line((x * s, 590 * s, (x + 8) * s, 700 * s), (120, 84, 60), 9 * s)
    oval(805, 560, 150, 30, 0.32, (104, 84, 66))  # tail
    oval(600, 470, 190, 150, 0.35, (132, 108, 84))  # back
    oval(560, 520, 140, 110, 0.35, (232, 222, 208))  # belly
    oval(515, 440, 118, 112, 0.5, (226, 118, 50))  # breast
    oval(490, 318, 92, 86, 0, (132, 108, 84))  # head
    oval(462, 338, 72, 66, 0.2, (226, 118, 50))  # face
    oval(672, 480, 130, 66, 0.5, (112, 90, 70))  # wing
    oval(690, 492, 100, 40, 0.5, (96, 76, 60))
    pen.polygon([(px * s, py * s) for px, py in ((398, 322), (344, 340), (400, 352))], fill=(70, 62, 58))
    oval(452, 308, 15, 15, 0, (28, 24, 24))
    oval(447, 303, 5, 5, 0, (245, 245, 245))
    image.resize((w, h), Image.Resampling.LANCZOS).save(path, quality=90)


@pytest.fixture
def make(tmp_path):
    made: list[Running] = []

    def run(title: str, classes: dict[str, str], sources: list[Source], **settings) -> Running:
        project = Project.create(tmp_path / f"p{len(made)}", Settings(**{"title": title, "size": 5, **settings}))
        add_classes(project, classes)
        add_items(project, sources, strict=True)
        made.append(Running(project))
        return made[-1]

    yield run
    for running in made:
        running.kill()
        running.project.close()


def come(site: Running, person, name: str, **options):
    who = person(**options).go(f"{site.url}/join#{People(site.project).invite(name)[1]}")
    who.ready()
    return who


def until_listed(who, name: str):
    """Skip until the class is on the list, as a picture should show."""
    while name not in who.choices():
        who.decide("s")
    who.page.wait_for_function("() => document.getElementById('taken').getAnimations().length === 0")
    who.page.evaluate("document.getElementById('why').hidden = true")
    who.settle()


def test_pictures(make, person, tmp_path):
    for i in range(40):
        drawn_bird(tmp_path / f"{i}.jpg", i % 2) if i < 2 else shutil.copy(
            tmp_path / f"{i % 2}.jpg", tmp_path / f"{i}.jpg"
        )
    birds = make("Garden birds", BIRDS, [Source(f"{i}", f"{i}", path=tmp_path / f"{i}.jpg") for i in range(40)])
    ada = come(birds, person, "Ada", **WIDE)
    until_listed(ada, "robin")
    ada.picture("question")
    phone = come(birds, person, "Ben", **PHONE)
    until_listed_by_finger(phone, "robin")
    phone.picture("phone")
    dark = come(birds, person, "Cleo", color_scheme="dark", **PHONE)
    until_listed_by_finger(dark, "robin")
    dark.picture("phone-dark")

    texts = make("Customer messages", TOPICS, [Source(f"{i}", f"{i}", text=MESSAGE) for i in range(30)], typing=True)
    dan = come(texts, person, "Dan", color_scheme="dark", **WIDE)
    until_listed(dan, "card_arrival")
    dan.picture("dark")
    dan.press("/")
    dan.page.keyboard.type("card")
    dan.page.wait_for_function("() => document.querySelector('#matches mark')")
    dan.settle()
    dan.picture("search")
    eve = come(texts, person, "Eve", **WIDE)
    eve.context.set_offline(True)
    for _ in range(2):
        eve.decide("1")
    eve.press("1")
    eve.page.wait_for_selector("#saved[data-state=waiting]")
    eve.page.locator("#item .state h2").wait_for()
    eve.picture("offline")
    eve.context.set_offline(False)


def until_listed_by_finger(who, name: str):
    while name not in who.choices():
        before = who.ready()
        who.page.locator("#skip").tap()
        who.ready(before)
    who.page.evaluate("document.getElementById('why').hidden = true")
    who.page.wait_for_function("() => document.getElementById('taken').getAnimations().length === 0")


def test_a_picture_of_the_demo(person):
    command = [*COMMAND, "demo", "--robots", "20", "--think", "0.8", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        me = person(viewport={"width": 1000, "height": 900}).go(process.stdout.readline().split()[-1])
        me.page.wait_for_function(
            "() => (document.querySelector('#curve polyline')?.getAttribute('points') ?? '').split(' ').length >= 9",
            timeout=120_000,
        )
        me.page.wait_for_selector("#work svg")
        me.picture("demo")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
        process.stdout.close()
