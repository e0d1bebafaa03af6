"""Small projects of pictures, texts and sounds, and what their databases say."""

import io
import math
import struct
import wave
from pathlib import Path
from typing import Any

from PIL import Image
from sqlalchemy import select

from shortlist.annotate.db.schema import Answer, Item, Question
from shortlist.annotate.demo import CLASSES as DIGITS
from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.project import Project, Settings
from shortlist.annotate.project.sources import Source
from shortlist.data import load

CLASSES = ["cat", "dog", "emu", "fox", "gnu", "hen"]


def make_project(
    folder: Path, *, items: int = 12, kinds: str = "text", classes: list[str] | None = None, **settings: Any
) -> Project:
    project = Project.create(folder, Settings(**{"title": "Animals", "size": 3, **settings}))
    add_classes(project, classes or CLASSES)
    sources = [_source(folder, i, kinds.split()[i % len(kinds.split())]) for i in range(items)]
    add_items(project, sources, strict=True)
    return project


def _source(folder: Path, i: int, kind: str) -> Source:
    if kind == "text":
        return Source(f"item {i}", f"item {i}", text=f"Text number {i}")
    path = folder / f"source {i}.{'png' if kind == 'image' else 'wav'}"
    path.write_bytes(picture(i) if kind == "image" else sound(i))
    return Source(path.name, path.name, path=path)


def picture(i: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (320, 240), ((i * 67) % 256, (i * 131) % 256, 120)).save(out, "PNG")
    return out.getvalue()


def sound(i: int) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        samples = (int(9000 * math.sin(2 * math.pi * (300 + 50 * i) * t / 8000)) for t in range(4000))
        file.writeframes(b"".join(struct.pack("<h", sample) for sample in samples))
    return out.getvalue()


def digit_pictures(folder: Path, count: int) -> dict[str, str]:
    """Digits as PNG files in one flat folder; returns the true class of each."""
    data = load("digits").train
    folder.mkdir()
    truth = {}
    for i in range(count):
        name = f"{i:04}.png"
        Image.fromarray(data.x[i, 0]).save(folder / name)
        truth[name] = DIGITS[data.y[i]]
    return truth


def stored(project: Project) -> list[dict[str, Any]]:
    """The append-only log, with the item each row is about."""
    statement = (
        select(Answer.id, Answer.kind, Answer.class_id, Answer.seconds, Answer.attempt, Answer.question_id, Item.name)
        .join(Question, Question.id == Answer.question_id)
        .join(Item, Item.id == Question.item_id)
        .order_by(Answer.id)
    )
    with project.store.read() as connection:
        return [dict(row) for row in connection.execute(statement).mappings()]


def item_name(project: Project, item_id: int) -> str:
    with project.store.read() as connection:
        return str(connection.execute(select(Item.name).where(Item.id == item_id)).scalar_one())
