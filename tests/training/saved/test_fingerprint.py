"""A run goes on with the very inputs it was begun on."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.sparse import csr_matrix

from shortlist.data import Split
from shortlist.errors import InputError
from shortlist.internal.checkpoint import read_checkpoint, write_checkpoint
from shortlist.training.config import RunConfig
from shortlist.training.job.job import Job, train
from shortlist.training.loop import fit
from shortlist.training.prepared import prepare
from shortlist.training.saved.fingerprint import inputs_checksum
from shortlist.training.saved.folder import read_config
from shortlist.training.saved.source import DataSource

from ..conftest import CPU, blobs

ONE = RunConfig(size=2, epochs=1, batch_size=16)
matrices = arrays.arrays(
    st.sampled_from([np.uint8, np.float32]),
    arrays.array_shapes(min_dims=2, max_dims=4, min_side=0, max_side=3),
    elements=st.integers(0, 2),
)
texts = st.lists(st.text(), max_size=3)


@given(matrices, matrices)
def test_equal_arrays_alone_have_equal_checksums(a, b):
    same = a.dtype == b.dtype and a.shape == b.shape and a.tolist() == b.tolist()
    assert (inputs_checksum(a) == inputs_checksum(b)) == same
    assert inputs_checksum(a) == inputs_checksum(np.asfortranarray(a))


@given(texts, texts)
def test_equal_texts_alone_have_equal_checksums(a, b):
    assert (inputs_checksum(a) == inputs_checksum(b)) == (a == b)


def test_where_one_text_ends_counts():
    assert inputs_checksum(["ab", "c"]) != inputs_checksum(["a", "bc"])


@given(arrays.arrays(np.float32, (3, 4), elements=st.integers(0, 2)), st.integers(0, 2), st.integers(0, 3))
def test_a_sparse_value_counts(dense, row, column):
    other = dense.copy()
    other[row, column] += 1
    sums = [inputs_checksum(csr_matrix(x)) for x in (dense, dense.copy(), other)]
    assert sums[0] == sums[1] != sums[2]


def test_a_mapped_file_is_what_it_holds(tmp_path):
    x = np.arange(600, dtype=np.uint8).reshape(50, 12)
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert inputs_checksum(mapped) == inputs_checksum(x)
    assert inputs_checksum(mapped[::2]) == inputs_checksum(x[::2])


def one_value_changed(data):
    x = data.train.x.copy()
    x[-1].flat[-1] += 1
    return replace(data, train=Split(x, data.train.y))


@pytest.mark.parametrize("shape", [(6,), (1, 8, 8)])
def test_a_checkpoint_on_other_values_is_refused(tmp_path, shape):
    path, data = tmp_path / "c.safetensors", blobs(shape=shape)
    fit(prepare(data, ONE, engine=CPU), checkpoint=path)
    with pytest.raises(InputError, match=r"c\.safetensors: a run on other inputs: .* not of these values"):
        fit(prepare(one_value_changed(data), ONE, engine=CPU), checkpoint=path, resume=True)
    assert len(fit(prepare(data, ONE, engine=CPU), checkpoint=path, resume=True)) == 1


def test_a_checkpoint_on_other_weights_is_refused(tmp_path):
    path, data, weight = tmp_path / "c.safetensors", blobs(), np.ones(96)
    fit(prepare(data, ONE, weight=weight, engine=CPU), checkpoint=path)
    weight[3] = 2
    with pytest.raises(InputError, match="other labels"):
        fit(prepare(data, ONE, weight=weight, engine=CPU), checkpoint=path, resume=True)


def test_a_checkpoint_older_than_the_checksum_goes_on(tmp_path):
    path, data = tmp_path / "c.safetensors", blobs()
    fit(prepare(data, ONE, engine=CPU), checkpoint=path)
    tensors, content = read_checkpoint(path)
    del content["inputs"]
    write_checkpoint(path, tensors, content)
    assert len(fit(prepare(one_value_changed(data), ONE, engine=CPU), checkpoint=path, resume=True)) == 1


def test_what_is_finished_on_other_values_is_not_taken_for_this_run(tmp_path):
    data = blobs(count=60)

    def job(x):
        np.savez(tmp_path / "own.npz", x=x, y=data.train.y)
        return Job(DataSource(str(tmp_path / "own.npz")), tmp_path / "run", {"epochs": 1}, device="cpu", resume=True)

    assert not train(job(data.train.x)).again
    assert train(job(data.train.x)).again
    with pytest.raises(InputError, match="run: a run on other inputs"):
        train(job(one_value_changed(data).train.x))


def test_texts_count_and_not_the_last_digit_of_their_features(tmp_path, monkeypatch):
    from shortlist.data.text.tfidf import TfidfFeatures

    def job(first):
        rows = [f"{first},a", "blue sky,b", "red card,a", "blue sea,b"] * 5
        (tmp_path / "own.csv").write_text("\n".join(["text,label", *rows]))
        return Job(DataSource(str(tmp_path / "own.csv")), tmp_path / "run", {"epochs": 1}, device="cpu", resume=True)

    assert not train(job("red bus")).again
    exact = TfidfFeatures.transform
    monkeypatch.setattr(TfidfFeatures, "transform", lambda self, texts: exact(self, texts) * np.float32(1 + 1e-6))
    assert train(job("red bus")).again
    with pytest.raises(InputError, match="run: a run on other inputs"):
        train(job("bus red"))


METHOD = """
from dataclasses import dataclass
from helper_of_mine import Base

