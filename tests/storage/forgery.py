"""Archives taken apart and put together again by the book of their format, with any content."""

import hashlib
import json
import struct

import numpy as np

MAGIC = b"\x89losse\r\n"


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def filled(data, start=0, with_=b"\0"):
    return data.ljust(-(-(start + len(data)) // 64) * 64 - start, with_)


def forge(head, blocks=(), *, form=1, length=None):
    """An archive's bytes with valid digests; ``head`` is JSON text or what becomes it."""
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    text = filled(text, start=48, with_=b" ")
    prefix = struct.pack("<8sII", MAGIC, form, len(text) if length is None else length)
    digest = sha(prefix, text)
    blocks = [filled(block) for block in blocks]
    digests = [sha(block) for block in blocks]
    return b"".join([prefix, digest, text, *blocks, *digests, sha(digest, *digests)])


def take_apart(data):
    """Head and arrays of an archive."""
    (length,) = struct.unpack("<I", data[12:16])
    head = json.loads(data[48 : 48 + length])
    arrays = {}
    offset = 48 + length
    for name, (dtype, shape) in head["arrays"].items():
        array = np.frombuffer(data, dtype, count=int(np.prod(shape)), offset=offset)
        arrays[name] = array.reshape(shape).copy()
        offset += len(filled(array.tobytes()))
    return head, arrays


def put_together(head, arrays):
    """The bytes of an archive with these arrays, which the head is made to list."""
    entries = {name: [array.dtype.name, list(array.shape)] for name, array in arrays.items()}
    return forge({**head, "arrays": entries}, [array.tobytes() for array in arrays.values()])
