import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from typer.testing import CliRunner

from shortlist.cli.demo import demo as demo_command
from shortlist.data import load
from shortlist.demo import choose, report
from shortlist.demo.grid import one_thread, prepare_row
from shortlist.demo.page import in_short, labels_of, percent
from shortlist.demo.report import Demo, run_demo
from shortlist.demo.rows import CHOSEN, DemoRow, Settings, demo_rows
from shortlist.errors import InputError
from shortlist.internal.provenance import commit
from shortlist.training.loop import Interrupted

ROOT = Path(__file__).parents[1]
SHORT = {"sizes": (3, 5), "seeds": (0, 1), "epochs": 3}


@pytest.fixture(scope="module")
def told() -> list[tuple[str, int]]:
    return []


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory, told: list[tuple[str, int]]) -> Demo:
    out = tmp_path_factory.mktemp("demo") / "new folder"
    return run_demo(out, **SHORT, on_epoch=lambda run, total: told.append((run, total)))


def of(figures: dict, **wanted: object) -> dict:
    (found,) = [row for row in figures["lines"] if all(row[name] == value for name, value in wanted.items())]
    return found


def test_every_line_is_there_and_no_run_is_done_twice(short: Demo, told: list[tuple[str, int]]) -> None:
    assert [total for _, total in told] == [len(told)] * len(told)
    assert len(told) == len(demo_rows()) * 2 * 3
    assert len(set(told)) == len(demo_rows()) * 2
    for size in (3, 5):
        for method in ("sl", "likelihood"):
            assert of(short.figures, method=method, size=size)["protocol"] is None
        for method in ("cc", "rc"):
            for protocol in ("paper", "fair"):
                assert of(short.figures, method=method, size=size, protocol=protocol)


def test_figures_are_those_of_the_epochs(short: Demo) -> None:
    written = json.loads((short.page.parent / "results.json").read_text())
    assert written == short.figures
    for row in written["lines"]:
        by_epoch = row["accuracy_by_epoch"]
        assert [len(seed) for seed in by_epoch] == [3, 3]
        last = [seed[-1] for seed in by_epoch]
        assert row["last_epoch"]["mean"] == pytest.approx(sum(last) / 2, abs=2e-4)
        assert row["last_epoch"]["std"] == pytest.approx(abs(last[0] - last[1]) / 2**0.5, abs=2e-4)
        ten = [sum(seed[-10:]) / len(seed[-10:]) for seed in by_epoch]
        assert row["mean_of_last_ten"]["mean"] == pytest.approx(sum(ten) / 2, abs=2e-4)
    assert "cores" in written["hardware"]
    assert written["versions"]["torch"] == torch.__version__
    assert written["seeds"] == [0, 1]


def test_cc_fed_every_answer_is_the_likelihood(short: Demo) -> None:
    for size in (3, 5):
        cc = of(short.figures, method="cc", size=size, protocol="fair")
        assert cc["accuracy_by_epoch"] == of(short.figures, method="likelihood", size=size)["accuracy_by_epoch"]


def test_reads(short: Demo) -> None:
    assert of(short.figures, kind="all items")["reads"] == 1437 * 10
    for size in (3, 5):
        assert of(short.figures, method="sl", size=size)["reads"] == 1437 * size
        spent = of(short.figures, kind="same reads", size=size)["reads"]
        assert 1437 * size - 10 < spent <= 1437 * size  # never more than the shortlists cost


def test_lines_of_one_seed_share_their_shortlists() -> None:
    digits = load("digits")
    first, second = (
        prepare_row(digits, DemoRow(name, 3), Settings(0.1, 0.0), seed=4, epochs=1) for name in ("sl", "likelihood")
    )
    assert first.labels == second.labels
    assert torch.equal(first.run.flat.value, second.run.flat.value)


