"""Values of options that have names of their own."""

import pytest

from shortlist.cli.options import key_values


@pytest.mark.parametrize(
    ("text", "value"),
    [("False", False), ("True", True), ("false", False), ("1.5", 1.5), ("mean", "mean"), ('"False"', "False")],
)
def test_values_are_read_as_json_or_as_python_spells_them(text, value):
    (found,) = key_values([f"fresh={text}"], "option").values()
    assert found == value
    assert type(found) is type(value)
