"""kill -9 the annotation server at random moments under 16 clients; nothing acknowledged is lost, nothing doubled.

    python benchmarks/annotate_crash.py          # both databases, 50 rounds each; writes results/annotate_crash.json

A round: start the server, let 16 clients answer, skip and undo as fast as they can, kill -9 after a random while (in
every fourth round counted from the first moment it listens, else from its first reply). What a client sent without
hearing back it sends again in the next round, as a browser's outbox does. On PostgreSQL every fifth
round stops the database itself at the same moment (an immediate stop: a crash). After every round:

- every acknowledged row is in the log, once, as it was acknowledged;
- no slot has two open questions, or two live answers, and no question was given to two annotators;
- an item is done exactly if its slot is; the counters of the annotators are those of the log;
- SQLite's integrity_check and foreign_key_check find nothing.

Figures: results/annotate_crash.json (2 cores, both databases, 50 rounds each, one run).
"""

import argparse
import http.client
import json
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, select

from annotate_servers import Caller, Postgres, Server, about, free_port, make_project, make_tokens, postgres
from shortlist.annotate.db.schema import Annotator, Answer, Item, Question, Slot
from shortlist.annotate.project.project import Project

ROOT = Path(__file__).parents[1]
REFUSALS = {"slot_taken", "nothing_to_undo"}  # an undo may come too late; that is an answer, not an error


