"""What `train` says and what it refuses before it does harm."""

from dataclasses import replace

import numpy as np
import pytest

from shortlist.errors import InputError
from shortlist.training import DataSource, Job, evaluate_on, load_folder, train


@pytest.fixture
def texts(tmp_path):
    words = ["cat fur", "dog bark", "emu egg", "fly wing"]
    rows = [f"i{k},{words[k % 4]} number{k},c{k % 4}" for k in range(24)]
    path = tmp_path / "t.csv"
    path.write_text("item,text,label\n" + "\n".join(rows) + "\n")
    return path


def _labels(path, rows):
    path.write_text("item,shortlist,answer,classes\n" + "".join(f"{row},c0|c1|c2|c3\n" for row in rows))
    return path


def test_a_finished_model_is_not_overwritten_in_silence(texts, tmp_path):
    job = Job(DataSource(str(texts)), tmp_path / "out")
    train(job)
    before = (tmp_path / "out" / "weights.safetensors").read_bytes()
    with pytest.raises(InputError, match="holds a finished model: state another folder, or --overwrite"):
        train(Job(DataSource(str(texts)), tmp_path / "out", {"size": 2}))
    assert (tmp_path / "out" / "weights.safetensors").read_bytes() == before
    train(Job(DataSource(str(texts)), tmp_path / "out", {"size": 2}, overwrite=True))
    assert (tmp_path / "out" / "weights.safetensors").read_bytes() != before


@pytest.mark.parametrize("settings", [{"method": "likelyhood"}, {"lr": -1}, {"holdout": 0.99}])
def test_a_mistake_in_the_command_does_not_cost_an_unfinished_run(texts, tmp_path, settings):
    (tmp_path / "out").mkdir()
    checkpoint = tmp_path / "out" / "checkpoint.safetensors"
    checkpoint.write_bytes(b"hours of work")
    with pytest.raises(InputError):
        train(Job(DataSource(str(texts)), tmp_path / "out", settings, overwrite=True))
    assert checkpoint.read_bytes() == b"hours of work"
    train(Job(DataSource(str(texts)), tmp_path / "out", {"holdout": 0.2}, tune="wd", overwrite=True))
    assert not checkpoint.exists()


def _numbered(tmp_path, shown, header="item,shortlist,answer"):
    """Items of seven classes without names, and a file of answers whose first row shows one more."""
    x = np.random.default_rng(0).standard_normal((140, 5)).astype(np.float32)
    np.savez(tmp_path / "seven.npz", x=x, y=np.arange(140) % 7)
    more = "," if header.endswith("classes") else ""
    rows = [f"{k},{k % 7}|{(k + 1) % 7},{k % 7}{more}" for k in range(1, 140)]
    (tmp_path / "l.csv").write_text("\n".join([header, shown, *rows]) + "\n")
    return Job(DataSource(str(tmp_path / "seven.npz")), tmp_path / "out", {"epochs": 1}, labels=tmp_path / "l.csv")


def test_a_class_that_only_the_answers_have_is_told(texts, tmp_path, caplog):
    rows = ["i0,c0|crad,crad", *(f"i{k},c{k % 4}|c{(k + 1) % 4},c{k % 4}" for k in range(1, 24))]
    (tmp_path / "l.csv").write_text("item,shortlist,answer\n" + "\n".join(rows) + "\n")
    done = train(Job(DataSource(str(texts)), tmp_path / "a", labels=tmp_path / "l.csv"))
    assert done.trained.class_names == ("c0", "c1", "c2", "c3", "crad")
    told = "the answers have classes that t does not have, 'crad', in 1 of 24 rows (first item 'i0'): they are learned"
    assert told in caplog.text


def test_a_number_beyond_the_classes_of_the_data_is_told_or_refused(tmp_path, caplog):
    done = train(_numbered(tmp_path, "0,7|0,7"))
    assert len(done.trained.class_names) == 8
    assert "the answers have classes that seven does not have, '7', in 1 of 140 rows (first item '0')" in caplog.text
    caplog.clear()
    for far in ("66", "99999999"):
        with pytest.raises(InputError, match=rf"seven does not have, '{far}', in 1 of 140 rows \(first item '0'\): if"):
            train(replace(_numbered(tmp_path, f"0,{far}|0,{far}"), overwrite=True))
    stated = _numbered(tmp_path, "0,8|0,8,9", "item,shortlist,answer,classes")
    assert len(train(replace(stated, overwrite=True)).trained.class_names) == 9
    assert "does not have" not in caplog.text


