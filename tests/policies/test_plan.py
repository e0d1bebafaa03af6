import csv
import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from shortlist.cli.plan import plan as command
from shortlist.errors import InputError
from shortlist.internal.names import join_names
from shortlist.policies.plan import MARK, MODEL_QUESTIONS, MODEL_READS, MODEL_SECONDS, plan_labelling
from shortlist.policies.time_model import TimeModel

ROOT = Path(__file__).parents[2]
app = typer.Typer()
app.command()(command)


def _resolved(*arguments):
    """The row of all items resolved by lists that a model chooses."""
    rows = {row.way: row for row in plan_labelling(*arguments)}
    return rows["model-chosen, all resolved"]


def _run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def test_full_labels_and_random_lists_are_exact():
    rows = {row.way: row for row in plan_labelling(77, 10_000, TimeModel(), (8,))}
    full = rows["full labels"]
    assert full.reads == 770_000
    assert full.hours == pytest.approx(10_000 * (1 + 0.25 * 39) / 3600)
    once = rows["random 8, once"]
    assert once.reads == 80_000
    assert once.answered == pytest.approx(8 / 77)
    assert once.bits == pytest.approx(0.79, abs=0.01)


def test_asking_again_against_a_simulation():
    rng = np.random.default_rng(0)
    K, size, n = 11, 3, 20_000
    reads = questions = seconds = 0.0
    for _ in range(n):
        order = rng.permutation(K)
        place, start = int(np.nonzero(order == 0)[0][0]), 0
        while K - start > 1:
            shown = min(size, K - start - 1)
            questions, reads = questions + 1, reads + shown
            hit = place < start + shown
            seconds += 1 + 0.25 * (place - start + 1 if hit else shown)
            if hit:
                break
            start += shown
    row = {row.way: row for row in plan_labelling(K, n, TimeModel(), (size,))}[f"random {size}, again on None"]
    assert row.reads == pytest.approx(reads, rel=0.01)
    assert row.questions == pytest.approx(questions, rel=0.01)
    assert row.hours * 3600 == pytest.approx(seconds, rel=0.01)


def test_the_projection_grows_with_the_classes_and_never_beats_one_read():
    for K in (2, 10, 77, 1000):
        chosen = _resolved(K, 100, TimeModel())
        assert chosen.basis == "projection"
        assert 100 <= chosen.reads <= 100 * (K - 1)
    assert _resolved(1000, 100, TimeModel()).reads > _resolved(10, 100, TimeModel()).reads


def test_the_projection_meets_what_parts_of_the_data_took():
    """It took the cost of 10,003 items for that of 1,000, and promised a third of the reads."""
    measured = json.loads((ROOT / "results" / "plan_items.json").read_text())
    assert len(measured["an_item"]) == 4
    for row in measured["an_item"]:
        assert row["resolved"] == 1.0
        chosen = _resolved(measured["classes"], row["items"], TimeModel())
        assert chosen.reads / row["items"] == pytest.approx(row["reads"], rel=0.13)
        assert chosen.questions / row["items"] == pytest.approx(row["questions"], rel=0.13)
        assert chosen.hours * 3600 / row["items"] == pytest.approx(row["seconds"], rel=0.13)


@pytest.mark.parametrize("K", [2, 3, 10, 77, 1000])
def test_the_fewer_items_a_class_the_more_an_item_costs_up_to_a_list_read_through(K):
    costs = [_resolved(K, per * K, TimeModel()).reads / (per * K) for per in (1, 3, 4, 10, 40, 130, 200, 1000)]
    assert costs == sorted(costs, reverse=True)
    through = np.mean([min(place, K - 1) for place in range(1, K + 1)])
    assert costs[0] == costs[1] == pytest.approx(through)
    assert costs[-3:] == [costs[-1]] * 3
    assert costs[-1] < through or K < 5


def test_the_projection_starts_from_what_was_measured():
    result = json.loads((ROOT / "results" / "label_economy_banking77.json").read_text())
    full, items = result["full_labels"], result["items"]
    way = {way["way"]: way for way in result["ways"]}["adaptive"]
    assert way["resolved"] == 1.0
    assert pytest.approx(way["reads"] * full["reads"] / items, abs=0.01) == MODEL_READS
    assert pytest.approx(way["seconds"] * full["seconds"] / items, abs=0.01) == MODEL_SECONDS
    assert pytest.approx(way["questions"] / items, abs=0.01) == MODEL_QUESTIONS


def test_what_labelled_items_told_is_near_what_all_items_took():
    rows = json.loads((ROOT / "results" / "plan_items.json").read_text())["own"]
    assert {row["data"] for row in rows} == {"banking77", "digits", "letter"}
    for row in rows:
        assert row["told"]["reads"] == pytest.approx(row["reached"]["reads"], rel=0.15)
        assert row["told"]["seconds"] == pytest.approx(row["reached"]["seconds"], rel=0.07)


