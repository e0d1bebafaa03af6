"""What only some uses need is installed by name, `pip install "shortlist[train]"`; what is missing is one line."""

from collections.abc import Iterator
from contextlib import contextmanager

from shortlist.errors import InputError

EXTRAS = {
    "train": ("safetensors", "torch"),
    "annotate": (
        *("alembic", "fastapi", "httptools", "itsdangerous", "psycopg", "pydantic"),
        *("sqlalchemy", "starlette", "uvicorn", "uvloop"),
    ),
    "embeddings": ("sentence_transformers",),
    "activeml": ("skactiveml",),
    "ray": ("ray",),
}
"""The modules that each extra of pyproject.toml brings."""


class MissingExtraError(InputError, ImportError):
    """A package of an extra is not installed; the line names the command that installs it."""


@contextmanager
def named_extra() -> Iterator[None]:
    """Say which extra brings a module that is missing: `with named_extra(): import torch`."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        extra = next((extra for extra, modules in EXTRAS.items() if missing in modules), None)
        if extra is None:
            raise
        raise MissingExtraError(
            f'{missing} is not installed: pip install "shortlist[{extra}]"'
            f' (in a clone: .venv/bin/pip install -c constraints.txt -e ".[{extra}]")',
        ) from error
