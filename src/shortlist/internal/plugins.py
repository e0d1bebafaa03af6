"""Models and methods of the user's own, named `package.module:name`."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from shortlist.errors import InputError, first_line


def own_object(kind: str, path: str, what: str, suits: Callable[[Any], bool]) -> Any:
    """What `path` names in its module, which may lie in the current folder.

    Args:
        kind: `model` or `method`, for the messages.
        path: `package.module:name`.
        what: what the name is of, such as `Class`.
        suits: whether something of that name is what was meant.
    """
    module_name, _, name = path.partition(":")
    if not module_name or not name:
        raise InputError(f"{kind} {path!r} must read package.module:{what}")
    module = _module(module_name, f"{kind} {path!r}")
    found = getattr(module, name, None)
    if not suits(found):
        # the file, as for a test.py of one's own it is Python's
        where = getattr(module, "__file__", None) or f"module {module_name!r}"
        raise InputError(f"{kind} {path!r}: no {kind} {name!r} in {where}")
    return found


def _module(name: str, asked: str) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    # last, so that a file here cannot stand in for an installed module; a worker process looks in the same folder
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
