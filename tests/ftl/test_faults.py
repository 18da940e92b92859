"""Models survive crashes, full disks, damaged files and threads, or say clearly what is wrong."""

import copy
import errno
import json
import os
import resource
import subprocess
import sys
import textwrap
import threading
import tracemalloc
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from losse import (
    AdaptiveEncoder,
    FourierEncoder,
    FTLRegressor,
    LosseEncoder,
    ReLUEncoder,
    TileEncoder,
)
from losse.storage.archive import ArchiveError
from tests.ftl.reference import stream
from tests.storage.forgery import forge, put_together, take_apart

X, Y = stream(80)
MEGABYTE = 1 << 20
GRIDS = (3, 4, 2)
ROOT = Path(__file__).parents[2]

# Every solver and memory, in every state that it can be saved in.
MODELS = {
    "sparse": lambda: FTLRegressor(LosseEncoder(*GRIDS), solver="sparse", ridge=1e-5).fit(X, Y),
    "floats": lambda: FTLRegressor(
        TileEncoder(*GRIDS), solver="sparse", dtype="float32", ridge=1e-5
    ).fit(X, Y),
    "dense": lambda: FTLRegressor(ReLUEncoder(20), solver="dense", ridge=1e-5).fit(X, Y),
    "single": lambda: FTLRegressor(LosseEncoder(*GRIDS), solver="dense", ridge=1e-5).fit(
        X, Y[:, 0]
    ),
    "samples": lambda: FTLRegressor(LosseEncoder(*GRIDS), solver="exact", ridge=1e-5).fit(
        X[:20], Y[:20]
    ),
    "dense samples": lambda: FTLRegressor(FourierEncoder(30), ridge=1e-5).fit(X[:10], Y[:10]),
    "inverse": lambda: grown(FTLRegressor(LosseEncoder(*GRIDS), solver="exact", ridge=1e-5)),
    "dense inverse": lambda: grown(FTLRegressor(ReLUEncoder(20), ridge=1e-5)),
    "discount": lambda: grown(
        FTLRegressor(LosseEncoder(*GRIDS, scaling=(-2, 2)), discount=0.9, ridge=1e-5)
    ),
    "adaptive": lambda: FTLRegressor(
        AdaptiveEncoder(2, 2, n_stages=1, warm_up=60), past=200, ridge="auto"
    ).fit(X[:70], Y[:70]),
    "packed": lambda: grown(FTLRegressor(LosseEncoder(*GRIDS), solver="sparse", ridge=1e-5)),
    "packed dense": lambda: grown(FTLRegressor(TileEncoder(*GRIDS), solver="dense", ridge=1e-5)),
    "packed samples": lambda: FTLRegressor(LosseEncoder(*GRIDS), ridge=1e-5).fit(X[:9], Y[:9]),
    "iterations": lambda: grown(FTLRegressor(LosseEncoder(*GRIDS), ridge=1e-5)),
    "float iterations": lambda: grown(
        FTLRegressor(TileEncoder(*GRIDS), dtype="float32", ridge=1e-5)
    ),
}
SHORT_AND_LONG = pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.long)])
"""Every fault in every place, or in every third in turn."""
LARGE = ("packed", "packed dense", "packed samples", "iterations", "float iterations")


def grown(model):
    for start in range(0, 70, 10):
        model.partial_fit(X[start : start + 10], Y[start : start + 10])
    return model


@pytest.fixture(params=MODELS)
def case(request, monkeypatch):
    """The name of a model, whose size counts as what the name says."""
    if request.param in LARGE:
        make_small_models_large(monkeypatch)
    return request.param


def make_small_models_large(monkeypatch):
    monkeypatch.setattr("losse.ftl.memories.base.SQUARE_LIMIT", 40)
    monkeypatch.setattr("losse.ftl.solvers.exact.SAMPLE_LIMIT", 30)
    monkeypatch.setattr("losse.ftl.memories.packed.WAITING", 25)


def saved(model, folder):
    path = folder / "model.losse"
    model.save(path)
    return path, path.read_bytes()


