"""MNIST's files, its download, and the patches and noise made from images."""

import gzip
import hashlib
import struct

import numpy as np
import pytest

from losse.paper.denoising import data
from losse.paper.denoising.data import (
    FILES,
    DataError,
    centre_patches,
    load_images,
    make_problem,
    read_idx,
)

TRAIN, TEST = FILES


def idx(images, magic=0x00000803):
    return struct.pack(">4I", magic, *images.shape) + images.tobytes()


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, size=(20, 28, 28), dtype=np.uint8)


@pytest.fixture(autouse=True)
def nothing_remembered():
    load_images.cache_clear()
    yield
    load_images.cache_clear()


@pytest.fixture
def mirror(tmp_path, monkeypatch, images):
    """A mirror on disk with the files that are expected, and an empty cache."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    digests = {}
    for name, part in zip(FILES, (images[:15], images[15:]), strict=True):
        (folder / f"{name}.gz").write_bytes(gzip.compress(idx(part)))
        digests[name] = hashlib.sha256(idx(part)).hexdigest()
    monkeypatch.setattr(data, "FILES", digests)
    monkeypatch.setattr(data, "MIRRORS", (f"{folder.as_uri()}/",))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_idx_files_are_read(tmp_path, images, pack):
    path = tmp_path / "images"
    path.write_bytes(pack(idx(images)))
    np.testing.assert_array_equal(read_idx(path), images)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda x: idx(x)[:-5], "should hold 20 images of 28 x 28 pixels.*cut off or damaged"),
        (lambda x: idx(x) + b"more", "cut off or damaged"),
        (lambda x: gzip.compress(idx(x))[:-20], "cannot be read"),
        (lambda x: idx(x, magic=0x00000D03), "not a file of images in the idx format"),
        (lambda x: idx(x, magic=0x00000801), "not a file of images in the idx format"),
        (lambda x: b"", "not a file of images in the idx format"),
    ],
    ids=["truncated", "too-long", "truncated-gzip", "floats", "labels", "empty"],
)
def test_damaged_and_foreign_files_are_refused(tmp_path, images, content, message):
    path = tmp_path / "images"
    path.write_bytes(content(images))
    with pytest.raises(DataError, match=message):
        read_idx(path)


def test_a_folder_is_read_packed_or_not(tmp_path, images):
    (tmp_path / TRAIN).write_bytes(idx(images[:15]))
    (tmp_path / f"{TEST}.gz").write_bytes(gzip.compress(idx(images[15:])))
    pixels = load_images("mnist", tmp_path).pixels
    np.testing.assert_allclose(pixels, images / 255, atol=1e-7)


def test_an_incomplete_folder_says_what_to_do(tmp_path, images):
    (tmp_path / TRAIN).write_bytes(idx(images))
    with pytest.raises(DataError, match=rf"has no {TEST} \(or .gz\).*--data.*--dataset digits"):
        load_images("mnist", tmp_path)


def test_downloads_once(mirror, images):
    first = load_images("mnist")
    np.testing.assert_allclose(first.pixels, images / 255, atol=1e-7)
    for path in mirror.iterdir():
        path.unlink()
    load_images.cache_clear()
    assert load_images("mnist").checksum == first.checksum


def test_a_damaged_cache_is_replaced(mirror, images):
    load_images("mnist")
    cached = data.cache_folder() / "mnist" / TRAIN
    cached.write_bytes(b"half a file")
    load_images.cache_clear()
    assert len(load_images("mnist").pixels) == len(images)
    assert len(cached.read_bytes()) > 1000


def test_a_wrong_download_is_refused_and_not_kept(mirror, images):
    (mirror / f"{TRAIN}.gz").write_bytes(gzip.compress(idx(images[:3])))
    with pytest.raises(DataError, match="the checksum is wrong"):
        load_images("mnist")
    assert not data.cache_folder().exists()


def test_without_data_and_network_both_ways_are_named(mirror):
    for path in mirror.iterdir():
        path.unlink()
    with pytest.raises(DataError, match=r"no MNIST images.*--data DIR.*network.*--dataset digits"):
        load_images("mnist")


def test_digits_are_normalised():
    pixels = load_images("digits").pixels
    assert pixels.min() == 0
    assert pixels.max() == 1


@pytest.mark.parametrize("side", [3, 4, 7])
def test_patches_are_the_centre(side):
    image = np.arange(28 * 28, dtype=np.float32).reshape(1, 28, 28)
    patch = centre_patches(image, side).reshape(side, side)
    assert patch[0, 0] == 28 * ((28 - side) // 2) + (28 - side) // 2
    assert patch[-1, -1] - patch[0, 0] == 29 * (side - 1)


def test_a_patch_larger_than_the_image_is_refused():
    with pytest.raises(ValueError, match="8 pixels a side have no 9 x 9 patch"):
        centre_patches(np.zeros((1, 8, 8), np.float32), 9)


def test_noise_has_the_given_deviation_and_depends_on_the_seed():
    images = np.full((2000, 8, 8), 0.5, np.float32)
    one = make_problem(images, 5, seed=0, noise=0.3)
    noise = one.X - one.Y
    assert noise.mean() == pytest.approx(0, abs=0.01)
    assert noise.std() == pytest.approx(0.3, rel=0.02)
    assert (one.Y == 0.5).all()
    assert np.array_equal(one.X, make_problem(images, 5, seed=0, noise=0.3).X)
    assert not np.array_equal(one.X, make_problem(images, 5, seed=1, noise=0.3).X)


def test_nine_to_one_and_the_test_images_are_nobody_elses():
    images = np.zeros((1000, 4, 4), np.float32)
    images[:, 1:3, 1:3] = np.arange(1000)[:, None, None]
    final = make_problem(images, 2, seed=0, noise=0.0)
    choice = make_problem(images, 2, seed=7, noise=0.0, held_out="validation", copies=2)
    train, test = set(final.Y[:, 0]), set(final.Y_test[:, 0])
    assert (len(train), len(test)) == (900, 100)
    assert set(choice.Y[:, 0]) | set(choice.Y_test[:, 0]) == train
    assert not set(choice.Y[:, 0]) & set(choice.Y_test[:, 0])
    assert choice.Y.shape == (2 * 810, 4)
