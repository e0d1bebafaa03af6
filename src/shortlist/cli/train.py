"""`shortlist train`: from data and answers to a trained folder."""

import os
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shortlist.cli.options import (
    AsJson,
    Data,
    Device,
    Features,
    ImageColumn,
    ImageSize,
    ItemColumn,
    LabelColumn,
    Miss,
    Slip,
    TextColumn,
    as_text,
    data_option,
    key_values,
    note,
    print_json,
)
from shortlist.cli.progress import Progress, progress

if TYPE_CHECKING:
    from shortlist.training import Finished, Job, Listeners


how_option = partial(typer.Option, rich_help_panel="Method and model")
training_option = partial(typer.Option, rich_help_panel="Training")

Out = Annotated[Path, typer.Option(help="The folder to save the model in.")]
SimulatedSize = Annotated[int | None, typer.Option(help="Simulate shortlists of this many classes, from the labels.")]
Labels = Annotated[Path | None, typer.Option(help="Collected answers: a file, joined to the data by item.")]
Seed = Annotated[int, typer.Option(help="Seeds the shortlists, weights, shuffles and augmentation.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the run that stopped in --out.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier run left in --out.")]
TestData = Annotated[Path | None, data_option(help="Your test data, of the same form as DATA.")]

Method = Annotated[str, how_option(help="One of `shortlist methods`; your own: module:Class.")]
MethodOptions = Annotated[list[str] | None, how_option(help="An option of the method: name=value.")]
Protocol = Annotated[str, how_option(help="What rivals are fed: fair (every answer) or paper.")]
Model = Annotated[str | None, how_option(help="One of `shortlist models`; your own: module:function.")]
ModelOptions = Annotated[list[str] | None, how_option(help="An option of the model: name=value.")]

Epochs = Annotated[int | None, training_option(help="Passes over the items.")]
BatchSize = Annotated[int | None, training_option(help="Items per step.")]
LearningRate = Annotated[float | None, training_option(help="Learning rate.")]
WeightDecay = Annotated[float | None, training_option(help="Weight decay, an L2 term.")]
Momentum = Annotated[float | None, training_option(help="Momentum of sgd (default 0.9).")]
Optimiser = Annotated[str | None, training_option(help="sgd or adam; for linear models also lbfgs.")]
Schedule = Annotated[str | None, training_option(help="constant, step or cosine (default).")]
Augment = Annotated[bool | None, training_option(help="Random crops, and flips if the dataset allows them.")]
Strong = Annotated[bool | None, training_option(help="Use each image twice per step, once strongly changed.")]
Holdout = Annotated[float | None, training_option(help="The share of labelled items to hold out and score on.")]
Keep = Annotated[str | None, training_option(help="The weights to save: last (epoch) or best (on held-out items).")]
Tune = Annotated[str | None, training_option(help="Choose these settings first, on held-out items: lr,wd.")]


def train(
    data: Data,
    out: Out,
    size: SimulatedSize = None,
    labels: Labels = None,
    seed: Seed = 0,
    method: Method = "likelihood",
    method_option: MethodOptions = None,
    protocol: Protocol = "fair",
    model: Model = None,
    model_option: ModelOptions = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    lr: LearningRate = None,
    weight_decay: WeightDecay = None,
    momentum: Momentum = None,
    optimiser: Optimiser = None,
    schedule: Schedule = None,
    augment: Augment = None,
    strong: Strong = None,
    holdout: Holdout = None,
    keep: Keep = None,
    tune: Tune = None,
    features: Features = None,
    test: TestData = None,
    text_column: TextColumn = None,
    image_column: ImageColumn = None,
    label_column: LabelColumn = None,
    item_column: ItemColumn = None,
    image_size: ImageSize = None,
    miss: Miss = 0.0,
    slip: Slip = 0.0,
    resume: Resume = False,
    overwrite: Overwrite = False,
    device: Device = "auto",
    json: AsJson = False,
) -> None:
    """Train a classifier from shortlists and answers.

    It is saved in --out, with a model card (card.md) that says how good it is.

    --labels uses collected answers; --size simulates shortlists and answers from the classes of the data. Without
    either, the classes themselves are learned. For several GPUs or machines, run the same command under torchrun.

    What you do not set depends on the data. Texts: TF-IDF features, model linear, lbfgs, 20 steps (40 if some answers
    are None); adam, lr 0.03, 15 epochs for methods that lbfgs cannot solve, and if you set lr, epochs and the like.

    Grey images up to 32x32: lenet, adam, lr 0.002, 10 epochs. Other images: resnet32, sgd, lr 0.05, 100 epochs,
    augmentation. Vectors, and images below 16x16: mlp, adam, lr 0.003, 50 epochs.

    A tenth of the labels is held out if there are 100 or more and no test set. config.json records the settings used.

    Example: shortlist train digits --size 5 --seed 0 --epochs 20 --out runs/digits
    """
    from shortlist.training import DataSource, Job

    stated: dict[str, Any] = {
        "size": size,
        "seed": seed,
        "method": method,
        "method_options": key_values(method_option or [], "--method-option"),
        "protocol": protocol,
        "model": model,
        "model_options": key_values(model_option or [], "--model-option"),
        "epochs": epochs,
        "batch_size": batch_size,
        "lr": lr,
        "weight_decay": weight_decay,
        "momentum": momentum,
        "optimiser": optimiser,
        "schedule": schedule,
        "augment": augment,
        "strong": strong,
        "holdout": holdout,
        "keep": keep,
    }
    columns = (text_column, image_column, label_column, item_column)
    source = DataSource(data, *columns, as_text(test), image_size, features or "tfidf")
    settings = {name: value for name, value in stated.items() if value is not None}
    job = Job(source, out, settings, labels, miss, slip, tune, device, resume, overwrite)
    _run(job, json)