def use(model):
    """Everything that a model does."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        width = model.n_features_in_
        inputs = np.linspace(-2, 2, 30 * width).reshape(30, width)
        targets = np.nan_to_num(np.sin(model.predict(inputs)))
        model.partial_fit(inputs[:3], targets[:3])
        model.partial_fit(inputs, targets)
        model.predict(inputs, return_std=True)


def load_or_refuse(path, data, tolerated=()):
    """Load a file with this content: a model that can be used, or a refusal at little cost."""
    path.write_bytes(data)
    refusal = model = None
    tracemalloc.start()
    try:
        model = FTLRegressor.load(path)
    except ArchiveError as error:
        refusal = str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 20 * len(data) + 6 * MEGABYTE
    if refusal is not None:
        assert path.name in refusal
        assert len(refusal) < 2000
    else:
        with suppress(*tolerated):
            use(model)
    return model


def must_refuse(path, data):
    assert load_or_refuse(path, data) is None


def test_a_saved_model_goes_on_as_if_nothing_had_happened(case, tmp_path):
    model = MODELS[case]()
    path, _ = saved(model, tmp_path)
    loaded = FTLRegressor.load(path)
    for _ in range(3):
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        for each in (model, loaded):
            each.partial_fit(X, Y[:, 0] if case == "single" else Y)


@pytest.mark.parametrize("kills", [10, pytest.param(70, marks=pytest.mark.long)])
def test_kills_while_training_and_saving(kills, tmp_path):
    """Whenever a process is killed, its file holds a model of some whole number of batches."""
    one = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.ftl.kill_trials", tmp_path, str(kills)],
        cwd=ROOT,
        env=os.environ | one,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    trials = json.loads(done.stdout).values()
    assert sum(trial["kills"] for trial in trials) == 3 * kills
    # Else the kills came too early or too late to prove anything.
    assert sum(trial["within_save"] for trial in trials) >= kills // 4
    assert sum(trial["advanced"] for trial in trials) >= kills // 4


def test_a_full_disk_leaves_the_old_model(tmp_path):
    model = FTLRegressor(LosseEncoder(*GRIDS), ridge=1e-5).fit(X[:40], Y[:40])
    path, before = saved(model, tmp_path)
    expected = model.predict(X)
    model.partial_fit(X[40:], Y[40:])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(OSError, match="as it was before") as caught:
            model.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.errno == errno.EFBIG
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    np.testing.assert_array_equal(FTLRegressor.load(path).predict(X), expected)
    model.save(path)
    np.testing.assert_array_equal(FTLRegressor.load(path).predict(X), model.predict(X))


@given(data=st.data())
def test_truncated_and_flipped_files_are_refused(tmp_path_factory, data):
    path, content = saved(MODELS["sparse"](), tmp_path_factory.mktemp("model"))
    length = data.draw(st.integers(0, len(content) - 1))
    must_refuse(path, content[:length])
    position = data.draw(st.integers(0, len(content) - 1))
    flipped = bytearray(content)
    flipped[position] ^= 1 << data.draw(st.integers(0, 7))
    must_refuse(path, bytes(flipped))


NONSENSE = (
    None, True, False, -1, 0, 1, 2, 7, 10**6, 10**9, 2**63, 10**400, 0.5, -0.5, 1e-320, 1e300,
    -1e300, "", "x", "sparse", "inverse", "iterations", "x" * 100_000, [], {}, [0], [10**9], [[]],
    [None, None], [-1, 1], ["a", "b"], {"type": "LosseEncoder"}, {"type": "FTLRegressor"},
)  # fmt: skip


def leaves(value, place=()):
    """Every place in a header, the inner ones, too."""
    yield place
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for key, item in items:
        yield from leaves(item, (*place, key))


def changed(header, place, value):
    header = copy.deepcopy(header)
    inner = header
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return header


def takes_for_ever_if_allowed(place, value):
    """Tried elsewhere, in a process that can be stopped."""
    return (place[-1] == "grid_dim" and type(value) is int and value > 10**6) or (
        place[-1] == "discount" and value == 1e-320
    )


@SHORT_AND_LONG
def test_nonsense_in_the_header_is_refused_or_harmless(case, stride, tmp_path):
    path, content = saved(MODELS[case](), tmp_path)
    head, arrays = take_apart(content)
    # Most entries are the same for all models; those of solvers and encoders are not.
    kinds = {
        "sparse": "",
        "discount": "used_encoder",
        "dense samples": "used_encoder",
        "adaptive": "given_encoder",
    }
    for number, place in enumerate(leaves(head["header"])):
        own = place and place[0].startswith(("solver.", kinds.get(case, "solver.")))
        for value in NONSENSE[number % stride :: stride] if own else ():
            if not takes_for_ever_if_allowed(place, value):
                header = changed(head["header"], place, value)
                load_or_refuse(path, put_together({**head, "header": header}, arrays))


def test_absurd_parameters_do_not_take_for_ever(tmp_path):
    _, content = saved(MODELS["sparse"](), tmp_path)
    head, arrays = take_apart(content)
    absurd = {
        ("used_encoder", "parameters", "grid_dim"): 10**9,
        ("given_encoder", "parameters", "grid_dim"): 10**9,
        ("parameters", "discount"): 1e-320,
    }
    for number, (place, value) in enumerate(absurd.items()):
        header = changed(head["header"], place, value)
        path = tmp_path / f"{number}.absurd"
        path.write_bytes(put_together({**head, "header": header}, arrays))
    code = """
        import sys
        from pathlib import Path
        import numpy as np
        from losse import FTLRegressor
        from losse.storage.archive import ArchiveError
        for path in sorted(Path(sys.argv[1]).glob("*.absurd")):
            try:
                FTLRegressor.load(path).partial_fit(np.ones((2, 4)), np.ones((2, 3)))
            except ArchiveError as error:
                print(error)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), tmp_path], check=True, timeout=60)


