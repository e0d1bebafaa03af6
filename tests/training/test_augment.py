"""Crops and flips, pixel by pixel."""

import pytest
import torch

from shortlist.data import load
from shortlist.errors import InputError
from shortlist.training.augment import PADDING, draw_moves, move_images
from shortlist.training.config import RunConfig
from shortlist.training.prepared import prepare

from .conftest import CPU, blobs


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_moves_by_naive_loop(dtype):
    generator = torch.Generator().manual_seed(1)
    x = torch.randint(0, 256, (6, 2, 5, 7), generator=generator).to(dtype)
    moves = draw_moves(6, flips=True, generator=generator)
    moves[0] = torch.tensor([PADDING, PADDING, 0], dtype=torch.uint8)  # this one stays as it is
    got = move_images(x, moves)
    assert torch.equal(got[0], x[0])
    for b in range(6):
        down, right, flip = (int(m) for m in moves[b])
        for c in range(2):
            for i in range(5):
                for j in range(7):
                    source = 7 - 1 - j if flip else j
                    row, column = i + down - PADDING, source + right - PADDING
                    inside = 0 <= row < 5 and 0 <= column < 7
                    assert got[b, c, i, j] == (x[b, c, row, column] if inside else 0)


def test_moves_cover_every_offset_and_flip_half():
    moves = draw_moves(4000, flips=True, generator=torch.Generator().manual_seed(0))
    for column in (0, 1):
        assert set(moves[:, column].tolist()) == set(range(2 * PADDING + 1))
    assert 0.45 < moves[:, 2].float().mean() < 0.55


@pytest.mark.parametrize(("side", "most"), [(5, 1), (8, 1), (16, 2), (27, 3), (28, 4), (32, 4), (224, 4)])
def test_small_images_move_less(side, most):
    """By a seventh of their side; those of 28 pixels, as in the paper's study, and above by 4."""
    moves = draw_moves(4000, flips=False, generator=torch.Generator().manual_seed(0), side=side)
    assert set(moves[:, :2].flatten().tolist()) == set(range(PADDING - most, PADDING + most + 1))


def test_a_run_knows_how_far_its_images_move():
    run = prepare(blobs(shape=(1, 8, 8)), RunConfig(augment=True, epochs=1, batch_size=32), engine=CPU).run
    run.train_epoch()
    assert set(run._drawn.moves[:, :2].flatten().tolist()) == {PADDING - 1, PADDING, PADDING + 1}


def test_characters_are_never_flipped():
    assert not load("digits").flips
    moves = draw_moves(4000, flips=False, generator=torch.Generator().manual_seed(0))
    assert not moves[:, 2].any()
    for flips in (False, True):
        data = blobs(shape=(1, 8, 8), flips=flips)
        run = prepare(data, RunConfig(augment=True, epochs=1, batch_size=32), engine=CPU).run
        run.train_epoch()
        assert bool(run._drawn.moves[:, 2].any()) == flips


def test_features_cannot_be_augmented():
    with pytest.raises(InputError, match="augmentation is for images"):
        prepare(blobs(), RunConfig(augment=True), engine=CPU)
