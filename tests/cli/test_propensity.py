"""From an annotation export, its lists chosen by a policy, to a trained model: the exported probabilities are used."""

import csv

import numpy as np

from shortlist.annotate.formats.answers import COLUMNS
from shortlist.policies.choose import Policy, choose
from shortlist.training.saved.folder import load_folder

from .conftest import WORDS, text_rows, text_table


def export(path, without=()):
    """Lists of one class, nearly always the first: answered as an annotator would, written as the app does."""
    names = sorted(WORDS)
    rows = text_rows(240)
    believed = np.tile([0.8, 0.15, 0.05], (len(rows), 1))
    drawn = choose(
        Policy("top", size=1, epsilon=0.6), believed, np.ones((len(rows), 3), bool), np.random.default_rng(0)
    )
    columns = [name for name in COLUMNS if name not in without]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        for i, (item, _, label) in enumerate(rows):
            shortlist, inclusion = drawn.row(i)
            shown = [names[k] for k in shortlist]
            answer = label if label in shown else ""
            classes = "" if i else "|".join(names)
            chances = "|".join(map(repr, inclusion))
            writer.writerow(
                {"item": item, "shortlist": "|".join(shown), "answer": answer, "classes": classes}
                | {"annotator": "ann", "seconds": 1.5, "policy": "top/1", "probabilities": chances, "seed": i}
            )
    return path


def test_an_export_trains_by_its_probabilities(shortlist, tmp_path):
    table = text_table(tmp_path / "t.csv", [row[:2] for row in text_rows(240)], ("item", "text"))
    answers = export(tmp_path / "answers.csv")
    done = shortlist("train", table, "--labels", answers, "--method", "propensity", "--out", tmp_path / "run")
    assert done.code == 0, done.err
    found = load_folder(tmp_path / "run", "cpu").predict([text for _, text, _ in text_rows(60)]).argmax(1)
    right = [sorted(WORDS)[k] == label for k, (_, _, label) in zip(found, text_rows(60), strict=True)]
    assert np.mean(right) > 0.9
    # the weights were used: with other probabilities another model comes out
    uniform = tmp_path / "uniform.csv"
    uniform.write_text(answers.read_text().replace(",0.6,", ",0.2,"))
    assert uniform.read_text() != answers.read_text()
    assert shortlist("train", table, "--labels", uniform, "--method", "propensity", "--out", tmp_path / "b").code == 0
    assert (tmp_path / "run/weights.safetensors").read_bytes() != (tmp_path / "b/weights.safetensors").read_bytes()


def test_answers_without_probabilities_are_one_clear_line(shortlist, tmp_path):
    table = text_table(tmp_path / "t.csv", [row[:2] for row in text_rows(240)], ("item", "text"))
    answers = export(tmp_path / "answers.csv", without=("probabilities",))
    done = shortlist("train", table, "--labels", answers, "--method", "propensity", "--out", tmp_path / "run")
    assert done.code == 2
    assert "method 'propensity' needs to know how likely each class was to be shown" in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not (tmp_path / "run" / "weights.safetensors").exists()
