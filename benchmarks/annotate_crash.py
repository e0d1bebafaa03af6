"""kill -9 under ten clients, a thousand times: nothing acknowledged is lost, nothing doubled, nothing leased twice.

Measured on two cores of an AMD EPYC (results/annotate_crash.json): of 118,030 acknowledged answers, skips and undos
none was lost or stored twice, and no question was leased twice.

    python benchmarks/annotate_crash.py --rounds 1000     # writes results/annotate_crash.json after every 25 rounds

Half of the rounds are on SQLite and half on PostgreSQL. In a round ten clients answer, skip and undo as fast as they
can, until a number of answers, drawn between 50 and 150, was acknowledged; then kill -9:

- `server`: the one process that serves;
- `database` (100 of 1,000 rounds): every process of PostgreSQL and the server, at the same moment;
- `worker` (100 of 1,000 rounds): one of four workers, while the others go on and the parent starts another.

What a client sent without hearing back it sends again, as a browser's outbox does. After every round:

- every acknowledged row is in the log, once, as it was acknowledged;
- no slot has two open questions, or two live answers, and no question was given to two annotators;
- counters and states agree with the log (`shortlist annotate check`), SQLite's own checks find nothing.

Rounds come in batches of 25 on a project of their own; run again, it goes on after the last whole batch. Servers are
forked from a process that has imported everything, which saves a second each. Figures: results/annotate_crash.json.
"""

import argparse
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from annotate_servers import Caller, Postgres, Server, about, family, free_port, make_project, make_tokens, postgres
from shortlist.annotate.db.schema import Answer, Question
from shortlist.annotate.project.project import Project
from shortlist.internal.files import atomic_path

ROOT = Path(__file__).parents[1]
CLIENTS, ITEMS, ROUNDS, LEAST, MOST = 10, 8_000, 25, 50, 150
REFUSALS = {"slot_taken", "nothing_to_undo"}  # an undo may come too late; that is an answer, not an error
PATIENCE = 120.0


class Client(threading.Thread):
    """Works until told to stop. `memory` survives the rounds: what was acknowledged, what is still to be sent."""

    def __init__(self, port: int, token: str, memory: dict[str, Any], over: threading.Event) -> None:
        super().__init__(daemon=True)
        self.port, self.token, self.memory, self.over = port, token, memory, over
        self.dice = random.Random()
        self.wrong: list[Any] = []

    def run(self) -> None:
        while not (self.over.is_set() or self.wrong):
            caller = Caller(self.port, self.token)
            try:
                while not (self.over.is_set() or self.wrong):
                    self.step(caller)
            except (OSError, http.client.HTTPException, ValueError):
                self.over.wait(0.02)  # killed, perhaps in the middle of a reply; there may be another worker
            finally:
                caller.close()

    def step(self, caller: Caller) -> None:
        if self.memory["waiting"]:
            self.send(caller)
            return
        status, reply = caller.post("/next", {"hold": 2})
        if later(status):
            self.over.wait(0.05)
        elif status != 200 or not reply["questions"]:
            self.wrong.append((status, reply))
        else:
            self.memory["waiting"] = self.decide(reply["questions"][0])

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
        status, reply = caller.post(path, body)
        if later(status):
            self.over.wait(0.05)
            return
        if status == 200:
            row = reply["saved"]
            key = (row["id"], row["question"], row["attempt"], row["kind"], row["answer"])
            self.memory["acknowledged"].append(key)
        elif not (status == 409 and reply["code"] in REFUSALS):
            self.wrong.append((path, body, status, reply))
        self.memory["waiting"] = None


def later(status: int) -> bool:
    """Whether to send it again: the database is away, and the server says so; or one asks faster than people may."""
    return status >= 500 or status == 429


def check(project: Project, memories: list[dict[str, Any]]) -> list[str]:
    """What is wrong; empty when nothing is."""
    found = project.check()
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
    return found


LAUNCHER = """
import json, os, signal, sys
import shortlist.annotate.web.serve, shortlist.annotate.web.app, shortlist.annotate.web.connections, uvicorn
import shortlist.annotate.project.backup, uvicorn.lifespan.on, psycopg, sqlalchemy.dialects.sqlite
from shortlist.cli.annotate import app
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    folder, port = json.loads(line)
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(2, 1)
        app(["serve", folder, "--port", str(port)])
        os._exit(0)
    print(pid, flush=True)
"""


