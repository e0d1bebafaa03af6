"""Strong views beside plain loops over pixels, and what a run makes of two views and a teacher beside a plain loop."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from shortlist import methods
from shortlist.data import load
from shortlist.data.dataset import Dataset
from shortlist.errors import InputError
from shortlist.internal.streams import generator
from shortlist.methods import Batch
from shortlist.training.augment import PADDING, STAY, draw_moves, move_images
from shortlist.training.config import Engine, RunConfig
from shortlist.training.prepared import prepare
from shortlist.training.schedules import learning_rates
from shortlist.training.views import change_images, confidence_of, draw_changes, draw_shares, objective_of, two_views

CPU = Engine(device="cpu").resolve(1)


def draws(count: int, height: int, width: int) -> Tensor:
    return draw_changes(count, height, width, True, torch.Generator().manual_seed(0))


def pixel_by_pixel(image: Tensor, change: list[int]) -> Tensor:
    down, right, flip, *factors, row, column, side = change
    brightness, contrast, saturation = (1 + (value - 128) / 320 for value in factors)
    C, H, W = image.shape
    shares = (0.299, 0.587, 0.114) if C == 3 else (1 / C,) * C
    mean = sum(shares[c] * image[c].double().mean() for c in range(C))
    out = torch.zeros(C, H, W, dtype=torch.float64)
    for i in range(H):
        for j in range(W):
            at, to = i + down - PADDING, (W - 1 - j if flip else j) + right - PADDING
            inside = 0 <= at < H and 0 <= to < W
            pixel = [float(image[c, at, to]) if inside else 0.0 for c in range(C)]
            if 0 <= i - (row - side // 2) < side and 0 <= j - (column - side // 2) < side:
                pixel = [mean] * C
            grey = sum(share * value for share, value in zip(shares, pixel, strict=True))
            for c, value in enumerate(pixel):
                mixed = saturation * value + (1 - saturation) * grey
                out[c, i, j] = brightness * (contrast * mixed + (1 - contrast) * mean)
    return out


@pytest.mark.parametrize("shape", [(3, 8, 12), (1, 9, 8), (2, 6, 6)])
def test_strong_views_pixel_by_pixel(shape):
    images = torch.randint(0, 256, (6, *shape), dtype=torch.uint8)
    changes = draws(6, *shape[1:])
    got = change_images(images, changes)
    want = torch.stack([pixel_by_pixel(x, change) for x, change in zip(images, changes.tolist(), strict=True)])
    torch.testing.assert_close(got.double(), want, rtol=1e-5, atol=1e-4)


def test_what_is_drawn():
    changes = draws(5000, 32, 28).long()
    assert changes[:, :2].amin() == 0
    assert changes[:, :2].amax() == 2 * PADDING
    assert set(changes[:, 2].tolist()) == {0, 1}
    assert (changes[:, 3:6].amin(), changes[:, 3:6].amax()) == (0, 255)
    assert set(changes[:, 6].tolist()) == set(range(32))
    assert set(changes[:, 7].tolist()) == set(range(28))
    assert set(changes[:, 8].tolist()) == set(range(7, 15))  # a quarter to a half of the shorter side


@pytest.mark.parametrize("side", [8, 160])
def test_a_weak_view_is_the_move_alone_to_the_last_bit(side):
    """Of a large image as well, where a square of any size would show."""
    images, strong = torch.randint(0, 256, (5, 3, side, side), dtype=torch.uint8), draws(5, side, side)
    moves = draw_moves(5, True, torch.Generator().manual_seed(1))
    both = change_images(torch.cat([images, images]), two_views(moves, strong))
    assert torch.equal(both[:5], move_images(images, moves).float())
    assert torch.equal(both[5:], change_images(images, strong))


@pytest.mark.parametrize("name", [name for name in methods.METHODS if name != "crdpll"])
def test_the_objective_is_the_mean_over_the_views(name):
    method, K = methods.get(name), 4
    lists = torch.rand(6, K).argsort(-1)[:, :2]
    shown = torch.zeros(6, K, dtype=torch.bool).scatter(1, lists, True)
    answer = torch.where(torch.arange(6) % 2 == 0, lists[:, 0], -1)
    batch = Batch(shown, answer, torch.full((K + 1,), 0.2), confidence=torch.rand(6, K), inclusion=torch.ones(6))
    batch = replace(batch, teacher=torch.randn(6, K))
    views = torch.randn(2, 6, K)
    want = (method.objective(views[0], batch) + method.objective(views[1], batch)) / 2
    torch.testing.assert_close(objective_of(method, views.flatten(0, 1), batch), want)
    assert torch.equal(objective_of(method, views[0], batch), method.objective(views[0], batch))


class Seen(methods.Method):
    """Hands over what it is given."""

    name = title = "seen"
    teacher = 0.0

    def objective(self, logits, batch):
        return (logits * batch.teacher).sum((-1, -2))

    def confidence_of_views(self, views, batch):
        return torch.stack(list(views))


@pytest.mark.parametrize("own", [None, 0.3])
def test_a_network_that_is_its_own_teacher_is_so_by_its_weak_view_and_without_a_gradient(own):
    batch = Batch(torch.zeros(4, 3, dtype=torch.bool), torch.full((4,), -1), torch.full((4,), 0.25))
    batch = replace(batch, own=None if own is None else torch.tensor(own))
    weak, strong = (torch.randn(4, 3, requires_grad=True) for _ in range(2))
    objective_of(Seen(), torch.cat([weak, strong]), batch).backward()
    said = weak.detach()
    mixed = said if own is None else own * said + (1 - own) * said.roll(1, 0)
    torch.testing.assert_close(weak.grad, said / 2)
    torch.testing.assert_close(strong.grad, mixed / 2)


def test_mixed_views_say_nothing_of_an_items_confidences():
    batch = Batch(torch.zeros(4, 3, dtype=torch.bool), torch.full((4,), -1), torch.full((4,), 0.25))
    views = torch.randn(2, 4, 3)
    assert torch.equal(confidence_of(Seen(), views.flatten(0, 1), batch), views)
    mixed = replace(batch, own=torch.tensor(0.5))
    assert torch.equal(confidence_of(Seen(), views.flatten(0, 1), mixed), views[:1])


@pytest.fixture(scope="module")
def digits() -> Dataset:
    found = load("digits")
    return replace(found, train=found.train.take(range(96)), test=None, flips=True)


def plain_loop(data: Dataset, config: RunConfig, decay: float) -> nn.Module:
    """The teacher's training, written out: every view, average and gradient by torch's own."""
    run = prepare(data, config, engine=CPU).run
    model, feed, method = copy.deepcopy(run.model), run.feed, methods.get("teacher", **config.method_options)
    teacher = copy.deepcopy(model).eval()
    optimiser = torch.optim.SGD(model.parameters(), config.lr, config.momentum, weight_decay=config.weight_decay)
    images, n, B = torch.from_numpy(data.train.x), len(feed), config.batch_size
    rates, step = learning_rates(config, n // B), 0
    for epoch in range(config.epochs):
        order = torch.randperm(n, generator=generator(config.seed, "shuffle", epoch))
        moves = torch.tensor(STAY, dtype=torch.uint8).repeat(n, 1)
        if config.augment:
            moves = draw_moves(n, data.flips, generator(config.seed, "augment", epoch), 8)
        apart = config.augment and method.apart
        teacher_moves = draw_moves(n, data.flips, generator(config.seed, "teacher", epoch), 8) if apart else moves
        changes = draw_changes(n, *data.in_shape[1:], data.flips, generator(config.seed, "strong", epoch))
        shares = draw_shares(n // B, generator(config.seed, "mix", epoch))
        for index in order[: n // B * B].split(B):
            x = images[feed.rows[index]]
            weak, strong = move_images(x, moves[index]).float(), change_images(x, changes[index])
            own = float(shares[step % len(shares)]) if config.mix else 1.0
            strong = torch.stack([own * strong[i] + (1 - own) * strong[i - 1] for i in range(B)])
            with torch.no_grad():
                said = teacher(move_images(x, teacher_moves[index]).float())
            logits = model.train()(torch.cat([weak, strong]) if config.strong else weak)
            batch = replace(feed.batch(index), teacher=said)
            one_before = index[torch.arange(-1, B - 1)]
            before = replace(feed.batch(one_before), teacher=said[torch.arange(-1, B - 1)])
            parts = logits.chunk(2) if config.strong else [logits]
            risks = [method.objective(part, batch) for part in parts]
            if config.mix:
                risks[1] = own * risks[1] + (1 - own) * method.objective(parts[1], before)
            optimiser.param_groups[0]["lr"] = float(rates[step])
            optimiser.zero_grad()
            (sum(risks) / len(risks)).backward()
            optimiser.step()
            if method.memory:
                feed.renew(index, method.confidence(logits.detach()[:B], batch))
            kept = min(decay, (1 + step) / (10 + step))
            for ours, theirs in zip(teacher.state_dict().values(), model.state_dict().values(), strict=True):
                if ours.is_floating_point():
                    ours.copy_(kept * ours + (1 - kept) * theirs)
            step += 1
    return model


@pytest.mark.parametrize(
    ("views", "others"),
    [
        ({"augment": True, "strong": True}, {}),
        ({"strong": True}, {"whole": 0.3}),
        ({"augment": True}, {"apart": True, "memory": 0.6, "aligned": True}),
        ({"augment": True, "strong": True, "mix": True}, {"apart": True, "memory": 0.4, "pull": 1.5}),
    ],
)
def test_a_run_is_the_plain_loop(digits, views, others):
    options = {"decay": 0.5, "temperature": 0.7, "memory": 0.0, **others}
    config = RunConfig("teacher", options, size=4, model="lenet", epochs=2, batch_size=32, **views)
    run = prepare(digits, config, engine=CPU).run
    for _ in range(config.epochs):
        run.train_epoch()
    want = plain_loop(digits, config, options["decay"]).state_dict()
    for name, tensor in run.model.state_dict().items():
        torch.testing.assert_close(tensor, want[name], rtol=1e-4, atol=1e-5)


def test_a_run_goes_on_bit_for_bit(digits):
    """Its teacher is part of what is saved."""
    config = RunConfig("teacher", size=4, model="lenet", epochs=3, batch_size=32, augment=True, strong=True, mix=True)
    whole, first, second = (prepare(digits, config, engine=CPU).run for _ in range(3))
    first.train_epoch()
    second.load_state_dict({name: tensor.clone() for name, tensor in first.state_dict().items()}, 1)
    for _ in range(3):
        whole.train_epoch()
    for _ in range(2):
        second.train_epoch()
    assert all(
        torch.equal(a, b) for a, b in zip(whole.state_dict().values(), second.state_dict().values(), strict=True)
    )


def test_only_images_have_views(digits):
    rows = replace(digits, train=replace(digits.train, x=digits.train.x.reshape(96, -1).astype("float32")))
    with pytest.raises(InputError, match="augmentation is for images"):
        prepare(rows, RunConfig(size=4, strong=True), engine=CPU)


def test_only_strong_views_are_mixed_and_not_by_methods_that_compare_views(digits):
    with pytest.raises(InputError, match="mix: expected strong views"):
        RunConfig(size=4, mix=True)
    with pytest.raises(InputError, match="mix: method 'crdpll' compares the views of an item"):
        prepare(digits, RunConfig("crdpll", size=4, model="lenet", strong=True, mix=True), engine=CPU)
