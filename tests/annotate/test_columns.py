"""Which column of a table is taken for the classes before anybody has said it."""

import itertools

import pytest

from shortlist.annotate.columns import class_column, item_column

ROWS = 60
TEXTS = [f"please help me with my order number {i}" for i in range(ROWS)]


def column(*values: str, every: int = 1) -> list[str]:
    """The values in turn; empty but in each `every`-th row."""
    some = itertools.cycle(values)
    return [next(some) if i % every == 0 else "" for i in range(ROWS)]


def days(every: int = 1) -> list[str]:
    return column(*(f"2026-01-{day:02d}" for day in range(1, 16)), every=every)


EXPORT = {  # what a help desk writes out
    "ticket_id": [f"T{1000 + i}" for i in range(ROWS)],
    "created_at": days(),
    "text": TEXTS,
    "status": column("open", "closed", "pending"),
    "priority": column("low", "high", every=2),
    "channel": column("chat", "phone"),
    "requester email": column("ada@example.org", "ben@example.org", every=2),
    "assignee": column("Ada", "Ben", "Cem", every=2),
    "closed at": days(3),
    "satisfaction": column("good", "bad", every=4),
    "first reply (min)": column("5", "12", "48", every=2),
    "escalated": column("yes", "no", every=2),
    "account": column("AC-100", "AC-101", "AC-102", every=2),
    "last_reply": column("We have sent it to you again today.", "Please restart it and log in once more.", every=3),
    "note": [f"called {chr(97 + i // 26)}{chr(97 + i % 26)}" if i % 3 == 0 else "" for i in range(ROWS)],
}


def test_nothing_of_a_usual_export_is_taken_for_classes():
    assert class_column(EXPORT, "text") == ""


@pytest.mark.parametrize("kept", [set(), *({name} for name in EXPORT if name != "text")])
def test_nor_is_any_of_its_columns_beside_the_texts_alone(kept):
    assert class_column({name: EXPORT[name] for name in EXPORT if name == "text" or name in kept}, "text") == ""


@pytest.mark.parametrize(
    "name",
    [
        "label",
        "Class",
        "category",
        "intent",
        "Topic",
        "ticket_type",
        "TicketType",
        "Issue category",
        "Kategorie",
        "tags",
    ],
)
@pytest.mark.parametrize("every", [1, 3])
def test_a_column_named_so_is_found_among_all_the_others(name, every):
    table = {**EXPORT, name: column("lost card", "top up", "refund", every=every)}
    assert class_column(table, "text") == name


def test_without_such_a_name_it_is_one_of_few_words_not_filled_everywhere():
    words = ("lost card", "top up", "iphone 12")
    assert class_column({**EXPORT, "what": column(*words, every=3)}, "text") == "what"
    assert class_column({**EXPORT, "what": column(*words)}, "text") == ""
    assert class_column({"what": column(*words, every=3)}, "what") == "", "that is where the texts are"
    assert class_column({"text": TEXTS, "什么": column("退款", "丢卡", every=3)}, "text") == "什么"


def test_of_several_the_named_one_then_the_partly_empty_one_then_the_first():
    full, partly = column("a b", "c d"), column("a b", "c d", every=2)
    assert class_column({"x": partly, "topic": full, "text": TEXTS}, "text") == "topic"
    assert class_column({"topic": full, "label": partly, "text": TEXTS}, "text") == "label"
    assert class_column({"topic": partly, "label": partly, "text": TEXTS}, "text") == "topic"


def test_numbers_are_classes_only_where_the_name_says_so():
    numbers = column("0", "1", "2", every=2)
    assert class_column({"text": TEXTS, "stars": numbers}, "text") == ""
    assert class_column({"text": TEXTS, "label": numbers}, "text") == "label"


@pytest.mark.parametrize("name", ["label_id", "labelled at", "category date", "tagged by", "class status", "item"])
def test_a_name_that_says_something_else_as_well(name):
    assert class_column({"text": TEXTS, name: column("a b", "c d")}, "text") == ""


@pytest.mark.parametrize("name", ["item", "Product name", "name"])
def test_names_of_things_are_no_classes_though_not_all_have_one(name):
    assert class_column({"text": TEXTS, name: column("a b", "c d", every=2)}, "text") == ""
    assert class_column({"text": TEXTS, "category_name": column("a b", "c d", every=2)}, "text") == "category_name"


@pytest.mark.parametrize(
    "values",
    [
        ("2026-01-10", "2026-01-11"),
        ("10.1.2026 08:15", "11.1.2026 09:00"),
        ("ada@example.org", "ben@example.org"),
        ("https://example.org/a", "https://example.org/b"),
        ("a word " * 12, "another word " * 7),
        ("where is the money that I have sent?", "why was my card not taken at the shop?"),
        ("only one",),
    ],
)
def test_what_no_name_makes_classes(values):
    assert class_column({"text": TEXTS, "label": column(*values, every=2)}, "text") == ""


def test_as_many_values_as_texts_are_no_classes():
    assert class_column({"text": TEXTS, "label": [f"word{'x' * i}" for i in range(ROWS)]}, "text") == ""


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({"Ticket-ID": [f"T{i}" for i in range(len(TEXTS))]}, "Ticket-ID"),
        ({"id": ["7"] * len(TEXTS), "uuid": [str(i) for i in range(len(TEXTS))]}, "uuid"),
        ({"id": ["", *(str(i) for i in range(1, len(TEXTS)))]}, ""),
        ({"subject": [f"T{i}" for i in range(len(TEXTS))]}, ""),
        ({"id": [f"T{i}" for i in range(len(TEXTS))], "item": ["a"] * len(TEXTS)}, "item"),
        ({}, ""),
    ],
)
def test_rows_are_named_by_ids_that_are_there_and_differ(columns, found):
    assert item_column({**columns, "text id": TEXTS}, "text id") == found
