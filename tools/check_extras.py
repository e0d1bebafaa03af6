"""Install the wheel with each extra alone into an empty environment and run what it is for.

`make extras` runs this. It installs from PyPI with the versions of constraints.txt, so it is not part of `make test`.

    python tools/check_extras.py [base|annotate|train]...
"""

import csv
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
COLOURS = ("red", "blue", "green", "yellow")


class Environment:
    """An empty virtual environment with the wheel and one extra (or none); commands run in a folder of their own."""

    def __init__(self, wheel: Path, extra: str, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "venv" / "bin"
        venv.create(folder / "venv", with_pip=True)
        pip = [self.bin / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        wanted = str(wheel) if extra == "base" else f"{wheel}[{extra}]"
        subprocess.run([*pip, "-c", ROOT / "constraints.txt", wanted], check=True)
        self.variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """`shortlist` with these words, which must end with this exit code."""
        print(f"  shortlist {' '.join(words)}", flush=True)
        done = subprocess.run(
            [self.bin / "shortlist", *words],
            cwd=self.folder, env=self.variables, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != code:
            sys.exit(f"ended with {done.returncode}, expected {code}:\n{done.stdout}{done.stderr}")
        return done

    def refuses(self, extra: str, *words: str) -> None:
        """The command ends with one line that names the extra."""
        line = self.run(*words, code=2).stderr
        if not re.fullmatch(rf'shortlist: \w+ is not installed: pip install "shortlist\[{extra}\]".*\n', line):
            sys.exit(f"expected one line that names shortlist[{extra}], got:\n{line}")

    def lacks(self, *modules: str) -> None:
        """These modules are not installed here."""
        for module in modules:
            if (
                subprocess.run(
                    [self.bin / "python", "-c", f"import {module}"], capture_output=True, check=False
                ).returncode
                == 0
            ):
                sys.exit(f"{module} is installed")


def check_base(environment: Environment) -> None:
    """Labels, planning and the simulation of labelling, without torch and without the server."""
    environment.lacks("torch", "fastapi", "sqlalchemy")
    for words in (["--help"], ["--version"], ["plan", "--classes", "77", "--items", "10000"], ["datasets"], ["models"]):
        environment.run(*words)
    environment.run("label", "digits", "--seeds", "1", "--budget", "2000", "--out", "economy")
    environment.refuses("train", "methods")
    environment.refuses("train", "train", "digits", "--size", "3", "--out", "run")
    environment.refuses("annotate", "annotate", "status", "birds")


def check_train(environment: Environment) -> None:
    """Training and the demo, without the server."""
    environment.lacks("fastapi", "sqlalchemy")
    environment.run("methods")
    environment.run("train", "digits", "--size", "3", "--epochs", "2", "--out", "run")
    environment.run("evaluate", "run", "digits")
    environment.run("demo")
    environment.refuses("annotate", "annotate", "status", "birds")


def check_annotate(environment: Environment) -> None:
    """A project, its server and the live model, without torch."""
    environment.lacks("torch")
    rows = [f"a {COLOURS[number % 4]} thing of kind {number % 7}" for number in range(120)]
    (environment.folder / "items.csv").write_text("\n".join(["text", *rows]) + "\n")
    (environment.folder / "classes.txt").write_text("\n".join(COLOURS) + "\n")
    made = ("--items", "items.csv", "--classes", "classes.txt", "--size", "2", "--policy", "adaptive")
    environment.run("annotate", "init", "colours", *made)
    token = environment.run("annotate", "invite", "colours", "ada", "--token").stdout.strip()
    port = free_port()
    print("  shortlist annotate serve colours", flush=True)
    serve = [environment.bin / "shortlist", "annotate", "serve", "colours", "--port", str(port)]
    with subprocess.Popen(
        serve, cwd=environment.folder, env=environment.variables, stdout=subprocess.DEVNULL
    ) as server:
        try:
            answer_all(port, token)
        finally:
            server.terminate()
    environment.run("annotate", "export", "colours", "answers.csv")
    with (environment.folder / "answers.csv").open(newline="") as file:
        chosen = [row["policy"].partition("/")[0] for row in csv.DictReader(file)]
    print(f"  {len(chosen)} answers, {chosen.count('adaptive')} of them to lists that the model chose")
    if "adaptive" not in chosen:
        sys.exit("the live model chose no list")
    environment.refuses("train", "train", "items.csv", "--labels", "answers.csv", "--out", "run")


def answer_all(port: int, token: str) -> None:
    """Answer every question through the API as somebody who is always right, slowly enough for the model to learn."""
    wait_for(port)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request("POST", f"/api/v1{path}", json.dumps(body), headers)
        response = connection.getresponse()
        content = response.read()
        if response.status >= 300:
            sys.exit(f"{path}: {response.status} {content!r}")
        return dict(json.loads(content))

    questions = post("/next", {"hold": 1})["questions"]
    while questions:
        question = questions[0]
        colour = question["item"]["text"].split()[1]
        shown = {entry["name"]: entry["class"] for entry in question["shortlist"]}
        body = {"question": question["id"], "attempt": question["attempt"], "seconds": 0.2, "answer": shown.get(colour)}
        time.sleep(0.2)
        questions = post("/answers", {**body, "hold": 1})["questions"]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, seconds: float = 60) -> None:
    """Until somebody listens on the port."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    sys.exit("the server did not start")


CHECKS = {"base": check_base, "annotate": check_annotate, "train": check_train}


def main() -> None:
    """Build the wheel once, then try the extras one after the other."""
    with tempfile.TemporaryDirectory(prefix="shortlist-extras-") as made:
        source = Path(made) / "source"  # a copy: what an earlier build left in build/ would go into the wheel
        shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, source)
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", made, source]
        subprocess.run(build, check=True)
        (wheel,) = Path(made).glob("*.whl")
        for extra in sys.argv[1:] or CHECKS:
            print(f"{wheel.name}, {extra}", flush=True)
            folder = Path(made) / extra
            folder.mkdir()
            CHECKS[extra](Environment(wheel, extra, folder))


if __name__ == "__main__":
    main()
