"""A run goes on with the very inputs it was begun on."""

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
