"""The user's own data: folders of images."""

import numpy as np
import pytest
from PIL import Image

from shortlist import data
from shortlist.data import UNLABELLED
from shortlist.data.formats.images import read_images
from shortlist.errors import InputError

from .pictures import picture


def test_folder_of_class_folders(tmp_path):
    picture(tmp_path / "dog" / "b.png", 1)
    picture(tmp_path / "cat" / "deep" / "a.PNG", 2)
    picture(tmp_path / "cat" / "c.jpg", 3)
    (tmp_path / "cat" / "notes.txt").write_text("not an image")
    picture(tmp_path / ".hidden" / "x.png", 9)
    dataset = data.load(tmp_path)
    assert dataset.kind == "image"
    assert dataset.name == tmp_path.name
    assert dataset.class_names == ("cat", "dog")
    assert dataset.train.items.tolist() == ["cat/c.jpg", "cat/deep/a.PNG", "dog/b.png"]
    assert dataset.train.y.tolist() == [0, 0, 1]
    assert dataset.train.x.shape == (3, 3, 4, 6)
    assert dataset.train.x.dtype == np.uint8
    assert dataset.train.x[1:, 0, 0, 0].tolist() == [2, 1]
    assert dataset.test is None
    assert not dataset.flips


def test_folder_with_train_and_test(tmp_path):
    for place in ("train/a/1", "train/b/2", "test/b/3"):
        picture(tmp_path / f"{place}.png", int(place[-1]), mode="L")
    for dataset in (data.load(tmp_path), data.load(tmp_path / "train", test=tmp_path / "test")):
        assert dataset.train.y.tolist() == [0, 1]
        assert dataset.test.y.tolist() == [1]
        assert dataset.test.items.tolist() == ["b/3.png"]
        assert dataset.test.x[0, 0, 0, 0] == 3
        assert dataset.train.x.shape == (2, 1, 4, 6)
    with pytest.raises(InputError, match="has a test folder already"):
        data.load(tmp_path, test=tmp_path / "test")


def test_a_class_may_be_called_train(tmp_path):
    picture(tmp_path / "train" / "1.png")
    picture(tmp_path / "bus" / "2.png")
    assert data.load(tmp_path).class_names == ("bus", "train")


def test_images_in_no_class_folder_are_unlabelled(tmp_path):
    picture(tmp_path / "1.png")
    dataset = data.load(tmp_path)
    assert dataset.train.y is None
    assert dataset.class_names == ()
    picture(tmp_path / "cat" / "2.png")
    dataset = data.load(tmp_path, class_names=["dog", "cat"])
    assert dataset.train.y.tolist() == [UNLABELLED, 1]
    assert dataset.class_names == ("dog", "cat")