@dataclass(frozen=True)
class Mine(Base):
    name = "mine"
    title = "one's own"

    def objective(self, logits, batch):
        return batch.mean(self.scale * cross_entropy(logits)[..., 0])
"""
BASE = """
from shortlist.losses import cross_entropy
from shortlist.methods import Method

class Base(Method):
    scale = 1.0
"""
MODEL = """
from torch import nn

def net(in_shape, num_classes):
    return nn.Sequential(nn.Linear(*in_shape, 8), nn.ReLU(), nn.Linear(8, num_classes))
"""
FILES = {
    "method_of_mine": METHOD.replace("import Base", "import Base, cross_entropy"),
    "helper_of_mine": BASE,
    "model_of_mine": MODEL,
}
OWN = {"method": "method_of_mine:Mine", "model": "model_of_mine:net"}


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Writes the files, with one changed where that is asked for, and lets them be imported as by a new process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a change within a second would not be seen

    def write(changed=None):
        for name, source in FILES.items():
            (tmp_path / f"{name}.py").write_text(source + ("# a change\n" if name == changed else ""))
            monkeypatch.delitem(sys.modules, name, raising=False)

    yield write
    for name in FILES:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("changed", FILES)
def test_a_checkpoint_of_code_that_was_changed_since_is_refused(tmp_path, own, changed):
    path, config = tmp_path / "c.safetensors", replace(ONE, **OWN)
    own()
    fit(prepare(blobs(), config, engine=CPU), checkpoint=path)
    own()
    assert len(fit(prepare(blobs(), config, engine=CPU), checkpoint=path, resume=True)) == 1
    own(changed)
    name = OWN["model" if changed.startswith("model") else "method"]
    with pytest.raises(InputError, match=f"c.safetensors: a run with '{name}' as it was before its file was changed"):
        fit(prepare(blobs(), config, engine=CPU), checkpoint=path, resume=True)
    tensors, content = read_checkpoint(path)
    del content["code"]  # as an older version wrote it
    write_checkpoint(path, tensors, content)
    assert len(fit(prepare(blobs(), config, engine=CPU), checkpoint=path, resume=True)) == 1


def test_code_is_known_as_it_was_imported(own, tmp_path):
    own()
    prepared = prepare(blobs(), replace(ONE, **OWN), engine=CPU)
    (tmp_path / "model_of_mine.py").write_text("# edited while it trains")
    assert prepare(blobs(), replace(ONE, **OWN), engine=CPU).fingerprint.difference(prepared.fingerprint) is None


def test_what_is_finished_with_other_code_is_not_taken_for_this_run(tmp_path, own):
    own()
    data = blobs(count=60)
    np.savez("own.npz", x=data.train.x, y=data.train.y)
    job = Job(DataSource("own.npz"), tmp_path / "run", {"epochs": 1, "size": 2, **OWN}, device="cpu", resume=True)
    assert not train(job).again
    assert train(job).again
    own("model_of_mine")
    with pytest.raises(InputError, match=r"run: a run with 'model_of_mine:net' as it was before its file was changed"):
        train(job)


def test_folders_of_ordinary_runs_say_nothing_of_code(tmp_path):
    data = blobs(count=60)
    np.savez(tmp_path / "own.npz", x=data.train.x, y=data.train.y)
    train(Job(DataSource(str(tmp_path / "own.npz")), tmp_path / "run", {"epochs": 1}, device="cpu"))
    assert "code" not in read_config(tmp_path / "run")
