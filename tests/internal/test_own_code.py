"""The files behind a method or a model of one's own."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

import pytest

from shortlist.internal.own_code import own_sources

SOURCE = """
from functools import partial
from torch import nn

def net(in_shape, num_classes, width):
    return nn.Linear(*in_shape, num_classes)

class Net(nn.Linear):
    pass

wide = partial(net, width=100)
"""


@pytest.mark.parametrize("name", ["net", "Net", "wide"])
def test_it_is_the_file_and_nothing_of_torch(tmp_path, monkeypatch, name):
    path = tmp_path / "file_of_mine.py"
    path.write_text(SOURCE)
    spec = spec_from_file_location("file_of_mine", path)
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "file_of_mine", module)
    spec.loader.exec_module(module)
    assert own_sources(f"file_of_mine:{name}") == (SOURCE,)


def test_what_has_no_file_says_so(monkeypatch):
    module = ModuleType("typed_in")
    exec("class Mine: pass", module.__dict__)
    monkeypatch.setitem(sys.modules, "typed_in", module)
    with pytest.raises((OSError, TypeError)):
        own_sources("typed_in:Mine")
