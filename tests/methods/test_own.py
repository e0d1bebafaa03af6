"""A method in the user's own module, by `package.module:Class`."""

import sys

import pytest

from shortlist import methods
from shortlist.errors import InputError

MODULE = '''
from dataclasses import dataclass

from shortlist.methods import Method
from shortlist.risks import log_candidates


@dataclass(frozen=True)
class Outside(Method):
    """Mean of scale * (1 - sum_{k in C} p_k)."""

    name = "outside"
    title = "probability outside the candidates"
    baseline = True
    scale: float = 1.0

    def objective(self, logits, batch):
        outside = 1 - log_candidates(logits, batch.candidates).exp()
        return batch.mean(self.scale * outside)


@dataclass(frozen=True)
class Unfinished(Method):
    name = "unfinished"
'''


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_methods.py").write_text(MODULE)
    (tmp_path / "broken_method.py").write_text("1 / 0")
    yield "my_methods"
    sys.modules.pop("my_methods", None)


@pytest.mark.parametrize("on_path", [False, True])
def test_it_is_found_beside_the_registered_ones(module, on_path, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*([str(tmp_path)] if on_path else []), *sys.path])  # as `python -m` puts it first
    before = list(sys.path)
    assert methods.find(f"{module}:Outside").baseline
    made = methods.get(f"{module}:Outside", scale=2.0)
    assert made.scale == 2.0
    assert made == methods.get(f"{module}:Outside", scale=2.0)
    assert sys.path == before
    assert "outside" not in methods.METHODS


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("my_methods:", "must read package.module:Class"),
        ("nowhere:Outside", "no module 'nowhere' is installed or in the current folder"),
        ("broken_method:Outside", "importing it failed: ZeroDivisionError: division by zero"),
        ("my_methods:Inside", "no method 'Inside' in /.*/my_methods.py"),
        ("my_methods:batch_mean", "no method 'batch_mean' in /.*/my_methods.py"),
        ("my_methods:Unfinished", "does not define objective, title"),
    ],
)
def test_what_is_wrong_is_one_clear_line(module, name, complaint):
    with pytest.raises(InputError, match=complaint):
        methods.get(name)


def test_its_options_are_checked(module):
    with pytest.raises(InputError, match=r"'scal': did you mean 'scale'\? \(known: scale\)"):
        methods.get(f"{module}:Outside", scal=2.0)
