import doctest
import re

import pytest
import torch
from torch import nn

import generators
import shortlist.models.registry
from shortlist import models
from shortlist.errors import InputError


def count(model):
    return sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(
    ("name", "in_shape", "parameters"),
    [
        ("linear", (1, 28, 28), 28 * 28 * 10 + 10),
        ("mlp", (1, 28, 28), 28 * 28 * 256 + 256 + 256 * 10 + 10),
        # counted by hand from what the papers state
        ("lenet", (1, 28, 28), 1_257_220),
        ("resnet32", (3, 32, 32), 466_906),
    ],
)
def test_parameter_counts_are_those_of_the_paper_and_of_describe(name, in_shape, parameters):
    assert count(models.build(name, in_shape, 10)) == parameters
    row = next(row for row in models.describe() if row.name == name)
    assert int(re.match(r"[\d,]+", row.parameters)[0].replace(",", "")) == parameters


def test_lenet_layers_are_those_of_the_paper():
    shapes = []
    model = models.build("lenet", (1, 28, 28), 10).eval()
    x = torch.zeros(2, 1, 28, 28)
    for layer in model:
        x = layer(x)
        shapes.append((type(layer).__name__, tuple(x.shape[1:])))
    assert shapes == [
        ("Conv2d", (20, 28, 28)),
        ("BatchNorm2d", (20, 28, 28)),
        ("ReLU", (20, 28, 28)),
        ("MaxPool2d", (20, 14, 14)),
        ("Conv2d", (50, 14, 14)),
        ("BatchNorm2d", (50, 14, 14)),
        ("ReLU", (50, 14, 14)),
        ("MaxPool2d", (50, 7, 7)),
        ("Flatten", (2450,)),
        ("Linear", (500,)),
        ("BatchNorm1d", (500,)),
        ("ReLU", (500,)),
        ("Linear", (10,)),
    ]


def test_resnet32_has_32_weighted_layers_and_three_stages():
    model = models.build("resnet32", (3, 32, 32), 10)
    main_path = [m for n, m in model.named_modules() if isinstance(m, nn.Conv2d | nn.Linear) and "shortcut" not in n]
    assert len(main_path) == 32
    blocks = [m for m in model if type(m).__name__ == "BasicBlock"]
    assert [b.conv2.out_channels for b in blocks] == [16] * 5 + [32] * 5 + [64] * 5
    assert [isinstance(b.shortcut, nn.Identity) for b in blocks] == [i not in (5, 10) for i in range(15)]
    std = blocks[7].conv1.weight.std().item()  # Kaiming, fan out: sqrt(2 / (9 * 32))
    assert std == pytest.approx((2 / (9 * 32)) ** 0.5, rel=0.05)


@pytest.mark.parametrize("name", models.names())
@pytest.mark.parametrize("in_shape", [(1, 8, 8), (3, 32, 32), (1, 13, 9), (4, 5, 4)])
@pytest.mark.parametrize("num_classes", [2, 7])
def test_any_image_size_gives_logits_and_gradients(name, in_shape, num_classes):
    model = models.build(name, in_shape, num_classes, seed=1)
    logits = model(torch.randn(3, *in_shape))
    assert logits.shape == (3, num_classes)
    logits.square().sum().backward()
    for parameter in model.parameters():
        assert parameter.grad is not None
        assert torch.isfinite(parameter.grad).all()


@pytest.mark.parametrize("name", ["linear", "mlp"])
def test_feature_vectors(name):
    assert models.build(name, (16,), 26)(torch.randn(5, 16)).shape == (5, 26)


def test_mlp_hidden_layers():
    model = models.build("mlp", (4,), 3, hidden=(5, 6))
    assert [tuple(p.shape) for p in model.parameters()] == [(5, 4), (5,), (6, 5), (6,), (3, 6), (3,)]
    assert [tuple(p.shape) for p in models.build("mlp", (4,), 3, hidden=()).parameters()] == [(3, 4), (3,)]


def test_an_item_of_the_mlp_does_not_depend_on_its_batch():
    model = models.build("mlp", (6,), 3, seed=0)
    x = torch.randn(8, 6)
    torch.testing.assert_close(model(x)[:3], model(x[:3]))


def test_the_seed_decides_the_weights_and_leaves_the_global_generators_alone():
    torch.manual_seed(5)
    before = generators.states()
    first, second, other = (models.build("lenet", (1, 8, 8), 10, seed=s) for s in (1, 1, 2))
    assert generators.states() == before
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert not torch.equal(first[0].weight, other[0].weight)


