"""The commands from end to end: own images, own texts, collected answers; each in a process of its own where told."""

import csv
import io
import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from shortlist import StochasticLabels
from shortlist.cli import app
from shortlist.data import load
from shortlist.training.saved.folder import load_folder

from .conftest import WORDS, command, image_folder, piped, text_rows, text_table


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.slow
def test_a_folder_of_images(shortlist, tmp_path):
    """Trained in a process of its own; its folder is all that the others have."""
    train = image_folder(tmp_path / "train", per_class=40)
    test = image_folder(tmp_path / "new", per_class=10, seed=1)
    out = tmp_path / "run"
    done = command(
        "train", train, "--size", "2", "--seed", "0", "--epochs", "25", "--lr", "0.002", "--json", "--out", out
    )
    assert done.code == 0, done.err
    assert json.loads(done.out)["model"] == "lenet"
    done = shortlist("evaluate", out, test, "--json")
    assert done.code == 0, done.err
    scores = json.loads(done.out)
    assert scores["items"] == 30
    assert scores["accuracy"] > 0.9
    assert set(scores["by_class"]) == {"dot", "lying", "standing"}
    files = sorted((test / "lying").iterdir())
    done = shortlist("predict", out, *files, "--top-k", "2")
    rows = rows_of(done.out)
    assert [row["item"] for row in rows] == [str(file) for file in files]
    assert sum(row["class"] == "lying" for row in rows) >= 8
    for row in rows:
        assert row["top"].split("|")[0] == row["class"]
        shares = [float(share) for share in row["top_probabilities"].split("|")]
        assert len(shares) == 2
        assert shares[0] == float(row["probability"]) >= shares[1]


@pytest.mark.slow
def test_one_colour_picture_is_told_and_what_to_do(tmp_path):
    from PIL import Image

    train = image_folder(tmp_path / "train", per_class=8)
    odd = train / "lying" / "2.png"
    Image.open(odd).convert("RGB").save(odd)
    for place, stated in enumerate(((), ("--model", "lenet"))):
        done = command("train", train, "--size", "2", "--epochs", "1", *stated, "--out", tmp_path / f"run{place}")
        assert done.code == 0, done.err
        lines = [f"1 of 24 images in colour ({odd}), so all are read as RGB: make them grey if colour says nothing"]
        if not stated:
            lines.append(
                "shortlist: images in colour or larger than 32x32 train resnet32, here for 1 epochs: slow "
                "without a GPU; quicker: --model lenet --epochs 20, or grey images and --image-size 32"
            )
        assert done.err.splitlines() == lines


@pytest.mark.slow
def test_a_table_of_texts(shortlist, tmp_path):
    """Trained and asked in processes of their own, and evaluated."""
    train = text_table(tmp_path / "train.csv", text_rows(90), ("id", "question", "intent"))
    test = text_table(tmp_path / "test.csv", text_rows(30, seed=1), ("id", "question", "intent"))
    columns = ["--text-column", "question", "--label-column", "intent", "--item-column", "id"]
    out = tmp_path / "run"
    done = command("train", train, "--size", "2", "--test", test, *columns, "--json", "--out", out)
    assert done.code == 0, done.err
    trained = json.loads(done.out)
    assert trained["model"] == "linear"
    assert trained["test_accuracy"] > 0.95
    done = shortlist("evaluate", out, test, "--json")  # the columns are remembered
    assert json.loads(done.out)["accuracy"] == trained["test_accuracy"]
    done = command("predict", out, "-", stdin="I lost my card\nwhat is the rate for euros\n")
    assert [row["class"] for row in rows_of(done.out)] == ["lost card", "exchange rate"]


@pytest.fixture
def texts(shortlist, tmp_path):
    """A model of texts, and the table it was trained on."""
    table = text_table(tmp_path / "train.csv", text_rows(60))
    assert shortlist("train", table, "--size", "2", "--out", tmp_path / "run").code == 0
    return tmp_path / "run", table


