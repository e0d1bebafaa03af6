"""The fast reader of labels: whole columns, batch by batch, which is enough for most files.

It gives up on anything unusual (quotes, escapes, typed classes, lists as other programs write them, anything wrong).
The file is then read row by row (`formats`), which knows every case and names the row that is wrong.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.internal.names import KNOWN
from shortlist.labels.formats import COLUMNS, OPTIONAL, POLICY

ROWS = 1 << 16
"""Rows of a Parquet file that are read at a time."""
BYTES = 1 << 24
"""Bytes of a CSV file that are read at a time."""
FEW = 4
"""If texts occur more often than this on average, each is parsed only once."""


class UnusualError(Exception):
    """The file has to be read row by row."""


@dataclass
class Tokens:
    """Numbers for texts, in the order in which they first occur."""

    numbers: dict[str, int] = field(default_factory=dict)

    def encode(self, column: Any) -> NDArray[np.int32]:
        """The number of each text."""
        encoded = column.dictionary_encode()
        own = [self.numbers.setdefault(text, len(self.numbers)) for text in encoded.dictionary.to_pylist()]
        found: NDArray[np.int32] = np.array(own, np.int32)[encoded.indices.to_numpy(zero_copy_only=False)]
        return found


@dataclass
class Columns:
    """A whole file: texts as numbers, the lists one after another."""

    tokens: Tokens
    shown: NDArray[np.int32]
    sizes: NDArray[np.int64]
    answer: NDArray[np.int32]
    """For None, the number of the text ""."""
    items: list[str]
    classes: str
    chances: NDArray[np.float64] | None
    known: frozenset[str]
    """Items whose class was known, so that nobody was asked."""


def read_columns(path: Path) -> Columns:
    """All of a CSV or Parquet file.

    Raises:
        UnusualError: the file has to be read row by row.
    """
    try:
        batches = {".csv": _csv, ".parquet": _parquet}[path.suffix.lower()](path)
        return _gather(batches)
    except UnusualError:
        raise
    except Exception as error:  # broken files make the parsers raise nearly anything; the row is found later
        raise UnusualError from error


def _csv(path: Path) -> Iterator[dict[str, Any]]:
    import pyarrow as pa
    from pyarrow import csv

    with path.open("rb") as file:
        header = file.readline().decode("utf-8-sig").strip().split(",")
        file.seek(0)
        # in any column: quoted fields may hold commas and line ends
        if any(b'"' in block for block in iter(partial(file.read, BYTES), b"")):
            raise UnusualError
    wanted = [name for name in (*COLUMNS, *OPTIONAL, POLICY) if name in header]
    if len(set(header)) != len(header):
        raise UnusualError
    reader = csv.open_csv(
        path,
        read_options=csv.ReadOptions(block_size=BYTES),
        parse_options=csv.ParseOptions(quote_char=False),
        convert_options=csv.ConvertOptions(
            include_columns=wanted, column_types=dict.fromkeys(wanted, pa.string()), strings_can_be_null=False
        ),
    )
    for batch in reader:
        columns = dict(zip(wanted, batch.columns, strict=True))
        for column in columns.values():
            _refuse(column, "^'", regex=True)  # a cell guarded against spreadsheets
        yield columns


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        wanted = [name for name in (*COLUMNS, *OPTIONAL, POLICY) if name in file.schema_arrow.names]
        if any(file.schema_arrow.field(name).type != pa.string() for name in wanted):
            raise UnusualError
        for batch in file.iter_batches(ROWS, columns=wanted):
            yield {name: batch.column(name).fill_null("") for name in wanted}


def _gather(batches: Iterator[dict[str, Any]]) -> Columns:
    import pyarrow.compute as pc

    tokens, items, classes = Tokens(), [], ""
    shown, sizes, answer, known = [], [], [], set[str]()
    chances: list[NDArray[np.float64] | None] = []
    for batch in batches:
        flat, own = _split(batch["shortlist"])
        shown.append(tokens.encode(flat))
        sizes.append(own)
        answer.append(tokens.encode(batch["answer"]))
        items += batch["item"].to_pylist()
        if "typed" in batch:
            _refuse(batch["typed"], ".", regex=True)
        stated = [] if "classes" not in batch else batch["classes"].unique().to_pylist()
        classes = classes or next((text for text in stated if text), "")
        chances.append(_chances(batch.get("probabilities"), own))
        if POLICY in batch:
            known.update(batch["item"].filter(pc.equal(batch[POLICY], KNOWN)).to_pylist())
    if not items or ("" in tokens.numbers and (np.concatenate(shown) == tokens.numbers[""]).any()):
        raise UnusualError
    return Columns(
        tokens,
        np.concatenate(shown),
        np.concatenate(sizes),
        np.concatenate(answer),
        items,
        classes,
        _all(chances),
        frozenset(known),
    )


def _split(column: Any) -> tuple[Any, NDArray[np.int64]]:
    """The parts of texts joined by `|`, one after another, and how many each text has."""
    import pyarrow.compute as pc

    _refuse(column, "\\")
    lists = pc.split_pattern(column, "|")
    return lists.flatten(), pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)


def _chances(column: Any, sizes: NDArray[np.int64]) -> NDArray[np.float64] | None:
    import pyarrow.compute as pc

    if column is None or not pc.any(pc.not_equal(column, "")).as_py():
        return None
    encoded = column.dictionary_encode()
    if len(encoded.dictionary) * FEW < len(column):
        found = _repeated(encoded, sizes)
        if found is not None:
            return found
    flat, own = _split(column)
    if not np.array_equal(own, sizes):
        raise UnusualError
    return _numbers(flat)


def _repeated(encoded: Any, sizes: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """The same if few different texts occur, all of one length: each is parsed once."""
    flat, own = _split(encoded.dictionary)
    size = int(own[0])
    if (own != size).any() or (sizes != size).any():
        return None
    table = _numbers(flat).reshape(-1, size)
    repeated: NDArray[np.float64] = table[encoded.indices.to_numpy(zero_copy_only=False)].ravel()
    return repeated


def _numbers(texts: Any) -> NDArray[np.float64]:
    """The texts as numbers; NaN for an empty one."""
    import pyarrow.compute as pc

    found: NDArray[np.float64] = (
        pc.if_else(pc.equal(texts, ""), "nan", texts).cast("float64").to_numpy(zero_copy_only=False)
    )
    return found


def _all(parts: Sequence[NDArray[np.float64] | None]) -> NDArray[np.float64] | None:
    """All parts joined, or None if no batch has them; a mixture is unusual."""
    given = [part for part in parts if part is not None]
    if given and len(given) < len(parts):
        raise UnusualError
    return np.concatenate(given) if given else None


def _refuse(column: Any, text: str, *, regex: bool = False) -> None:
    """Give up if a text of the column contains `text`."""
    import pyarrow.compute as pc

    find = pc.match_substring_regex if regex else pc.match_substring
    if pc.any(find(column, text)).as_py():
        raise UnusualError