class Launcher:
    """Forks servers from a process that has imported everything."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", LAUNCHER]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, text=True, **pipes)  # type: ignore[call-overload]

    def serve(self, folder: Path, port: int) -> int:
        self.process.stdin.write(json.dumps([str(folder), port]) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


def kill_all(pids: list[int]) -> None:
    """kill -9, and wait until they are gone."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    while any(_runs(pid) for pid in pids):
        time.sleep(0.005)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Batch:
    """Twenty-five rounds on one project."""

    def __init__(self, kind: str, cluster: Postgres | None, launcher: Launcher, folder: Path) -> None:
        self.kind, self.cluster, self.launcher = kind, cluster, launcher
        self.project = make_project(folder, None if cluster is None else cluster.new_database(), ITEMS)
        self.tokens, self.port = make_tokens(self.project, CLIENTS), free_port()
        self.memories: list[dict[str, Any]] = [{"acknowledged": [], "waiting": None, "last": None} for _ in self.tokens]
        self.in_rounds: list[int] = []
        self.server = Server(folder, self.port, quiet=True, workers=4) if kind == "worker" else None

    def answers(self) -> int:
        return sum(key[3] == "answer" for memory in self.memories for key in memory["acknowledged"])

    def round(self) -> None:
        server = 0 if self.server else self.launcher.serve(self.project.folder, self.port)
        over, before, wanted = threading.Event(), self.answers(), random.randint(LEAST, MOST)
        clients = [Client(self.port, *rest, over) for rest in zip(self.tokens, self.memories, strict=True)]
        for client in clients:
            client.start()
        end = time.monotonic() + PATIENCE
        while self.answers() - before < wanted and not any(client.wrong for client in clients):
            time.sleep(0.002)
            if time.monotonic() > end:
                raise SystemExit(f"{self.kind}: {self.answers() - before} answers in {PATIENCE:.0f} s")
        if self.server is None:
            if self.kind == "database" and self.cluster is not None:
                self.cluster.kill()
            kill_all([server])
        else:
            kill_all([random.choice(family(self.server.process.pid)[1:])])
            after = self.answers()
            while self.answers() - after < LEAST and not any(client.wrong for client in clients):
                time.sleep(0.002)  # the others go on
        over.set()
        for client in clients:
            client.join(60)
        if self.kind == "database" and self.cluster is not None:
            self.project.store.engine.dispose()
            self.cluster.forget()
            self.cluster.start()
        wrong = [problem for client in clients for problem in client.wrong] + check(self.project, self.memories)
        if wrong:
            raise SystemExit(f"{self.kind}, round {len(self.in_rounds) + 1}: {wrong[:5]}")
        self.in_rounds.append(self.answers() - before)

    def run(self) -> dict[str, Any]:
        begun = time.monotonic()
        if self.server is not None:
            self.server.wait()
        for _ in range(ROUNDS):
            self.round()
        if self.server is not None:
            self.server.kill()
        with self.project.store.read() as connection:
            stored = connection.execute(select(func.count()).select_from(Answer)).scalar_one()
        kinds = Counter(key[3] for memory in self.memories for key in memory["acknowledged"])
        self.project.close()
        return {
            **{"database": "sqlite" if self.cluster is None else "postgresql", "killed": self.kind, "rounds": ROUNDS},
            **{"least_answers_in_a_round": min(self.in_rounds), "acknowledged": dict(kinds), "rows_stored": stored},
            # a batch that finds any of these ends the run and is not written
            **{"acknowledged_but_lost": 0, "stored_twice": 0, "slots_leased_twice": 0, "integrity_errors": 0},
            "seconds": round(time.monotonic() - begun, 1),
        }


def plan(rounds: int, has_postgres: bool) -> list[tuple[str, str]]:
    """The batches, both databases in turn, so that a run cut short has some of each."""
    each = max(1, rounds // ROUNDS // 2)
    rare = max(1, each // 5)
    served = [("postgresql", "server")] * (each - 2 * rare)
    theirs = [("postgresql", "database"), ("postgresql", "worker")] * rare + served
    ours = [("sqlite", "server")] * each
    return [one for pair in zip(ours, theirs, strict=True) for one in pair] if has_postgres else ours


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=24 * 60, help="begin no batch after these; run it again")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "annotate_crash.json")
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    known = json.loads(options.out.read_text()) if options.out.exists() else {}
    batches: list[dict[str, Any]] = known.get("batches", [])
    launcher = Launcher()
    with postgres() as cluster:
        left = plan(options.rounds, cluster is not None)
        for batch in batches:
            key = (batch["database"], batch["killed"])
            if key in left:
                left.remove(key)
        for database, kind in left:
            if time.monotonic() > end:
                break
            with tempfile.TemporaryDirectory(prefix="annotate-crash-") as folder:
                place = cluster if database == "postgresql" else None
                batches.append(Batch(kind, place, launcher, Path(folder) / "project").run())
            print(json.dumps(batches[-1]), file=sys.stderr)
            write(options.out, batches)
    launcher.process.kill()
    print(json.dumps(totals(batches), indent=2))


def write(out: Path, batches: list[dict[str, Any]]) -> None:
    with atomic_path(out) as temporary:
        temporary.write_text(json.dumps({**about(), "totals": totals(batches), "batches": batches}, indent=1) + "\n")


def totals(batches: list[dict[str, Any]]) -> dict[str, Any]:
    """Over all batches."""
    rounds: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for batch in batches:
        rounds[f"{batch['database']}, {batch['killed']} killed"] += batch["rounds"]
        kinds.update(batch["acknowledged"])
    wrong = ("acknowledged_but_lost", "stored_twice", "slots_leased_twice", "integrity_errors")
    return {
        **{"rounds": sum(rounds.values()), "by_kind": dict(rounds), "acknowledged": dict(kinds)},
        "least_answers_in_a_round": min(batch["least_answers_in_a_round"] for batch in batches),
        **{name: sum(batch[name] for batch in batches) for name in wrong},
        "seconds": round(sum(batch["seconds"] for batch in batches), 1),
    }


if __name__ == "__main__":
    main()
