"""save and load: bit for bit, without pickle, and no damaged folder gets through."""

import copy
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import load_digits
from torch import nn

from shortlist import NONE, ShortlistClassifier, StochasticLabels
from shortlist.classifier import saving
from shortlist.errors import InputError
from shortlist.internal.checkpoint import read_checkpoint, write_checkpoint

X, Y = load_digits(return_X_y=True)
X, Y = X[:400], Y[:400]
LABELS = StochasticLabels.draw(Y, num_classes=10, size=4, seed=0)
IMAGES = X.reshape(-1, 1, 8, 8).astype(np.uint8)
NAMES = np.array([f"digit {k}" for k in range(10)])
FILE = "classifier.safetensors"


def own_model(in_shape, num_classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, num_classes))


def text_answers() -> np.ndarray:
    return np.array([NONE if a == NONE else NAMES[a] for a in LABELS.answer], dtype=object)


CASES = {
    "plain": ({}, lambda: (X, LABELS.answer)),
    "text classes": ({"classes": NAMES}, lambda: (X, text_answers())),
    "pandas": ({}, lambda: (pd.DataFrame(X, columns=[f"p{i}" for i in range(64)]), LABELS.answer)),
    "sparse": (
        {"method": "sl", "method_options": {"form": "paper"}},
        lambda: (scipy.sparse.csr_array(X), LABELS.answer),
    ),
    "images": ({"model": "mlp", "model_options": {"hidden": (20, 10)}}, lambda: (IMAGES, LABELS.answer)),
    "float64": ({"dtype": "float64", "optimiser": "sgd", "lr": 0.01}, lambda: (X, LABELS.answer)),
    "random state": ({"random_state": np.random.RandomState(3)}, lambda: (X, LABELS.answer)),
}


@pytest.mark.parametrize("case", sorted(CASES))
def test_round_trip(case, tmp_path):
    params, make = CASES[case]
    x, y = make()
    clf = ShortlistClassifier(**{"random_state": 0, "epochs": 2, **params}).fit(x, y, shown=LABELS.shown)
    clf.save(tmp_path / "new" / "folder")
    again = ShortlistClassifier.load(tmp_path / "new" / "folder")
    for name in ("predict_proba", "decision_function", "predict"):
        assert np.array_equal(getattr(again, name)(x), getattr(clf, name)(x))
    assert again.classes_.tolist() == clf.classes_.tolist()
    assert again.history_ == clf.history_
    assert again.n_features_in_ == clf.n_features_in_
    part = slice(0, 70)  # and it goes on alike
    kwargs = {"shown": LABELS.shown[part]}
    rows = x.iloc[part] if case == "pandas" else x[part]
    clf.partial_fit(rows, y[part], **kwargs)
    again.partial_fit(rows, y[part], **kwargs)
    assert np.array_equal(again.predict_proba(x), clf.predict_proba(x))


def test_feature_names_are_kept(tmp_path):
    frame = pd.DataFrame(X, columns=[f"p{i}" for i in range(64)])
    ShortlistClassifier(random_state=0, epochs=1).fit(frame, Y).save(tmp_path)
    again = ShortlistClassifier.load(tmp_path)
    assert again.feature_names_in_.tolist() == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame.rename(columns={"p0": "q0"}))


def test_one_file_and_no_pickle(tmp_path):
    ShortlistClassifier(random_state=0, epochs=1).fit(X, Y).save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    assert b"cbuiltins" not in (tmp_path / FILE).read_bytes()


def test_own_models_are_given_again(tmp_path):
    clf = ShortlistClassifier(model=own_model, random_state=0, epochs=2).fit(X, Y)
    clf.save(tmp_path)
    with pytest.raises(InputError, match="give it again as model="):
        ShortlistClassifier.load(tmp_path)
    again = ShortlistClassifier.load(tmp_path, model=own_model)
    assert np.array_equal(again.predict_proba(X), clf.predict_proba(X))
    with pytest.raises(InputError, match="damaged"):
        ShortlistClassifier.load(tmp_path, model="mlp")


def _flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


DAMAGE = {
    "truncated": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "another file": lambda data: b"not a classifier at all",
    "a bit of the weights": lambda data: _flip(data, len(data) - 1000),
    "a setting": lambda data: data.replace(b'\\"smoothing\\": 0.0', b'\\"smoothing\\": 0.5'),
}


