"""Label Studio: tasks out, each with its own shortlist as dynamic choices.

The shortlist, its policy and its inclusion probabilities travel in `data.stochastic`, which Label Studio gives back
unchanged; `label_studio_answers.py` reads them again.
"""

import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, false, select

from shortlist.annotate.db.class_map import ended_classes
from shortlist.annotate.db.schema import Item, Slot
from shortlist.annotate.db.statements import all_descriptions, class_names
from shortlist.annotate.project.project import Project
from shortlist.annotate.queue.chooser import Choice, UniformChooser
from shortlist.annotate.queue.pinned import Pinned
from shortlist.annotate.queue.queue import SEED_BITS
from shortlist.errors import InputError

NONE_ALIAS = "__none__"
NONE_NAME = "None of these"
LOCAL_FILES = "/data/local-files/?d="  # how Label Studio names a file of its local storage

_TAGS = {
    "image": '<Image name="img" value="$image"/>',
    "text": '<Text name="txt" value="$text"/>',
    "audio": '<Audio name="snd" value="$audio"/>',
}
_NAMES = {"image": "img", "text": "txt", "audio": "snd"}


def write_tasks(project: Project, path: Path) -> int:
    """A JSON list of tasks, one for every slot that still waits for an answer."""
    pinned, chooser = project.settings.pinned, UniformChooser(project.settings.size)
    lists = chooser if pinned is None else Pinned(chooser, pinned)
    with project.store.read() as connection, path.open("w", encoding="utf-8") as file:
        names, descriptions = class_names(connection), all_descriptions(connection)
        ended = ended_classes(connection)
        waiting = (
            select(Item.id, Item.name, Item.kind, Item.text, Item.file)
            .join(Slot, Slot.item_id == Item.id)
            .where(Slot.gold == false(), Slot.state == "free")
            .order_by(Slot.rank)
        )
        count = 0
        for row in connection.execution_options(yield_per=1000).execute(waiting).mappings():
            seed = secrets.randbits(SEED_BITS)
            choice = lists.choose(row["id"], len(names), ended, seed)
            if choice is not None:
                file.write("[\n" if not count else ",\n")
                json.dump({"data": _data(dict(row), choice, seed, names, descriptions)}, file, ensure_ascii=False)
                count += 1
        file.write("\n]\n" if count else "[]\n")
    return count


def _data(
    row: dict[str, Any], choice: Choice, seed: int, names: Sequence[str], descriptions: Mapping[int, str]
) -> dict[str, Any]:
    options = [
        {
            **{"value": names[k], "alias": str(k)},
            **({"hotkey": str(place)} if place <= 9 else {}),
            **({"hint": descriptions[k]} if k in descriptions else {}),
        }
        for place, k in enumerate(choice.shortlist, start=1)
    ]
    # static choices would come before dynamic ones, so None is the last of the dynamic ones
    options.append({"value": NONE_NAME, "alias": NONE_ALIAS, "hotkey": "0"})
    shown = row["text"] if row["kind"] == "text" else f"{LOCAL_FILES}media/{row['file']}"
    return {
        row["kind"]: shown,
        "options": options,
        "stochastic": {
            "item_id": row["name"],
            "classes": list(choice.shortlist),
            "policy": choice.policy,
            "policy_version": choice.policy_version,
            "inclusion_prob": list(choice.inclusion),
            "seed": seed,
        },
    }


def write_config(project: Project, path: Path) -> int:
    """The labelling configuration that goes with the tasks."""
    with project.store.read() as connection:
        kinds = _kinds(connection)
    if len(kinds) > 1:
        raise InputError(f"Label Studio shows one kind of item per project, and this one has {', '.join(kinds)}")
    kind = kinds[0] if kinds else "image"
    choices = f'<Choices name="answer" toName="{_NAMES[kind]}" choice="single-radio" required="true" value="$options"/>'
    path.write_text(f"<View>{_TAGS[kind]}{choices}</View>\n", encoding="utf-8")
    return 1


def _kinds(connection: Connection) -> list[str]:
    return sorted(connection.execute(select(Item.kind).distinct()).scalars())