def test_the_seed_draws_on_the_cpu_whatever_the_default_device():
    with torch.device("meta"):
        model = models.build("mlp", (4,), 3, seed=1)
    assert torch.equal(model[1].weight, models.build("mlp", (4,), 3, seed=1)[1].weight)


@pytest.mark.parametrize(
    ("args", "options", "message"),
    [
        (("lennet", (1, 28, 28), 10), {}, r"unknown model 'lennet': did you mean 'lenet'"),
        (("lenet", (784,), 10), {}, r"lenet takes images of shape \(C, H, W\)"),
        (("lenet", (1, 3, 3), 10), {}, r"from 4x4 on"),
        (("resnet32", (784,), 10), {}, r"resnet32 takes images"),
        (("mlp", (28, 28), 10), {}, r"in_shape must be \(D,\) or \(C, H, W\)"),
        (("mlp", (0,), 10), {}, r"positive"),
        (("mlp", 784, 10), {}, r"in_shape must be \(D,\) or \(C, H, W\), got 784"),
        (("mlp", (4,), "3"), {}, r"num_classes: expected a whole number, got '3'"),
        (("mlp", (4,), 1), {}, r"at least 2 classes, got 1"),
        (("mlp", (4,), 3), {"hiden": (3,)}, r"unknown option of model mlp 'hiden': did you mean 'hidden'"),
        (("mlp", (4,), 3), {"hidden": (0,)}, r"hidden widths must be positive"),
        (("lenet", (1, 8, 8), 3), {"hidden": (3,)}, r"model lenet has no options, got 'hidden'"),
        (("no.such.package:make", (4,), 3), {}, r"'no.such.package:make': no module 'no'"),
        (("math:", (4,), 3), {}, r"must read package.module:function"),
        (("sys:nothing", (4,), 3), {}, r"no model 'nothing' in module 'sys'"),
        (("math:hypot", (4,), 3), {}, r"model 'math:hypot' failed: TypeError"),
    ],
)
def test_bad_input_is_one_line(args, options, message):
    with pytest.raises(InputError, match=message) as caught:
        models.build(*args, **options)
    assert "\n" not in str(caught.value)


def own(in_shape, num_classes, width=3):
    return nn.Sequential(nn.Flatten(), nn.Linear(in_shape[0], width), nn.Linear(width, num_classes))


def test_own_function_class_and_module():
    model = models.build(own, (4,), 3, width=9, seed=0)
    assert model[1].out_features == 9
    assert model.training
    copy = models.build(model, (4,), 3)
    assert copy is not model
    assert torch.equal(copy[1].weight, model[1].weight)
    with pytest.raises(InputError, match=r"unknown option of model own 'depth'"):
        models.build(own, (4,), 3, depth=2)


def test_own_function_by_name_from_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "my_networks_xyz.py").write_text(
        "from torch import nn\n"
        "def small(in_shape, num_classes):\n"
        "    return nn.Linear(in_shape[0], num_classes)\n"
        "def none(in_shape, num_classes):\n"
        "    return 3\n"
    )
    (tmp_path / "broken_xyz.py").write_text("import no_such_dependency_xyz\n")
    (tmp_path / "crash_xyz.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    assert isinstance(models.build("my_networks_xyz:small", (4,), 3), nn.Linear)
    with pytest.raises(InputError, match=r"must give a torch.nn.Module, got int"):
        models.build("my_networks_xyz:none", (4,), 3)
    with pytest.raises(InputError, match=r"no module 'no_such_dependency_xyz'"):
        models.build("broken_xyz:small", (4,), 3)
    with pytest.raises(InputError, match=r"importing it failed: ZeroDivisionError"):
        models.build("crash_xyz:small", (4,), 3)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda shape, k: nn.Linear(shape[0], k + 1), r"logits of shape \(2, 3\) for 2 items, got \(2, 4\)"),
        (lambda shape, k: nn.Linear(shape[0] + 1, k), r"cannot take input of shape \(2, 4\)"),
        (lambda shape, k: "a string", r"must give a torch.nn.Module, got str"),
    ],
)
def test_own_model_of_the_wrong_shape(function, message):
    with pytest.raises(InputError, match=message):
        models.build(function, (4,), 3)


def test_docstrings():
    for module in (models, shortlist.models.registry, __import__("shortlist.models.linear", fromlist=["x"])):
        assert doctest.testmod(module).failed == 0
