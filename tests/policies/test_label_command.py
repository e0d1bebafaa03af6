import csv
import importlib.util
import io
import json
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from shortlist.cli import progress as progress_module
from shortlist.cli.label import label
from shortlist.cli.plan import plan
from shortlist.errors import InputError

app = typer.Typer()
app.command()(label)
app.command()(plan)
ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "labelling.md"


@pytest.fixture
def table(tmp_path):
    """Own texts of six classes in a CSV file."""
    rng = np.random.default_rng(0)
    words = {c: [f"{c}{k}" for k in range(12)] for c in ("card", "rate", "app", "cash", "top", "pin")}
    common = [f"please{k}" for k in range(10)]
    path = tmp_path / "mine.csv"
    with path.open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["question", "intent"])
        for _ in range(300):
            name = str(rng.choice(list(words)))
            writer.writerow([" ".join([*rng.choice(words[name], 4), *rng.choice(common, 3)]), name])
    return path


def _run(*arguments: str):
    return CliRunner().invoke(app, ["label", *arguments])


def test_a_sentence_encoder_compares_names_too(table, encoder_of):
    """Names that share no letter with the texts: only the encoder knows what they mean."""
    meant = dict(zip(("zz", "qq", "vv", "jj", "yy", "xx"), ("card", "rate", "app", "cash", "top", "pin"), strict=True))
    text = table.read_text()
    for name, word in meant.items():
        text = text.replace(f",{word}\n", f",{name}\n")
    table.write_text(text)
    encoder_of([" ".join([name, *(f"{word}{k}" for k in range(12))]) for name, word in meant.items()])
    columns = ("--text-column", "question", "--label-column", "intent", "--features", "embeddings", "--json")
    reads = []
    for more in ([], ["--no-names"]):
        result = _run(str(table), *columns, *more, "--size", "3", "--seeds", "1")
        assert result.exit_code == 0, result.output
        reads.append({way["way"]: way for way in json.loads(result.stdout)["ways"]}["adaptive"]["reads"])
    assert reads[0] == pytest.approx(1 / 6), "one name for each item: every first list was right"
    assert reads[1] > reads[0]


def test_own_csv_end_to_end(table, tmp_path):
    out = tmp_path / "deep" / "economy"
    columns = ("--text-column", "question", "--label-column", "intent")
    result = _run(str(table), *columns, "--size", "3", "--seeds", "2", "--out", str(out), "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    chosen = {way["way"]: way for way in report["ways"]}["adaptive"]
    assert chosen["resolved"] == 1.0
    assert chosen["reads"] < 0.5
    assert report["items"] == 240
    assert sorted(path.name for path in out.iterdir()) == [
        "curve.csv",
        "curve.json",
        "curve.png",
        "curve.svg",
        "runs.jsonl",
    ]
    assert json.loads((out / "curve.json").read_text()) == report
    text = _run(str(table), *columns, "--size", "2", "--seeds", "1", "--budget", "200", "--miss", "0.05")
    assert "mistakes modelled" in text.output


def test_a_sample_scores_the_model_without_test_data(table, tmp_path):
    columns = ("--text-column", "question", "--label-column", "intent", "--size", "3", "--seeds", "1")
    result = _run(str(table), *columns, "--score", "24", "--out", str(tmp_path / "economy"))
    assert result.exit_code == 0, result.output
    # 240 items: a second each, and 0.25 s per name down to the right one
    assert re.search(r"1,440 reads, 0\.1[23] hours\.", result.stdout)
    line = result.stdout.strip().splitlines()[-1]
    found = re.fullmatch(r"adaptive, seed 0: score (.+)% \((.+)% to (.+)%\) by 24 items; test items (.+)%; .*", line)
    assert found, line
    score, low, high, true = map(float, found.groups())
    assert low <= score <= high
    assert low <= true <= high
    with (tmp_path / "economy" / "curve.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["way"] for row in rows if row["score_low"]} == {"adaptive"}
    report = json.loads((tmp_path / "economy" / "curve.json").read_text())
    assert [(one["way"], one["items"], one["size"]) for one in report["scores"]] == [("adaptive", 24, 24)]


def test_with_few_classes_the_longest_list_holds_all_but_one(table):
    columns = ("--text-column", "question", "--label-column", "intent", "--seeds", "1", "--budget", "60", "--json")
    report = json.loads(_run(str(table), *columns).stdout)
    assert report["settings"]["policy"]["max_size"] == 5  # of 6 classes
    assert "random 5, once" in {way["way"] for way in report["ways"]}
    table.write_text("question,intent\n" + "".join(f"words {i},same\n" for i in range(20)))
    (table.parent / "test.csv").write_text("question\na\nb\n")
    untold = _run(str(table), *columns[:2], "--test", str(table.parent / "test.csv"))
    assert "test.csv: the classes of its items are not known, so there is nothing to score on" in str(untold.exception)
    refused = _run(str(table), *columns)
    assert str(refused.exception) == "mine: 1 classes, expected at least 2 to simulate answers from"
    unnamed = _run(str(table), *columns[:2])
    assert str(unnamed.exception).endswith("mine: 0 classes, expected at least 2 to simulate answers from: "
                                           "give the column that has them (--label-column)")  # fmt: skip


def test_images_of_a_table_by_any_column_and_of_any_size(tmp_path):
    """What is refused names options that both commands have."""
    from PIL import Image

    rng = np.random.default_rng(0)
    lines = ["path,label"]
    for i in range(120):
        pixels = rng.integers(0, 60, (8 + i % 5, 9, 3)) + 150 * (np.arange(3) == i % 3)
        Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / f"{i}.png")
        lines.append(f"{i}.png,{'rgb'[i % 3]}")
    path = tmp_path / "images.csv"
    path.write_text("\n".join(lines) + "\n")
    for command in (["label", str(path), "--seeds", "1", "--no-rivals"], ["plan", "--data", str(path)]):
        runs = [
            CliRunner().invoke(app, [*command, "--json", *more])
            for more in ([], ["--image-column", "path"], ["--image-column", "path", "--image-size", "8"])
        ]
        assert "--image-column" in str(runs[0].exception)
        assert "--image-size 32" in str(runs[1].exception)
        assert json.loads(runs[2].stdout)["classes"] == 3
        assert json.loads(runs[2].stdout).get("clarity") is None, "names say nothing about images"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--policy", "best"), "unknown policy 'best'"),
        (("--size", "0"), "size: expected 1 to 5 for 6 classes, got 0"),
        (("--ray", "nonsense"), "ray: no cluster at 'nonsense', expected host:port, auto, or local"),
        (("--ray", "127.0.0.1:1"), "ray: no cluster at '127.0.0.1:1', expected host:port, auto, or local"),
        (("--size", "6"), "size: expected 1 to 5"),
        (("--order", "none"), "unknown order"),
        (("--seeds", "0"), "seeds"),
        (("--budget", "0"), "budget"),
        (("--score", "-1"), "score: expected at least 0, got -1"),
        (("--score", "121", "--size", "3"), "score: expected at most 120 of 240"),
        (("--miss", "2"), "miss"),
        (("--text-column", "words"), "no column 'words'"),
    ],
)
def test_bad_input_is_one_line(table, arguments, message):
    if arguments[0] == "--ray":
        pytest.importorskip("ray")
    base = {"--text-column": "question", "--label-column": "intent"}
    base.update(dict(zip(arguments[::2], arguments[1::2], strict=True)))
    result = _run(str(table), *[word for pair in base.items() for word in pair])
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)