@pytest.mark.parametrize("damage", sorted(DAMAGE))
def test_a_damaged_folder_is_refused_in_one_line(damage, tmp_path):
    ShortlistClassifier(random_state=0, epochs=1).fit(X, Y).save(tmp_path)
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(DAMAGE[damage](whole))
    assert (tmp_path / FILE).read_bytes() != whole
    with pytest.raises(InputError, match=FILE) as caught:
        ShortlistClassifier.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_no_folder_and_no_permission(tmp_path):
    with pytest.raises(InputError, match="no saved classifier here"):
        ShortlistClassifier.load(tmp_path / "nothing")
    clf = ShortlistClassifier(random_state=0, epochs=1).fit(X, Y)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="cannot be made a folder"):
        clf.save(tmp_path / "file")


def test_a_failed_save_leaves_the_old_one(tmp_path, monkeypatch):
    old = ShortlistClassifier(random_state=0, epochs=1).fit(X, Y)
    old.save(tmp_path)
    new = ShortlistClassifier(random_state=1, epochs=1).fit(X, Y)

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(InputError, match="No space left"):
        new.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    assert np.array_equal(ShortlistClassifier.load(tmp_path).predict_proba(X), old.predict_proba(X))


def test_a_network_stays_what_it_is_when_parameters_are_set(tmp_path):
    """`set_params` is for the next fit: outputs mean what they meant, and what is saved can be read again."""
    clf = ShortlistClassifier("sl", random_state=0, epochs=2).fit(X, shown=LABELS)
    before = clf.predict_proba(X)
    clf.set_params(method="likelihood", model="linear", model_options={}, dtype="float64", lr=0.1)
    assert np.array_equal(clf.predict_proba(X), before)
    clf.save(tmp_path)
    again = ShortlistClassifier.load(tmp_path)
    assert (again.method, again.model, again.dtype, again.lr) == ("sl", "mlp", "float32", 0.1)
    assert np.array_equal(again.predict_proba(X), before)
    clf.partial_fit(X, shown=LABELS)  # by the method set, on the network that there is
    clf.save(tmp_path)
    again = ShortlistClassifier.load(tmp_path)
    assert (again.method, again.model) == ("likelihood", "mlp")
    assert np.array_equal(again.predict_proba(X), clf.predict_proba(X))


def test_what_the_first_version_pickled_is_read(tmp_path):
    """It did not note what the network was trained by."""
    clf = ShortlistClassifier("sl", random_state=0, epochs=1).fit(X, shown=LABELS)
    older = copy.copy(clf)
    del older._trained
    again = pickle.loads(pickle.dumps(older))
    assert np.array_equal(again.predict_proba(X), clf.predict_proba(X))
    again.save(tmp_path)
    assert ShortlistClassifier.load(tmp_path).method == "sl"


@pytest.mark.parametrize("param", ["model", "method"])
def test_nothing_is_imported_that_only_the_file_names(param, tmp_path, monkeypatch):
    """It may lie beside the file, and users' own modules are looked for in the current folder."""
    ShortlistClassifier(random_state=0, epochs=1).fit(X, Y).save(tmp_path)
    tensors, content = read_checkpoint(tmp_path / FILE)
    del content["sha256"]
    content["params"][param] = "beside_the_file:Own"
    write_checkpoint(tmp_path / FILE, tensors, content | {"sha256": saving._checksum(tensors, content)})
    (tmp_path / "beside_the_file.py").write_text("raise SystemExit('executed')")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="beside_the_file"):
        ShortlistClassifier.load(tmp_path).predict_proba(X)


def test_an_own_method_is_imported_before_it_is_loaded(tmp_path, monkeypatch):
    source = """
from dataclasses import dataclass
from shortlist.methods.likelihood import Likelihood

@dataclass(frozen=True)
class Own(Likelihood):
    name = "own"
"""
    (tmp_path / "own_method_to_save.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    clf = ShortlistClassifier("own_method_to_save:Own", random_state=0, epochs=1).fit(X, Y)
    clf.save(tmp_path)
    assert np.array_equal(ShortlistClassifier.load(tmp_path).predict_proba(X), clf.predict_proba(X))
    monkeypatch.delitem(sys.modules, "own_method_to_save")
    with pytest.raises(InputError, match="import own_method_to_save first"):
        ShortlistClassifier.load(tmp_path)