class Client(threading.Thread):
    """Works until the server is gone. `memory` survives the rounds: what was acknowledged, what is still to be sent."""

    def __init__(self, port: int, token: str, memory: dict[str, Any], seed: int) -> None:
        super().__init__(daemon=True)
        self.port, self.token, self.memory = port, token, memory
        self.dice = random.Random(seed)
        self.wrong: list[Any] = []

    def run(self) -> None:
        caller = Caller(self.port, self.token)
        try:
            while not self.wrong:
                if self.memory["waiting"]:
                    self.send(caller)
                    continue
                status, reply = caller.post("/next", {"hold": 2})
                if status != 200 or not reply["questions"]:
                    self.wrong.append((status, reply))
                    return
                self.memory["waiting"] = self.decide(reply["questions"][0])
        except (OSError, http.client.HTTPException, ValueError):
            return  # killed, perhaps in the middle of a reply
        finally:
            caller.close()

    def decide(self, question: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        chance, last = self.dice.random(), self.memory["last"]
        if chance < 0.05 and last is not None:
            self.memory["last"] = None
            return "/undos", last
        shown = {"question": question["id"], "attempt": question["attempt"]}
        self.memory["last"] = shown
        if chance < 0.1:
            return "/skips", shown
        choice = self.dice.choice([None, *(choice["class"] for choice in question["shortlist"])])
        return "/answers", {**shown, "answer": choice, "seconds": 1.0}

    def send(self, caller: Caller) -> None:
        path, body = self.memory["waiting"]
        self.memory["sent"] += 1
        status, reply = caller.post(path, body)
        if status == 200:
            row = reply["saved"]
            key = (row["id"], row["question"], row["attempt"], row["kind"], row["answer"])
            self.memory["acknowledged"].append(key)
        elif status == 409 and reply["code"] in REFUSALS:
            self.memory["refused"] += 1
        elif status >= 500 and self.memory["database_stops"]:
            return  # the database was stopped under the server, which said so: send again
        else:
            self.wrong.append((path, body, status, reply))
            return
        self.memory["waiting"] = None


def check(project: Project, memories: list[dict[str, Any]]) -> list[str]:
    """What is wrong; empty when nothing is."""
    found = list(project.store.check())
    with project.store.read() as connection:
        columns = (Answer.id, Answer.question_id, Answer.attempt, Answer.kind, Answer.class_id)
        log = [tuple(row) for row in connection.execute(select(*columns))]
        stored = set(log)
        acknowledged = [key for memory in memories for key in memory["acknowledged"]]
        found += [f"acknowledged but not stored: {key}" for key in acknowledged if key not in stored]
        showings = Counter((row[1], row[2], row[3] == "undo") for row in log)
        found += [f"stored twice: {key}" for key, times in showings.items() if times > 1]
        for states in (("open",), ("answered",), ("open", "answered")):
            twice = select(Question.slot_id).where(Question.state.in_(states)).group_by(Question.slot_id)
            rows = connection.execute(twice.having(func.count() > 1)).scalars()
            found += [f"slot {slot} has two questions that are {' or '.join(states)}" for slot in rows]
        found += _counters(connection)
    return found


def _counters(connection: Connection) -> list[str]:
    done = connection.execute(select(func.count()).where(Slot.state == "done", ~Slot.gold)).scalar_one()
    items = connection.execute(select(func.count()).where(Item.state == "done")).scalar_one()
    answered = connection.execute(select(func.count()).where(Question.state == "answered")).scalar_one()
    counted = connection.execute(select(func.sum(Annotator.answers))).scalar_one()
    leased = connection.execute(select(func.count()).where(Slot.state == "leased")).scalar_one()
    opened = connection.execute(select(func.count()).where(Question.state == "open")).scalar_one()
    found = [] if done == items == answered == counted else [f"done {done}, {items}, {answered}, {counted} differ"]
    return found + ([] if leased == opened else [f"{leased} leased slots, {opened} open questions"])


def _acknowledged(memories: list[dict[str, Any]]) -> int:
    return sum(len(memory["acknowledged"]) for memory in memories)


def crash(database: str | None, cluster: Postgres | None, rounds: int, clients: int, items: int) -> dict[str, Any]:
    """All rounds on one database."""
    name, begun = "sqlite" if database is None else "postgresql", time.monotonic()
    dice = random.Random()
    with tempfile.TemporaryDirectory(prefix="annotate-crash-") as folder:
        project = make_project(Path(folder) / "project", database, items)
        tokens, port = make_tokens(project, clients), free_port()
        memories: list[dict[str, Any]] = [
            {"acknowledged": [], "waiting": None, "last": None, "sent": 0, "refused": 0, "database_stops": False}
            for _ in range(clients)
        ]
        unheard = stops = 0
        for number in range(1, rounds + 1):
            stop_database = cluster is not None and number % 5 == 0
            for memory in memories:
                memory["database_stops"] = stop_database
            server = Server(project.folder, port, quiet=stop_database)
            server.wait()
            threads = [
                Client(port, token, memory, dice.getrandbits(32))
                for token, memory in zip(tokens, memories, strict=True)
            ]
            for thread in threads:
                thread.start()
            before = _acknowledged(memories)
            while number % 4 and _acknowledged(memories) == before and any(thread.is_alive() for thread in threads):
                time.sleep(0.005)
            time.sleep(dice.uniform(0.0, 1.5))
            if stop_database and cluster is not None:
                cluster.stop()
                stops += 1
            server.kill()
            for thread in threads:
                thread.join(60)
            if stop_database and cluster is not None:
                project.store.engine.dispose()
                cluster.start()
            wrong = [problem for thread in threads for problem in thread.wrong] + check(project, memories)
            if wrong:
                raise SystemExit(f"{name}, round {number}: {wrong[:5]}")
            unheard += sum(memory["waiting"] is not None for memory in memories)
            print(f"{name} round {number}: {_acknowledged(memories)} acknowledged, sound", file=sys.stderr)
        with project.store.read() as connection:
            stored = connection.execute(select(func.count()).select_from(Answer)).scalar_one()
        kinds = Counter(key[3] for memory in memories for key in memory["acknowledged"])
        project.close()
    return {
        **{"database": name, "rounds": rounds, "clients": clients, "database_stopped_too": stops},
        **{"acknowledged": dict(kinds), "rows_stored": stored, "sent_without_reply_at_the_kill": unheard},
        # a run that finds any of these ends there and writes nothing
        **{"acknowledged_but_lost": 0, "stored_twice": 0, "slots_leased_twice": 0, "integrity_errors": 0},
        "seconds": round(time.monotonic() - begun, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--items", type=int, default=60_000)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "annotate_crash.json")
    options = parser.parse_args()
    result: dict[str, Any] = {**about(), "runs": []}
    with postgres() as cluster:
        for place in (None, cluster):
            if place is None or cluster is not None:
                database = None if place is None else place.new_database()
                result["runs"].append(crash(database, place, options.rounds, options.clients, options.items))
    options.out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result["runs"], indent=2))


if __name__ == "__main__":
    main()