def test_predict_from_stdin_and_files(texts, shortlist, tmp_path, monkeypatch):
    out, _ = texts
    question = "how do I top up"
    table = f'text, item\n"{question}",first\n'
    stdin = {"lines": f"{question}\n\n", "csv": table, "csv of Excel": "\ufeff" + table}
    files = {"text file": tmp_path / "q.txt", "table": tmp_path / "q.csv"}
    (tmp_path / "q.txt").write_text(question + "\n")
    text_table(tmp_path / "q.csv", [("first", question)], ("item", "text"))
    found = {}
    for form in (*stdin, *files):
        monkeypatch.setattr("sys.stdin", piped(stdin.get(form, "")))
        done = shortlist("predict", out, files.get(form, "-"), "--json")
        assert done.code == 0, done.err
        found[form] = json.loads(done.out)
        assert found[form]["class"] == "top up"
    assert len({row["probability"] for row in found.values()}) == 1
    assert found["csv"]["item"] == found["csv of Excel"]["item"] == found["table"]["item"] == "first"
    assert sum(found["csv"]["top_probabilities"]) == pytest.approx(1)
    both = rows_of(shortlist("predict", out, tmp_path / "q.txt", tmp_path / "q.csv").out)
    assert [row["item"] for row in both] == [f"{tmp_path / 'q.txt'}:0", f"{tmp_path / 'q.csv'}:first"]
    for damaged, place in ((b"caf\xe9 card\n", 3), (question.encode("utf-16"), 0)):  # as Excel and PowerShell write
        monkeypatch.setattr("sys.stdin", piped(damaged))
        refused = shortlist("predict", out, "-")
        assert refused.code == 2
        assert re.fullmatch(rf"shortlist: stdin is not UTF-8 text: .* at byte {place}\n", refused.err)
    monkeypatch.setattr("sys.stdin", None)  # what Python makes of a closed one
    closed = shortlist("predict", out, "-")
    assert (closed.code, closed.err) == (2, "shortlist: stdin is closed: nothing can be read from it\n")


def test_texts_that_csv_and_splitlines_would_cut(texts, shortlist, tmp_path):
    file = tmp_path / "q.txt"
    file.write_text("card " * 30_000 + "\nlost\u2028card\x0cagain\n", encoding="utf-8")
    assert len(rows_of(shortlist("predict", texts[0], file).out)) == 2


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_predictions_in_files(texts, shortlist, tmp_path, ending):
    import pyarrow.parquet as pq

    out, table = texts
    path = tmp_path / f"p.{ending}"
    done = shortlist("predict", out, table, "--out", path)
    assert (done.code, done.out) == (0, "")
    if ending == "csv":
        rows = rows_of(path.read_text())
    elif ending == "jsonl":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    else:
        rows = pq.read_table(path).to_pylist()
    expected = load_folder(out, "cpu").predict([text for _, text, _ in text_rows(60)])
    assert [row["item"] for row in rows] == [item for item, _, _ in text_rows(60)]
    np.testing.assert_allclose([float(row["probability"]) for row in rows], expected.max(1), rtol=1e-5)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_collected_answers_are_joined_by_item(shortlist, tmp_path, ending):
    """simulate and train --labels give what train --size gives; the order of the file does not matter."""
    table = text_table(tmp_path / "train.csv", text_rows(60))
    path = tmp_path / f"labels.{ending}"
    assert shortlist("simulate", table, "--size", "2", "--seed", "4", "--out", path).code == 0
    labels = StochasticLabels.read(path)
    assert labels.item_ids.tolist() == [item for item, _, _ in text_rows(60)]
    labels.subset(np.arange(60)[::-1]).write(path)
    unlabelled = text_table(tmp_path / "plain.csv", [row[:2] for row in text_rows(60)], ("item", "text"))
    words = ["--seed", "4", "--epochs", "3", "--holdout", "0.1", "--out"]
    assert shortlist("train", table, "--size", "2", *words, tmp_path / "a").code == 0
    assert shortlist("train", table, "--labels", path, *words, tmp_path / "b").code == 0
    assert shortlist("train", unlabelled, "--labels", path, *words, tmp_path / "c").code == 0
    weights = [(tmp_path / name / "weights.safetensors").read_bytes() for name in "abc"]
    assert weights[0] == weights[1] == weights[2]
    assert load_folder(tmp_path / "c", "cpu").class_names == tuple(sorted(WORDS))


