"""A trained folder gives the run's own probabilities back, and is whole or not there."""

import json
import shutil
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
import torch

from shortlist.data import Dataset, Split
from shortlist.data.text.embeddings import EmbeddingFeatures
from shortlist.errors import InputError
from shortlist.labels import NONE, StochasticLabels
from shortlist.training.config import RunConfig
from shortlist.training.evaluation import predict_logits
from shortlist.training.job.defaults import defaults_for
from shortlist.training.job.job import Job, train
from shortlist.training.loop import fit, probabilities
from shortlist.training.prepared import prepare
from shortlist.training.saved import folder as folders
from shortlist.training.saved.confusion import confusion_svg
from shortlist.training.saved.folder import Trained, load_folder, save_folder
from shortlist.training.saved.measures import measure
from shortlist.training.saved.source import DataSource, with_features

from ..conftest import CPU, blobs

TEXTS = ["my card is lost", "exchange rate of euros", "lost my card", "euros please", "card", "rate"]


def trained_on(data, **settings):
    data, features = with_features(data)
    config = RunConfig(**{"size": 2, "epochs": 2, "batch_size": 16, "model": "mlp", **settings})
    prepared = prepare(data, config, engine=CPU)
    history = fit(prepared)
    kind = "text" if features is not None else data.kind
    trained = Trained(
        prepared.run.model, config, data.class_names, data.in_shape, kind, prepared.smoothing, features,
        {"name": "x", "source": DataSource("digits").to_dict()}, {}, history,
    )  # fmt: skip
    return prepared, trained