def test_the_page_is_one_file_with_two_pictures(short: Demo) -> None:
    page = short.page.read_text()
    assert page.count("<svg") == page.count("</svg>") == 2
    assert page.count('role="img"') == 2
    loads = re.findall(r"""(?:src|href)\s*=\s*["']([^"']+)""", page) + re.findall(r"url\(([^)]*)\)", page)
    assert {link[0] for link in loads} <= {"#"}, "only links to its own parts"
    assert "<script" not in page
    assert "<link" not in page
    referred = {link[1:] for link in loads}
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert all(ids.count(name) == 1 for name in referred), "the pictures do not use one another's parts"
    for row in short.figures["lines"]:
        assert percent(row["last_epoch"]) in page
        assert percent(row["mean_of_last_ten"]) in page
        assert labels_of(row, 10) in page
    for sentence in in_short(short.figures):
        assert sentence in page


def test_in_short_sets_the_default_beside_ordinary_labels() -> None:
    recorded = json.loads((ROOT / "results" / "demo.json").read_text())
    of_three, of_five = in_short(recorded)
    for size, sentence in ((3, of_three), (5, of_five)):
        rows = ({"method": "likelihood", "size": size}, {"kind": "all items"}, {"kind": "same reads", "size": size})
        stated = [float(figure) for figure in re.findall(r"([\d.]+) %", sentence)]
        assert stated == [round(100 * of(recorded, **row)["last_epoch"]["mean"], 1) for row in rows]


def test_every_setting_was_chosen_on_held_out_answers() -> None:
    recorded = json.loads((ROOT / "results" / "demo-choice.json").read_text())
    assert {DemoRow(**row["line"]): Settings(**row["chosen"]) for row in recorded["lines"]} == CHOSEN
    assert set(CHOSEN) == set(demo_rows())
    for row in recorded["lines"]:
        scores = [point["validation_accuracy"] for point in row["grid"]]
        best = row["grid"][int(np.argmax(scores))]
        assert {name: best[name] for name in ("lr", "weight_decay")} == row["chosen"]
    assert not set(recorded["seeds"]) & set(report.SEEDS)


def test_choosing_never_sees_a_test_item(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def spy(*arguments: object) -> object:
        prepared = prepare_row(*arguments)
        seen.append(prepared.test)
        return prepared

    monkeypatch.setattr(choose, "prepare_row", spy)
    monkeypatch.setattr(choose, "GRID", [Settings(0.1, 1e-3), Settings(1e6, 0.0)])
    monkeypatch.setattr(choose, "SEEDS", (100,))
    (choice,) = choose.choices([DemoRow("sl", 3)], epochs=2)
    assert choice["chosen"] == {"lr": 0.1, "weight_decay": 1e-3}
    assert choice["grid"][1]["validation_accuracy"] == -1, "diverged"
    assert seen == [None, None]


def test_a_size_without_settings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="sizes: expected some of"):
        run_demo(tmp_path, sizes=(4,))


def test_one_thread_gives_the_threads_back() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_commit_is_that_of_this_checkout_or_unknown() -> None:
    assert commit() is None or re.fullmatch(r"[0-9a-f]{12}\+?", commit())


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.command()(demo_command)
    return app


def test_command_prints_the_table_and_writes_the_page(app: typer.Typer, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["--out", str(tmp_path / "d"), "--seeds", "1", "--epochs", "1"])
    assert done.exit_code == 0, done.output
    assert "likelihood" in done.stdout
    assert "last ten" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert sorted(path.name for path in (tmp_path / "d").iterdir()) == [
        "accuracy-by-epoch.svg", "accuracy-by-reads.svg", "report.html", "results.json",
    ]  # fmt: skip


def test_command_prints_one_json_object(app: typer.Typer, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["--out", str(tmp_path), "--seeds", "1", "--epochs", "1", "--json"])
    assert json.loads(done.stdout)["seeds"] == [0]


def test_ctrl_c_writes_nothing(app: typer.Typer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(**_: object) -> None:
        raise Interrupted(1)

    monkeypatch.setattr(report, "train_rows", stop)
    done = CliRunner().invoke(app, ["--out", str(tmp_path)])
    assert done.exit_code == 130
    assert "stopped" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_help_has_an_example(app: typer.Typer) -> None:
    assert "Example: shortlist demo" in CliRunner().invoke(app, ["--help"]).stdout