def test_a_header_without_all_entries_is_refused(case, tmp_path):
    path, content = saved(MODELS[case](), tmp_path)
    head, arrays = take_apart(content)
    # The version that wrote it is for the curious. Older files do not know their rounding, and no
    # rows that enter an inverse little by little.
    older = {"losse", "solver.memory.error", "solver.inverse.entering"}
    for key in head["header"].keys() - older:
        header = {name: value for name, value in head["header"].items() if name != key}
        must_refuse(path, put_together({**head, "header": header}, arrays))


@SHORT_AND_LONG
def test_missing_additional_and_misshapen_arrays_are_refused(case, stride, tmp_path):
    path, content = saved(MODELS[case](), tmp_path)
    head, arrays = take_apart(content)
    for number, (name, array) in enumerate(arrays.items()):
        others = {key: value for key, value in arrays.items() if key != name}
        must_refuse(path, put_together(head, others))
        must_refuse(path, put_together(head, others | {f"{name}_": array}))
        misshapen = (
            array[:-1],
            np.concatenate([array, array]),
            array[..., None],
            array.ravel() if array.ndim > 1 else array[None],
            array[:0],
            np.asarray(1.0),
            array.astype(np.float32 if array.dtype != np.float32 else np.float64),
            array.astype(np.int16),
            array.astype(complex),
        )
        for other in misshapen[number % stride :: stride]:
            if (other.shape, other.dtype) != (array.shape, array.dtype):  # as parts of nothing are
                must_refuse(path, put_together(head, arrays | {name: other}))
    must_refuse(path, put_together(head, arrays | {"solver.more": np.zeros(3)}))