def test_answers_for_some_items_only(shortlist, tmp_path):
    table = text_table(tmp_path / "t.csv", [row[:2] for row in text_rows(60)], ("item", "text"))
    labels = tmp_path / "labels.csv"
    names = sorted(WORDS)
    with labels.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("item", "shortlist", "answer"))
        for item, _, label in text_rows(60)[:45]:
            shown = [name for name in names if name != names[int(item[1:]) % 2]]
            writer.writerow((item, "|".join(shown), label if label in shown else ""))
    done = shortlist("train", table, "--labels", labels, "--json", "--out", tmp_path / "run")
    assert done.code == 0, done.err
    trained = load_folder(tmp_path / "run", "cpu")
    assert trained.labels["items"] == 45
    right = trained.predict([text for _, text, _ in text_rows(60)]).argmax(1)
    assert np.mean([names[k] == label for k, (_, _, label) in zip(right, text_rows(60), strict=True)]) > 0.9


def test_a_score_of_collected_answers_says_what_it_is_of(texts, shortlist, tmp_path):
    _, table = texts
    answers = tmp_path / "answers.csv"
    assert shortlist("simulate", table, "--size", "2", "--out", answers).code == 0
    held = ("--holdout", "0.3")
    said = r"held-out accuracy [\d.]+% \((\d+) answered items: a fair sample if lists were drawn at random, not"
    found = re.search(said, shortlist("train", table, "--labels", answers, *held, "--out", tmp_path / "collected").out)
    assert found
    assert 0 < int(found[1]) < 18, "of 18 held out some are None"
    simulated = shortlist("train", table, "--size", "2", *held, "--out", tmp_path / "simulated").out
    assert re.search(r"held-out accuracy [\d.]+% \(\d+ answered items\);", simulated)


def test_what_the_folder_holds(texts):
    out, _ = texts
    config = json.loads((out / "config.json").read_text())
    assert config["class_names"] == sorted(WORDS)
    assert config["kind"] == "text"
    assert config["run"]["lr"] == 0.03  # the default is recorded
    assert config["labels"]["reads"] == 120
    card = (out / "card.md").read_text()
    for said in ("| classes (K) | 3 |", "| shortlist size (l) | 2 |", "None answers", "120 class names", "likelihood"):
        assert said in card
    assert {path.name for path in out.iterdir()} <= {
        *("weights.safetensors", "config.json", "features.json", "history.json"),
        *("scores.json", "card.md", "confusion.svg"),
    }


def test_a_card_with_scores(shortlist, tmp_path):
    out = tmp_path / "run"
    assert shortlist("train", "digits", "--size", "5", "--epochs", "5", "--out", out).code == 0
    scores = json.loads(shortlist("evaluate", out, "digits", "--json").out)
    saved = json.loads((out / "scores.json").read_text())
    assert scores["accuracy"] == saved["accuracy"] > 0.8
    assert scores["calibration_error"] == pytest.approx(saved["calibration_error"], abs=1e-6)
    card = (out / "card.md").read_text()
    assert f"{scores['accuracy']:.2%} of 360 items (the test set)" in card
    for name, share in scores["by_class"].items():
        assert re.search(rf"\| {name} \| \d+ \| {share:.1%} \|", card)
    taken = saved["taken_for"]
    assert sum(counts.get(name, 0) for name, counts in taken.items()) == round(scores["accuracy"] * 360)
    assert sum(map(sum, map(dict.values, taken.values()))) == 360
    assert (out / "confusion.svg").read_text().startswith("<svg")
    train = json.loads(shortlist("evaluate", out, "digits", "--split", "train", "--json").out)
    assert train["items"] == 1437


