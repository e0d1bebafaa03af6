"""The annotation server under load, this version and an earlier one side by side.

Measured on two cores of an AMD EPYC (results/annotate_load.json): on SQLite 1,486 pairs of next + answer per second,
3.9 times the earlier version, at 0.24 of its processor per pair.

    python benchmarks/annotate_load.py           # about eleven minutes; writes results/annotate_load.json
    python benchmarks/annotate_load.py --table   # what docs/annotate.md says of it

On SQLite and PostgreSQL, 100,000 questions, each run on a project made by the version that serves it:

- `fastest`: 200 annotators who do not think, this version and 1eba82b: pairs of next + answer per second, processor per
  pair of the server and of PostgreSQL. Marks: three times the pairs, a third of the server's processor;
- `calm`: 200 annotators who think 2 s: p99 of a pair below 25 ms on SQLite and 50 ms on PostgreSQL;
- `many`: 2,000 connected annotators who think 20 s: no error, p99 below 200 ms, memory below 400 MB;
- `workers`: the same three with --workers 2, which is how one would serve from PostgreSQL on two cores;
- start to the first question painted in a browser.

The client (annotate_crowd.py) is a process of its own and cheap: on two cores a heavy client takes from the
server the processor that is measured. The earlier version runs with the packages that its own installation brought:
without uvloop and httptools. Hardware, versions and the load of the machine are in the file; one run.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from annotate_servers import Postgres, Server, Version, about, checkout, free_port, make_project, postgres

ROOT = Path(__file__).parents[1]
BEFORE = "1eba82b"
ITEMS, OVERLAP = 50_000, 2
# a callback of the first frame runs before its paint, one of the second after it
PAINTED = "() => new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(() => painted())))"


class Site:
    """A project and its server, of one version on one database."""

    def __init__(self, folder: Path, version: Version, cluster: Postgres | None, people: int, workers: int = 1) -> None:
        database = None if cluster is None else cluster.new_database()
        self.cluster, self.tokens = cluster, version.make(folder, database, ITEMS, OVERLAP, people)
        self.server = Server(folder, free_port(), version=version, workers=workers)
        self.server.wait()
        if workers > 1:
            self.measure(20, 0.0, 4.0)  # the port is there before the workers are

    def measure(self, people: int, think: float, seconds: float) -> dict[str, Any]:
        """One crowd."""
        words = [sys.executable, str(ROOT / "benchmarks" / "annotate_crowd.py"), str(self.server.port)]
        served, stored = self.server.cpu_seconds(), self._database_seconds()
        given = "\n".join(self.tokens[:people])
        found = json.loads(subprocess.check_output([*words, str(think), str(seconds)], input=given, text=True))
        pairs = max(found["pairs"], 1)
        found["server_cpu_ms_per_pair"] = round(1000 * (self.server.cpu_seconds() - served) / pairs, 3)
        found["database_cpu_ms_per_pair"] = round(1000 * (self._database_seconds() - stored) / pairs, 3)
        found["server_megabytes"] = round(self.server.megabytes())
        return dict(found)

    def _database_seconds(self) -> float:
        return 0.0 if self.cluster is None else self.cluster.cpu_seconds()


def one(
    version: Version, cluster: Postgres | None, crowds: list[tuple[int, float, float]], workers: int = 1
) -> list[Any]:
    """What each crowd (people, seconds to think, seconds) saw at one server, one after another."""
    with tempfile.TemporaryDirectory(prefix="annotate-load-") as folder:
        site = Site(Path(folder) / "project", version, cluster, max(people for people, _, _ in crowds), workers)
        try:
            return [site.measure(*crowd) for crowd in crowds]
        finally:
            site.server.kill()


def on(cluster: Postgres | None, old: Version, scale: float) -> dict[str, Any]:
    """All runs on one database."""
    now, name = Version(), "sqlite" if cluster is None else "postgresql"
    fastest, calm, many = (200, 0.0, 15 * scale), (200, 2.0, 30 * scale), (2000, 20.0, 40 * scale)
    earlier = one(old, cluster, [fastest, calm])
    ours = one(now, cluster, [fastest, calm])
    result: dict[str, Any] = {"database": name}
    result |= {"fastest": {BEFORE: earlier[0], "now": ours[0]}, "calm": {BEFORE: earlier[1], "now": ours[1]}}
    result["many"] = one(now, cluster, [many])[0]
    if cluster is not None:
        two = [*one(now, cluster, [fastest, calm], workers=2), *one(now, cluster, [many], workers=2)]
        result["workers"] = dict(zip(("fastest", "calm", "many"), two, strict=True))
    result["times_as_many_pairs"] = round(ours[0]["pairs_per_second"] / earlier[0]["pairs_per_second"], 2)
    share = ours[0]["server_cpu_ms_per_pair"] / earlier[0]["server_cpu_ms_per_pair"]
    result["share_of_server_cpu_per_pair"] = round(share, 3)
    print("\n".join([*rows(result), sentence(result)]), file=sys.stderr)
    return result


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
    parser.add_argument("--scale", type=float, default=1.0, help="of the seconds of each run")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "annotate_load.json")
    parser.add_argument("--table", action="store_true", help="print the figures of --out")
    options = parser.parse_args()
    if options.table:
        runs = json.loads(options.out.read_text())["runs"]
        print("\n".join([*(row for run in runs for row in rows(run)), "", *map(sentence, runs)]))
        return
    result: dict[str, Any] = {**about(), "start_to_first_question_shown": shown_in_a_browser(), "runs": []}
    with checkout(BEFORE) as files, postgres() as cluster:
        old = Version(files, bare=True)
        for place in [None] if cluster is None else [None, cluster]:
            result["runs"].append(on(place, old, options.scale))
    options.out.write_text(json.dumps(result, indent=2) + "\n")


NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


def rows(run: dict[str, Any]) -> list[str]:
    """The rows for docs/annotate.md: this version and the earlier one in turn; then with two workers."""
    figures = (("fastest", "pairs_per_second"), ("fastest", "server_cpu_ms_per_pair"), ("calm", "p99_ms"))
    pairs = [_figure(run[kind][version], name) for kind, name in figures for version in ("now", BEFORE)]
    found = [[NAMES[run["database"]], *pairs]]
    if "workers" in run:
        two = [_figure(run["workers"].get(kind), name) for kind, name in figures]
        found.append([f"{NAMES[run['database']]}, `--workers 2`", *(cell for one in two for cell in (one, ""))])
    return [f"| {' | '.join(row)} |".replace("|  |", "| |").replace("|  |", "| |") for row in found]


def _figure(row: dict[str, Any] | None, name: str) -> str:
    if row is None:
        return ""
    return f"{row[name]:.2f}" if name.startswith("server") else f"{(row['pair'] | row)[name]:.0f}"


def sentence(run: dict[str, Any]) -> str:
    """What the 2,000 saw."""
    found = [(NAMES[run["database"]], run["many"])]
    if "many" in run.get("workers", {}):
        found.append((f"{found[0][0]} with `--workers 2`", run["workers"]["many"]))
    return "\n".join(
        f"{many['pair']['p50_ms']:.0f} and {many['pair']['p99_ms']:.0f} ms, {many['server_megabytes']} MB on {name}"
        for name, many in found
    )


if __name__ == "__main__":
    main()
