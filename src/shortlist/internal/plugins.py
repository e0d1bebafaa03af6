"""Users' own models and methods, named `package.module:name`."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from shortlist.errors import InputError, first_line


def own_object(kind: str, path: str, what: str, suits: Callable[[Any], bool]) -> Any:
    """What `path` names; its module may be in the current folder.

    Args:
        kind: `model` or `method`, for the messages.
        path: `package.module:name`.
        what: the kind of name that is expected, such as `Class`.
        suits: whether an object is of that kind.
    """
    module_name, _, name = path.partition(":")
    if not module_name or not name:
        raise InputError(f"{kind} {path!r} must read package.module:{what}")
    module = _module(module_name, f"{kind} {path!r}")
    found = getattr(module, name, None)
    if not suits(found):
        # name the file: for a user's test.py it may be Python's own
        where = getattr(module, "__file__", None) or f"module {module_name!r}"
        raise InputError(f"{kind} {path!r}: no {kind} {name!r} in {where}")
    return found


def _module(name: str, asked: str) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    # last, so that a file here cannot replace an installed module; worker processes have the same current folder
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.append(here)
    try:
        importlib.invalidate_caches()
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise InputError(f"{asked}: no module {error.name!r} is installed or in the current folder {here}") from error
    except Exception as error:
        raise InputError(f"{asked}: importing it failed: {first_line(error)}") from error
    finally:
        if added:
            sys.path.remove(here)
