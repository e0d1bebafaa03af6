import dataclasses
import pkgutil

import numpy as np
import pytest
import torch

from shortlist import losses, methods, theory
from shortlist.errors import InputError
from shortlist.labels import StochasticLabels
from shortlist.methods import Method


def test_the_methods():
    names = ["ol", "sl", "sl_unbiased", "likelihood", "log", "exp", "cc", "rc", "proden", "lw", "propensity", "teacher"]
    names += ["crdpll", "dirk"]
    assert list(methods.METHODS) == names
    for name in names:
        method = methods.get(name)
        assert method.name == name
        assert method.title
        assert dataclasses.is_dataclass(method)
        assert method == methods.get(name)
        with pytest.raises(dataclasses.FrozenInstanceError):
            method.loss = "other"


def test_a_method_is_one_file_and_one_line_of_the_registry():
    """All other files of the room are shared, and adding a method changes none of them."""
    shared = {"base", "plugins"}
    files = {module.name for module in pkgutil.iter_modules(methods.__path__)} - shared
    assert files == {method.__module__.rpartition(".")[2] for method in methods.METHODS.values()}
    assert {method.__module__.rpartition(".")[2]: name for name, method in methods.METHODS.items()} == {
        name: name for name in files
    }


def test_unknown_methods_suggest_the_nearest():
    with pytest.raises(InputError, match=r"unknown method 'likelyhood': did you mean 'likelihood'\? \(known: cc, cr"):
        methods.get("likelyhood")


@pytest.mark.parametrize("given", [methods.find("cc"), methods.get("cc")])
def test_a_class_is_known_by_its_name(given):
    with pytest.raises(InputError, match=r"expected its name, which methods\.register gives it, or 'module:Class'"):
        methods.get(given)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "sl",
            {"lss": "mae"},
            r"unknown option of sl 'lss': did you mean 'loss'\? \(known: form, loss, normalisation\)",
        ),
        ("cc", {"beta": 1}, r"unknown option of cc 'beta' \(known: none\)"),
        ("sl", {"form": "papr"}, "unknown form of sl 'papr': did you mean 'paper'"),
        ("sl", {"loss": "ovr_sqare"}, "unknown loss 'ovr_sqare': did you mean 'ovr_square'"),
        ("ol", {"loss": "ovr_sqare"}, "unknown loss"),
        ("sl_unbiased", {"loss": "ovr_sqare"}, "unknown loss"),
        ("sl_unbiased", {"correction": "rleu"}, "unknown correction 'rleu': did you mean 'relu'"),
        ("lw", {"form": "sigmid"}, "unknown form of lw 'sigmid': did you mean 'sigmoid'"),
        ("lw", {"beta": -1.0}, "beta of lw: expected at least 0, got -1.0"),
        ("lw", {"beta": float("nan")}, "beta of lw"),
        ("dirk", {"decay": 1.0}, "decay of dirk: expected 0 to below 1, got 1.0"),
        ("crdpll", {"pull": -1.0}, "pull of crdpll: expected at least 0, got -1.0"),
        ("crdpll", {"ramp": 2.0}, "ramp of crdpll: expected 0 to 1, got 2.0"),
        ("teacher", {"temperature": 0}, "temperature of teacher: expected above 0, got 0"),
        ("teacher", {"decay": 1.0}, "decay of teacher: expected 0 to below 1, got 1.0"),
        ("teacher", {"fresh": "no"}, "fresh of teacher: expected true or false, got 'no'"),
        ("teacher", {"pull": "abc"}, "pull of teacher: expected a number, got 'abc'"),
        ("lw", {"beta": "inf"}, "beta of lw: expected a number, got 'inf'"),
        ("lw", {"beta": True}, "beta of lw: expected a number, got True"),
        ("teacher", {"pull": -0.5}, "pull of teacher: expected at least 0, got -0.5"),
        ("teacher", {"ramp": float("nan")}, "ramp of teacher: expected 0 to 1, got nan"),
    ],
)
def test_bad_options_are_refused_at_once(name, options, message):
    with pytest.raises(InputError, match=message):
        methods.get(name, **options)


