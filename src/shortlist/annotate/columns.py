"""Which columns of an uploaded table hold classes and names of rows: guesses that whoever uploads it can correct."""

import re
from collections.abc import Mapping, Sequence

MOST_CLASSES = 1000  # distinct values: more are no classes, but words of their own
LONGEST_CLASS = 80
MOST_WORDS = 6  # on average: more are sentences

# Words of a column's name: those that people give to such a column, those of others, and those for what an export says
# about the case, not about the text. Any column may still be chosen by hand.
_CLASSES = re.compile("(label|class|categor|intent|topic|tag|typ|target|klass|kategor|thema).*")
_IDS = re.compile("ids?|uuid|guid|key|number|nr|nummer|ref|reference")
_OTHERS = re.compile("ids?|uuid|guid|url|link|e?mail|phone|date|time|at|by|datum|zeit")
_THE_CASE = re.compile(
    "status|state|stage|priority|severity|urgency|impact|resolution|channel|source|via|origin|queue|team|group|"
    "assignee|assigned|agent|owner|requester|reporter|customer|client|user|author|sender|contact|company|"
    "organi[sz]ation|country|region|city|gender|age|language|lang|locale|version|score|rating|satisfaction|csat"
)
_YES_OR_NO = re.compile("yes|no|true|false|[yntfx]|on|off|ja|nein")
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}")
_ADDRESS = re.compile(r"\S+@\S+\.\S+|\w+://")


def class_column(table: Mapping[str, Sequence[str]], text: str) -> str:
    """The column of classes beside the column `text`; empty if none seems to be one.

    One whose name says so, or else one of few words that is not filled everywhere: where it is, it is more likely a
    status or a channel, and nothing would be left to ask. Of several, one that is partly empty, then the first.
    """
    found = []
    for column, values in table.items():
        words = _words(column)
        if column == text or words == {"item"} or _any(_OTHERS, words):
            continue
        partly = not all(value.strip() for value in values)
        about_the_case = _any(_THE_CASE, words)
        named = _any(_CLASSES, words) and not about_the_case
        plain = partly and not about_the_case and "name" not in words
        if (named and _may_be_classes(values)) or (plain and _are_classes(values)):
            found.append((not named, not partly, column))
    return min(found, key=lambda one: one[:2], default=(True, True, ""))[2]


def item_column(table: Mapping[str, Sequence[str]], text: str) -> str:
    """The column that names the rows: `item`, or else one of ids, none of them missing or there twice; or empty."""
    if "item" in table:
        return "item"
    ids = (column for column in table if column != text and _any(_IDS, _words(column)))
    return next((column for column in ids if names_rows(table[column])), "")


def names_rows(values: Sequence[str]) -> bool:
    """Every row has a name of its own."""
    names = {value.strip() for value in values}
    return len(names) == len(values) and "" not in names


def _words(name: str) -> set[str]:
    """Those of a column's name: Ticket Type, ticket_type and ticketType have the same."""
    return set(re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).casefold()))


def _any(pattern: re.Pattern[str], words: set[str]) -> bool:
    return any(map(pattern.fullmatch, words))


def _may_be_classes(values: Sequence[str]) -> bool:
    """Few and short values that are neither sentences nor dates nor addresses; numbers may be classes."""
    found = {value.strip() for value in values if value.strip()}
    if not 2 <= len(found) <= min(MOST_CLASSES, max(2, len(values) // 2)):
        return False
    short = all(len(value) <= LONGEST_CLASS and "\n" not in value for value in found)
    others = sum(bool(_DATE.search(value) or _ADDRESS.search(value)) for value in found)
    return short and 2 * others < len(found) and sum(len(value.split()) for value in found) <= MOST_WORDS * len(found)


def _are_classes(values: Sequence[str]) -> bool:
    """The same of a column whose name does not say so: words that come again, and no numbers, ids or yes and no."""
    filled = [value.strip() for value in values if value.strip()]
    found = set(filled)
    if not _may_be_classes(values) or 2 * len(found) > len(filled):
        return False
    if all(_YES_OR_NO.fullmatch(value.casefold()) for value in found):
        return False
    return 2 * sum(map(_is_word, found)) > len(found)


def _is_word(value: str) -> bool:
    """Not a number, a date, a time or an id: of these, a third and more are digits."""
    digits, letters = (sum(map(is_one, value)) for is_one in (str.isdigit, str.isalpha))
    return letters > 2 * digits
