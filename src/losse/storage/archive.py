"""One file that holds a JSON header and named arrays, and notices any damage.

Format 1::

    magic (8 bytes) | format (uint32) | length of the head (uint32) | SHA-256 of these and the head
    the head (see `archive_head`), filled up with blanks
    the arrays, in the order of the head: little-endian, C order, each filled up with zeros
    SHA-256 of each array | SHA-256 of the head's digest and these

Head and arrays are filled up so that what follows starts at a multiple of 64 bytes. Every byte of
the file is checksummed. Where an array begins follows from the shapes before it, so there are no
offsets that could be wrong, and the length of the file follows from its head.
"""

import hashlib
import math
import os
import stat
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO, FileIO
from typing import Any, NoReturn

import numpy as np

from losse.storage import archive_head
from losse.storage.archive_head import Head
from losse.storage.atomic import replacing

Progress = Callable[[int, int], None]
"""Called with the bytes done and the bytes in all."""

MAGIC = b"\x89losse\r\n"  # no text, and broken by whatever changes line ends
FORMAT = 1
ALIGNMENT = 64
CHUNK = 4 << 20
"""Bytes that are copied, hashed and written at once."""

_PREFIX = struct.Struct("<8sII")
_DIGEST = hashlib.sha256().digest_size
_HEAD = _PREFIX.size + _DIGEST

_RESTORE = "Restore it from a backup, or save it again."
_UPGRADE = "Upgrade losse to read it."
_OTHER = "Check the path."


class ArchiveError(ValueError):
    """A file is damaged, foreign or too new. The message names it and says what to do."""


def write_archive(
    path: str | os.PathLike[str],
    kind: str,
    version: int,
    header: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    progress: Progress | None = None,
) -> None:
    """Write an archive, which replaces ``path`` when it is complete.

    Parameters
    ----------
    path
        Where to. A file that is there stays as it is until the new one is on the disk.
    kind, version
        What the archive is, and in which version; `open_archive` asks for them.
    header
        Anything that JSON can hold: keys are strings, numbers finite. Tuples become lists.
    arrays
        Of numbers or booleans, in any layout. Names are words, with dots in between.
    progress
        Called after every few megabytes. An error that it raises ends the writing.

    Examples
    --------
    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "a.losse")
    >>> write_archive(path, "example", 1, {"unit": "m"}, {"x": np.arange(3.0)})
    >>> with open_archive(path, "example", newest=1) as archive:
    ...     archive.header, archive.read("x")
    ({'unit': 'm'}, array([0., 1., 2.]))
    """
    size, pieces = _archived(kind, version, header, arrays)
    total = sum(array.nbytes for array in arrays.values())
    done = 0
    with replacing(path, size) as write:
        for data, is_array in pieces:
            write(data)
            if is_array:
                done += len(data)
                if progress is not None:
                    progress(done, total)


