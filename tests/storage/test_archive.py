"""What is written comes back bit for bit; anything else is refused, and at little cost."""

import errno
import os
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from losse.storage import archive as module
from losse.storage.archive import ArchiveError, open_archive, write_archive
from losse.storage.archive_head import DTYPES, LARGEST, Head
from tests.storage.forgery import forge, put_together, take_apart

MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("archives")


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.losse"
    arrays = {"x": np.arange(5.0), "layer.1": np.array([True, False]), "none": np.zeros((0, 3))}
    write_archive(path, "model", 3, {"seed": 7}, arrays)
    return path


def read_all(path, kind="model", newest=3):
    with open_archive(path, kind, newest) as archive:
        return archive.header, {name: archive.read(name) for name in archive.shapes}


def same(a, b):
    """Equal to the last bit, NaNs included."""
    return a.shape == b.shape and a.astype(a.dtype.newbyteorder("<")).tobytes() == b.tobytes()


LAYOUTS = {
    "as it is": lambda a: a,
    "Fortran": np.asfortranarray,
    "transposed": lambda a: a.T,
    "backwards": lambda a: a[::-1] if a.ndim else a,
    "every other": lambda a: a[..., ::2] if a.ndim else a,
    "some columns": lambda a: a[..., 1:] if a.ndim else a,
    "repeated": lambda a: np.broadcast_to(a, (2, *a.shape)),
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
}


@given(
    data=st.data(),
    dtype=st.sampled_from(DTYPES),
    layout=st.sampled_from(sorted(LAYOUTS)),
    chunk=st.sampled_from([16, 100, module.CHUNK]),
)
def test_arrays_of_any_dtype_shape_and_layout_come_back(folder, data, dtype, layout, chunk):
    shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6)
    array = LAYOUTS[layout](data.draw(hnp.arrays(dtype, shapes)))
    array.flags.writeable = False
    path = folder / "a.losse"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK", chunk)
        write_archive(path, "model", 1, {}, {"first": array, "again": array})
        with open_archive(path, "model", 1) as archive:
            assert archive.shapes["first"] == (np.dtype(dtype), array.shape)
            result = archive.read("again")
            assert same(array, result)
            assert same(array, archive.read("first", out=np.empty_like(result)))
            strided = np.empty((*array.shape, 2), dtype)[..., 0]
            assert archive.read("first", out=strided) is strided
            assert same(array, strided)
            fortran = archive.read("first", out=np.empty(array.shape, dtype, order="F"))
            assert same(array, fortran)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)  # fmt: skip


@given(header=st.dictionaries(st.text(), values))
def test_any_json_header_comes_back(header):
    head = Head("model", 1, header, {})
    assert Head.decode(head.encode()) == head