def test_a_long_run_says_how_far_it_is_where_there_is_no_terminal(table, monkeypatch):
    arguments = (str(table), "--text-column", "question", "--label-column", "intent", "--size", "2", "--seeds", "2")
    arguments = (*arguments, "--budget", "300", "--json")
    assert " reads" not in _run(*arguments).stderr  # over in seconds: nothing to say
    monkeypatch.setattr(progress_module, "EVERY", 0.001)
    result = _run(*arguments)
    ways = ["full labels", "active learning, full lists", "conformal sets", "adaptive"]
    ways += ["random 2, once", "random 2, again on None"]
    wanted = [f"run {6 * seed + n} of 12, seed {seed}: {way}," for seed in range(2) for n, way in enumerate(ways, 1)]
    lines = [line for line in result.stderr.splitlines() if " reads" in line]
    told = [match for line in lines if (match := re.fullmatch(r"\d+ s: labelling (\d+)%, (.+,) [\d,]+ reads", line))]
    assert len(told) == len(lines)
    runs, shares = list(dict.fromkeys(match[2] for match in told)), [int(match[1]) for match in told]
    assert len(runs) > 2  # those that were under way when a line was due
    assert runs == [run for run in wanted if run in runs]
    assert shares == sorted(shares)
    assert 0 < shares[-1] < 100
    assert json.loads(result.stdout)["seeds"] == 2  # what is read by programs stays as it was


