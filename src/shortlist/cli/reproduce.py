"""`shortlist reproduce`: the paper's tables, cell by cell, as far as the ledger does not hold them yet."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shortlist.cli.options import AsJson, Device, note, print_json, print_table

if TYPE_CHECKING:
    from shortlist.study.commands import Study
    from shortlist.study.plan.grid import PlannedRun, Wanted
    from shortlist.study.plan.paper import Figure
    from shortlist.study.run.driver import Report

QUICK_EPOCHS, QUICK_SIZES = 3, (5,)


def reproduce(
    what: Annotated[
        str,
        typer.Argument(help="table1 .. table5, figure2, all; beyond; tune (choose settings); search (SL's recipe)."),
    ],
    datasets: Annotated[str, typer.Option(help="Separated by commas.")] = "mnist,fashion,kuzushiji,cifar10",
    methods: Annotated[
        str | None,
        typer.Option(help="Such as sl,likelihood,ol-ovr,likelihood+aug; your own: module:Class. All if not stated."),
    ] = None,
    sizes: Annotated[str | None, typer.Option(help="Sizes of the shortlist; the table's if not stated.")] = None,
    classes: Annotated[str | None, typer.Option(help="Class subsets of tables 3-5, such as 4-9.")] = None,
    trials: Annotated[int | None, typer.Option(help="Trials a cell (5 if not stated).")] = None,
    protocol: Annotated[str, typer.Option(help="What the baselines are fed: paper, fair or both.")] = "both",
    epochs: Annotated[int | None, typer.Option(help="Instead of the paper's number.")] = None,
    results: Annotated[Path | None, typer.Option(help="The folder of the ledger (results).")] = None,
    recipes: Annotated[Path | None, typer.Option(help="Read the chosen settings from this folder's ledger.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small part of the data, 3 epochs, size 5, one trial, in results-quick.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the runs and train nothing.")] = False,
    minutes: Annotated[float | None, typer.Option(help="Stop cleanly before this time is over.")] = None,
    pack_minutes: Annotated[float, typer.Option(help="About how long runs that go together may take.")] = 3.0,
    engine: Annotated[str, typer.Option(help="fleet, processes or ray.")] = "fleet",
    processes: Annotated[int | None, typer.Option(help="Workers (CPU processes, or Ray's).")] = None,
    ray_address: Annotated[str | None, typer.Option(help="Of a running Ray cluster; else a local one.")] = None,
    score_every: Annotated[int, typer.Option(min=1, help="Epochs between scores; the last ten are always.")] = 1,
    device: Device = "auto",
    json: AsJson = False,
) -> None:
    """Re-run the paper's study, as far as the ledger lacks it.

    It may be stopped and started at any moment. Every finished run is one line of results/ledger/<dataset>.jsonl;
    `shortlist report results` makes tables of them.

    Example: shortlist reproduce table1 --datasets fashion --methods sl,likelihood --sizes 5,3 --trials 5
    """
    from shortlist.study.commands import Study
    from shortlist.study.run.driver import Budget

    names = [name + "-quick" for name in _words(datasets)] if quick else _words(datasets)
    folder = results or Path("results-quick" if quick else "results")
    study = Study(folder, recipes, device, score_every, Budget(minutes, pack_minutes), note)
    work = {"engine": engine, "device": device, "processes": processes, "address": ray_address}
    if what in ("tune", "search"):
        length = epochs or (QUICK_EPOCHS if quick else None)
        if dry_run:
            _list(study, _choices(study, what, names, methods, protocol, length), json)
            return
        report = _choose(study, what, names, methods, protocol, length, work)
        _end(report, None, json)
        return
    wanted = _wanted(what, names, methods, sizes, classes, trials, protocol, epochs, quick)
    if dry_run:
        _list(study, study.missing(wanted), json)
        return
    report = _with_engine(work, lambda made: study.run_tables(wanted, made))
    _end(report, _figures(study, wanted), json)


def _wanted(
    what: str,
    names: list[str],
    methods: str | None,
    sizes: str | None,
    classes: str | None,
    trials: int | None,
    protocol: str,
    epochs: int | None,
    quick: bool,
) -> "Wanted":
    from shortlist.errors import unknown_name
    from shortlist.study.plan.grid import BEYOND, TABLES, TRIALS, Wanted
    from shortlist.study.plan.variants import checked_protocols

    parts = [*TABLES, BEYOND]
    if what not in (*parts, "all"):
        raise unknown_name("part of the study", what, [*parts, "all", "tune", "search"])
    stated = tuple(_whole(word, "size") for word in _words(sizes)) if sizes else None
    return Wanted(
        tables=TABLES if what == "all" else (what,),
        datasets=tuple(names),
        methods=tuple(_words(methods)) if methods else None,
        sizes=stated or (QUICK_SIZES if quick and what not in ("table3", "table4", "table5") else None),
        classes=tuple(_words(classes)) if classes else None,
        protocols=checked_protocols(protocol),
        trials=trials if trials is not None else 1 if quick else TRIALS,
        epochs=epochs or (QUICK_EPOCHS if quick else None),
    )


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _whole(word: str, what: str) -> int:
    from shortlist.errors import InputError

    if not word.isdigit():
        raise InputError(f"{what}: expected a number, got {word!r}")
    return int(word)


def _with_engine(work: dict[str, Any], do: Any) -> "Report":
    from shortlist.study.run.driver import listening
    from shortlist.study.run.engines import make_engine

    made = make_engine(work["engine"], work["device"], work["processes"], work["address"])
    clean = False
    try:
        with listening():
            report: Report = do(made)
        clean = True
    except KeyboardInterrupt:
        note("stopped: the runs that were finished are stored; run the same command to go on")
        raise typer.Exit(130) from None
    finally:
        made.close(clean)
    return report


def _choose(
    study: "Study",
    what: str,
    names: list[str],
    methods: str | None,
    protocol: str,
    epochs: int | None,
    work: dict[str, Any],
) -> "Report":
    from shortlist.study.plan.variants import checked_protocols

    if what == "search":
        return _with_engine(work, lambda made: study.search(names, made, epochs))
    protocols = checked_protocols(protocol)
    chosen = _words(methods) if methods else None
    return _with_engine(work, lambda made: study.tune(names, chosen, protocols, made, epochs))


def _choices(
    study: "Study", what: str, names: list[str], methods: str | None, protocol: str, epochs: int | None
) -> "list[PlannedRun]":
    from shortlist.study.plan.variants import checked_protocols

    if what == "search":
        return study.unsearched(names, epochs)
    return study.untried(names, _words(methods) if methods else None, checked_protocols(protocol), epochs)


def _list(study: "Study", runs: "list[PlannedRun]", json: bool) -> None:
    from shortlist.study.run.batches import Pace, cut, groups
    from shortlist.study.run.engines import Local

    if json:
        print_json({"runs": [{"key": run.key, **run.cell.to_dict(), "trial": run.trial} for run in runs]})
        return
    if not runs:
        note("no run is missing")
        return
    print_table(
        ("key", "cell", "trial", "epochs", "lr", "weight decay", "settings from"),
        [
            (r.key, r.cell.name, r.trial, r.config.epochs, f"{r.config.lr:g}", f"{r.config.weight_decay:g}", r.source)
            for r in runs
        ],
    )
    waiting, usual = groups(runs), 60 * study.budget.pack_minutes
    gpu = Pace(cuda=True)
    guess = f"about {gpu.all_seconds(waiting, usual) / 60:.1f} minutes on one H200"
    if Local(study.device).cuda:
        sizes = [len(pack.runs) for group in waiting for pack in cut(group, gpu, usual)]
        note(
            f"{len(runs)} runs are missing: {len(sizes)} packs of {min(sizes)} to {max(sizes)} runs, {guess} (a guess)"
        )
        return
    here = Pace(cuda=False).all_seconds(waiting, usual) / 60
    note(
        f"{len(runs)} runs are missing: about {here:.1f} minutes on this CPU, one after another ({guess}; both guesses)"
    )


def _figures(study: "Study", wanted: "Wanted") -> list[dict[str, Any]]:
    """What the ledger now holds of the cells asked for."""
    from shortlist.study.plan.grid import cells
    from shortlist.study.report.results import Results

    ours = Results([row for name in wanted.datasets for row in study.ledgers.of(name).rows()], study.recipes)
    stored = _stored(study, wanted)
    figures = []
    for cell in cells(wanted):
        result = ours.of(cell)
        before = stored.of(cell).last if stored else None
        figures.append(
            {
                **cell.to_dict(),
                "cell": cell.name,
                "trials": len(result.rows),
                "failed": result.failed,
                "last_epoch": result.last,
                "last_ten": result.last_ten,
                "paper": result.paper,
                "difference": result.difference,
                **({"stored": before} if stored else {}),
            }
        )
    return figures


def _stored(study: "Study", wanted: "Wanted") -> Any:
    """What the folder that the settings came from holds of the same cells, for one's own run to be held against."""
    from shortlist.study.report.results import Results
    from shortlist.study.run.ledger import Ledgers

    if study.recipes_from is None or study.recipes_from.resolve() == study.results.resolve():
        return None
    ledgers = Ledgers(study.recipes_from, note)
    return Results([row for name in wanted.datasets for row in ledgers.of(name).rows()], study.recipes)


def _end(report: "Report", figures: list[dict[str, Any]] | None, json: bool) -> None:
    from shortlist.errors import InputError

    if json:
        print_json({"stored": report.stored, "failed": report.failed, "left": report.left, "cells": figures})
    elif figures is not None:
        with_stored = any("stored" in row for row in figures)
        print_table(
            ("cell", "trials", "last epoch", "last ten", "paper", "difference", *(["stored"] if with_stored else [])),
            [
                (
                    row["cell"],
                    f"{row['trials']}" + (f", {row['failed']} failed" if row["failed"] else ""),
                    _text(row["last_epoch"]),
                    _text(row["last_ten"]),
                    _text(row["paper"]),
                    "" if row["difference"] is None else f"{row['difference']:+.2f}",
                    *([_text(row["stored"])] if with_stored else []),
                )
                for row in figures
            ],
        )
    rest = f" (about {report.left_seconds / 60:.1f} minutes), run the same command to go on" if report.left else ""
    note(f"{report.stored} runs stored, {report.left} left{rest}")
    if report.absent:
        raise InputError("; ".join(f"{name} was left out: {why}" for name, why in report.absent.items()))


def _text(figure: "Figure | None") -> str:
    return "" if figure is None else figure.text()