def test_own_test_data_is_not_called_train(texts, tmp_path):
    train(Job(DataSource(str(texts)), tmp_path / "out"))
    measures, where = evaluate_on(load_folder(tmp_path / "out", "cpu"), str(texts))
    assert where == "all"
    assert measures.accuracy > 0.9


def test_averaged_weights_of_texts(texts, tmp_path):
    """The default solver cannot average weights: who asks for them gets an optimiser that can."""
    trained = train(Job(DataSource(str(texts)), tmp_path / "out", {"ema": 0.9})).trained
    assert (trained.config.optimiser, trained.config.ema) == ("adam", 0.9)
    with pytest.raises(InputError, match="optimiser lbfgs: expected no averaged weights"):
        train(Job(DataSource(str(texts)), tmp_path / "no", {"ema": 0.9, "optimiser": "lbfgs"}))


def test_test_items_without_a_class_are_not_scored(tmp_path, caplog):
    x = np.random.default_rng(0).standard_normal((120, 5)).astype(np.float32)
    y_test = np.array([0, 1, -1, -1])
    np.savez(tmp_path / "part.npz", x=x, y=np.arange(120) % 2, x_test=x[:4], y_test=y_test)
    done = train(Job(DataSource(str(tmp_path / "part.npz")), tmp_path / "a", {"epochs": 1}))
    assert "2 of 4 test items have no class and are left out" in caplog.text
    assert done.measures.items == 2
    assert done.measures.accuracy == done.trained.history[-1].test_accuracy
    np.savez(tmp_path / "none.npz", x=x, y=np.arange(120) % 2, x_test=x[:4], y_test=np.full(4, -1))
    assert train(Job(DataSource(str(tmp_path / "none.npz")), tmp_path / "b", {"epochs": 1})).on_held_out


def test_contradictions_and_answers_that_are_all_none_are_told(texts, tmp_path, caplog):
    torn = _labels(tmp_path / "l.csv", ["i0,c0|c1,c0", "i0,c1|c2,c1", "i1,c1|c2,c1", "i1,c1|c3,c1", "i2,c0|c1,"])
    train(Job(DataSource(str(texts)), tmp_path / "a", labels=torn))
    assert "different classes were picked for 1 items, first 'i0'" in caplog.text
    assert "every answer is None" not in caplog.text
    nothing = _labels(tmp_path / "n.csv", ["i0,c1|c2,", "i1,c0|c2,"])
    train(Job(DataSource(str(texts)), tmp_path / "b", labels=nothing))
    assert "every answer is None" in caplog.text


def test_sl_with_many_classes_is_warned_of(tmp_path, caplog):
    x = np.random.default_rng(0).standard_normal((60, 5)).astype(np.float32)
    for classes, told in ((30, True), (5, False)):
        caplog.clear()
        np.savez(tmp_path / "d.npz", x=x, y=np.arange(60) % classes)
        settings = {"size": 2, "method": "sl", "epochs": 1}
        train(Job(DataSource(str(tmp_path / "d.npz")), tmp_path / f"out{classes}", settings))
        assert ("method sl smooths over all classes" in caplog.text) is told


def test_features_of_ones_own_are_trained_on_and_asked_for_again(texts, tmp_path):
    names = [f"i{k}" for k in range(24)]
    vectors = np.eye(4, dtype=np.float32)[np.arange(24) % 4] + 0.01
    np.savez(tmp_path / "v.npz", x=vectors, items=names)
    source = DataSource(str(texts), features=str(tmp_path / "v.npz"))
    train(Job(source, tmp_path / "out"))
    trained = load_folder(tmp_path / "out", "cpu")
    assert trained.kind == "features"
    assert evaluate_on(trained, str(texts))[0].accuracy == 1.0
    np.savez(tmp_path / "w.npz", x=np.roll(vectors, 1, axis=0), items=names)
    assert evaluate_on(trained, str(texts), features=str(tmp_path / "w.npz"))[0].accuracy == 0.0
    with pytest.raises(InputError, match="unknown features 'tfid': did you mean 'tfidf'"):
        train(Job(DataSource(str(texts), features="tfid"), tmp_path / "other"))


