"""Transactions in steps: one stops (`yield`) where it has sent what it must wait for, so that others can send theirs.

On PostgreSQL a batch of them then waits for the database a few times in all, instead of a few times each.
"""

from collections.abc import Generator
from typing import TypeVar

Value = TypeVar("Value")
Steps = Generator[None, None, Value]


def finish(steps: Steps[Value]) -> Value:
    """Run all steps without a stop."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            value: Value = end.value
            return value
