"""What an install promises: light imports, one version, pinned dependencies, commands that exist."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import shortlist
from shortlist.internal.extras import EXTRAS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def run_python(code: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=folder, check=False
    )


def python(code: str) -> str:
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_is_light() -> None:
    loaded = python("import sys, shortlist; print(*sys.modules)").split()
    for heavy in ("torch", "sklearn", "scipy", "pandas", "matplotlib", "pyarrow", "typer", "fastapi"):
        assert heavy not in loaded, f"import shortlist loads {heavy}"


def test_labels_need_no_torch(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    code = f"""
import sys
from shortlist import StochasticLabels
labels = StochasticLabels.draw([0, 1, 2], num_classes=3, size=2, seed=0)
labels.write({str(path)!r})
assert StochasticLabels.read({str(path)!r}) == labels
print("torch" in sys.modules)"""
    assert python(code) == "False"


def test_import_is_fast() -> None:
    # numpy is most of it; the limit is loose, as tests share their cores
    code = "import time, numpy; t = time.perf_counter(); import shortlist; print(time.perf_counter() - t)"
    assert min(float(python(code)) for _ in range(3)) < 0.5


def test_classifier_is_found_lazily() -> None:
    assert "ShortlistClassifier" in shortlist.__all__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = shortlist.nothing  # type: ignore[attr-defined]


def test_one_version_everywhere() -> None:
    assert shortlist.__version__ == PROJECT["version"]
    newest = re.search(r"^## \[(\S+)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    citation = (ROOT / "CITATION.cff").read_text()
    assert newest[1] == PROJECT["version"]
    assert f"version: {newest[1]}\ndate-released: {newest[2]}\n" in citation
    copies = [path for path in (ROOT / "src").rglob("*.py") if f'"{PROJECT["version"]}"' in path.read_text()]
    assert copies == [], "the version is written in pyproject.toml alone"


def test_changelog_has_the_usual_form() -> None:
    headings = re.findall(r"^##+ .*$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    kinds = "Added|Changed|Deprecated|Removed|Fixed|Security"
    form = rf"## \[(Unreleased|\d+\.\d+\.\d+)\]( - \d{{4}}-\d\d-\d\d)?|### ({kinds})"
    assert [heading for heading in headings if not re.fullmatch(form, heading)] == []


IMPORT_NAMES = {"scikit-activeml": "skactiveml", "sentence-transformers": "sentence_transformers"}


def test_modules_of_extras_are_those_that_pip_installs() -> None:
    extras = {name: names(rows) - {"shortlist"} for name, rows in PROJECT["optional-dependencies"].items()}
    for extra, modules in EXTRAS.items():
        installed = {IMPORT_NAMES.get(name, name) for name in extras[extra]}
        assert installed <= set(modules), extra
    assert set(extras) - set(EXTRAS) == {"dev", "docs", "test"}


def without(extra: str) -> str:
    """Code that makes the modules of an extra look as if they were not installed."""
    return f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS[extra]!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())"""


TRAIN = [
    "methods",
    "train digits --size 3 --out x",
    "evaluate x digits",
    "predict x digits",
    "demo",
    "reproduce digits",
]
ANNOTATE = ["annotate init x --items . --classes c.txt", "annotate serve x", "annotate status x", "annotate demo"]


@pytest.mark.parametrize(
    ("extra", "command"), [*(("train", c) for c in TRAIN), *(("annotate", c) for c in ANNOTATE)], ids=str
)
def test_a_missing_extra_is_one_line_that_names_the_command(tmp_path: Path, extra: str, command: str) -> None:
    code = f"""{without(extra)}
sys.argv = ["shortlist", *{command.split()!r}]
from shortlist.cli import main
main()"""
    (tmp_path / "c.txt").write_text("a\nb\n")
    done = run_python(code, tmp_path)
    assert done.returncode == 2, done.stderr
    assert re.fullmatch(
        rf'shortlist: \w+ is not installed: pip install "shortlist\[{extra}\]" \(in a clone: .*\)\n', done.stderr
    )
    assert [path.name for path in tmp_path.iterdir()] == ["c.txt"], "nothing is begun"


@pytest.mark.parametrize(
    "code",
    [
        "from shortlist import ShortlistClassifier",
        "from shortlist.classifier import ShortlistClassifier",
        "from shortlist.training import RunConfig",
        "from shortlist import losses",
        "from shortlist import risks",
        "from shortlist import methods",
        "from shortlist import models; models.build('linear', (4,), 3)",
    ],
)
def test_a_missing_torch_is_an_import_error_that_names_the_command(tmp_path: Path, code: str) -> None:
    done = run_python(f"{without('train')}\n{code}", tmp_path)
    assert 'MissingExtraError: torch is not installed: pip install "shortlist[train]"' in done.stderr.splitlines()[-1]


def names(requirements: list[str]) -> set[str]:
    return {normal(re.match(r"[\w.-]+", requirement)[0]) for requirement in requirements}  # type: ignore[index]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_constraints_pin_what_make_installs() -> None:
    rows = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", row) for row in rows), "exact versions, no local suffix"
    pinned = names(rows)
    extras = PROJECT["optional-dependencies"]
    made = ("train", "annotate", "test", "dev", "docs", "activeml", "ray")
    wanted = [*PROJECT["dependencies"], *(name for extra in made for name in extras[extra])]
    assert names(wanted) - {"shortlist"} <= pinned
    assert not [name for name in pinned if name.startswith(("nvidia", "cuda"))]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