def test_folder_errors(tmp_path):
    (tmp_path / "cat").mkdir()
    with pytest.raises(InputError, match="holds no images"):
        data.load(tmp_path)
    picture(tmp_path / "cat" / "1.png")
    picture(tmp_path / "cat" / "2.png", size=(3, 3))
    with pytest.raises(InputError, match=r"2.png is 3x3, .*1.png is 4x6: state an image_size .--image-size"):
        data.load(tmp_path)
    assert data.load(tmp_path, image_size=5).train.x.shape == (2, 3, 5, 5)
    assert data.load(tmp_path, image_size=(5, 7)).train.x.shape == (2, 3, 5, 7)
    assert data.load(tmp_path, image_size=np.int64(5)).train.x.shape == (2, 3, 5, 5)
    for size in (0, (), (5, 7, 3)):
        with pytest.raises(InputError, match="image_size must be"):
            data.load(tmp_path, image_size=size)
    for size in ("5", 5.5):
        with pytest.raises(InputError, match="image_size: expected a whole number"):
            data.load(tmp_path, image_size=size)
    with pytest.raises(InputError, match=r"row 1 has the class 'cat', which is not among the class names"):
        data.load(tmp_path, image_size=5, class_names=["dog", "fox"])
    noise = np.random.default_rng(0).integers(0, 256, (50, 50, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "cat" / "3.png")
    (tmp_path / "cat" / "3.png").write_bytes((tmp_path / "cat" / "3.png").read_bytes()[:-3000])
    with pytest.raises(InputError, match=r"3.png cannot be read as an image"):
        data.load(tmp_path, image_size=5)
    (tmp_path / "cat" / "3.png").write_text("nothing")
    with pytest.raises(InputError, match=r"3.png is not an image, or is damaged"):
        data.load(tmp_path, image_size=5)


# --- images ----------------------------------------------------------------------------------------------------------


def test_grey_stays_one_channel_until_a_colour_image_comes(tmp_path):
    grey = picture(tmp_path / "g.png", 7, mode="L")
    deep = tmp_path / "d.png"
    Image.fromarray(np.full((4, 6), 300 * 100, np.uint16)).save(deep)
    colour = picture(tmp_path / "c.png", 9)
    x = read_images([grey, deep])
    assert x.shape == (2, 1, 4, 6)
    assert x[:, 0, 0, 0].tolist() == [7, 30_000 >> 8]
    x = read_images([grey, colour])
    assert x.shape == (2, 3, 4, 6)
    assert (x[0] == 7).all()
    assert (x[1] == 9).all()
    assert (read_images([grey, colour], channels=1)[:, 0, 0, 0] == [7, 9]).all()
    assert read_images([grey], channels=3).shape == (1, 3, 4, 6)


def test_channels_keep_their_order(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 6, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "x.png")
    np.testing.assert_array_equal(read_images([tmp_path / "x.png"])[0], pixels.transpose(2, 0, 1))


def test_transparency_is_white_and_photographs_are_turned(tmp_path):
    Image.new("RGBA", (6, 4), (0, 0, 0, 0)).save(tmp_path / "clear.png")
    assert (read_images([tmp_path / "clear.png"]) == 255).all()
    Image.new("LA", (6, 4), (0, 0)).save(tmp_path / "grey.png")  # black beneath, as drawing programs save it
    Image.new("L", (6, 4), 9).save(tmp_path / "mark.png", transparency=9)
    Image.new("RGB", (6, 4), (1, 2, 3)).save(tmp_path / "key.png", transparency=(1, 2, 3))
    assert [read_images([tmp_path / f"{name}.png"]).tolist() for name in ("grey", "mark", "key")] == [
        np.full((1, channels, 4, 6), 255).tolist() for channels in (1, 1, 3)
    ]
    exif = Image.Exif()
    exif[0x0112] = 6  # held upright
    picture(tmp_path / "turned.jpg", exif=exif)
    assert read_images([tmp_path / "turned.jpg"]).shape == (1, 3, 6, 4)


@pytest.mark.parametrize(
    ("values", "read"),
    [
        (np.array([[0.0, 0.5, 1.0, np.nan]], np.float32), [0, 127, 255, 0]),  # shares of white
        (np.array([[-3.0, 99.9]], np.float32), [0, 99]),
        (np.array([[0, 256, 65535]], np.uint16), [0, 1, 255]),
        (np.array([[0, 7, 255]], np.int32), [0, 7, 255]),
        (np.array([[0, 512, 70_000]], np.int32), [0, 2, 255]),  # more than white is white, not black again
    ],
)
def test_grey_values_beyond_eight_bits(tmp_path, values, read):
    (tmp_path / "a").mkdir()
    Image.fromarray(values).save(tmp_path / "a" / "0.tif")
    assert data.load(tmp_path).train.x.tolist() == [[[read]]]


@pytest.mark.parametrize(
    ("dark", "bright", "read"),
    [
        (np.array([[0, 200, 256]], np.uint16), np.array([[0, 512, 65535]], np.uint16), [[0, 0, 1], [0, 2, 255]]),
        (np.array([[0, 100, 200]], np.uint16), np.array([[0, 512, 65535]], np.uint16), [[0, 0, 0], [0, 2, 255]]),
        (np.array([[0, 0.5, 1]], np.float32), np.array([[0, 9, 200]], np.float32), [[0, 0, 1], [0, 9, 200]]),
        (np.array([[0, 0.5, 1]], np.float32), np.array([[0, 0.5, np.inf]], np.float32), [[0, 127, 255], [0, 127, 0]]),
        (np.array([[0, 0.5, 1]], np.float32), np.array([[0, 512, 65535]], np.uint16), [[0, 127, 255], [0, 2, 255]]),
    ],
)
def test_all_pictures_have_one_scale(tmp_path, dark, bright, read):
    """With a scale of its own a dark picture would be as bright as any. Test pictures have the same scale."""
    for folder, values in (("train/a", dark), ("test/a", bright)):
        (tmp_path / folder).mkdir(parents=True)
        Image.fromarray(values).save(tmp_path / folder / "0.tif")
    dataset = data.load(tmp_path)
    assert [dataset.train.x[0, 0, 0].tolist(), dataset.test.x[0, 0, 0].tolist()] == read


def test_pictures_of_12_bits_in_16_are_told_that_few_shades_are_left(tmp_path, caplog):
    Image.fromarray(np.array([[0, 2048, 4095]], np.uint16)).save(tmp_path / "x.png")
    assert read_images([tmp_path / "x.png"]).tolist() == [[[[0, 8, 15]]]]
    assert "none is above 4095, which leaves 16 of 256 shades" in caplog.text