EXPORT = "item,shortlist,answer,classes,policy\n"


def test_known_labels_of_an_export_are_learned_and_no_cost(texts, tmp_path, caplog):
    asked = ["i0,c0|c1,c0,c0|c1|c2|c3,uniform/1", "i1,c0|c2,,,uniform/1"]
    known = [f"i{k},c{k % 4},c{k % 4},,known/1" for k in range(2, 20)]
    labels = tmp_path / "a.csv"
    labels.write_text(EXPORT + "\n".join([*asked, *known, "elsewhere,c1,c1,,known/1"]) + "\n")
    trained = train(Job(DataSource(str(texts)), tmp_path / "out", labels=labels)).trained
    told = {name: trained.labels[name] for name in ("items", "known", "reads", "none_share", "sizes")}
    assert told == {"items": 20, "known": 18, "reads": 4, "none_share": 0.5, "sizes": {"2": 2}}
    card = (tmp_path / "out" / "card.md").read_text()
    assert "| labels | 20, a.csv; 18 of them known before |" in card
    assert "4 class names shown (2.0 per item; all classes: 8)" in card
    assert "a.csv: 1 items of known class are not in the data and are left out" in caplog.text
    assert evaluate_on(trained, str(texts))[0].accuracy > 0.9


def test_classes_of_the_data_without_answers_are_not_learned_and_that_is_said(texts, tmp_path, caplog):
    labels = _labels(tmp_path / "l.csv", [f"i{k},c{k % 4},c{k % 4}" for k in range(20)])
    train(Job(DataSource(str(texts)), tmp_path / "out", labels=labels))
    assert "t: 4 items without an answer have a class in the data, which is not learned from" in caplog.text
    caplog.clear()
    labels = _labels(tmp_path / "l.csv", [f"i{k},c{k % 4},c{k % 4}" for k in range(24)])
    train(Job(DataSource(str(texts)), tmp_path / "all", labels=labels))
    assert "without an answer" not in caplog.text


def test_classes_that_the_answers_state_count_whatever_the_data_calls_its_own(texts, tmp_path, caplog):
    """A folder by month, a column of priorities: no classes of this project."""
    labels = tmp_path / "l.csv"
    names = ["cat", "dog", "emu", "fly", "c3"]  # one of them is a class of the data, too
    rows = [f"i{k},{names[k % 4]},{names[k % 4]}" for k in range(20)]
    labels.write_text("item,shortlist,answer,classes\n" + "\n".join([f"{rows[0]},{'|'.join(names)}", *rows[1:]]) + "\n")
    source = DataSource(str(texts), test=str(texts))
    finished = train(Job(source, tmp_path / "out", labels=labels))
    assert finished.trained.class_names == tuple(names)
    assert "t: its own classes ('c0', 'c1', 'c2') are not the 5 that" in caplog.text
    assert finished.measures is not None
    assert finished.measures.items == 6, "of the test items, those of a class that both know"
    labels.write_text("item,shortlist,answer\n" + "\n".join(rows) + "\n")
    with pytest.raises(
        InputError, match=r"'cat' is out of range, expected one of the 4 classes \('c0', 'c1', 'c2', 'c3'\)"
    ):
        train(Job(source, tmp_path / "other", labels=labels))


def test_the_card_of_a_solved_model_names_no_batches_and_no_learning_rate(texts, tmp_path):
    finished = train(Job(DataSource(str(texts)), tmp_path / "solved"))
    (line,) = [row for row in (tmp_path / "solved" / "card.md").read_text().splitlines() if "| training |" in row]
    assert "20 steps of lbfgs, weight decay" in line
    assert not any(word in line for word in ("batch", "lr", "schedule", "augmentation"))
    assert finished.why_unmeasured == "no test set, nothing held out (it is from 100 labels on, or by --holdout)"
    train(Job(DataSource(str(texts)), tmp_path / "stepped", {"epochs": 1}))
    assert (
        "1 epochs, batch 3, adam, lr 0.03, weight decay 1e-05, cosine" in (tmp_path / "stepped" / "card.md").read_text()
    )
