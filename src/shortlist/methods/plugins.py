"""Methods from the user's own modules, named `package.module:Class`."""

from shortlist.errors import InputError
from shortlist.internal.plugins import own_object
from shortlist.methods.base import Method


def own_method(path: str) -> type[Method]:
    """The class that `package.module:Class` names; modules in the current folder count too.

    Raises:
        InputError: the module cannot be imported, or the name is no finished method.
    """
    found: type[Method] = own_object(
        "method", path, "Class", lambda named: isinstance(named, type) and issubclass(named, Method)
    )
    left = sorted(found.__abstractmethods__) + [name for name in ("name", "title") if not hasattr(found, name)]
    if left:
        raise InputError(f"method {path!r} does not define {', '.join(left)}")
    return found
