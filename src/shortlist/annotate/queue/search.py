"""Finding a class by a few letters, for an answer that is typed: among all classes, however many there are."""

import re
import threading
import time
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import bindparam, select

from shortlist.annotate.db.class_map import ended_classes
from shortlist.annotate.db.schema import questions
from shortlist.annotate.db.statements import all_descriptions, class_names, refused_classes
from shortlist.annotate.db.store import Store
from shortlist.annotate.problems import NotFound
from shortlist.annotate.queue.chooser import Chooser

KEEP_SECONDS = 2.5  # a class that was added or renamed is found after that
BEGINS, WORDS, INSIDE, DESCRIBED = 5.0, 4.0, 3.0, 2.0
"""How well a name matches: it begins with what was typed, each word typed begins one of its words, each is inside it,
each begins a word of its description. Below that: the share of the pairs of letters typed that it has."""
ALIKE = 0.5
"""Of those pairs, at least so many: a letter too many, too few or wrong costs two."""

_MINE = select(questions.c.slot_id, questions.c.item_id, questions.c.shortlist, questions.c.seed).where(
    questions.c.id == bindparam("question"), questions.c.annotator_id == bindparam("annotator")
)


@dataclass(frozen=True)
class Match:
    """A class that was found: whether it is on the list, and whether it was refused on an earlier list."""

    class_id: int
    name: str
    description: str | None
    shown: bool
    refused: bool


class ClassSearch:
    """Looks for classes on behalf of somebody who holds a question."""

    def __init__(self, store: Store, chooser: Chooser) -> None:
        self.store, self.chooser = store, chooser
        self._lock = threading.Lock()
        self._index, self._read_at = ClassIndex([], {}), float("-inf")

    def find(self, annotator_id: int, question_id: int, typed: str, limit: int) -> list[Match]:
        """The best matches first; among equals the likelier ones.

        If nothing was typed, all classes, the likeliest first; those that were read already, because they are on the
        list or were refused before, come last.
        """
        with self.store.read() as connection:
            row = connection.execute(_MINE, {"question": question_id, "annotator": annotator_id}).first()
            if row is None:
                raise NotFound("no_question", f"question {question_id} is not one of yours")
            refused = set(refused_classes(connection, row.slot_id))
        known = refused | set(row.shortlist)
        index = self._current()
        beliefs = self.chooser.beliefs(row.item_id, len(index.names), row.seed)
        return [
            Match(k, index.names[k], index.descriptions.get(k), k in row.shortlist, k in refused - set(row.shortlist))
            for k in index.best(typed, beliefs, limit, [k for k in known if k < len(index.names)])
        ]

    def _current(self) -> "ClassIndex":
        with self._lock:
            if time.monotonic() - self._read_at > KEEP_SECONDS:
                with self.store.read() as connection:
                    names, descriptions = class_names(connection), all_descriptions(connection)
                    ended = ended_classes(connection)
                if (names, descriptions, ended) != (self._index.names, self._index.descriptions, self._index.ended):
                    self._index = ClassIndex(names, descriptions, ended)
                self._read_at = time.monotonic()
            return self._index


class ClassIndex:
    """All classes, by their words and by the pairs of letters in their names.

    >>> index = ClassIndex(["lost_card", "card_arrival", "Pin"], {})
    >>> index.best("car", None, 5), index.best("arival", None, 5)
    ([1, 0], [1])
    """

    def __init__(self, names: list[str], descriptions: dict[int, str], ended: Sequence[int] = ()) -> None:
        self.names, self.descriptions, self.ended = names, descriptions, list(ended)
        self._plain = [_plain(name) for name in names]
        self._described = {k: _plain(words) for k, words in descriptions.items()}
        places: dict[str, list[int]] = defaultdict(list)
        for k, plain in enumerate(self._plain):
            for pair in _pairs(plain):
                places[pair].append(k)
        self._places = {pair: np.array(found) for pair, found in places.items()}

    def best(self, typed: str, beliefs: NDArray[np.floating] | None, limit: int, read: Sequence[int] = ()) -> list[int]:
        """The ids of the best matches; nothing typed: all of them, those that were `read` already last."""
        plain = _plain(typed)
        match = self._match(plain) if plain.strip() else np.where(np.isin(np.arange(len(self.names)), read), 1.0, 2.0)
        match[self.ended] = 0
        found = np.nonzero(match)[0]
        likely = np.zeros(len(found)) if beliefs is None else -beliefs[found]
        order = np.lexsort((found, likely, -match[found]))[:limit]
        return [int(k) for k in found[order]]

    def _match(self, plain: str) -> NDArray[np.float64]:
        """(K,) how well each class matches; 0: not at all."""
        pairs, words = _pairs(plain), plain.split()
        match = np.zeros(len(self.names))
        for pair in pairs & self._places.keys():
            match[self._places[pair]] += 1 / len(pairs)
        match[match < ALIKE] = 0
        starts = [f" {word}" for word in words]
        for k, described in self._described.items():
            if all(start in described for start in starts):
                match[k] = DESCRIBED
        for k, name in enumerate(self._plain):
            if all(word in name for word in words):
                match[k] = BEGINS if name.startswith(plain) else WORDS if all(s in name for s in starts) else INSIDE
        return match


def _plain(text: str) -> str:
    """Without case, accents and punctuation; a space before each word.

    >>> _plain("Café_crème (large)")
    ' cafe creme large'
    """
    letters = unicodedata.normalize("NFKD", text.casefold())
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return "".join(f" {word}" for word in re.findall(r"[^\W_]+", bare))


def _pairs(plain: str) -> set[str]:
    return {plain[i : i + 2] for i in range(len(plain) - 1)}