def test_arrays_start_at_multiples_of_64(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {f"a{n}": rng.integers(0, 256, n, dtype=np.uint8) for n in (40, 64, 65, 130)}
    write_archive(tmp_path / "a", "model", 1, {}, arrays)
    data = (tmp_path / "a").read_bytes()
    for array in arrays.values():
        assert data.index(array.tobytes()) % 64 == 0


def test_the_file_is_what_the_format_says(small):
    head, arrays = take_apart(small.read_bytes())
    assert (head["kind"], head["version"], head["header"]) == ("model", 3, {"seed": 7})
    assert put_together(head, arrays) == small.read_bytes()


def test_rows_padded_to_whole_lines_are_left_alone_beyond_the_data(tmp_path):
    write_archive(tmp_path / "a", "model", 1, {}, {"x": np.arange(6.0).reshape(2, 3)})
    rows = np.full((2, 8), -1.0)
    with open_archive(tmp_path / "a", "model", 1) as archive:
        archive.read("x", out=rows[:, :3])
    assert rows.tolist() == [[0, 1, 2, -1, -1, -1, -1, -1], [3, 4, 5, -1, -1, -1, -1, -1]]


@pytest.mark.parametrize(
    "out", [np.empty(4), np.empty((5, 1)), np.empty(5, np.float32), np.broadcast_to(0.0, 5)]
)
def test_an_out_of_the_wrong_form_is_refused(small, out):
    with (
        open_archive(small, "model", 3) as archive,
        pytest.raises(ValueError, match=r"out is .* but array 'x' is float64 of shape \(5,\)"),
    ):
        archive.read("x", out=out)


def test_progress_counts_up_to_the_total(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 64)
    arrays = {"x": np.arange(20.0), "y": np.arange(20.0)}
    written, read = [], []
    write_archive(tmp_path / "a", "m", 1, {}, arrays, lambda *counts: written.append(counts))
    with open_archive(tmp_path / "a", "m", 1, lambda *counts: read.append(counts)) as archive:
        archive.read("y")
        archive.read("x")
    assert written == read == [(done, 320) for done in (64, 128, 160, 224, 288, 320)]


def deep(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"header": {"a": float("nan")}}, "header cannot be kept as JSON.*finite numbers"),
        ({"header": {"a": np.int64(1)}}, "header cannot be kept as JSON: .*int64"),
        ({"header": {"a": deep(60)}}, "more than 50 levels"),
        ({"header": {"a": deep(100_000)}}, "header cannot be kept as JSON"),
        ({"header": {1: 2, "1": 3}}, "a key occurs twice"),
        ({"header": {"a": "x" * LARGEST}}, "keep what is large as an array"),
        ({"arrays": {"../x": np.zeros(2)}}, r"array name '\.\./x' must be words"),
        ({"arrays": {"x": np.array([None])}}, "array 'x' has dtype 'object'"),
        ({"arrays": {"x": np.array(["a"])}}, "array 'x' has dtype 'str"),
        ({"arrays": {"x": np.zeros(1, [("a", "f8")])}}, "array 'x' has dtype 'void"),
        ({"version": 0}, "version=0"),
        ({"version": True}, "version=True"),
        ({"kind": None}, "kind=None"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(small, arguments, message):
    before = small.read_bytes()
    valid = {"kind": "model", "version": 1, "header": {}, "arrays": {}}
    with pytest.raises(ValueError, match=message):
        write_archive(small, **(valid | arguments))
    assert small.read_bytes() == before


def test_every_truncation_and_extension_is_refused(small):
    data = small.read_bytes()
    for length in range(len(data)):
        small.write_bytes(data[:length])
        with pytest.raises(ArchiveError, match=r"small\.losse .*(Restore|Check)"):
            read_all(small)
    small.write_bytes(data + b"\0")
    with pytest.raises(ArchiveError, match=f"has {len(data) + 1} bytes instead of {len(data)}"):
        read_all(small)


def test_every_flipped_bit_is_refused(small):
    data = small.read_bytes()
    with small.open("r+b", buffering=0) as file:
        for position, byte in enumerate(data):
            for bit in range(8):
                os.pwrite(file.fileno(), bytes([byte ^ 1 << bit]), position)
                with pytest.raises(ArchiveError, match=r"small\.losse .*(Restore|Check|Upgrade)"):
                    read_all(small)
            os.pwrite(file.fileno(), bytes([byte]), position)
    read_all(small)


def test_a_damaged_array_does_not_hide_the_others(small):
    data = bytearray(small.read_bytes())
    data[data.index(np.arange(5.0).tobytes()) + 9] ^= 1
    small.write_bytes(data)
    with open_archive(small, "model", 3) as archive:
        with pytest.raises(ArchiveError, match="array 'x' has changed"):
            archive.read("x")
        assert archive.read("layer.1").tolist() == [True, False]


def test_ends_of_another_archive_do_not_fit(tmp_path):
    """Digests of equal arrays with another header are those of another file."""
    for name, seed in (("a", 1), ("b", 2)):
        write_archive(tmp_path / name, "model", 1, {"seed": seed}, {"x": np.zeros(3)})
    a, b = ((tmp_path / name).read_bytes() for name in "ab")
    (tmp_path / "a").write_bytes(a[:-64] + b[-64:])
    with pytest.raises(ArchiveError, match="checksums"):
        read_all(tmp_path / "a")


def test_older_versions_are_for_the_caller_and_newer_ones_refused(small):
    with open_archive(small, "model", newest=9) as archive:
        assert archive.version == 3
    with pytest.raises(ArchiveError, match=r"version 3, but this losse knows up to 2\. Upgrade"):
        read_all(small, newest=2)
    small.write_bytes(forge({}, form=2))
    with pytest.raises(ArchiveError, match=r"has format 2, .*Upgrade losse"):
        read_all(small)


def test_another_kind_is_refused(small):
    with pytest.raises(ArchiveError, match="is of kind 'model', but 'agent' is asked for"):
        read_all(small, kind="agent")


def test_a_missing_array_is_refused(small):
    with (
        open_archive(small, "model", 3) as archive,
        pytest.raises(ArchiveError, match="has no array 'y'"),
    ):
        archive.read("y")


@pytest.mark.parametrize("content", ["empty", "text", "pickle", "npz", "npy", "zeros"])
def test_foreign_files_are_refused(tmp_path, content):
    path = tmp_path / f"{content}.npz"
    if content == "npz":
        np.savez(path, x=np.zeros(100))
    elif content == "npy":
        np.save(path.open("wb"), np.zeros(100))
    else:
        text = {"empty": b"", "text": b"# Notes\n" * 40, "pickle": pickle.dumps([1] * 100)}
        path.write_bytes(text.get(content, bytes(1000)))
    with pytest.raises(ArchiveError, match=rf"{content}\.npz is no losse archive.* Check the path"):
        read_all(path)


def test_what_is_no_ordinary_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, "/dev/zero"):
        with pytest.raises(ArchiveError, match="is not an ordinary file"):
            read_all(path)