def test_the_99_percent_line_is_what_was_measured():
    result = json.loads((ROOT / "results" / "label_economy_banking77.json").read_text())
    full, items = result["full_labels"], result["items"]
    way = {way["way"]: way for way in result["ways"]}["adaptive"]
    mark = plan_labelling(77, items, TimeModel())[-1]
    assert mark.way == MARK
    assert mark.reads == pytest.approx(way["mark_reads"] * full["reads"], rel=0.01)
    assert mark.hours * 3600 == pytest.approx(way["mark_seconds"] * full["seconds"], rel=0.01)
    with (ROOT / "results" / "label_economy_banking77.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["way"] == "adaptive"]
    there = {}
    for row in reversed(rows):  # the first training at or after the mark, of each seed
        if float(row["seconds"]) >= way["mark_seconds"] * full["seconds"]:
            there[row["seed"]] = row
    assert mark.questions == pytest.approx(np.mean([float(row["questions"]) for row in there.values()]), rel=0.01)
    assert mark.answered == pytest.approx(np.mean([float(row["resolved"]) for row in there.values()]), abs=0.01)


def test_the_command_prints_and_gives_json(tmp_path):
    shown = _run("--classes", "77", "--items", "10000")
    assert shown.exit_code == 0
    assert "770,000" in shown.output
    assert "equal accuracy" in " ".join(shown.output.split())
    log = tmp_path / "answers.csv"
    rows = ["item,shortlist,answer,seconds"]
    rows += [f"{i},{'|'.join('abcdefgh'[: 2 + i % 6])},,{1.5 + 0.4 * (2 + i % 6)}" for i in range(60)]
    log.write_text("\n".join(rows))
    result = json.loads(_run("--classes", "20", "--items", "50", "--log", str(log), "--json").stdout)
    assert result["time"]["per_class"] == pytest.approx(0.4, abs=0.01)
    assert result["time"]["base"] == pytest.approx(1.5, abs=0.05)
    assert result["ways"][0]["reads"] == 1000
    assert len(result["limits"]) >= 3


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_a_log_of_names_that_hold_the_separators(tmp_path, ending):
    names = ["a|b", "c\u2028d", "e", "f"]
    rows = [
        {"shortlist": join_names(names), "answer": name, "seconds": 1.5 + 0.4 * place}
        for place, name in enumerate(names, 1)
    ] * 9
    path = tmp_path / f"log{ending}"
    if ending == ".csv":
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    else:
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    path.write_text("\n".join(lines), encoding="utf-8")
    found = TimeModel.read(path)
    assert (found.base, found.per_class) == pytest.approx((1.5, 0.4))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("item,answer\n1,a\n", "no column 'shortlist'"),
        ("", "is empty, expected a line of column names"),
        ("shortlist,answer,seconds\na|b,a,1,2\n", "line 2: 4 values, the first line names 3"),
        ("shortlist,answer,seconds\na|b,a,soon\n", "row 2: seconds is 'soon'"),
        ("shortlist,answer,seconds\na|b,a,1\n", "at least 10"),
        (
            "shortlist,answer,seconds\n" + "a|b,a,2\na|b,b,2\n" * 9,
            r"no longer .*0.00 s per name.*--seconds 1 0.25",
        ),
        ("shortlist,answer,seconds\n" + "a|b,a,3\na|b,b,2\n" * 9, "18 answers took no longer"),
    ],
)
def test_bad_logs_are_one_line(tmp_path, content, message):
    path = tmp_path / "log.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        TimeModel.read(path)
    with pytest.raises(InputError, match="cannot be read"):
        TimeModel.read(tmp_path / "none.csv")


def test_a_log_may_be_any_table_that_is_exported(tmp_path):
    lists = [["a", "b", "c"][: 1 + i % 3] for i in range(30)]
    rows = [{"shortlist": names, "answer": None, "seconds": 1.5 + 0.4 * len(names)} for names in lists]
    expected = pytest.approx((1.5, 0.4))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    # a line without a time says nothing
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"shortlist": ["a"]}\n')
    lines = [
        "shortlist;answer;seconds",
        *(f"{'|'.join(row['shortlist'])};;{row['seconds']:.1f}".replace(".", ",") for row in rows),
    ]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    for name in ("log.parquet", "log.jsonl", "log.csv"):
        found = TimeModel.read(tmp_path / name)
        assert (found.base, found.per_class) == expected, name
    (tmp_path / "bad.jsonl").write_text("1\n")
    (tmp_path / "log.txt").write_text("\n".join(lines))
    for name, message in (("bad.jsonl", "line 1 must be a JSON object"), ("log.txt", "is no table: expected one of")):
        with pytest.raises(InputError, match=message):
            TimeModel.read(tmp_path / name)


def test_bad_numbers():
    for arguments in (("--classes", "1", "--items", "5"), ("--classes", "5", "--items", "5", "--size", "5")):
        assert isinstance(_run(*arguments).exception, InputError)


