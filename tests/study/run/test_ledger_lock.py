"""The lock on a ledger's file: who appends waits for the others, who reads for those that write; no lock is left."""

import fcntl
import threading

import pytest

from shortlist.study.run.ledger import Ledger


@pytest.mark.parametrize(
    ("held", "read", "written"),
    [(fcntl.LOCK_EX, "waits", "waits"), (fcntl.LOCK_SH, "goes on", "waits"), (fcntl.LOCK_UN, "goes on", "goes on")],
)
def test_who_waits_for_whom(tmp_path, held, read, written):
    path = tmp_path / "a.jsonl"
    ledger = Ledger(path)
    ledger.append({"key": "first"})
    for act, expected in ((ledger.refresh, read), (lambda: ledger.append({"key": "second"}), written)):
        with path.open() as other:
            fcntl.flock(other, held)
            thread = threading.Thread(target=act)
            thread.start()
            thread.join(5 if expected == "goes on" else 0.2)
            assert thread.is_alive() == (expected == "waits")
            fcntl.flock(other, fcntl.LOCK_UN)
            thread.join(5)
            assert not thread.is_alive()
    assert [row["key"] for row in Ledger(path).rows()] == ["first", "second"]
