"""kill -9 at random moments under concurrent clients: what was acknowledged is there, and there once.

The long version is benchmarks/annotate_crash.py.
"""

import http.client
import random
import threading
import time

from sqlalchemy import func, select

from shortlist.annotate.db.schema import Answer, Item, Question, Slot
from shortlist.annotate.project.people import People

from .running import Caller, Server, free_port

ROUNDS, CLIENTS = 3, 8


class Client(threading.Thread):
    """Answers until the server is gone; remembers what was acknowledged, and sends again what was not."""

    def __init__(self, port: int, token: str, acknowledged: dict, pending: list) -> None:
        super().__init__(daemon=True)
        self.port, self.token = port, token
        self.acknowledged, self.pending = acknowledged, pending
        self.wrong: list = []

    def run(self) -> None:
        caller = Caller(self.port, self.token)
        try:
            while True:
                for body in list(self.pending):
                    self.submit(caller, body)
                status, reply = caller.post("/next", {"hold": 2})
                if status != 200:
                    self.wrong.append((status, reply))
                    return
                if not reply["questions"]:
                    return
                q = reply["questions"][0]
                choice = random.choice([None, *(shown["class"] for shown in q["shortlist"])])
                body = {"question": q["id"], "attempt": q["attempt"], "answer": choice, "seconds": 1.0}
                self.pending.append(body)
                self.submit(caller, body)
        except (OSError, http.client.HTTPException):
            return
        finally:
            caller.close()

    def submit(self, caller: Caller, body: dict) -> None:
        status, reply = caller.post("/answers", body)
        if status != 200:
            self.wrong.append((status, reply))
        else:
            self.acknowledged[body["question"], body["attempt"]] = (body["answer"], reply["saved"]["id"])
        self.pending.remove(body)


def test_every_acknowledged_answer_survives(make_project, database):
    project = make_project(database, items=3000)
    auth = People(project)
    tokens = [auth.make_token("client", auth.invite(f"client {i}")[0]) for i in range(CLIENTS)]
    acknowledged: list[dict] = [{} for _ in range(CLIENTS)]
    pending: list[list] = [[] for _ in range(CLIENTS)]
    port, dice = free_port(), random.Random()
    for _ in range(ROUNDS):
        server = Server(project.folder, port)
        try:
            server.wait()
            clients = [Client(port, *rest) for rest in zip(tokens, acknowledged, pending, strict=True)]
            for client in clients:
                client.start()
            wait_for(dice.randint(10, 120), acknowledged)
        finally:
            server.kill()
        for client in clients:
            client.join(10)
            assert not client.is_alive()
            assert client.wrong == []
    check(project, {key: value for mine in acknowledged for key, value in mine.items()})


def wait_for(more: int, acknowledged: list[dict]) -> None:
    """Until so many more answers were acknowledged: a random moment, however fast the machine is."""
    goal, end = sum(map(len, acknowledged)) + more, time.monotonic() + 60
    while sum(map(len, acknowledged)) < goal and time.monotonic() < end:
        time.sleep(0.001)


def check(project, acknowledged: dict) -> None:
    assert len(acknowledged) >= 10 * ROUNDS
    assert project.store.check() == []
    with project.store.read() as connection:
        rows = connection.execute(select(Answer)).mappings().all()
        stored = {(row["question_id"], row["attempt"]): (row["class_id"], row["id"]) for row in rows}
        assert len(stored) == len(rows), "none twice"
        assert {key: stored.get(key) for key in acknowledged} == acknowledged
        open_twice = select(Question.slot_id).where(Question.state == "open").group_by(Question.slot_id)
        assert connection.execute(open_twice.having(func.count() > 1)).all() == []
        done = connection.execute(select(func.count()).where(Slot.state == "done")).scalar()
        settled = connection.execute(select(func.count()).where(Item.state == "done")).scalar()
        assert done == settled == len(rows)
        answered_twice = select(Question.slot_id).where(Question.state == "answered").group_by(Question.slot_id)
        assert connection.execute(answered_twice.having(func.count() > 1)).all() == []