def test_times_are_stated_or_fitted_not_both(tmp_path):
    """The stated ones were left aside in silence."""
    found = _run("--classes", "5", "--items", "5", "--log", str(tmp_path / "log.csv"), "--seconds", "5", "1")
    assert str(found.exception) == "--seconds and --log: both say how long a question takes, give one of them"


def test_names_that_speak_of_the_texts_make_the_projection_cheaper(tmp_path):
    words = ["lost card", "exchange rate", "cancel transfer", "change pin", "top up failed", "verify identity"]
    lines = [f"{i},hello about my {words[i % 6]} now {i}" for i in range(120)]
    (tmp_path / "mine.csv").write_text("\n".join(["item,text", *lines]))
    reads, clear = {}, {}
    for name, names in {"names": words, "codes": [f"x{i}" for i in range(6)]}.items():
        (tmp_path / name).write_text("\n".join(names) + "\n")
        result = json.loads(
            _run("--data", str(tmp_path / "mine.csv"), "--names", str(tmp_path / name), "--json").stdout
        )
        assert (result["classes"], result["items"]) == (6, 120)
        plain, told, _ = (way["reads"] for way in result["ways"][-3:])
        reads[name], clear[name] = told / plain, result["clarity"]
    assert clear["codes"] < 0.05 < 0.5 < clear["names"]
    assert reads["names"] < 0.85
    assert 0.95 < reads["codes"] <= 1.0
    said = _run("--data", str(tmp_path / "mine.csv"), "--names", str(tmp_path / "codes")).stdout
    assert "they say nothing about these items" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--classes", "7"), "give --classes and --items, or --data"),
        (("--names", "x"), "--names without --data"),
        (("--data", "DATA"), "0 class names, expected at least 2: give --label-column or --names"),
        (("--data", "DATA", "--names", "nowhere"), "nowhere cannot be read"),
        (("--classes", "7", "--items", "9", "--seconds", "0", "0"), "not 0 for both of the first, got 0.0, 0.0"),
    ],
)
def test_a_plan_without_numbers_is_one_line(tmp_path, words, message):
    (tmp_path / "mine.csv").write_text("item,text\n1,hello\n2,there\n")
    result = _run(*(str(tmp_path / "mine.csv") if word == "DATA" else word for word in words))
    assert message in str(result.exception)


def test_clear_names_take_off_what_they_took_off_where_it_was_measured():
    plain, named, _ = plan_labelling(77, 10_003, TimeModel(), clarity=0.9)[-3:]
    measured = json.loads((ROOT / "results" / "label_start_banking77.json").read_text())
    names = next(start for start in measured["starts"] if start["way"] == "names")
    assert named.reads == pytest.approx(77 * 10_003 * names["reads"], rel=0.07)
    assert named.questions == pytest.approx(names["questions"], rel=0.07)
    assert plan_labelling(77, 10_003, TimeModel(), clarity=0.0)[-2].reads == plain.reads


def test_the_limits_say_where_the_projection_comes_from():
    from shortlist.policies import plan_limits

    assert any("projection from BANKING77" in line for line in plan_limits())
    assert any("played on your labelled items" in line for line in plan_limits(own=True))
    assert not any("projection from BANKING77" in line for line in plan_limits(own=True))


def test_the_hours_of_a_small_plan_are_not_rounded_to_nothing():
    for items, hours in (("30", "0.02"), ("30000", "19.8")):  # x (1 + 0.25 x 5.5) s
        full = _run("--classes", "10", "--items", items).stdout.splitlines()[1]
        assert re.split(r" {2,}", full)[3] == hours


def test_a_plan_says_by_which_items_it_counted_the_classes(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("text,label\n" + "".join(f"word{i % 3} {i},{f'c{i % 3}' if i < 6 else ''}\n" for i in range(20)))
    line = "Classes: 3, those of the 6 of 20 items that have one: if there are more, give --names or --classes"
    assert line in _run("--data", str(path)).stdout
    assert line not in _run("--data", str(path), "--classes", "5").stdout
    path.write_text("text,label\n" + "".join(f"word{i % 3} {i},c{i % 3}\n" for i in range(20)))
    assert "Classes: 3" not in _run("--data", str(path)).stdout


def test_classes_that_no_labelled_item_has_are_on_the_lists_that_are_played(tmp_path):
    path, names = tmp_path / "mine.csv", tmp_path / "names.txt"
    path.write_text("text,label\n" + "".join(f"word{i % 3} {i},c{i % 3}\n" for i in range(120)))
    names.write_text("".join(f"c{i}\n" for i in range(12)))
    line = "Your labelled items are of 3 of the 12 classes: items of others cost more."
    played = {}
    for stated in ((), ("--names", str(names)), ("--classes", "12")):
        result = json.loads(_run("--data", str(path), *stated, "--json").stdout)
        played[stated[:1]] = next(way["reads"] for way in result["ways"] if way["basis"].startswith("from 120"))
        assert (line in result["limits"]) == bool(stated)
    assert played["--names",] > 1.2 * played[()]
    assert played["--classes",] == played[()]  # nobody knows what the others are called
