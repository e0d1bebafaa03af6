"""Statements written once with SQLAlchemy and run by the driver itself.

SQLAlchemy takes some 50 µs to run a statement, several times what SQLite needs for it. Here each statement is compiled
once per database; after that the driver is given the text and the values, and rows come back as plain dictionaries.
On PostgreSQL statements are sent without waiting for one another (libpq's pipeline): only reading a result waits.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Dialect, Executable

Values = Mapping[str, Any]
Row = Mapping[Any, Any]
Processor = Callable[[Any], Any] | None


class Mappings(Protocol):
    """Rows by the names of their columns."""

    def first(self) -> Row | None:
        """The first row; None if there is none."""

    def one(self) -> Row:
        """The only row."""

    def all(self) -> Sequence[Row]:
        """Every row."""

    def __iter__(self) -> Iterator[Row]: ...


class Result(Protocol):
    """What a statement found."""

    def scalar(self) -> Any:
        """The first column of the first row; None if there is none."""

    def scalar_one(self) -> Any:
        """The first column of the only row."""

    def scalars(self) -> Iterable[Any]:
        """The first column of every row."""

    def mappings(self) -> Mappings:
        """The rows by the names of their columns."""


class Runs(Protocol):
    """A connection as the queue sees it: SQLAlchemy's own, or `Quick`."""

    def execute(self, statement: Executable, parameters: Any = None, /) -> Result:
        """Run a statement."""


class Quick:
    """A connection inside a transaction that hands statements to the driver."""

    def __init__(self, connection: Connection) -> None:
        self._raw: Any = connection.connection.driver_connection
        self._dialect = connection.dialect
        self._plans = _PLANS.setdefault(connection.dialect, WeakKeyDictionary())
        self._expected: dict[Executable, Rows] = {}
        self.wrote = False
        """Whether anything was written since this was last set to False."""
        self._committing = False
        self.memo: dict[str, Any] = {}
        """What was read already and stays true within this transaction."""
        self.together_with: Collection[int] = ()
        """The annotators whose steps are run in turn in this transaction."""
        self.after: list[Callable[[], None]] = []
        """What to do in memory once all is committed."""

    def together(self) -> AbstractContextManager[Any]:
        """Within this, PostgreSQL is sent statements without waiting for one another."""
        found: AbstractContextManager[Any] = self._raw.pipeline() if self.folds else nullcontext()
        return found

    @property
    def folds(self) -> bool:
        """Whether several writes are better sent as one statement: PostgreSQL takes a while for each."""
        return self._dialect.name != "sqlite"

    def commit(self) -> None:
        """Everything was run. PostgreSQL is sent the commit along with what it has not answered yet."""
        self._committing = True
        if self.folds:
            self._raw.execute("COMMIT")

    @property
    def unsure(self) -> bool:
        """After an error: whether everything may have been committed all the same.

        An error that PostgreSQL reports means that nothing was; if the connection is lost, nobody knows.
        """
        return self._committing and (self.lost or not self.folds)

    @property
    def lost(self) -> bool:
        """Whether the connection to PostgreSQL is gone."""
        return self.folds and bool(self._raw.closed)

    def hurry(self) -> None:
        """Rather fail than wait for another process's locks: two batches may wait for each other."""
        if self.folds:
            self._raw.execute("SET LOCAL lock_timeout = '100ms'")

    def expect(self, statement: Executable, parameters: Values | None = None) -> None:
        """Send a statement whose rows will be asked for: the next `execute` of it returns these."""
        if self.folds and statement not in self._expected:
            self._expected[statement] = self.execute(statement, parameters)

    def execute(self, statement: Executable, parameters: Values | None = None, /) -> "Rows":
        """Run a statement; on PostgreSQL it is only sent, and waited for when its rows are asked for."""
        if statement in self._expected:
            return self._expected.pop(statement)
        values = parameters or {}
        plan = self._plan(statement, values)
        self.wrote = self.wrote or plan.writes
        return Rows(self._raw.execute(plan.text, plan.bind(values)), plan)

    def _plan(self, statement: Any, values: Values) -> "_Plan":
        plans = self._plans.get(statement)
        if plans is None:
            plans = self._plans[statement] = {}
        lengths = tuple(map(len, _lists(statement, values).values()))
        plan = plans.get(lengths)
        if plan is None:
            plan = plans[lengths] = _Plan(statement, self._dialect, values)
        return plan


