"""Resident, streamed and sparse inputs give the same batches; the normalisation is the data's own."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from shortlist.data import Dataset, Split
from shortlist.errors import InputError
from shortlist.training.config import RunConfig
from shortlist.training.inputs import Inputs, Normalise
from shortlist.training.prepared import prepare

from .conftest import CPU, blobs


def streamed(x):
    """As if `x` were larger than the device's memory."""
    return type("Streamed", (Inputs,), {"resident": False})(x, "cpu")


def test_three_ways_to_the_same_batch():
    rng = np.random.default_rng(0)
    x = (rng.random((50, 9)) * (rng.random((50, 9)) < 0.3)).astype(np.float32)
    batches = torch.from_numpy(rng.permutation(50)[:48]).reshape(6, 8)
    resident, sparse = Inputs(x, "cpu"), Inputs(csr_matrix(x), "cpu")
    assert resident.resident
    assert not sparse.resident
    for rows, a, b in zip(batches, sparse.stream(batches), streamed(x).stream(batches), strict=True):
        expected = torch.from_numpy(x[rows.numpy()])
        assert torch.equal(a, expected)
        assert torch.equal(b, expected)
        assert torch.equal(resident.gather(rows), expected)
        assert torch.equal(sparse.gather(rows), expected)


def test_a_run_is_the_same_resident_and_streamed():
    data = blobs(shape=(1, 8, 8), flips=True)
    config = RunConfig(method="rc", augment=True, epochs=2, batch_size=16)
    states = []
    for inputs in (None, streamed(data.train.x)):
        run = prepare(data, config, engine=CPU, inputs=inputs).run
        for _ in range(2):
            run.train_epoch()
        states.append(run.state_dict())
    for name in states[0]:
        assert torch.equal(states[0][name], states[1][name]), name


def test_sparse_features_train_as_dense_ones_that_are_not_normalised():
    data = blobs(count=64)
    sparse = Dataset("s", Split(csr_matrix(data.train.x), data.train.y), None, data.class_names, "features")
    config = RunConfig(model="linear", epochs=2, batch_size=16, lr=0.1)
    run = prepare(sparse, config, engine=CPU).run
    dense = prepare(data, config, engine=CPU).run
    dense.model[0].mean.zero_()
    dense.model[0].deviation.fill_(1)
    for _ in range(2):
        run.train_epoch()
        dense.train_epoch()
    torch.testing.assert_close(run.flat.value, dense.flat.value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(5,), (2, 4, 4)])
def test_normalise_by_naive_loop(shape):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (20, *shape), dtype=np.uint8)
    x[:, 0] = 7  # a constant feature must not become NaN
    rows = np.arange(3, 15)
    got = Normalise(x, rows)(torch.from_numpy(x)).numpy()
    for c in range(shape[0]):
        part = x[rows][:, c].astype(float)
        deviation = part.std() or 1.0
        np.testing.assert_allclose(got[:, c], (x[:, c] - part.mean()) / deviation, rtol=1e-5, atol=1e-5)


def test_a_constant_feature_is_constant_with_weights_too():
    x = np.full((300, 2), 1e6 + 0.3, np.float32)
    x[0, 1] = np.nextafter(x[0, 1], np.float32(np.inf))  # the least that is not constant
    weight = np.random.default_rng(1).random(300)
    for given in (None, weight):
        deviation = Normalise(x, weight=given).deviation.tolist()
        assert deviation[0] == 1
        assert 0 < deviation[1] < 0.01


@pytest.mark.parametrize("scale", [2.0**-50, 2.0**-100, 2.0**100])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_unit_of_a_feature_does_not_matter(scale, weighted):
    """Seconds or femtoseconds: the same numbers come out."""
    rng = np.random.default_rng(0)
    x = rng.normal(3, 2, (50, 4)).astype(np.float32)
    weight = rng.random(50) if weighted else None
    small = (x * scale).astype(np.float32)
    got = Normalise(small, weight=weight)(torch.from_numpy(small))
    torch.testing.assert_close(got, Normalise(x, weight=weight)(torch.from_numpy(x)))


@pytest.mark.parametrize("piece", [1, 200, 1 << 19])
def test_bytes_are_measured_piece_by_piece(piece, monkeypatch):
    monkeypatch.setattr("shortlist.training.inputs.PIECE", piece)
    x = np.random.default_rng(0).integers(0, 256, (40, 3, 6, 5), dtype=np.uint8)
    x[:, 1] = 255  # whose deviation is 0 exactly
    for rows in (None, np.arange(40), np.array([3, 3, 17, 0])):
        part = x if rows is None else x[rows]
        got = Normalise(x, rows)
        deviation = part.std((0, 2, 3))
        deviation[1] = 1
        assert np.array_equal(got.mean.flatten().numpy(), part.mean((0, 2, 3)).astype(np.float32))
        assert np.array_equal(got.deviation.flatten().numpy(), deviation.astype(np.float32))


@pytest.mark.parametrize(("kind", "bad"), [(np.float32, np.nan), (np.float32, np.inf), (np.float64, -1e300)])
def test_features_that_are_not_finite_are_refused(kind, bad):
    x = np.zeros((4, 3), kind)
    x[2, 1] = bad
    with pytest.raises(InputError, match=r"NaN, infinity or a number too large for float32, first at \[2, 1\]"):
        Inputs(x, "cpu")
    with pytest.raises(InputError, match=r"NaN, infinity .* first at \[2, 1\]"):
        Inputs(csr_matrix(x), "cpu")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("weight", [None, np.ones(96)])
def test_an_infinite_feature_is_one_line_without_warnings(weight):
    data = blobs()
    data.train.x[5, 2] = np.inf
    with pytest.raises(InputError, match=r"NaN, infinity .* first at \[5, 2\]"):
        prepare(data, RunConfig(size=2), weight=weight, engine=CPU)


@pytest.mark.parametrize("kind", ["float16", "float64", "longdouble", ">f4", ">f8", "int8", ">i2", "uint16", "bool"])
def test_numbers_of_any_kind_are_trained_on(kind):
    x = np.random.default_rng(0).integers(0, 2, (20, 3))
    rows = torch.arange(20)
    assert Inputs(x.astype(kind), "cpu").gather(rows).float().tolist() == x.tolist()
    if kind[0] != ">" and kind != "float16":  # which scipy's sparse matrices cannot hold
        assert Inputs(csr_matrix(x.astype(kind)), "cpu").gather(rows).tolist() == x.tolist()
    data = Dataset("d", Split(x.astype(kind), x[:, 0]), None, ("a", "b"), "features")
    prepare(data, RunConfig(size=1, batch_size=8), engine=CPU).run.train_epoch()