def _run(job: "Job", json: bool) -> None:
    from shortlist.training import Interrupted
    from shortlist.training import train as run_job

    first = os.environ.get("RANK", "0") == "0"
    with progress(None, "training", quiet=not first, lines=True) as bar:
        try:
            finished = run_job(job, _listeners(job, bar, first))
        except Interrupted as stopped:
            if first:
                saved = f" after epoch {stopped.epoch}, saved in {job.out}. Continue with:\n  {_go_on()}"
                # nothing is saved yet where settings were still being chosen
                note(f"shortlist: stopped{saved if job.unfinished else ''}")
            raise typer.Exit(130) from None
    if first:
        _report(job.out, finished, job.labels is not None, json)


def _listeners(job: "Job", bar: Progress, first: bool) -> "Listeners":
    from shortlist.training import EpochScores, Listeners, Prepared, TuneRow

    def on_start(prepared: Prepared) -> None:
        run = prepared.run
        bar.total = run.config.epochs
        if run.device.type == "cpu":
            bar.look = lambda: run.steps_done / run.steps
            if first and run.config.model == "resnet32" and "model" not in job.settings:
                note(
                    f"shortlist: images in colour or larger than 32x32 train resnet32, here for {run.config.epochs} "
                    "epochs: slow without a GPU; quicker: --model lenet --epochs 20, or grey images and "
                    "--image-size 32"
                )

    def on_epoch(scores: EpochScores) -> None:
        bar.done = scores.epoch
        parts = [f"epoch {scores.epoch}", f"risk {scores.risk:.4f}"]
        if scores.validation_accuracy is not None:
            parts.append(f"validation {scores.validation_accuracy:.2%}")
        if scores.test_accuracy is not None:
            parts.append(f"test {scores.test_accuracy:.2%}")
        bar.note = ", ".join(parts)

    def on_point(row: TuneRow) -> None:
        if first:
            settings = ", ".join(f"{name} {value:g}" for name, value in row.settings.items())
            note(f"tune: {settings}: {row.problem or f'held-out accuracy {row.accuracy:.2%}'}")

    def on_stop() -> None:
        if first:
            note("\nshortlist: finishing this epoch, then saving; press Ctrl-C again to stop at once")

    return Listeners(on_start, on_epoch, on_point, on_stop)


def _go_on() -> str:
    """The command line of this process, with --resume."""
    words = [word for word in sys.argv[1:] if word != "--overwrite"]
    return shlex.join(["shortlist", *words, *([] if "--resume" in words else ["--resume"])])


def _report(out: Path, finished: "Finished", collected: bool, json: bool) -> None:
    from shortlist.training import mean_of_last

    trained, measures = finished.trained, finished.measures
    last = trained.saved_epoch
    result = {
        "out": str(out),
        "method": trained.config.method,
        "model": trained.config.model,
        "epochs": trained.history[-1].epoch,
        "saved_epoch": last.epoch,
        "risk": last.risk,
        "test_accuracy": last.test_accuracy,
        "test_accuracy_mean_of_last": mean_of_last(trained.history),
        "validation_accuracy": last.validation_accuracy,
        "validation_log_likelihood": last.validation_log_likelihood,
        "calibration_error": None if measures is None else measures.calibration_error,
        "none_share": trained.labels["none_share"],
        "reads": trained.labels["reads"],
        "lr": trained.config.lr,
        "weight_decay": trained.config.weight_decay,
        "seconds": finished.seconds,
    }
    if finished.again:
        note(f"shortlist: {out} is finished already; nothing to do")
    if json:
        print_json(result)
        return
    scores = [
        f"{name} accuracy {value:.2%}"
        for name, value in (("test", last.test_accuracy), ("held-out", last.validation_accuracy))
        if value is not None
    ]
    if scores and measures is not None:
        counted = f"{measures.items:,} {'answered items' if finished.on_held_out else 'items'}"
        if finished.on_held_out and collected:
            counted += ": a fair sample if lists were drawn at random, not if a model chose them"
        scores[0] += f" ({counted})"
    typer.echo(f"{out}: {', '.join(scores) or finished.why_unmeasured}; more in {out / 'card.md'}")
