"""Users' own models and methods, named `package.module:name`."""

import importlib
import sys
from collections.abc import Callable
from importlib.util import find_spec
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


def import_from_outside(folder: Path, kind: str, path: str) -> None:
    """Import the module of `path`, unless it lies in a folder that somebody else may have made.

    Raises:
        InputError: it lies there, cannot be found elsewhere, or fails.
    """
    _module(path.partition(":")[0], f"{kind} {path!r}", but=folder)


def inside(path: str | Path, folder: Path) -> bool:
    """Whether a path lies in a folder, or is it."""
    return Path(path).resolve().is_relative_to(folder.resolve())


def _module(name: str, asked: str, but: Path | None = None) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    # last, so that a file here cannot replace an installed module; worker processes have the same current folder
    here = str(Path.cwd())
    looked = but is None or not inside(here, but)
    added = looked and here not in sys.path
    if added:
        sys.path.append(here)
    try:
        importlib.invalidate_caches()
        if but is not None:
            _refuse_inside(but, name, asked)
        return importlib.import_module(name)
    except InputError:
        raise
    except ModuleNotFoundError as error:
        where = f"or in the current folder {here}" if looked else f"(and {but}, the current folder, brings no code)"
        raise InputError(f"{asked}: no module {error.name!r} is installed {where}") from error
    except Exception as error:
        raise InputError(f"{asked}: importing it failed: {first_line(error)}") from error
    finally:
        if added:
            sys.path.remove(here)


def _refuse_inside(folder: Path, name: str, asked: str) -> None:
    """Look where a module lies before it runs: first the packages around it, as finding it imports them."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        spec = find_spec(".".join(parts[:count]))
        origin = spec.origin if spec is not None and spec.has_location else None
        places = [] if spec is None else [*(spec.submodule_search_locations or ()), *([origin] if origin else [])]
        if any(inside(place, folder) for place in places):
            raise InputError(f"{asked}: its file lies in {folder} itself, which brings no code: keep yours elsewhere")
