"""A clock that stands still, and what the database says."""

import pytest

from ..conftest import Clock


@pytest.fixture
def clock():
    return Clock()


def scalar(project, statement):
    with project.store.read() as connection:
        return connection.execute(statement).scalar()