class TestMake:
    """In a folder of their own with a stand-in for pip: what is made, and what is not made twice."""

    @pytest.fixture
    def tree(self, tmp_path: Path) -> Path:
        for name in ("Makefile", "pyproject.toml", "constraints.txt"):
            shutil.copy(ROOT / name, tmp_path)
        programs = tmp_path / ".venv" / "bin"
        programs.mkdir(parents=True)
        for name in ("python", "shortlist", "ruff", "mypy", "lint-imports"):
            (programs / name).write_text(f'#!/bin/sh\necho "{name} $*" >> calls\n')
            (programs / name).chmod(0o755)
        return tmp_path

    def make(self, tree: Path, *arguments: str) -> list[str]:
        (tree / "calls").write_text("")
        subprocess.run(["make", "-s", *arguments], cwd=tree, check=True, capture_output=True, env=clean())
        return (tree / "calls").read_text().splitlines()

    def test_demo_installs_once(self, tree: Path) -> None:
        first, second = self.make(tree, "demo"), self.make(tree, "demo")
        assert "pip install" in first[0]
        assert first[0].endswith("-c constraints.txt -e .[train]")
        assert second == first[1:] == ["shortlist demo"]

    def test_test_installs_checks_and_tests(self, tree: Path) -> None:
        calls = self.make(tree, "test")
        assert "-e .[train,annotate,dev,docs,activeml,ray]" in calls[0]
        assert [call.split()[0] for call in calls[1:-2]] == ["ruff", "ruff", "mypy", "lint-imports"]
        assert calls[-2].startswith("python -m mkdocs build --strict")
        assert calls[-1].startswith("python -m pytest -n 3")
        assert self.make(tree, "test") == calls[1:]
        assert self.make(tree, "demo") == ["shortlist demo"], "the larger install serves the demo too"

    @pytest.mark.parametrize("changed", ["pyproject.toml", "constraints.txt"])
    def test_a_change_installs_again(self, tree: Path, changed: str) -> None:
        self.make(tree, "demo")
        later = (tree / ".venv" / ".installed").stat().st_mtime + 10
        os.utime(tree / changed, (later, later))
        assert "pip install" in self.make(tree, "demo")[0]

    def test_a_failed_install_is_tried_again(self, tree: Path) -> None:
        (tree / ".venv" / "bin" / "python").write_text("#!/bin/sh\nexit 1\n")
        for _ in range(2):
            with pytest.raises(subprocess.CalledProcessError):
                self.make(tree, "demo")
        assert not (tree / ".venv" / ".installed").exists()

    def test_an_old_python_is_named(self, tree: Path) -> None:
        shutil.rmtree(tree / ".venv")
        old = tree / "old-python"
        old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.1" && exit 0\nexit 1\n')
        old.chmod(0o755)
        done = subprocess.run(
            ["make", "demo", f"PYTHON={old}"], cwd=tree, capture_output=True, text=True, env=clean(), check=False
        )
        assert done.returncode != 0
        assert "Python 3.9.1 is too old: Shortlist needs Python 3.11 or newer" in done.stderr

    def test_no_python_is_named(self, tree: Path) -> None:
        shutil.rmtree(tree / ".venv")
        done = subprocess.run(
            ["make", "demo", "PYTHON=no-such-python"],
            cwd=tree, capture_output=True, text=True, env=clean(), check=False,
        )  # fmt: skip
        assert "no-such-python was not found" in done.stderr


def test_lowest_versions_are_the_bounds() -> None:
    extras = PROJECT["optional-dependencies"]
    rows = [
        *PROJECT["dependencies"],
        *(row for extra in ("train", "annotate", "activeml", "ray") for row in extras[extra]),
    ]
    bounds = dict(
        re.fullmatch(r"([\w-]+)(?:\[binary\])?>=([\d.]+)(?:;.*)?", row).groups() for row in rows if "[train]" not in row
    )  # type: ignore[union-attr]
    lines = (ROOT / "constraints-lowest.txt").read_text().splitlines()
    lowest = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert lowest.pop("torch") in (ROOT / "constraints.txt").read_text(), "the version that is tested"
    assert lowest == {name: bound for name, bound in bounds.items() if name != "torch"}


def test_docker_installs_as_the_check_of_the_extras_does() -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert 'pip install --no-cache-dir -c /build/constraints.txt "/build[annotate]"' in text
    copied = re.search(r"COPY (.*) /build/\n", text)
    assert copied is not None
    kept = (ROOT / ".dockerignore").read_text().splitlines()
    assert all((ROOT / name).exists() and f"!{name}" in kept for name in [*copied[1].split(), "src"])


def clean() -> dict[str, str]:
    """Without what an outer make tells inner ones (these tests run under `make test` and `make lowest`)."""
    told = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES", "VENV", "CONSTRAINTS", "EXTRAS")
    return {name: value for name, value in os.environ.items() if name not in told}


def test_ci_script_is_sound() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    text = script.read_text()
    assert "set -euo pipefail" in text
    assert text.rstrip().endswith("make -j2 test")