@pytest.mark.parametrize("shape", [(6,), (1, 8, 8), (3, 16, 16)])
@pytest.mark.parametrize("method", ["likelihood", "sl", "sl_unbiased"])
def test_saved_and_loaded_is_the_same(tmp_path, shape, method):
    data = blobs(shape=shape)
    model = {"features": "mlp", "image": "lenet"}[data.kind]
    prepared, trained = trained_on(data, method=method, model=model)
    save_folder(tmp_path / "run", trained)
    loaded = load_folder(tmp_path / "run", "cpu")
    x = data.test.x
    expected = probabilities(prepared, predict_logits(prepared.run.model, prepared.test)).double().numpy()
    got = loaded.predict(x)
    np.testing.assert_allclose(got, expected / expected.sum(1, keepdims=True), rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(got, trained.predict(x))
    assert loaded.to_dict() == trained.to_dict()
    assert loaded.history == trained.history
    assert loaded.predict(x[:0]).shape == (0, 4)
    np.testing.assert_array_equal(loaded.predict(torch.from_numpy(x)), got)


def test_a_normalisation_of_other_inputs_is_refused_when_the_model_is_loaded(tmp_path):
    _, trained = trained_on(blobs(shape=(6,)))
    trained.model[0].register_buffer("mean", torch.zeros(3))
    save_folder(tmp_path, trained)
    with pytest.raises(InputError, match=r"weights\.safetensors: not the weights of 'mlp' .* has shape \(3,\), which"):
        load_folder(tmp_path, "cpu")


def test_texts_are_turned_into_features_by_the_saved_transform(tmp_path):
    data = Dataset("t", Split(TEXTS, np.array([0, 1, 0, 1, 0, 1])), None, ("lost", "rate"), "text")
    _, trained = trained_on(data, size=1, model="linear")
    save_folder(tmp_path / "run", trained)
    assert not list(tmp_path.rglob("*.pkl"))
    loaded = load_folder(tmp_path / "run", "cpu")
    np.testing.assert_array_equal(loaded.predict(TEXTS), trained.predict(TEXTS))
    with pytest.raises(InputError, match="a list of texts, got a str"):
        loaded.predict(TEXTS[0])
    (tmp_path / "run" / "features.json").unlink()
    with pytest.raises(InputError, match=r"features\.json is missing"):
        load_folder(tmp_path / "run", "cpu")


OWN = """
import math
from pathlib import Path

from torch import nn

from shortlist.methods import METHODS

Path({mark!r}).touch()


class Mine(METHODS["likelihood"]):
    name = "own"


def net(in_shape, num_classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(in_shape), num_classes))
"""


@pytest.fixture
def own_run(tmp_path, monkeypatch):
    """A run by a method and a model in the current folder: a way to load it, and the file that their code leaves."""
    monkeypatch.chdir(tmp_path)
    mark = tmp_path / "code-was-run"
    Path("own_code.py").write_text(OWN.format(mark=str(mark)))
    known = set(sys.modules)

    def forget():
        for name in set(sys.modules) - known:
            if name.partition(".")[0] in ("own_code", "run", "other"):
                del sys.modules[name]
        mark.unlink(missing_ok=True)

    trained = trained_on(blobs(), method="own_code:Mine", model="own_code:net")[1]
    save_folder(Path("run"), trained)
    forget()
    yield lambda folder: (forget(), load_folder(folder, "cpu")), mark
    forget()


@pytest.mark.parametrize("on_path", [False, True])
def test_own_code_beside_a_folder_is_found_without_ceremony(own_run, tmp_path, monkeypatch, on_path):
    load, mark = own_run
    monkeypatch.setattr(sys, "path", [*([str(tmp_path)] if on_path else []), *sys.path])
    load("run")
    assert mark.exists()


@pytest.mark.parametrize("on_path", [False, True])
@pytest.mark.parametrize("inner", ["run", "other", "run/deep"])
def test_code_that_a_folder_brings_along_is_never_run(own_run, tmp_path, monkeypatch, inner, on_path):
    """Whether one is in the folder, beside it or in a folder inside it, and whoever put that on Python's path."""
    load, mark = own_run
    Path("run/deep").mkdir()
    shutil.move("own_code.py", "run/own_code.py")
    shutil.copy("run/own_code.py", "run/deep/own_code.py")
    Path("run/__init__.py").write_text(OWN.format(mark=str(mark)))
    config = json.loads(Path("run/config.json").read_text())
    names = [("own_code:Mine", "own_code:net")] if inner != "other" else []
    for method, model in (*names, ("run.own_code:Mine", "mlp"), ("likelihood", "run:net"), ("run.deep.no:M", "mlp")):
        config["run"] |= {"method": method, "model": model}
        (tmp_path / "run/config.json").write_text(json.dumps(config))
        here = tmp_path if inner == "other" else tmp_path / inner
        monkeypatch.chdir(here)
        monkeypatch.setattr(sys, "path", [*([str(here)] if on_path else []), *sys.path])
        with pytest.raises(InputError, match="brings no code"):
            load(tmp_path / "run")
        assert not mark.exists()


def test_a_sentence_encoder_that_a_folder_brings_along_is_refused(tmp_path, monkeypatch):
    data = Dataset("x", Split(TEXTS, np.array([0, 1, 0, 1, 0, 1])), None, ("a", "b"), "text")
    save_folder(tmp_path / "run", trained_on(data, size=1)[1])
    (tmp_path / "run" / "encoder").mkdir()
    monkeypatch.chdir(tmp_path)
    EmbeddingFeatures("run/encoder").save("run/features.json")
    with pytest.raises(InputError, match="the sentence encoder 'run/encoder' lies in it"):
        load_folder("run", "cpu")
    EmbeddingFeatures("no-such-folder").save("run/features.json")
    assert load_folder("run", "cpu").features.model_name == "no-such-folder"
    config = json.loads(Path("run/config.json").read_text())
    config["data"]["source"]["features"] = "run/encoder"  # by which other texts would be read
    Path("run/config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="the sentence encoder 'run/encoder' lies in it"):
        load_folder("run", "cpu")


def test_a_failure_leaves_the_old_model(tmp_path, monkeypatch):
    _, first = trained_on(blobs())
    _, second = trained_on(blobs(), epochs=1)
    save_folder(tmp_path / "run", first)
    (tmp_path / "run" / "notes.txt").write_text("mine")
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folders, "write_checkpoint", full)
    with pytest.raises(OSError, match="No space"):
        save_folder(tmp_path / "run", second)
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before
    monkeypatch.undo()
    save_folder(tmp_path / "run", second)
    assert load_folder(tmp_path / "run", "cpu").config.epochs == 1
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"


class KilledError(BaseException):
    pass


def test_a_kill_while_a_folder_is_replaced_never_mixes_two_models(tmp_path, monkeypatch):
    """Killed before each rename or removal in turn: where there are weights, all files are of the same model."""
    folder = tmp_path / "run"
    (_, first), (_, second) = trained_on(blobs()), trained_on(blobs(), epochs=1)
    scores = measure(np.eye(4), np.arange(4), first.class_names)

    def content():
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    save_folder(folder, second)
    new, left = content(), 0

    def counted(change):
        def checked(path, *target):
            nonlocal left
            if folder in (path.parent, *(to.parent for to in target)):
                if left == 0:
                    raise KilledError
                left -= 1
            return change(path, *target)

        return checked

    seen = set()
    for kill in range(100):
        save_folder(folder, first, scores, "the test set")
        old, left = content(), kill
        with monkeypatch.context() as patched:
            patched.setattr(Path, "rename", counted(Path.rename))
            patched.setattr(Path, "unlink", counted(Path.unlink))
            try:
                save_folder(folder, second)
            except KilledError:
                pass
            else:
                break
        if (folder / "weights.safetensors").exists():
            assert content() in (old, new)
            seen.add(load_folder(folder, "cpu").config.epochs)
        else:
            with pytest.raises(InputError, match="not a trained model"):
                load_folder(folder, "cpu")
            seen.add(None)
    assert kill > 5
    assert content() == new
    assert seen == {first.config.epochs, None}


def test_moved_folders_work(tmp_path):
    _, trained = trained_on(blobs())
    save_folder(tmp_path / "run", trained)
    shutil.move(tmp_path / "run", tmp_path / "elsewhere")
    assert load_folder(tmp_path / "elsewhere", "cpu").class_names == ("a", "b", "c", "d")


@pytest.mark.parametrize("K", [2, 10, 77])
def test_the_confusion_picture_is_a_picture(K):
    rng = np.random.default_rng(0)
    names = tuple(f"<class & {k}>" for k in range(K))
    found = measure(rng.dirichlet(np.ones(K), 300), rng.integers(0, K, 300), names)
    picture = ET.fromstring(confusion_svg(found.confusion, names))
    hints = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert len(hints) == 1 + len(found.confusion)


def test_a_run_without_a_test_set_is_measured_on_held_out_answers(tmp_path):
    x = np.concatenate([np.zeros((90, 3)), np.ones((90, 3))]).astype(np.float32)
    x += np.random.default_rng(0).normal(0, 0.1, x.shape).astype(np.float32)
    np.savez(tmp_path / "own.npz", x=x, y=[0] * 90 + [1] * 90)
    finished = train(
        Job(DataSource(str(tmp_path / "own.npz")), tmp_path / "run", {"size": 1, "epochs": 3}, device="cpu")
    )
    assert finished.measured_on == "held-out items that were answered"
    held = [row.validation_accuracy for row in finished.trained.history][-1]
    assert finished.measures.accuracy == pytest.approx(held)
    card = (tmp_path / "run" / "card.md").read_text()
    assert "held-out items that were answered" in card
    assert "Answered items stand for all items if the lists were drawn at random" in card
    assert json.loads((tmp_path / "run" / "scores.json").read_text())["measured_on"] == finished.measured_on


@pytest.mark.parametrize(
    ("shape", "model"),
    [((6,), "mlp"), ((1, 8, 8), "mlp"), ((1, 28, 28), "lenet"), ((3, 32, 32), "resnet32"), ((1, 64, 64), "resnet32")],
)
def test_defaults_by_kind(shape, model):
    data = blobs(count=20, shape=shape)
    settings = defaults_for(data, 20)
    assert settings["model"] == model
    assert settings["holdout"] == 0
    RunConfig(**settings)


def test_channels_last_weights_are_saved_in_the_usual_order(tmp_path):
    """On a GPU the weights are views in another order; the file must not depend on it."""
    from shortlist.training.optim import FlatParameters

    _, trained = trained_on(blobs(shape=(3, 16, 16)), model="lenet")
    save_folder(tmp_path / "a", trained)
    FlatParameters(trained.model)
    save_folder(tmp_path / "b", trained)
    assert (tmp_path / "a" / "weights.safetensors").read_bytes() == (
        tmp_path / "b" / "weights.safetensors"
    ).read_bytes()
    assert torch.is_grad_enabled()


def test_a_run_of_none_answers_alone_is_saved(tmp_path):
    data, labels = tmp_path / "data.npz", tmp_path / "labels.csv"
    np.savez(data, x=blobs(count=120).train.x)
    StochasticLabels.from_lists([[0, 1]] * 120, [NONE] * 120, 4, class_names=tuple("abcd")).write(labels)
    done = train(Job(DataSource(str(data)), tmp_path / "run", {"epochs": 2, "holdout": 0.1}, labels, device="cpu"))
    assert done.measures is None
    assert load_folder(tmp_path / "run", "cpu").history[-1].validation_accuracy is None
