"""The model card: what the model is, what it was trained on, how good it is; Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

from shortlist.training.history import LAST, EpochScores, mean_of_last, saved_epoch
from shortlist.training.saved.measures import Measures

TEST_SET = "the test set"
HELD_OUT = "held-out items that were answered"
"""What scores may be measured on."""
ANSWERED = (
    "Answered items stand for all items if the lists were drawn at random, whatever the item. If a model chose them, "
    "score on items whose classes are known (`shortlist evaluate`)."
)
CHOSEN = "The epoch was chosen by the same items, so these figures are a little too good."
KINDS = {"image": "images", "text": "texts", "features": "feature vectors"}


def card_text(
    content: Mapping[str, Any], history: Sequence[EpochScores], measures: Measures | None, measured_on: str
) -> str:
    """The card of a trained folder.

    Args:
        content: what config.json holds.
        history: scores by epoch.
        measures: scores by class, if they could be measured.
        measured_on: what on, in words.
    """
    run, data = content["run"], content["data"]
    title = f"# {_cell(run['method'])} on {_cell(data.get('name', 'data'))}"
    sections = [
        title,
        _table([*_facts(content), *_kept(run, history)]),
        "## How good it is",
        *_quality(history, measures, measured_on, run.get("keep") == "best"),
        "## Use it",
        "```\nshortlist predict <this folder> <files>\nshortlist evaluate <this folder> <data> --json\n```",
        f"Made by Shortlist {content['shortlist']}. Settings: config.json; scores by epoch: history.json.",
    ]
    return "\n\n".join(sections) + "\n"


def _facts(content: Mapping[str, Any]) -> list[tuple[str, str]]:
    run, data, labels = content["run"], content["data"], content["labels"]
    options = ", ".join(f"{key} = {value}" for key, value in run["method_options"].items())
    sizes = labels.get("sizes", {})
    size = ", ".join(sizes) if len(sizes) <= 3 else f"{min(map(int, sizes))} to {max(map(int, sizes))}"
    reads, items, known = labels.get("reads", 0), labels.get("items", 0), labels.get("known", 0)
    asked, them = items - known, " asked about" if known else ""
    K = len(content["class_names"])
    facts = [
        ("data", f"{data.get('name', '')}: {data.get('items', items):,} {KINDS.get(content['kind'], '')}"),
        ("classes (K)", str(K)),
        ("labels", f"{items:,}, {labels.get('origin', '')}" + (f"; {known:,} of them known before" if known else "")),
        ("shortlist size (l)", size),
        ("None answers", f"{labels.get('none_share', 0):.1%} of the items{them}, the answers to each taken together"),
        ("reads", f"{reads:,} class names shown ({reads / max(asked, 1):.1f} per item; all classes: {asked * K:,})"),
        ("method", run["method"] + (f" ({options})" if options else "") + f", protocol {run['protocol']}"),
        ("model", f"{run['model']}, inputs of shape {tuple(content['in_shape'])}"),
        ("training", f"{_optimiser(run)}, {run['holdout']:.0%} held out, seed {run['seed']}"),
        ("smoothing undone", f"{content['smoothing']:.4g}"),
    ]
    if content["temperature"] != 1:
        facts.append(("temperature", f"{content['temperature']:.3g}, fitted to the held-out answers"))
    if labels.get("miss") or labels.get("slip"):
        facts.insert(5, ("simulated mistakes", f"miss {labels['miss']:g}, slip {labels['slip']:g}"))
    return facts


def _optimiser(run: Mapping[str, Any]) -> str:
    if run["optimiser"] == "lbfgs":  # on all items at once: no batches, no learning rate
        return f"{run['epochs']} steps of lbfgs, weight decay {run['weight_decay']:g}"
    return (
        f"{run['epochs']} epochs, batch {run['batch_size']}, {run['optimiser']}, lr {run['lr']:g}, weight decay "
        f"{run['weight_decay']:g}, {run['schedule']} schedule, augmentation {'on' if run['augment'] else 'off'}"
        f"{', strong views' if run.get('strong') else ''}"
    )


def _kept(run: Mapping[str, Any], history: Sequence[EpochScores]) -> list[tuple[str, str]]:
    """Which epoch's weights these are, unless they are the last one's."""
    if run.get("keep") != "best" or not history:
        return []
    epoch = saved_epoch(history, "best").epoch
    return [
        (
            "weights",
            f"of epoch {epoch} of {len(history)}, the best on the held-out items; trained on the other "
            f"{1 - run['holdout']:.0%} alone",
        )
    ]


def _quality(history: Sequence[EpochScores], measures: Measures | None, measured_on: str, chosen: bool) -> list[str]:
    if measures is None:
        return ["Not measured: there is no test set and nothing was held out."]
    facts = [
        ("accuracy", f"{measures.accuracy:.2%} of {measures.items:,} items ({measured_on})"),
        ("calibration error (15 bins)", f"{measures.calibration_error:.2%}"),
        ("log loss", f"{measures.log_loss:.4f}"),
    ]
    last = mean_of_last(history)
    if last is not None and not chosen:
        count = min(LAST, len(history))
        facts.append((f"test accuracy, mean of the last {count} epochs", f"{last:.2%}"))
    rows = [(_cell(name), "none" if share is None else f"{share:.1%}") for name, share in measures.by_class.items()]
    counts = measures.items_by_class
    by_class = ["| class | items | accuracy |", "|---|---:|---:|"]
    by_class += [f"| {name} | {counts[k]:,} | {share} |" for k, (name, share) in enumerate(rows)]
    fair = [] if measured_on == TEST_SET else [ANSWERED, *([CHOSEN] if chosen else [])]
    return [_table(facts), *fair, "\n".join(by_class), "![Confusion matrix](confusion.svg)"]


def _table(facts: Sequence[tuple[str, str]]) -> str:
    return "\n".join(["| | |", "|---|---|", *(f"| {key} | {_cell(value)} |" for key, value in facts)])


def _cell(text: str) -> str:
    """Escape text so that a Markdown table shows it as it is."""
    for sign in "\\`*_{}[]<>|#":
        text = text.replace(sign, "\\" + sign)
    return " ".join(text.split())
