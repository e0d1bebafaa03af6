"""What `train` says and what it refuses before it does harm."""

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


def test_own_test_data_is_not_called_train(texts, tmp_path):
    train(Job(DataSource(str(texts)), tmp_path / "out"))
    measures, where = evaluate_on(load_folder(tmp_path / "out", "cpu"), str(texts))
    assert where == "all"
    assert measures.accuracy > 0.9


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