def test_a_method_defined_elsewhere_is_registered(monkeypatch):
    monkeypatch.setattr(methods, "METHODS", dict(methods.METHODS))

    @methods.register
    @dataclasses.dataclass(frozen=True)
    class Nothing(Method):
        name = "nothing"
        title = "does nothing"
        by: float = 0.0

        def objective(self, logits, batch):
            return self.by * logits.sum((-1, -2))

    assert methods.get("nothing", by=2.0) == Nothing(by=2.0)


# -- what the outputs stand for ----------------------------------------------------------------------------------------


def test_a_method_of_ones_own_may_be_registered_again_but_ours_keep_their_names(monkeypatch):
    monkeypatch.setattr(methods, "METHODS", dict(methods.METHODS))
    for _ in range(2):  # as a notebook's cell is run again

        @methods.register
        class Mine(methods.METHODS["cc"]):
            name = "mine"

        assert methods.METHODS["mine"] is Mine
    with pytest.raises(InputError, match="method 'sl' is one of ours"):

        @methods.register
        class Sly(methods.METHODS["cc"]):
            name = "sl"

    assert methods.METHODS["sl"].__name__ == "SL"
    methods.register(methods.METHODS["sl"])


@pytest.mark.parametrize("loss", losses.LOSSES)
@pytest.mark.parametrize("name", ["ol", "sl", "sl_unbiased"])
def test_probabilities_go_by_the_loss(name, loss):
    logits = torch.randn(4, 3)
    torch.testing.assert_close(methods.get(name, loss=loss).probabilities(logits), losses.probabilities(loss, logits))


@pytest.mark.parametrize("name", ["likelihood", "log", "exp", "cc", "rc", "proden", "lw", "teacher"])
def test_probabilities_of_the_others_are_softmax(name):
    for dtype in (torch.float16, torch.float32, torch.float64):
        logits = torch.randn(4, 3).to(dtype)
        p = methods.get(name).probabilities(logits)
        assert p.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
        torch.testing.assert_close(p, torch.softmax(logits.to(p.dtype), -1))


def test_smoothing_of_the_paper_forms():
    labels = StochasticLabels.draw(np.arange(100) % 10, num_classes=10, size=5, seed=0)
    assert methods.get("sl").smoothing(labels) == pytest.approx(1 - 5 / 9)
    assert methods.get("sl", form="paper").smoothing(labels) == pytest.approx(theory.paper_smoothing(10, 5))
    equal = methods.get("sl", form="equal").smoothing(labels)
    assert equal == pytest.approx(theory.paper_smoothing(10, 5, equal=True))
    for name in set(methods.METHODS) - {"sl"}:
        assert methods.get(name).smoothing(labels) == 0


def test_smoothing_of_mixed_sizes_is_their_mean():
    """Exact for the total form: its expectation is linear in epsilon."""
    labels = StochasticLabels.draw(np.zeros(4, int), num_classes=5, size=[1, 2, 5, 4], seed=0)
    assert methods.get("sl").smoothing(labels) == pytest.approx((3 / 4 + 2 / 4 + 0 + 0) / 4)


@pytest.mark.slow
def test_smoothing_is_what_training_suffers():
    """A free table of outputs, trained on everything that can happen to one item, gives the smoothed posterior."""
    import naive

    world = naive.population(4, 2, points=1)
    method = methods.get("sl", loss="cross_entropy")
    f = torch.zeros(1, 4, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([f], max_iter=300, line_search_fn="strong_wolfe", tolerance_grad=1e-12)
    batch = methods.Batch(world.shown, world.answer, world.prior, world.weight)

    def closure():
        optimiser.zero_grad()
        risk = method.objective(f[world.point], batch)
        risk.backward()
        return risk

    optimiser.step(closure)
    learned = method.probabilities(f.detach())[0].numpy()
    epsilon = theory.smoothing(4, 2)
    np.testing.assert_allclose(learned, theory.smooth(world.posterior[0], epsilon), atol=1e-5)
    np.testing.assert_allclose(theory.unsmooth(learned, epsilon), world.posterior[0], atol=1e-4)


def test_class_probabilities_undo_the_smoothing_as_theory_does():
    method = methods.get("sl")
    logits = torch.cat([torch.randn(50, 4, dtype=torch.float64), torch.full((1, 4), 0.1)])  # the last says nothing
    for epsilon in (0.0, 0.3, 0.9):
        want = theory.unsmooth(method.probabilities(logits).numpy(), epsilon)
        np.testing.assert_allclose(method.class_probabilities(logits, epsilon).numpy(), want, rtol=1e-12)
