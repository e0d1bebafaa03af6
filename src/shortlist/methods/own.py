"""Methods from a module of one's own, named `package.module:Class` as models are."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

from shortlist.errors import InputError
from shortlist.methods.base import Method


def own_method(path: str) -> type[Method]:
    """The class that `package.module:Class` names; modules in the current folder count too.

    Raises:
        InputError: the module cannot be imported, or the name is no finished method.
    """
    module_name, _, class_name = path.partition(":")
    if not module_name or not class_name:
        raise InputError(f"method {path!r} must read package.module:Class")
    found = getattr(_module(module_name, path), class_name, None)
    if not (isinstance(found, type) and issubclass(found, Method)):
        raise InputError(f"method {path!r}: module {module_name!r} has no Method called {class_name!r}")
    left = sorted(found.__abstractmethods__) + [name for name in ("name", "title") if not hasattr(found, name)]
    if left:
        raise InputError(f"method {path!r} does not define {', '.join(left)}")
    return found


def _module(name: str, path: str) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    # last, so that a file here cannot stand in for an installed module; a worker process looks in the same folder
    here = str(Path.cwd())
    sys.path.append(here)
    try:
        importlib.invalidate_caches()
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise InputError(
            f"method {path!r}: no module {error.name!r} is installed or in the current folder {here}"
        ) from error
    except Exception as error:
        told = str(error).partition("\n")[0] or type(error).__name__
        raise InputError(f"method {path!r}: importing it failed: {told}") from error
    finally:
        sys.path.remove(here)
