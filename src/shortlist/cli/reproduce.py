"""`shortlist reproduce`: runs the cells of the paper's tables that the ledger does not hold yet."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shortlist.cli.options import AsJson, Device, note, print_json, print_table

if TYPE_CHECKING:
    from shortlist.study import DriveOutcome, PlannedRun, Study, Wanted

CHOOSING = ("tune", "search")
SUBSET_TABLES = ("table3", "table4", "table5")
QUICK_EPOCHS = 3

Part = Annotated[
    str, typer.Argument(help="table1 .. table5, figure2, all; beyond; tune (choose settings); search (SL's recipe).")
]
Datasets = Annotated[str, typer.Option(help="Separated by commas; your own by path, such as mine.npz.")]
Methods = Annotated[
    str | None,
    typer.Option(help="Such as sl,likelihood,ol-ovr,likelihood+aug; your own: module:Class. All if not stated."),
]
Quick = Annotated[
    bool, typer.Option("--quick", help="A small part of the data, 3 epochs, one size, one trial, in results-quick.")
]


def reproduce(
    what: Part,
    datasets: Datasets = "mnist,fashion,kuzushiji,cifar10",
    methods: Methods = None,
    sizes: Annotated[str | None, typer.Option(help="Sizes of the shortlist; the table's if not stated.")] = None,
    classes: Annotated[str | None, typer.Option(help="Class subsets of tables 3-5, such as 4-9.")] = None,
    trials: Annotated[int | None, typer.Option(min=1, max=1000, help="Trials per cell (5 if not stated).")] = None,
    protocol: Annotated[str, typer.Option(help="What the baselines are fed: paper, fair or both.")] = "both",
    epochs: Annotated[int | None, typer.Option(min=1, help="Instead of the paper's number.")] = None,
    results: Annotated[Path | None, typer.Option(help="The folder of the ledger (results).")] = None,
    recipes: Annotated[Path | None, typer.Option(help="Read the chosen settings from this folder's ledger.")] = None,
    quick: Quick = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the runs and train nothing.")] = False,
    minutes: Annotated[float | None, typer.Option(help="Stop cleanly before this time is over.")] = None,
    batch_minutes: Annotated[float, typer.Option(help="About how long runs that are trained together may take.")] = 3.0,
    engine: Annotated[str, typer.Option(help="fleet, processes or ray.")] = "fleet",
    processes: Annotated[int | None, typer.Option(min=1, max=10_000, help="Workers (CPU processes, or Ray's).")] = None,
    ray_address: Annotated[str | None, typer.Option(help="Of a running Ray cluster; else a local one.")] = None,
    score_every: Annotated[int, typer.Option(min=1, help="Epochs between scores; the last ten are always.")] = 1,
    device: Device = "auto",
    json: AsJson = False,
) -> None:
    """Re-run the paper's study, or compare methods on your data.

    It trains what the ledger lacks, and may be stopped and started at any moment. Every finished run is one line of
    results/ledger/<dataset>.jsonl; `shortlist report results` makes tables of them.

    Example: shortlist reproduce table1 --datasets fashion --methods sl,likelihood --sizes 5,3 --trials 5
    """
    from shortlist.study import Budget, Study, checked_protocols

    names = [name + "-quick" if quick else name for name in _words(datasets, "datasets")]
    folder = results or Path("results-quick" if quick else "results")
    study = Study(folder, recipes, device, score_every, Budget(minutes, batch_minutes), note)
    asked = (what, names, methods, sizes, classes, trials, protocol, epochs, quick)
    wanted, length = _wanted(*asked), epochs or (QUICK_EPOCHS if quick else None)
    if wanted is not None:
        missing, train = partial(study.missing, wanted), partial(study.run_tables, wanted)
    elif what == "search":
        missing, train = partial(study.unsearched, names, length), partial(study.search, names, epochs=length)
    else:
        tuned = (names, None if methods is None else _words(methods, "methods"), checked_protocols(protocol))
        missing, train = partial(study.untried, *tuned, length), partial(study.tune, *tuned, epochs=length)
    if dry_run:
        _list(study, missing(), json)
        return
    try:
        with study.open_engine(engine, processes, ray_address) as opened:
            outcome = train(engine=opened)
    except KeyboardInterrupt:
        note("stopped: the runs that were finished are stored; run the same command to go on")
        raise typer.Exit(130) from None
    _end(outcome, None if wanted is None else _figures(study, wanted), json)


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
) -> "Wanted | None":
    """The part of the grid that was asked for; None if settings are to be chosen."""
    from shortlist.errors import InputError, unknown_name
    from shortlist.study import PARTS, Wanted, checked_protocols

    if what in CHOOSING:
        for name, given in (("sizes", sizes), ("classes", classes), ("trials", trials)):
            if given is not None:
                raise InputError(f"--{name}: {what} chooses settings for all of them, leave it out")
        for name, asked in (("methods", methods is not None), ("protocol", protocol != "both")):
            if what == "search" and asked:
                raise InputError(f"--{name}: search is for SL alone, leave it out")
        return None
    if what not in (*PARTS, "all"):
        raise unknown_name("part of the study", what, [*PARTS, "all", *CHOOSING])
    one_size = quick and sizes is None
    if one_size and what == "all":
        note("tables 3 to 5 have no lists of 5 and are left out: ask for them by name, as in reproduce table3 --quick")
    every = tuple(name for name in Wanted.tables if not (one_size and name in SUBSET_TABLES))
    return Wanted(
        tables=every if what == "all" else (what,),
        datasets=tuple(names),
        methods=None if methods is None else _words(methods, "methods"),
        sizes=None if sizes is None else tuple(_whole(word, "size") for word in _words(sizes, "sizes")),
        classes=None if classes is None else _words(classes, "classes"),
        protocols=checked_protocols(protocol),
        trials=trials if trials is not None else 1 if quick else Wanted.trials,
        epochs=epochs or (QUICK_EPOCHS if quick else None),
        quick=quick,
    )


def _words(text: str, option: str) -> tuple[str, ...]:
    from shortlist.errors import InputError

    words = tuple(word.strip() for word in text.split(",") if word.strip())
    if not words:  # an empty list is not the same as no list, which stands for everything
        raise InputError(f"--{option}: expected one or more, separated by commas, got {text!r}")
    return words


def _whole(word: str, what: str) -> int:
    from shortlist.errors import InputError

    if not word.isdecimal():
        raise InputError(f"{what}: expected a number, got {word!r}")
    return int(word)


def _list(study: "Study", runs: "list[PlannedRun]", json: bool) -> None:
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
    note(f"{'1 run is' if len(runs) == 1 else f'{len(runs)} runs are'} missing: {study.guess(runs)}")


def _figures(study: "Study", wanted: "Wanted") -> list[dict[str, Any]]:
    """What the ledger now holds for the cells asked for."""
    return [
        {
            **ours.cell.to_dict(),
            "cell": ours.cell.name,
            "trials": len(ours.rows),
            "failed": ours.failed,
            "last_epoch": ours.last,
            "last_ten": ours.last_ten,
            "paper": ours.paper,
            "difference": ours.difference,
            **({} if stored is None else {"stored": stored.last}),
        }
        for ours, stored in study.figures(wanted)
    ]


def _end(outcome: "DriveOutcome", figures: list[dict[str, Any]] | None, json: bool) -> None:
    from shortlist.errors import InputError

    if json:
        print_json({"stored": outcome.stored, "failed": outcome.failed, "left": outcome.left, "cells": figures})
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
    rest = f" (about {outcome.left_seconds / 60:.1f} minutes), run the same command to go on" if outcome.left else ""
    note(f"{outcome.stored} run{'' if outcome.stored == 1 else 's'} stored, {outcome.left} left{rest}")
    if outcome.absent:
        raise InputError("; ".join(f"{name} was left out: {why}" for name, why in outcome.absent.items()))


def _text(figure: Any) -> str:
    return "" if figure is None else figure.text()
