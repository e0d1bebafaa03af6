"""What the files of methods and models of one's own say: after a change there, earlier runs are other runs."""

import inspect
import sys
from functools import cache
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
    kinds = found.__mro__ if isinstance(found, type) else (found,)
    names = dict.fromkeys(getattr(kind, "__module__", module) for kind in kinds)
    own = [name for name in names if name.partition(".")[0] not in OTHERS]
    return tuple(_source(sys.modules[name]) for name in own or [module] if name in sys.modules)


@cache  # as it was imported, even if the file is edited while the process runs
def _source(module: ModuleType) -> str:
    return inspect.getsource(module)