def archive_bytes(
    kind: str, version: int, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> bytes:
    """Archive in memory, as `write_archive` writes it, for `Archive` to read.

    >>> data = archive_bytes("example", 1, {}, {"x": np.arange(3.0)})
    >>> Archive(BytesIO(data), "example", newest=1).read("x")
    array([0., 1., 2.])
    """
    return b"".join(data for data, _ in _archived(kind, version, header, arrays)[1])


def _archived(
    kind: str, version: int, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> tuple[int, Iterator[tuple[Any, bool]]]:
    """Number of bytes of an archive, and these piece by piece: whether of an array, or around it.

    Whatever cannot be written raises before there is a piece.
    """
    parts = {name: np.asarray(array) for name, array in arrays.items()}
    shapes = {name: (array.dtype, array.shape) for name, array in parts.items()}
    text = Head(kind, version, header, shapes).encode()
    text = text.ljust(_filled(_HEAD + len(text)) - _HEAD)
    prefix = _PREFIX.pack(MAGIC, FORMAT, len(text))
    head_digest = hashlib.sha256(prefix + text).digest()
    room = sum(_filled(array.nbytes) for array in parts.values())

    def pieces() -> Iterator[tuple[Any, bool]]:
        digests = b""
        yield prefix + head_digest + text, False
        for array in parts.values():
            digest = hashlib.sha256()
            for piece in _pieces(array):
                data = _bytes(np.ascontiguousarray(piece, _stored(array.dtype)))
                digest.update(data)
                yield data, True
            filling = bytes(_filled(array.nbytes) - array.nbytes)
            digest.update(filling)
            yield filling, False
            digests += digest.digest()
        yield digests + hashlib.sha256(head_digest + digests).digest(), False

    return _HEAD + len(text) + room + (len(parts) + 1) * _DIGEST, pieces()


@contextmanager
def open_archive(
    path: str | os.PathLike[str], kind: str, newest: int, progress: Progress | None = None
) -> "Iterator[Archive]":
    """Open an archive of ``kind`` in a version up to ``newest``, for use in a ``with`` block.

    All that the file says about itself is checked before any of its arrays is read.

    Raises
    ------
    ArchiveError
        If the file is not a whole and unchanged archive of this kind, or is newer.
    OSError
        If it cannot be read at all: `FileNotFoundError`, `PermissionError`.

    Examples
    --------
    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "a.losse")
    >>> write_archive(path, "example", 2, {}, {"x": np.zeros((2, 3))})
    >>> with open_archive(path, "example", newest=2) as archive:
    ...     archive.version, archive.shapes
    (2, {'x': (dtype('float64'), (2, 3))})
    >>> with open_archive(path, "example", newest=1) as archive:
    ...     pass
    Traceback (most recent call last):
    ...
    losse.storage.archive.ArchiveError: ...a.losse has version 2, but this losse knows up to 1. ...
    """
    if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe without a writer would block for ever
        raise ArchiveError(f"{os.fspath(path)} is not an ordinary file. {_OTHER}")
    with FileIO(os.fspath(path)) as file:
        yield Archive(file, kind, newest, progress)


class Archive:
    """An open archive, made by `open_archive`, or with what `archive_bytes` has made.

    Attributes
    ----------
    version
        At most the version asked for; older ones are for the caller to understand.
    header
        As it was written.
    shapes
        Name to (dtype, shape) of every array: what `read` would allocate.
    """

    def __init__(
        self, file: FileIO | BytesIO, kind: str, newest: int, progress: Progress | None = None
    ) -> None:
        self._file = file
        self._progress = progress
        self._done = 0
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        digest, head, start = self._read_head(size)
        if head.kind != kind:
            self._refuse(f"is of kind {head.kind!r}, but {kind!r} is asked for", _OTHER)
        if head.version > newest:
            text = f"has version {head.version}, but this losse knows up to {newest}"
            self._refuse(text, _UPGRADE)
        self.version = head.version
        self.header = dict(head.header)
        self.shapes = dict(head.shapes)
        self._find_arrays(start, size, digest)

    def read(self, name: str, out: np.ndarray | None = None) -> np.ndarray:
        """Read an array, into ``out`` if given, and verify it.

        ``out`` has the array's dtype and shape in any layout, such as the first columns of padded
        rows. After an error its content is undefined.
        """
        if name not in self.shapes:
            self._refuse(f"has no array {name!r}", _RESTORE)
        dtype, shape = self.shapes[name]
        if out is None:
            out = np.empty(shape, dtype)
        elif out.shape != shape or out.dtype != dtype or not out.flags.writeable:
            raise ValueError(
                f"out is {out.dtype} of shape {out.shape}, but array {name!r} is {dtype} of shape "
                f"{shape}: pass a writeable array like that, or None."
            )
        offset, expected = self._places[name]
        self._file.seek(offset)
        digest = hashlib.sha256()
        for piece in _pieces(out):
            direct = piece.flags.c_contiguous and dtype == _stored(dtype)
            block = piece if direct else np.empty(piece.shape, _stored(dtype))
            data = _bytes(block)
            self._fill(data)
            digest.update(data)
            if dtype.kind == "b" and (block.view(np.uint8) > 1).any():
                self._refuse(f"is damaged: array {name!r} is not of booleans", _RESTORE)
            if not direct:
                piece[...] = block
            self._done += len(data)
            if self._progress is not None:
                self._progress(self._done, self._total)
        digest.update(self._take(_filled(out.nbytes) - out.nbytes))
        if digest.digest() != expected:
            self._refuse(f"is damaged: array {name!r} has changed", _RESTORE)
        return out

    def _read_head(self, size: int) -> tuple[bytes, Head, int]:
        """Digest and content of the head, and where it ends."""
        if size < _HEAD:
            self._refuse(f"is no losse archive: it has only {size} bytes", _OTHER)
        prefix = self._take(_PREFIX.size)
        magic, form, length = _PREFIX.unpack(prefix)
        if magic != MAGIC:
            self._refuse("is no losse archive", _OTHER)
        if form != FORMAT:
            self._refuse(f"has format {form}, but this losse knows only {FORMAT}", _UPGRADE)
        end = _HEAD + length
        if end > min(size, _filled(_HEAD + archive_head.LARGEST)) or end % ALIGNMENT:
            self._refuse(f"is cut off or damaged: its head would end at byte {end}", _RESTORE)
        digest = self._take(_DIGEST)
        text = self._take(length)
        if hashlib.sha256(prefix + text).digest() != digest:
            self._refuse("is damaged: its head has changed", _RESTORE)
        try:
            return digest, Head.decode(text), end
        except (ValueError, RecursionError) as error:
            self._refuse(f"has a head that makes no sense: {error}", _RESTORE)

    def _find_arrays(self, offset: int, size: int, head_digest: bytes) -> None:
        """Where every array is, and its digest; the end of the file is checked."""
        offsets = []
        self._total = 0
        for dtype, shape in self.shapes.values():
            nbytes = math.prod(shape) * dtype.itemsize
            offsets.append(offset)
            offset += _filled(nbytes)
            self._total += nbytes
        expected = offset + (len(offsets) + 1) * _DIGEST
        if size != expected:
            text = f"is cut off or damaged: it has {size} bytes instead of {expected}"
            self._refuse(text, _RESTORE)
        self._file.seek(offset)
        digests = self._take(len(offsets) * _DIGEST)
        if hashlib.sha256(head_digest + digests).digest() != self._take(_DIGEST):
            self._refuse("is damaged: its checksums have changed", _RESTORE)
        parts = (digests[i : i + _DIGEST] for i in range(0, len(digests), _DIGEST))
        self._places = dict(zip(self.shapes, zip(offsets, parts, strict=True), strict=True))

    def _take(self, count: int) -> bytes:
        data = bytearray(count)
        self._fill(memoryview(data))
        return bytes(data)

    def _fill(self, rest: memoryview) -> None:
        while rest:  # the system may give a part only
            count = self._file.readinto(rest)
            if not count:
                self._refuse("became shorter while it was read", _RESTORE)
            rest = rest[count:]

    def _refuse(self, problem: str, remedy: str) -> NoReturn:
        # What a damaged file says about itself may be of any length.
        name = os.fsdecode(getattr(self._file, "name", b"the archive in memory"))
        raise ArchiveError(f"{name} {problem:.500}. {remedy}")


def _pieces(array: np.ndarray) -> Iterator[np.ndarray]:
    """Views of at most `CHUNK` bytes that make up the array in C order."""
    if array.nbytes <= CHUNK:
        yield array
        return
    rows = CHUNK // (array.nbytes // len(array))
    if rows == 0:
        for part in array:
            yield from _pieces(part)
    else:
        for start in range(0, len(array), rows):
            yield array[start : start + rows]


def _bytes(array: np.ndarray) -> memoryview:
    """The memory of an array in C order."""
    return array.reshape(-1).view(np.uint8).data


def _stored(dtype: np.dtype) -> np.dtype:
    return dtype.newbyteorder("<")


def _filled(count: int) -> int:
    return -(-count // ALIGNMENT) * ALIGNMENT
