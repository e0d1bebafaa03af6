"""Every script of benchmarks/ says in its header what was measured and where it is stored, and the figures are true."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "benchmarks").glob("*.py"))
PARTS = {
    *("annotate_crowd", "annotate_live_crowd", "annotate_live_robots", "annotate_servers", "annotate_wire"),
    *("teacher_forms", "teacher_more_forms", "teacher_points"),
}
"""What other scripts import or start."""


def header(name: str) -> str:
    """Its docstring without line breaks."""
    return " ".join((ast.get_docstring(ast.parse((ROOT / "benchmarks" / f"{name}.py").read_text())) or "").split())


def stored(name: str) -> Any:
    return json.loads((ROOT / "results" / f"{name}.json").read_text())


def test_every_header_says_where_its_figures_are() -> None:
    lacking = [
        path.stem
        for path in SCRIPTS
        if path.stem not in PARTS and "results/" not in header(path.stem) and "keeps none" not in header(path.stem)
    ]
    assert lacking == []


def test_every_measurement_is_held_below() -> None:
    measured = {path.stem for path in SCRIPTS if "Measured" in header(path.stem)}
    by_the_page = {"teacher_compare", "teacher_beyond", "calibration"}  # tests/study/report/test_teacher_page.py
    assert measured - by_the_page == {path.__name__ for path in HEADERS}


def annotate_crash() -> list[str]:
    totals = stored("annotate_crash")["totals"]
    assert not any(totals[kind] for kind in ("acknowledged_but_lost", "stored_twice", "slots_leased_twice"))
    return [f"of {sum(totals['acknowledged'].values()):,} acknowledged"]


def annotate_gold() -> list[str]:
    found = stored("annotate_gold")
    areas = [f"{m['area']:.3f} ({m['low']:.3f} to {m['high']:.3f})" for m in found["models"].values()]
    return [f"{found['questions']:,} questions: area {areas[0]} by logistic regression, {areas[1]} by boosting"]


def annotate_live() -> list[str]:
    found = stored("annotate_live")
    crowd, busy = found["accuracy"]["20 at once"], found["digits_while_training"]
    return [
        f"{len(found['digits'])} runs: at all {crowd['within_noise']} costs within noise",
        f"p99 of next while training {busy['next']['p99_ms']} ms, of next + answer {busy['pair']['p99_ms']}",
    ]


def annotate_live_start() -> list[str]:
    (side,) = stored("annotate_live_start")["sides"]
    live, simulated = (100 * side["picked"][kind]["500"][0] for kind in ("live", "simulated"))
    return [
        f"{side['runs'][0]} runs: with the names {live:.0f} % of the first 500 answers picked a class, simulated "
        f"{simulated:.0f} %; at all {side['within_noise']} costs"
    ]


def annotate_load() -> list[str]:
    sqlite = stored("annotate_load")["runs"][0]
    return [
        f"{sqlite['fastest']['now']['pairs_per_second']:,.0f} pairs of next + answer per second, "
        f"{sqlite['times_as_many_pairs']:.1f} times",
        f"at {sqlite['share_of_server_cpu_per_pair']:.2f} of its processor",
    ]


def annotate_page() -> list[str]:
    found = stored("annotate_page")
    text, picture, many, letter = (row["median_ms"] for row in found["key_to_painted"].values())
    ratio, first = found["beside_before"]["text, 5 classes"]["ratio"], found["first_question"]
    return [
        f"text {text} ms",
        f"(ratio {ratio:.2f}); picture {picture}, 150 classes {many}, a letter {letter}; "
        f"first question {first['median_from_the_link_s']} s",
    ]


def annotate_search() -> list[str]:
    found = stored("annotate_search")
    times = found["processor_ms"]
    size = found["bytes_of_all_names_and_descriptions"] / 1000
    return [f"{found['requests']} requests: mean {times['mean']:.1f} ms, p99 {times['p99']:.1f}", f"{size:.0f} kB"]


def annotate_siege() -> list[str]:
    found = stored("annotate_siege")
    body, half, slow = found["large_body"], found["half_bodies"], found["slow_headers"]
    waits = max(part["others_wait_ms"] for part in (body, half, slow))
    return [
        f"refused ({body['status']}) in {body['answered_ms']:.1f} ms and {body['memory_up_mb']:.1f} MB",
        f"cut after {half['all_cut_after_s']:.1f} s, slow headers after {slow['all_cut_after_s']:.1f}",
        f"wait {waits:.0f} ms at most. It stops in {found['stop_s']:.1f} s",
    ]


def beyond() -> list[str]:
    table = stored("beyond_digits")["table"]
    gain = {name: table[f"{name}, size 5"].split("gain +")[1].replace("+-", "±") for name in ("rc", "proden")}
    averaged = table["targets over epochs 0.5, size 5"].split("gain +")[1].replace("+-", "±")
    return [
        f"the likelihood has {table['likelihood, size 5'][:5]} %; targets averaged over epochs gain {averaged} points",
        f"PRODEN {gain['proden']}, RC {gain['rc']}",
    ]


def fleet_accuracy() -> list[str]:
    fleet, single = (stored("fleet_accuracy")[kind] for kind in ("fleet", "single"))
    return [
        f"{fleet['mean']:.2f} ± {fleet['std']:.2f} % through the fleet, the five runs in {fleet['seconds']:.0f} s",
        f"{single['mean']:.2f} ± {single['std']:.2f} % by the single loop, in {single['seconds']:.0f} s",
    ]


def fleet_speed() -> list[str]:
    found = stored("fleet_speed")
    lenet, resnet = found["lenet_third_generation"][-1], found["resnet32_third_generation"][-1]
    return [
        f"{lenet['runs']} LeNets {lenet['seconds_per_epoch_and_run']:.4f} s per epoch and run, "
        f"{lenet['times_reference']:.0f} times",
        f"{resnet['runs']} ResNet-32s {resnet['seconds_per_epoch_and_run']:.3f} s, "
        f"{resnet['images_per_second'] / 1000:.0f},000 images/s, {resnet['times_reference']:.0f} times",
    ]


def held_out_choices() -> list[str]:
    found = stored("held_out_choices")
    best = {kind: 100 * max(found[kind].values()) for kind in ("full", "lists", "fashion")}
    assert best["fashion"] == 100 * found["fashion"]["default"]
    return [
        f"lead with {best['fashion']:.2f} %",
        f"have {best['full']:.2f} % with full labels and {best['lists']:.2f} % with lists",
    ]


def label_draw() -> list[str]:
    found = stored("label_draw")
    return [f"{found['seconds']:.1f} s and {found['peak_mb']} MB"]


def label_economy() -> list[str]:
    told = []
    for name in ("banking77", "letter", "digits"):
        (way,) = (way for way in stored(f"label_economy_{name}")["ways"] if way["way"] == "adaptive")
        told.append((100 * way["mark_reads"], 100 * way["mark_seconds"]))
    first, *others = told
    return [
        f"{first[0]:.1f} % of the reads and {first[1]:.1f} % of the seconds on BANKING77",
        *(f"{reads:.1f} % and {seconds:.1f} % on" for reads, seconds in others),
    ]


def label_mistakes() -> list[str]:
    found = stored("label_mistakes_banking77")
    gain = found["against"]["modelled"]
    return [
        f"{found['seeds']} seeds: modelling is {gain['mean']} points ahead",
        f"at worst {-gain['worst']:.2f} ± {gain['worst_error']:.2f} behind",
    ]


def label_readers() -> list[str]:
    parquet, csv = stored("label_readers")["formats"].values()
    return [
        f"Parquet {parquet['seconds']:.1f} s and {parquet['peak_mb']} MB",
        f"CSV {csv['seconds']:.2f} s and {csv['peak_mb']} MB",
    ]


def label_score() -> list[str]:
    right, mistaken = (100 * way["moments"][-1]["holds"] for way in stored("label_score")["ways"].values())
    return [f"in {right:.1f} % of projects with right answers, in {mistaken:.1f} % with modelled mistakes"]


def label_speed() -> list[str]:
    *_, part, whole = stored("label_speed")["runs"]
    return [f"{whole['cpu_seconds']} s of processor time, {part['cpu_seconds']} with a budget of {part['budget']:,}"]


def label_start() -> list[str]:
    marks = {way["way"]: 100 * (way["mark_reads"] or 1) for way in stored("label_start_banking77")["starts"]}
    return [
        f"{marks['nothing']:.1f} % of the reads from nothing, {marks['names']:.1f} % with names, "
        f"{marks['5 labels per class']:.1f} % with 5 labels per class, {marks['names, labels, scores']:.1f} % with"
    ]


def live_scale() -> list[str]:
    *_, last = stored("live_scale")["runs"]
    return [
        f"{last['answered']:,} answered: training {last['train_seconds']} s, publication {last['publish_seconds']} s, "
        f"next question {last['next_ms_p50']:.1f} ms and its answer {last['answer_ms_p50']:.1f} ms",
        f"the server at {last['server_megabytes']:.0f} MB",
    ]


def loop_features() -> list[str]:
    found = stored("loop_features")
    both = {
        name: [f"{100 * found[name][of]['full_labels']:.1f}" for of in ("patches", "pixels")]
        for name in found
        if "," not in name
    }
    return [
        f"digits {' and '.join(both['digits'])} %, Fashion {' and '.join(both['fashion'])}, "
        f"CIFAR10 {' and '.join(both['cifar10'])}"
    ]


def loop_step() -> list[str]:
    last = {run["items"]: run["step_seconds"] for run in stored("loop_step")["runs"]}
    return [f"{last[100_000]} s for 100,000 items, {last[1_000_000]} s for a million"]


def methods_digits() -> list[str]:
    runs = stored("methods_digits")["runs"]
    by = {
        name: [100 * run["test_accuracy"] for run in runs if run["method"] == name]
        for name in ("rc", "proden", "likelihood", "sl", "lw")
    }
    rc, *others = (f"{mean(values):.1f} ± {stdev(values):.1f}" for values in by.values())
    return [f"RC {rc} %, PRODEN {others[0]}, likelihood (and CC) {others[1]}, SL {others[2]}, LW {others[3]}"]


def one_objective() -> list[str]:
    done = subprocess.run(
        [sys.executable, "benchmarks/one_objective.py", "--print"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    gaps = re.findall(r"^LOG less CC, .*: (\S+ ± \S+) \((\d+) cells, (\d+) trials\)", done.stdout, re.MULTILINE)
    (tuned, *counts), (same, *_) = gaps
    return ["{} cells, {} trials".format(*counts), f"{tuned} as tuned, {same} with CC's settings for both"]


def plan_items() -> list[str]:
    few, *_, many = stored("plan_items")["an_item"]
    return [
        f"{few['reads']:.1f} names read per item with {few['items']} items, {many['reads']:.1f} with {many['items']:,}"
    ]


def real_data() -> list[str]:
    claims = stored("real_data")["claims"]
    mnist, lists, full = (100 * claims[name]["test_accuracy"] for name in ("mnist", "banking77", "banking77 full"))
    return [
        f"MNIST {mnist:.2f} % in {claims['mnist']['seconds']:.0f} s, BANKING77 {lists:.1f} %",
        f"{full:.1f} % with full labels",
    ]


def teacher_ablation() -> list[str]:
    defaults, proden = (
        next(
            line
            for line in (ROOT / "results" / "teacher_ablation.md").read_text().splitlines()
            if line.startswith(start)
        )
        for start in ("| CIFAR10 | teacher | two |", "| CIFAR10 | PRODEN | two |")
    )
    return [f"the teacher's defaults {defaults.split(' | ')[5]} %, PRODEN {proden.split(' | ')[5]} %"]


def train_speed() -> list[str]:
    told = []
    for device in ("cuda", "cpu"):
        summary = stored(f"train_speed_{device}")["summary"]
        told.append([(summary[name]["shortlist"], summary[name]["times_best"]) for name in ("lenet", "resnet32")])
    (lenet, resnet), (slow_lenet, slow_resnet) = told
    return [
        f"{lenet[0] / 1000:.0f},000 images/s of the LeNet, {lenet[1]:.1f} times",
        f"{round(resnet[0], -2):,.0f} of the ResNet-32, {resnet[1]:.1f} times",
        f"{slow_lenet[0]:,.0f} and {slow_resnet[0]:.0f}, {slow_lenet[1]:.1f} and {slow_resnet[1]:.1f} times",
    ]


def train_texts() -> list[str]:
    found = stored("train_texts")
    ours, logistic, svc = (
        f"{100 * found[name]['test_accuracy']:.2f} % in {found[name]['processor_seconds']:.1f} s"
        for name in ("train banking77", "LogisticRegression(C=10, max_iter=1000)", "LinearSVC()")
    )
    return [f"{ours} of processor time; LogisticRegression(C=10) {logistic}, LinearSVC {svc}"]


HEADERS: list[Callable[[], list[str]]] = [
    *(annotate_crash, annotate_gold, annotate_live, annotate_live_start, annotate_load, annotate_page, annotate_search),
    *(annotate_siege, beyond, fleet_accuracy, fleet_speed, held_out_choices, label_draw, label_economy, label_mistakes),
    *(label_readers, label_score, label_speed, label_start, live_scale, loop_features, loop_step, methods_digits),
    *(one_objective, plan_items, real_data, teacher_ablation, train_speed, train_texts),
]
"""What each header says, as the stored results have it."""


@pytest.mark.parametrize("said", HEADERS, ids=[said.__name__ for said in HEADERS])
def test_the_figures_of_a_header_are_those_stored(said: Callable[[], list[str]]) -> None:
    text = header(said.__name__)
    assert [words for words in said() if words not in text] == []
