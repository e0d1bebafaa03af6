"""How the annotation server bears load: 200 annotators with 2 s to think, the highest rate, start-up, memory.

    python benchmarks/annotate_load.py           # about ten minutes; writes results/annotate_load.json

Claims: with 200 annotators who think 2 s, for 60 s: no error, p99 of next + answer under 150 ms on SQLite; the time
per request does not grow with the number of items (1,000 and 100,000; 1,000 items are asked 200 times each, or they
would be used up in seconds) or of answers; start to first question shown in a browser under 3 s; under 150 MB.

The client is a hundred lines of asyncio on plain sockets, in a process of its own, not locust: on two cores a heavy
client takes from the server the processor that is being measured. An annotator asks for a question, thinks, answers;
`pair` is the time of both requests together. Rates count pairs; the highest rate is that of 64 annotators who do not
think, and `fastest_later` is the same once more, after many more answers.

Figures: results/annotate_load.json (hardware, versions and the load of the machine are in the file; one run).
"""

import argparse
import asyncio
import json
import multiprocessing
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from annotate_servers import Caller, Server, about, free_port, make_project, make_tokens, postgres
from annotate_wire import Wire

ROOT = Path(__file__).parents[1]
ANNOTATORS, THINK, SECONDS, CROWD = 200, 2.0, 60.0, 64
# a callback of the first frame runs before its paint, one of the second after it
PAINTED = "() => new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(() => painted())))"


async def post(wire: Wire, path: str, body: dict[str, Any]) -> tuple[int, Any, float]:
    """The status, the reply and the seconds it took."""
    reply = await wire.ask("POST", f"/api/v1{path}", body)
    return reply.status, json.loads(reply.content), reply.seconds


class Tally:
    """What all annotators saw."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = {"next": [], "answer": [], "pair": []}
        self.errors: list[str] = []


async def annotator(wire: Wire, think: float, start: float, end: float, tally: Tally, dice: random.Random) -> None:
    """Ask, think, answer until the end; the first think time is drawn, so that nobody marches in step."""
    await wire.open()
    await asyncio.sleep(max(0.0, start - time.monotonic()) + dice.random() * think)
    while time.monotonic() < end:
        status, reply, asked = await post(wire, "/next", {"hold": 1})
        if status != 200 or not reply["questions"]:
            tally.errors.append(f"next: {status} {str(reply)[:100]}")
            return
        question = reply["questions"][0]
        if think:
            await asyncio.sleep(dice.uniform(0.5 * think, 1.5 * think))
        choice = dice.choice([None, *(shown["class"] for shown in question["shortlist"])])
        body = {"question": question["id"], "attempt": question["attempt"], "answer": choice, "seconds": think}
        status, reply, answered = await post(wire, "/answers", body)
        if status != 200:
            tally.errors.append(f"answer: {status} {str(reply)[:100]}")
            return
        for name, seconds in (("next", asked), ("answer", answered), ("pair", asked + answered)):
            tally.times[name].append(seconds)
    wire.writer.close()


def drive(port: int, tokens: list[str], think: float, seconds: float, results: Any) -> None:
    """The client's process."""

    async def crowd() -> Tally:
        tally, start = Tally(), time.monotonic() + 0.5
        people = [
            annotator(Wire(port, token), think, start, start + seconds, tally, random.Random(i))
            for i, token in enumerate(tokens)
        ]
        done = await asyncio.gather(*people, return_exceptions=True)
        tally.errors += [repr(error) for error in done if error is not None]
        return tally

    tally = asyncio.run(crowd())
    results.put((tally.times, tally.errors))


