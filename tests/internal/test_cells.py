"""Hypothesis: what is guarded is no formula, and comes back as it was."""

from hypothesis import example, given
from hypothesis import strategies as st

from shortlist.internal.cells import guard_cell, plain_cell

STARTS = st.text("'=+-@\t\r|1.ex", max_size=6)


@given(STARTS)
@example("=cmd|' /C calc'!A0")
@example("-5")
@example("'-5")
@example("'=")
@example("-2+3+cmd|' /C calc'!A0")
def test_no_formula_is_left_and_nothing_is_lost(text: str) -> None:
    shown = guard_cell(text)
    assert plain_cell(shown) == text
    number = shown[1:].replace(".", "").replace("e", "").replace("-", "").replace("+", "").isdigit()
    assert not shown.startswith(("=", "@", "\t", "\r"))
    assert not shown.startswith(("+", "-")) or number or (set(shown[1:]) <= {"."} and shown[1:])


@given(st.text(max_size=5))
def test_other_texts_stay_as_they_are(text: str) -> None:
    if not text.lstrip("'").startswith(("=", "+", "-", "@", "\t", "\r")):
        assert guard_cell(text) == plain_cell(text) == text