def test_cells_that_do_not_exist_are_refused(case, tmp_path):
    """Compiled code follows them without a look."""
    path, content = saved(MODELS[case](), tmp_path)
    head, arrays = take_apart(content)
    dimension = len(arrays["solver.weights"])
    for name, array in arrays.items():
        if array.dtype != np.int32:
            continue
        for value in (-1, dimension, 2**31 - 1, -(2**31)):
            for place in (0, array.size // 2, array.size - 1):
                other = array.copy()
                other.flat[place] = value
                must_refuse(path, put_together(head, arrays | {name: other}))


def test_samples_are_sparse_or_dense_as_the_encoder_is(tmp_path):
    path, content = saved(MODELS["samples"](), tmp_path)
    head, arrays = take_apart(content)
    del arrays["solver.samples.indices"]
    must_refuse(path, put_together(head, arrays))
    path, content = saved(MODELS["dense samples"](), tmp_path)
    head, arrays = take_apart(content)
    cells = np.zeros(arrays["solver.samples.values"].shape, np.int32)
    must_refuse(path, put_together(head, arrays | {"solver.samples.indices": cells}))


def test_times_to_come_are_refused(tmp_path):
    path, content = saved(MODELS["sparse"](), tmp_path)
    head, arrays = take_apart(content)
    times = arrays["solver.last_active"]
    for value in (len(X), 2**62, -(2**62), -(2**63), 2**63 - 1):
        other = times.copy()
        other[7] = value
        must_refuse(path, put_together(head, arrays | {"solver.last_active": other}))


def test_values_that_are_no_numbers_are_refused(case, tmp_path):
    path, content = saved(MODELS[case](), tmp_path)
    head, arrays = take_apart(content)
    for name, array in arrays.items():
        if array.dtype.kind != "f" or not array.size:
            continue
        for value in (np.nan, np.inf, -np.inf):
            other = array.copy()
            other.flat[array.size // 3] = value
            must_refuse(path, put_together(head, arrays | {name: other}))


@SHORT_AND_LONG
def test_finite_nonsense_in_the_arrays_does_no_harm(case, stride, tmp_path):
    """Such a model predicts nonsense. But it comes to an end."""
    path, content = saved(MODELS[case](), tmp_path)
    head, arrays = take_apart(content)
    for number, (name, array) in enumerate(arrays.items()):
        for value in (-1, 1e10, 1e300, -1e300)[number % stride :: stride]:
            if array.dtype.kind != "f" and abs(value) > 1:
                continue
            other = array.copy()
            largest = np.finfo(array.dtype).max if array.dtype.kind == "f" else 1
            other.flat[:: max(1, array.size // 50)] = np.clip(value, -largest, largest)
            edited = put_together(head, arrays | {name: other})
            load_or_refuse(path, edited, tolerated=[np.linalg.LinAlgError])


@settings(max_examples=150)
@given(data=st.data(), name=st.sampled_from([name for name in MODELS if name not in LARGE]))
def test_random_edits_under_valid_digests_are_refused_or_harmless(tmp_path_factory, data, name):
    path, content = saved(MODELS[name](), tmp_path_factory.mktemp("model"))
    head, arrays = take_apart(content)
    if data.draw(st.booleans()):
        text = bytearray(json.dumps(head).encode())
        for _ in range(data.draw(st.integers(1, 3))):
            position = data.draw(st.integers(0, len(text) - 1))
            text[position : position + data.draw(st.integers(0, 2))] = data.draw(
                st.sampled_from([b"", b"0", b"9", b"-", b".", b"e", b'"', b"[", b"null", b"true"])
            )
        edited = forge(bytes(text), [array.tobytes() for array in arrays.values()])
    else:
        chosen = data.draw(st.sampled_from([key for key, array in arrays.items() if array.size]))
        raw = bytearray(arrays[chosen].tobytes())
        for _ in range(data.draw(st.integers(1, 4))):
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        array = np.frombuffer(bytes(raw), arrays[chosen].dtype).reshape(arrays[chosen].shape)
        edited = put_together(head, arrays | {chosen: array})
    load_or_refuse(path, edited, tolerated=[np.linalg.LinAlgError])


def test_predictions_and_files_made_while_learning_are_those_of_whole_batches(tmp_path):
    model = FTLRegressor(LosseEncoder(*GRIDS, scaling=None), solver="sparse", ridge=1e-5)
    batches = [slice(start, start + 4) for start in range(0, 80, 4)] * 5
    states = set()
    twin = FTLRegressor(LosseEncoder(*GRIDS, scaling=None), solver="sparse", ridge=1e-5)
    for batch in batches:
        twin.partial_fit(X[batch], Y[batch])
        states.add(twin.predict(X).tobytes())
    model.partial_fit(X[batches[0]], Y[batches[0]])
    learned = threading.Event()
    problems = []
    counts = [0, 0, 0]

    def watch(number):
        try:
            while not learned.is_set() or not counts[number]:
                if number == 2:
                    model.save(tmp_path / "model.losse")
                    seen = FTLRegressor.load(tmp_path / "model.losse").predict(X)
                else:
                    seen = model.predict(X)
                assert seen.tobytes() in states
                counts[number] += 1
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=watch, args=(number,)) for number in range(3)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for batch in batches[1:]:
            model.partial_fit(X[batch], Y[batch])
    finally:
        learned.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert not problems
    assert min(counts) > 0
    np.testing.assert_array_equal(model.predict(X), twin.predict(X))