# by dialect and statement; the plans of a statement that was made for one use are forgotten with it
_PLANS: WeakKeyDictionary[Dialect, WeakKeyDictionary[Any, dict[tuple[int, ...], "_Plan"]]] = WeakKeyDictionary()


class _Plan:
    """A statement as the driver takes it."""

    def __init__(self, statement: Any, dialect: Dialect, values: Values) -> None:
        compiled = statement.compile(dialect=dialect)
        state = compiled.construct_expanded_state(dict(values))  # an IN has as many parameters as members
        self.text = state.statement
        self._positional = bool(compiled.positional)
        # one that reads what its own parts have written counts as well
        self.writes = bool(statement.is_dml or getattr(statement, "_independent_ctes", ()))
        places: dict[str, tuple[str, int | None]] = {
            name: (base, i) for base, names in state.parameter_expansion.items() for i, name in enumerate(names)
        }
        self._sources = [
            _source(name, places.get(name, (name, None)), compiled.binds, dialect)
            for name in state.positiontup or state.parameters
        ]
        returns = statement.is_select or bool(statement._returning)
        columns = list(statement.exported_columns) if returns else []
        self.names: list[Any] = [getattr(column, "name", None) for column in columns]  # EXISTS has none
        # SQLite knows neither JSON nor booleans; PostgreSQL's driver returns Python's values
        kinds = [column.type.dialect_impl(dialect) for column in columns] if dialect.name == "sqlite" else []
        found = enumerate(kind.result_processor(dialect, None) for kind in kinds)
        self._processors = [(index, process) for index, process in found if process is not None]

    def bind(self, values: Values) -> Any:
        """The values in the form that the driver wants."""
        given = []
        for _, name, place, process, constant in self._sources:
            value = constant if name is None else values[name] if place is None else values[name][place]
            given.append(value if process is None else process(value))
        return given if self._positional else {name: one for (name, *_), one in zip(self._sources, given, strict=True)}

    def read(self, row: Sequence[Any]) -> Sequence[Any]:
        """A row of the driver as Python's values."""
        if not self._processors:
            return row
        values = list(row)
        for index, process in self._processors:
            values[index] = process(values[index])
        return values


def _lists(statement: Any, values: Values) -> dict[str, list[Any]]:
    """The values of a SELECT that stand for the members of an IN; elsewhere a list is what a column holds."""
    if not statement.is_select:
        return {}
    return {name: value for name, value in values.items() if type(value) is list}


class _Source(NamedTuple):
    """Where the value of a parameter comes from: a given value, or one of a given list, or a constant."""

    name: str
    given: str | None = None
    place: int | None = None
    process: Processor = None
    constant: Any = None


def _source(name: str, member: tuple[str, int | None], binds: Any, dialect: Dialect) -> _Source:
    base, place = member
    bind = binds[base]
    process = bind.type.dialect_impl(dialect).bind_processor(dialect)
    if bind.required:
        return _Source(name, bind.key, place, process)
    value = bind.effective_value
    return _Source(name, process=process, constant=value if place is None else value[place])


class Rows:
    """What a statement found, by the names of the columns."""

    __slots__ = ("_cursor", "_plan")

    def __init__(self, cursor: Any, plan: _Plan) -> None:
        self._cursor, self._plan = cursor, plan

    def scalar(self) -> Any:
        """The first column of the first row; None if there is none."""
        row = self._cursor.fetchone()
        return None if row is None else self._plan.read(row)[0]

    def scalar_one(self) -> Any:
        """The first column of the only row."""
        (row,) = self._cursor.fetchall()
        return self._plan.read(row)[0]

    def scalars(self) -> list[Any]:
        """The first column of every row."""
        return [self._plan.read(row)[0] for row in self._cursor.fetchall()]

    def mappings(self) -> "Rows":
        """Itself: its rows have the names of their columns anyway."""
        return self

    def first(self) -> Row | None:
        """The first row; None if there is none."""
        row = self._cursor.fetchone()
        return None if row is None else dict(zip(self._plan.names, self._plan.read(row), strict=True))

    def one(self) -> Row:
        """The only row."""
        (row,) = self.all()
        return row

    def all(self) -> list[Row]:
        """Every row."""
        plan = self._plan
        return [dict(zip(plan.names, plan.read(row), strict=True)) for row in self._cursor.fetchall()]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.all())