def measure(server: Server, tokens: list[str], think: float, seconds: float) -> dict[str, Any]:
    """One crowd against one server."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=drive, args=(server.port, tokens, think, seconds, results))
    before = server.cpu_seconds()
    process.start()
    times, errors = results.get(timeout=seconds + 120)
    process.join()
    pairs = len(times["pair"])
    return {
        **{"annotators": len(tokens), "think_seconds": think, "seconds": seconds},
        **{"errors": len(errors), "first_error": errors[0] if errors else None},
        **{"pairs": pairs, "pairs_per_second": round(pairs / seconds, 1)},
        **{name: _milliseconds(values) for name, values in times.items()},
        "server_cpu_share": round((server.cpu_seconds() - before) / seconds, 2),
        "server_megabytes": round(server.megabytes()),
    }


def _milliseconds(values: list[float]) -> dict[str, float]:
    ordered = sorted(values) or [float("nan")]
    last = len(ordered) - 1
    found = {f"p{share}": ordered[round(last * share / 100)] for share in (50, 95, 99)}
    return {f"{name}_ms": round(1000 * value, 1) for name, value in {**found, "max": ordered[-1]}.items()}


def one(database: str | None, items: int, seconds: float) -> dict[str, Any]:
    """One database with so many items: calm, then as fast as it goes."""
    name = "sqlite" if database is None else "postgresql"
    overlap = max(1, 200_000 // items)
    with tempfile.TemporaryDirectory(prefix="annotate-load-") as folder:
        begun = time.monotonic()
        project = make_project(Path(folder) / "project", database, items, overlap)
        imported = time.monotonic() - begun
        tokens = make_tokens(project, ANNOTATORS)
        project.close()
        server = Server(project.folder, free_port())
        try:
            server.wait()
            caller = Caller(server.port, tokens[0])
            assert caller.post("/next", {"hold": 1})[0] == 200
            first = time.monotonic() - server.begun
            caller.close()
            at_start = server.megabytes()
            calm = measure(server, tokens, THINK, seconds)
            fast = measure(server, tokens[:CROWD], 0.0, seconds / 3)
            later = measure(server, tokens[:CROWD], 0.0, seconds / 3)
        finally:
            server.kill()
    print(f"{name}, {items} items: {calm['pair']}, {fast['pairs_per_second']} pairs/s", file=sys.stderr)
    return {
        **{"database": name, "items": items, "overlap": overlap, "import_seconds": round(imported, 1)},
        **{"first_question_by_api_seconds": round(first, 2), "megabytes_at_start": round(at_start)},
        **{"calm": calm, "fastest": fast, "fastest_later": later},
    }


def shown_in_a_browser(times: int = 5) -> dict[str, Any] | None:
    """Seconds from starting the server to the first question painted in Chromium, which is open already."""
    import shutil

    from shortlist.annotate.project.people import People

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        return None
    arguments = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    with tempfile.TemporaryDirectory(prefix="annotate-load-") as folder, sync_playwright() as playwright:
        project = make_project(Path(folder) / "project", None, 100_000)
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        found = []
        for i in range(times):
            secret, page = People(project).invite(f"person {i}")[1], browser.new_context().new_page()
            server = Server(project.folder, free_port())
            try:
                server.wait()
                page.goto(f"http://127.0.0.1:{server.port}/join#{secret}")
                page.wait_for_selector("#choices button")
                page.evaluate(PAINTED)  # not `data-ready`: that is 0.2 s later, when the item may be answered
                found.append(round(time.monotonic() - server.begun, 2))
            finally:
                server.kill()
                page.close()
        browser.close()
        project.close()
    return {"items": 100_000, "runs": found, "median": sorted(found)[len(found) // 2], "slowest": max(found)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--items", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "annotate_load.json")
    options = parser.parse_args()
    result: dict[str, Any] = {**about(), "start_to_first_question_shown": shown_in_a_browser(), "runs": []}
    with postgres() as cluster:
        for items in options.items:
            result["runs"].append(one(None, items, options.seconds))
            if cluster is not None:
                result["runs"].append(one(cluster.new_database(), items, options.seconds))
    options.out.write_text(json.dumps(result, indent=2) + "\n")
    print("\n".join(table(result)))


def table(result: dict[str, Any]) -> list[str]:
    """The rows for docs/annotate.md."""
    names = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
    return [
        f"| {names[run['database']]} | {run['items']:,} | {run['calm']['pair']['p50_ms']:.0f} "
        f"| {run['calm']['pair']['p99_ms']:.0f} | {run['fastest']['pairs_per_second']:.0f} |"
        for run in result["runs"]
    ]


if __name__ == "__main__":
    main()
