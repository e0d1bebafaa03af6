"""Texts whose classes their names give away, or not; labels and scores of them, and what a first model makes of it."""

import numpy as np

from shortlist.annotate.live.chooser import LiveChooser
from shortlist.annotate.live.plan import live_plan
from shortlist.annotate.live.trainer import Trainer

NAMES = [
    *("lost_card", "wrong_exchange_rate", "cancel_transfer", "change_pin", "top_up_failed", "verify_identity"),
    *("cash_withdrawal_fee", "virtual_card_order", "refund_missing", "close_account", "apple_pay", "direct_debit"),
]
CODES = [*("zebu yak", "fjord kelp", "quartz mica", "tuba oboe", "gouda brie", "kiwi plum", "judo golf", "hemp jute")]
CODES += [*("mauve ochre", "gnome ogre", "sloop yawl", "cumin basil")]
FRAMES = ["hello, {} please", "I have a question on {}", "what about my {}?", "{} does not work", "help me with {} now"]
COUNT = 10 * len(NAMES)


def truth(row: int) -> int:
    return row % len(NAMES)


def text(row: int, codes: bool) -> str:
    """With `codes`, words that no name of a class has."""
    words = CODES[truth(row)] if codes else NAMES[truth(row)].replace("_", " ")
    return f"{FRAMES[row // len(NAMES) % len(FRAMES)].format(words)} {row}"


def known_file(path, rows):
    path.write_text("item,class\n" + "".join(f"t{row},{NAMES[truth(row)]}\n" for row in rows))
    return path


def scores_file(path, rows, sure=3.0):
    items = np.array([f"t{row}" for row in rows])
    scores = sure * np.eye(len(NAMES))[[truth(row) for row in rows]]
    np.savez(path, scores=scores, items=items, classes=np.array(NAMES))
    return path


def published(project):
    """Train until there is nothing to do; the chooser with the latest publication."""
    plan = live_plan(project.settings)
    trainer = Trainer(project, plan)
    while trainer.step():
        pass
    chooser = LiveChooser(project.live, plan)
    assert chooser.refresh()
    return trainer, chooser


def hits(chooser, rows=range(COUNT)):
    """How often a list holds the right class; the item in row i has the id i + 1. By chance in one case of 6."""
    return np.mean([truth(row) in chooser.choose(row + 1, len(NAMES), [], 7).shortlist for row in rows])
