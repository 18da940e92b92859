"""Images of the denoising experiment, and the patches with noise that are learned from them."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.request import urlopen

import numpy as np
from numpy.typing import NDArray

from losse.storage.atomic import replacing
from losse.storage.cache import cache_folder
from losse.typing import Array

Dataset = Literal["mnist", "digits"]

FILES = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
}
"""MNIST's files of images, each with the SHA-256 of its unpacked contents."""
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
SPLIT_SEED = 0
"""Seed of the one split: its test images take no part in any repeat's training or choice."""

_UNSIGNED_BYTES = 0x08
_TIMEOUT = 30.0


class DataError(ValueError):
    """There are no images, or they cannot be read; the message says what to do."""


class Images(NamedTuple):
    """Square images with values in [0, 1], of shape (n, side, side), and their checksum."""

    pixels: NDArray[np.float32]
    checksum: str


class Problem(NamedTuple):
    """Noisy patches X and clean patches Y, one per row, to learn from and to be tested on."""

    X: Array
    Y: Array
    X_test: Array
    Y_test: Array


@lru_cache(maxsize=1)
def load_images(dataset: Dataset, folder: Path | None = None) -> Images:
    """All images of a data set, normalised to [0, 1]; the training and test files of MNIST as one.

    MNIST is read from `folder`, or else from the user's cache, where it is downloaded to once.
    The digits are those that come with scikit-learn.

    >>> load_images("digits").pixels.shape
    (1797, 8, 8)
    """
    if dataset == "digits":
        from sklearn.datasets import load_digits

        grey, largest = load_digits().images.astype(np.uint8), 16.0
    else:
        grey, largest = np.concatenate([read_idx(path) for path in _mnist_files(folder)]), 255.0
    checksum = hashlib.sha256(grey.tobytes()).hexdigest()
    return Images((grey / largest).astype(np.float32), checksum)


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read a file of images in the idx format, compressed by gzip or not."""
    try:
        content = path.read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    if len(content) < 16 or content[:2] != b"\0\0" or content[2:4] != bytes([_UNSIGNED_BYTES, 3]):
        raise DataError(f"{path} is not a file of images in the idx format (idx3-ubyte)")
    shape = tuple(int(n) for n in np.frombuffer(content, ">u4", count=3, offset=4))
    if len(content) != 16 + shape[0] * shape[1] * shape[2]:
        raise DataError(
            f"{path} should hold {shape[0]} images of {shape[1]} x {shape[2]} pixels, but has "
            f"{len(content):,} bytes: it is cut off or damaged"
        )
    return np.frombuffer(content, np.uint8, offset=16).reshape(shape)


def centre_patches(images: NDArray[np.float32], side: int) -> Array:
    """Cut the middle `side` x `side` pixels out of each image, one flat row per image.

    >>> centre_patches(np.arange(16, dtype=np.float32).reshape(1, 4, 4), 2)
    array([[ 5.,  6.,  9., 10.]])
    """
    first = (images.shape[1] - side) // 2
    if first < 0:
        raise ValueError(f"images of {images.shape[1]} pixels a side have no {side} x {side} patch")
    middle = slice(first, first + side)
    return images[:, middle, middle].reshape(len(images), -1).astype(np.float64)


def make_problem(
    images: NDArray[np.float32],
    side: int,
    seed: int,
    *,
    noise: float,
    copies: int = 1,
    held_out: Literal["validation", "test"] = "test",
) -> Problem:
    """Split the images, cut out the patches and add Gaussian noise.

    A tenth of the images, always the same, is for the final test. Another tenth of what is left
    is for the choice of hyperparameters: with `held_out="validation"` it is tested on those, and
    with "test" they belong to the training images. The noise depends on `seed`; each
    training patch is learned with `copies` different draws of it.

    >>> problem = make_problem(np.zeros((100, 8, 8), np.float32), 3, seed=0, noise=0.3)
    >>> problem.X.shape, problem.X_test.shape
    ((90, 9), (10, 9))
    """
    clean = centre_patches(images, side)
    order = np.random.default_rng(SPLIT_SEED).permutation(len(clean))
    rest, test = _nine_to_one(order)
    train, validation = _nine_to_one(rest)
    rng = np.random.default_rng([seed, side])
    Y = np.tile(clean[rest if held_out == "test" else train], (copies, 1))
    Y_test = clean[test if held_out == "test" else validation]
    X, X_test = (part + rng.normal(scale=noise, size=part.shape) for part in (Y, Y_test))
    return Problem(X, Y, X_test, Y_test)


def _nine_to_one(order: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    cut = round(0.9 * len(order))
    return order[:cut], order[cut:]


def _mnist_files(folder: Path | None) -> list[Path]:
    if folder is not None:
        found = [_either(folder, name) for name in FILES]
        missing = [name for name, path in zip(FILES, found, strict=True) if path is None]
        if missing:
            raise DataError(_advice(f"{folder} has no {' and no '.join(missing)} (or .gz)"))
        return [path for path in found if path is not None]
    return [_cached(name, digest) for name, digest in FILES.items()]


def _either(folder: Path, name: str) -> Path | None:
    paths = (folder / f"{name}.gz", folder / name)
    return next((path for path in paths if path.is_file()), None)


def _cached(name: str, digest: str) -> Path:
    """The file in the cache, downloaded if it is not there yet."""
    path = cache_folder() / "mnist" / name
    if path.is_file():
        if hashlib.sha256(path.read_bytes()).hexdigest() == digest:
            return path
        reasons = [f"{path} is damaged"]  # and a download below takes its place
    else:
        reasons = [f"there is no {path}"]
    for mirror in MIRRORS:
        url = f"{mirror}{name}.gz"
        try:
            with urlopen(url, timeout=_TIMEOUT) as answer:
                content = gzip.decompress(answer.read())
        except (OSError, EOFError, zlib.error) as error:
            reasons.append(f"{url}: {error}")
            continue
        if hashlib.sha256(content).hexdigest() == digest:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as write:
                write(content)
            return path
        reasons.append(f"{url}: the checksum is wrong")
    raise DataError(_advice("; ".join(reasons)))


def _advice(reason: str) -> str:
    names: Sequence[str] = [f"{name}.gz" for name in FILES]
    return (
        f"no MNIST images: {reason}. Name the folder that holds {' and '.join(names)} with "
        "--data DIR, or run this once with a network connection to download them; "
        "--dataset digits needs neither."
    )
