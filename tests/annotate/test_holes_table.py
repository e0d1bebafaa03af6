"""Every row of the table of holes in docs/annotate-operations.md names a test that exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def test_every_hole_names_a_test_that_exists():
    table = (ROOT / "docs" / "annotate-operations.md").read_text().split("| hole | test |")[1]
    rows = [line for line in table.splitlines() if line.startswith("| ") and not line.startswith("|---")]
    assert len(rows) >= 40
    for row in rows:
        named = NAMED.findall(row)
        assert named, row
        for path, name in named:
            assert f"\ndef {name}(" in (ROOT / path).read_text(), f"{path}::{name}"
