"""docs/paper-to-code.md leads somewhere: every function and test of its rows is imported, every result is a file."""

import importlib
import inspect
import re
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "paper-to-code.md").read_text()
LINK = re.compile(r"\[`?([^`\]]+)`?\]\(([^)#]+)(?:#[^)]*)?\)")


class Row(NamedTuple):
    paper: str
    says: str
    code: str
    test: str
    result: str


def rows() -> list[Row]:
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in PAGE.splitlines() if line[:1] == "|"]
    return [Row(*row) for row in cells if row[0] not in ("paper", "what") and not row[0].startswith("---")]


ROWS = rows()


def linked(cell: str) -> list[tuple[str, Path]]:
    return [(name, (ROOT / "docs" / link).resolve()) for name, link in LINK.findall(cell)]


def imported(name: str) -> object:
    """`risks.paper_risk` -> the function; the module is the longest part that can be imported."""
    words = f"shortlist.{name}".split(".")
    for cut in range(len(words) - 1, 0, -1):
        try:
            found: object = importlib.import_module(".".join(words[:cut]))
        except ModuleNotFoundError:
            continue
        for word in words[cut:]:
            found = getattr(found, word)
        return found
    raise AssertionError(name)


@pytest.mark.parametrize("row", ROWS, ids=[row.paper for row in ROWS])
def test_a_row_leads_to_its_code_test_and_result(row):
    code, tests, results = linked(row.code), linked(row.test), linked(row.result)
    assert code, "no function"
    assert tests, "no test"
    for name, path in code:
        found = imported(name)
        found = found.func if isinstance(found, cached_property) else found
        assert Path(inspect.getfile(found)) == path  # type: ignore[arg-type]
    for name, path in tests:
        module = importlib.import_module(".".join(path.relative_to(ROOT / "tests").with_suffix("").parts))
        assert name.startswith("test_")
        assert inspect.isfunction(getattr(module, name, None)), f"{name} is not in {path}"
    assert results or row.result == "–"
    for _, path in results:
        assert path.is_file(), path


def test_all_of_the_paper_is_there():
    named = " ".join(row.paper for row in ROWS)
    for part in (
        *(f"Equation {number}" for number in (8, 9, 11, 12, 13)),
        *("Theorem 3.1", "Theorem 3.2", "Lemma 3.3", "Theorem 3.4", "Algorithm 1", "Figure 1", "Figure 2"),
        *("Table 1", "Table 2", "Tables 3, 4, 5", "OL", "LOG", "EXP", "LW", "RC", "CC", "PRODEN", "OVR"),
    ):
        assert part in named, part
