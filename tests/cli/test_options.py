"""Values of options that have names of their own."""

import pytest

from shortlist.cli.options import key_values, print_table


@pytest.mark.parametrize(
    ("text", "value"),
    [("False", False), ("True", True), ("false", False), ("1.5", 1.5), ("mean", "mean"), ('"False"', "False")],
)
def test_values_are_read_as_json_or_as_python_spells_them(text, value):
    (found,) = key_values([f"fresh={text}"], "option").values()
    assert found == value
    assert type(found) is type(value)


def test_columns_are_as_wide_as_a_terminal_shows_them(capsys):
    print_table(("class", "items"), [("日本語", 1), ("e\u0301", 20), ("two\nlines", 3)])
    assert capsys.readouterr().out == "class      items\n日本語     1\ne\u0301          20\ntwo lines  3\n"