def _benchmark(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    return benchmark


def test_what_the_benchmark_of_the_speed_watches_is_there():
    assert [name for place, name, _ in _benchmark("label_speed").WATCHED if not hasattr(place, name)] == []


def test_the_tables_of_the_page_are_those_of_the_results():
    benchmark = _benchmark("label_economy")
    page = DOCS.read_text()
    for name in ("banking77", "letter", "digits"):
        result = json.loads((ROOT / "results" / f"label_economy_{name}.json").read_text())
        assert benchmark.table(result) in page, name


def test_the_commands_of_the_page_run(table, tmp_path, monkeypatch):
    """Every command of docs/labelling.md on one's own CSV, with fewer seeds."""
    monkeypatch.chdir(tmp_path)
    assert table == tmp_path / "mine.csv"
    rows = [f"{i},{'|'.join('abcdefgh'[: 2 + i % 6])},,{1.5 + 0.4 * (2 + i % 6)}" for i in range(60)]
    Path("answers.csv").write_text("\n".join(["item,shortlist,answer,seconds", *rows]))
    commands = re.findall(r"^shortlist ((?:label mine|plan).*)$", DOCS.read_text(), re.MULTILINE)
    assert len(commands) >= 5
    for command in commands:
        words = shlex.split(re.sub(r"--seeds \d+", "", command))
        extra = ["--seeds", "1"] if words[0] == "label" else []
        result = CliRunner().invoke(app, [*words, *extra])
        assert result.exit_code == 0, (command, result.output, result.exception)


def test_names_labels_and_scores_are_known_from_the_start(table, tmp_path):
    """Each is read, told to the loop, and bad files are one line."""
    with table.open() as file:
        rows = list(csv.DictReader(file))
    classes = sorted({row["intent"] for row in rows})
    known, scores = tmp_path / "known.csv", tmp_path / "scores.csv"
    known.write_text("item,class\n" + "".join(f"{i},{row['intent']}\n" for i, row in enumerate(rows[::9])))
    lines = [",".join(["item", *classes])]
    lines += [",".join([str(i), *(str(int(row["intent"] == name)) for name in classes)]) for i, row in enumerate(rows)]
    scores.write_text("\n".join(lines) + "\n")
    base = [
        str(table),
        "--text-column",
        "question",
        "--label-column",
        "intent",
        "--size",
        "2",
        "--seeds",
        "1",
        "--json",
    ]
    plain, told = (
        next(way for way in json.loads(_run(*base, *how).stdout)["ways"] if way["way"] == "adaptive")
        for how in (["--no-names"], ["--scores", str(scores)])
    )
    assert told["reads"] < plain["reads"]
    known.write_text("item,class\n" + "".join(f"{i},{row['intent']}\n" for i, row in enumerate(rows)))
    result = _run(*base, "--known", str(known), "--no-rivals", "--budget", "100")
    assert str(result.exception) == "mine: nothing to ask, the class of every item is known from the start"
    known.write_text("item,class\n0,nothing\n")
    result = _run(*base, "--known", str(known))
    assert "unknown class 'nothing'" in str(result.exception)


def test_a_comparison_that_was_killed_goes_on_to_the_same_figures(table, tmp_path):
    """kill -9 of a real process after its first run has ended, in the middle of the second."""
    columns = ["--text-column", "question", "--label-column", "intent", "--size", "3", "--retrain-every", "20"]
    arguments = [str(table), *columns, "--seeds", "2", "--out"]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    command = [sys.executable, "-m", "shortlist", "label", *arguments, str(killed)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    rows, deadline = killed / "curve.csv", time.monotonic() + 120
    while not (rows.exists() and "0,adaptive" in _swapped(rows)) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.wait()
    ended = (killed / "runs.jsonl").read_text().count("\n") - 1
    assert 1 <= ended < 12, "some runs had ended, and not all"
    assert len(rows.read_text().splitlines()) > 11, "rows come as they are found"
    (killed / "runs.jsonl").open("a").write('{"way": "adap')  # a line cut off by a power cut
    assert _run(*arguments, str(killed)).exit_code == 0
    assert _run(*arguments, str(whole), "--jobs", "2").exit_code == 0, "several at once find the same"
    assert (killed / "curve.csv").read_text() == (whole / "curve.csv").read_text()
    other = _run(*arguments, str(killed), "--budget", "100")
    assert isinstance(other.exception, InputError)
    assert "holds another comparison (other budget)" in str(other.exception)


@pytest.mark.kill
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
def test_processes_end_with_the_command_that_was_killed(table, tmp_path):
    """They would wait for its next word for ever, each with a copy of the features."""
    columns = ["--text-column", "question", "--label-column", "intent", "--retrain-every", "20", "--seeds", "4"]
    command = [sys.executable, "-m", "shortlist", "label", str(table), *columns, "--jobs", "2", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    rows, deadline = tmp_path / "curve.csv", time.monotonic() + 120
    while not (rows.exists() and rows.read_text().count("\n") > 3):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.kill()
    process.wait()
    assert len(children) >= 2
    while any(Path("/proc", child).exists() for child in children):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _swapped(rows: Path) -> str:
    """The seed before the way, of every row: a way may hold a comma."""
    return "\n".join(f"{row['seed']},{row['way']}" for row in csv.DictReader(io.StringIO(rows.read_text())))


def test_several_policies_and_no_rivals(table, tmp_path):
    columns = ("--text-column", "question", "--label-column", "intent", "--size", "3", "--budget", "300")
    result = _run(
        str(table), *columns, "--seeds", "1", "--policy", "top", "--policy", "adaptive", "--no-rivals", "--json"
    )
    assert [way["way"] for way in json.loads(result.stdout)["ways"]] == [
        "full labels",
        "type-ahead box",
        "top",
        "adaptive",
    ]