def test_keep_best_says_which_epoch(shortlist, tmp_path):
    out = tmp_path / "run"
    done = shortlist("train", "digits", "--size", "3", "--epochs", "4", "--keep", "best", "--json", "--out", out)
    assert done.code == 0, done.err
    found, history = json.loads(done.out), json.loads((out / "history.json").read_text())
    best = max(history, key=lambda row: row["validation_estimate"])
    assert (found["saved_epoch"], found["test_accuracy"]) == (best["epoch"], best["test_accuracy"])
    assert json.loads((out / "scores.json").read_text())["accuracy"] == best["test_accuracy"]
    said = f"of epoch {best['epoch']} of 4, the best on the held-out items; trained on the other 90% alone"
    assert said in (out / "card.md").read_text()


def test_strong_views_are_stated_and_told(shortlist, tmp_path):
    out = tmp_path / "run"
    done = shortlist("train", "digits", "--size", "3", "--epochs", "1", "--method", "teacher", "--strong", "--out", out)
    assert done.code == 0, done.err
    config = json.loads((out / "config.json").read_text())["run"]
    assert (config["method"], config["strong"], config["augment"]) == ("teacher", True, False)
    assert "augmentation off, strong views," in (out / "card.md").read_text()


def test_mistakes_are_simulated_as_stated(shortlist, tmp_path):
    done = shortlist(
        "simulate", "digits", "--size", "9", "--miss", "0.3", "--slip", "0.2", "--json", "--out", tmp_path / "l.csv"
    )
    assert done.code == 0

    y = load("digits").train.y
    labels = StochasticLabels.read(tmp_path / "l.csv")
    shown = labels.shown[np.arange(len(y)), y]
    assert np.mean(labels.answer[shown] == -1) == pytest.approx(0.3, abs=0.04)
    assert np.mean((labels.answer[shown] != -1) & (labels.answer[shown] != y[shown])) == pytest.approx(0.2, abs=0.04)
    assert json.loads(done.out)["reads"] == 9 * 1437


def test_tune_picks_on_held_out_items(shortlist, tmp_path):
    out = tmp_path / "run"
    done = shortlist(
        *("train", "digits", "--size", "5", "--epochs", "2", "--lr", "0.003", "--tune", "lr,wd", "--json", "--out", out)
    )
    assert done.code == 0, done.err
    assert done.err.count("tune: ") == 12
    best = json.loads(done.out)
    scores = [float(share) for share in re.findall(r"accuracy ([\d.]+)%", done.err)]
    line = f"lr {best['lr']:g}, weight_decay {best['weight_decay']:g}: held-out accuracy {max(scores):.2f}%"
    assert line in done.err


def test_listings(shortlist):
    for what, names in [("methods", "likelihood"), ("models", "resnet32"), ("datasets", "banking77")]:
        assert names in shortlist(what).out
        rows = json.loads(shortlist(what, "--json").out)[what]
        assert names in {row["name"] for row in rows}
    assert len(json.loads(shortlist("methods", "--json").out)["methods"]) == 14
    assert re.fullmatch(r"shortlist \d+\.\d+.*\n", shortlist("--version").out)


def help_of(*words):
    return CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80"}).stdout


@pytest.mark.parametrize("words", [(), ("annotate",)])
def test_the_lists_of_commands_are_whole_sentences(words):
    listed = help_of(*words).split("Commands:")[1].splitlines()
    assert len(listed) > 10
    assert [line for line in listed if line.endswith("...")] == []


@pytest.mark.parametrize("words", [("train",), ("reproduce",), ("methods",)])
def test_help_says_that_methods_may_be_ones_own(words):
    assert "module:Class" in help_of(*words)


def test_the_options_of_a_long_command_are_under_headings_the_usual_ones_first():
    said = help_of("train")
    headings = re.findall(r"^(\w[\w ]+):$", said, re.MULTILINE)
    assert headings == ["Arguments", "Options", "Method and model", "Training", "Your data", "Simulated people"]
    first = said.split("Options:")[1].split("Method and model:")[0]
    assert re.findall(r"^  (--\w+)", first, re.MULTILINE)[:3] == ["--out", "--size", "--labels"]
    options = re.findall(r"^  (--[\w-]+)", said.split("Options:")[1], re.MULTILINE)
    assert len(options) == len(set(options)) == 34
