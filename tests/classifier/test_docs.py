"""docs/classifier.md is right: its Python blocks run, in order, in one namespace."""

import re
from pathlib import Path

import sklearn

PAGE = Path(__file__).parents[2] / "docs" / "classifier.md"


def test_the_page_runs():
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 8
    with sklearn.config_context():
        names: dict[str, object] = {}
        for number, block in enumerate(blocks):
            exec(compile(block, f"{PAGE.name}, block {number}", "exec"), names)


def test_the_expected_failures_are_those_of_the_page():
    from classifier.test_sklearn import EXPECTED

    text = PAGE.read_text().replace("`..._on_sparse_data`", "`check_sample_weight_equivalence_on_sparse_data`")
    assert set(re.findall(r"`(check_[a-z_]+)`", text)) - {"check_estimator"} == set(EXPECTED)
