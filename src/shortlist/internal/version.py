"""The installed version."""

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed

try:
    __version__ = installed("shortlist")
except PackageNotFoundError:  # run from a source tree that was never installed (PYTHONPATH=src)
    __version__ = "unknown"
