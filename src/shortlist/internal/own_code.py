"""The files of methods and models of one's own: what they say, and where in them something failed.

After a change in such a file, earlier runs are other runs.
"""

import inspect
import sys
import traceback
from functools import cache
from pathlib import Path
from types import ModuleType

OTHERS = frozenset({"shortlist", "torch", *sys.stdlib_module_names})
"""Packages whose versions say enough."""


def own_sources(path: str) -> tuple[str, ...]:
    """The source of what `package.module:name` names, which has been imported, and of the classes it is derived from.

    Only whole files count: a formula often calls a function beside it. What these files import does not count.

    Raises:
        OSError, TypeError: there is no file, as for a class that was typed in at a prompt.
    """
    module, _, name = path.partition(":")
    found = getattr(sys.modules.get(module), name, None)
    return tuple(_source(sys.modules[name]) for name in _modules(found, module) or [module] if name in sys.modules)


def place_in(error: BaseException, kind: type) -> str:
    """The innermost line of a class's own files that an error came through, in brackets; empty if there is none."""
    own = _modules(kind, "")
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if frame.f_globals.get("__name__") in own:
            return f" ({Path(frame.f_code.co_filename).name}, line {line}, in {frame.f_code.co_name})"
    return ""


def _modules(found: object, module: str) -> list[str]:
    """The modules of a function, or of a class and those it is derived from, without those of other packages."""
    kinds = found.__mro__ if isinstance(found, type) else (found,)
    names = dict.fromkeys(getattr(kind, "__module__", module) for kind in kinds)
    return [name for name in names if name.partition(".")[0] not in OTHERS]


@cache  # as it was imported, even if the file is edited while the process runs
def _source(module: ModuleType) -> str:
    return inspect.getsource(module)