def test_a_missing_file_is_just_that(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_all(tmp_path / "nowhere")


HEAD = {"kind": "model", "version": 1, "header": {}, "arrays": {}}


def listing(*entry):
    return HEAD | {"arrays": {"x": list(entry)}}


HOSTILE = {
    "huge": listing("float64", [10**15]),
    "beyond 64 bits": listing("float64", [2**32, 2**32]),
    "wraps to zero": listing("float64", [2**61]),
    "empty but huge": listing("float64", [2**62, 2**62, 0]),
    "number without end": listing("float64", [10**4000] * 30),
    "negative": listing("float64", [-1]),
    "two negatives": listing("float64", [-4, -4]),
    "fraction": listing("float64", [1.0]),
    "truth": listing("float64", [True]),
    "text as side": listing("float64", ["1"]),
    "many axes": listing("float64", [1] * 33),
    "a hundred thousand axes": listing("float64", [9] * 100_000),
    "shape is a number": listing("float64", 3),
    "object": listing("object", [1]),
    "object code": listing("O", [1]),
    "text": listing("U1", [1]),
    "record": listing([["a", "f8"]], [1]),
    "dtype is a number": listing(8, [1]),
    "byte order": listing(">f8", [1]),
    "entry too short": listing("float64"),
    "entry too long": listing("float64", [1], 64),
    "entry is text": HEAD | {"arrays": {"x": "f8"}},
    "arrays is a list": HEAD | {"arrays": []},
    "header is a list": HEAD | {"header": []},
    "no kind": {key: HEAD[key] for key in ("version", "header", "arrays")},
    "one entry more": HEAD | {"offsets": [0]},
    "kind is a number": HEAD | {"kind": 1},
    "kind is long": HEAD | {"kind": "x" * 1_000_000},
    "version is text": HEAD | {"version": "1"},
    "version is a fraction": HEAD | {"version": 1.0},
    "version zero": HEAD | {"version": 0},
    "a list": [],
    "a number": 1,
    "nothing": b"",
    "NaN": b'{"kind": "model", "version": 1, "header": {"a": NaN}, "arrays": {}}',
    "infinity": b'{"kind": "model", "version": 1, "header": {"a": 1e999}, "arrays": {}}',
    "twice": b'{"kind": "model", "version": 1, "version": 1, "header": {}, "arrays": {}}',
    "not ASCII": '{"kind": "modèl"}'.encode(),
    "rest": b'{"kind": "model", "version": 1, "header": {}, "arrays": {}} 1',
    "too many digits": b'{"kind": "model", "version": ' + b"1" * 5000 + b"}",
    "deep": b'{"kind": ' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}",
    "deep header": b'{"kind":"model","version":1,"arrays":{},"header":{"a":'
    + b"[" * 60 + b"]" * 60 + b"}}",
    "deep but closed": b'{"kind": ' + b"[" * 900 + b"]" * 900 + b"}",
    "deep side": b'{"kind":"model","version":1,"header":{},"arrays":{"x":["bool",['
    + b"[" * 900 + b"]" * 900 + b"]]}}",
}  # fmt: skip
NAMES = ["../x", "/etc/x", "", ".", "..", "x.", ".x", "a..b", "a/b", "a\\b", "a\0", "x\n", "é"]
HOSTILE |= {f"name {name!r}": HEAD | {"arrays": {name: ["float64", [0]]}} for name in NAMES}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_heads_with_valid_digests_are_refused_at_little_cost(tmp_path, case):
    path = tmp_path / "hostile.losse"
    path.write_bytes(forge(HOSTILE[case], [bytes(64)]))
    tracemalloc.start()
    try:
        with pytest.raises(ArchiveError, match=r"hostile\.losse .* (Restore|Check)") as caught:
            read_all(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 * path.stat().st_size + MEGABYTE
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("length", [0, 16, 2**31, 2**32 - 16, LARGEST + 64, LARGEST * 16 + 16])
def test_a_head_of_absurd_length_is_refused_at_little_cost(tmp_path, length):
    path = tmp_path / "hostile.losse"
    path.write_bytes(forge(HEAD, length=length))
    os.truncate(path, 2**33)  # sparse: eight gigabytes that take no room
    tracemalloc.start()
    try:
        with pytest.raises(ArchiveError, match=r"cut off or damaged|has changed"):
            read_all(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MEGABYTE


def test_values_that_are_neither_true_nor_false_are_refused(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(forge(listing("bool", [3]), [b"\1\2\0"]))
    with pytest.raises(ArchiveError, match="not of booleans"):
        read_all(path)


@pytest.mark.parametrize("order", ["C", "F"])
def test_large_arrays_are_streamed(tmp_path, order):
    array = np.zeros((50_000, 500), order=order)
    result = np.empty_like(array)
    tracemalloc.start()
    try:
        write_archive(tmp_path / "a", "model", 1, {}, {"x": array})
        with open_archive(tmp_path / "a", "model", 1) as archive:
            archive.read("x", out=result)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 * MEGABYTE


def test_a_failing_progress_ends_the_writing_and_keeps_the_old_file(small):
    before = small.read_bytes()

    def cancel(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_archive(small, "model", 3, {}, {"x": np.zeros(9)}, cancel)
    assert small.read_bytes() == before
    assert list(small.parent.iterdir()) == [small]


def test_a_file_that_shrinks_while_it_is_read_is_refused(small):
    with open_archive(small, "model", 3) as archive:
        os.truncate(small, 200)
        with pytest.raises(ArchiveError, match="became shorter while it was read"):
            archive.read("x")


def test_an_open_archive_outlives_its_replacement(small):
    with open_archive(small, "model", 3) as archive:
        write_archive(small, "model", 3, {}, {"x": np.ones(5)})
        assert archive.read("x").tolist() == [0, 1, 2, 3, 4]


def test_a_full_disk_says_how_much_is_needed(small, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("losse.storage.atomic.os.fsync", full)
    with pytest.raises(OSError, match=r"8,000,\d\d\d bytes are needed and [\d,]+ bytes are free"):
        write_archive(small, "model", 3, {}, {"x": np.zeros(1_000_000)})
