"""Optional packages, installed as extras (`pip install "shortlist[train]"`); a missing one is an error of one line."""

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
"""The modules that each extra of pyproject.toml installs."""


class MissingExtraError(InputError, ImportError):
    """A package of an extra is not installed; the message says how to install it."""


@contextmanager
def named_extra() -> Iterator[None]:
    """Say which extra installs a missing module: `with named_extra(): import torch`."""
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
