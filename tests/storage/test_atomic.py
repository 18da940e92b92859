"""Files are replaced whole or not at all: whatever dies, fills up or is forbidden meanwhile."""

import errno
import os
import subprocess
import sys
import tempfile
import textwrap
from io import FileIO
from pathlib import Path

import pytest

from losse.storage import atomic
from losse.storage.atomic import replacing


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.losse"
    path.write_bytes(b"old")
    return path


def replace(path, content=b"new"):
    with replacing(path) as write:
        write(content)


def start(code, *arguments):
    """A Python process that says a line when it is where it should be."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    return process


HALF_WAY = """
    import sys
    from losse.storage.atomic import replacing
    with replacing(sys.argv[1]) as write:
        write(b"half")
        print("ready", flush=True)
        sys.stdin.readline()
        write(b" whole")
"""


def test_a_killed_writer_leaves_the_old_file_and_the_next_one_cleans_up(path):
    for _ in range(2):
        process = start(HALF_WAY, path)
        process.kill()
        process.communicate()
    assert path.read_bytes() == b"old"
    # The second had found the first one's temporary.
    assert len(list(path.parent.iterdir())) == 2
    replace(path)
    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]


def test_the_temporary_of_a_living_writer_is_left_alone(path):
    process = start(HALF_WAY, path)
    replace(path)
    assert path.read_bytes() == b"new"
    process.communicate("go on\n")
    assert process.returncode == 0
    assert path.read_bytes() == b"half whole"
    assert list(path.parent.iterdir()) == [path]


def test_a_temporary_taken_for_stale_before_it_is_locked_is_made_anew(path, monkeypatch):
    flock, waiting = atomic.fcntl.flock, [1]

    def late(file, flags):
        if waiting and not flags & atomic.fcntl.LOCK_NB:
            waiting.pop()
            atomic._remove_stale(path)
        flock(file, flags)

    monkeypatch.setattr(atomic.fcntl, "flock", late)
    replace(path)
    assert not waiting
    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]


def test_only_our_own_temporaries_are_removed(path):
    folder = path.parent
    others = [
        ".model.losse.partial",
        ".model.losse.0123456789abcdef.partial.txt",
        ".model.losse.0123456789ABCDEF.partial",
        ".model.losse.123.partial",
        ".model-losse.0123456789abcdef.partial",
        ".other.losse.0123456789abcdef.partial",
        "model.losse.0123456789abcdef.partial",
    ]
    for name in others:
        (folder / name).write_text("mine")
    (folder / ".model.losse.00000000deadbeef.partial").write_bytes(b"stale")
    (folder / ".model.losse.0000000000000001.partial").mkdir()
    (folder / ".model.losse.0000000000000002.partial").symlink_to(folder / others[0])
    before = {entry.name for entry in folder.iterdir()}
    replace(path)
    after = {entry.name for entry in folder.iterdir()}
    assert before - after == {".model.losse.00000000deadbeef.partial"}
    assert after <= before
    assert (folder / others[0]).read_text() == "mine"


@pytest.mark.parametrize("name", ["x" * 255, "ü" * 127, "a b\n*[0]", "-", ".hidden"])
def test_any_name_will_do(tmp_path, name):
    for content in (b"1", b"2"):
        replace(tmp_path / name, content)
        assert (tmp_path / name).read_bytes() == content
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("kind", [str, lambda p: p, os.fspath])
def test_paths_of_any_kind(path, kind):
    replace(kind(path))
    assert path.read_bytes() == b"new"


def test_a_relative_path(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    replace(path.name)
    assert path.read_bytes() == b"new"


def test_a_link_stays_and_what_it_points_to_is_replaced(path, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link"
    link.symlink_to("../model.losse")
    replace(link)
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    path.unlink()
    replace(link, b"again")
    assert path.read_bytes() == b"again"


def test_a_link_to_itself_is_an_error(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="loop"):
        replace(tmp_path / "loop")
    assert (tmp_path / "loop").is_symlink()


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_permissions_are_those_of_any_new_file(tmp_path, mask):
    before = os.umask(mask)
    try:
        replace(tmp_path / "new")
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_permissions_of_an_old_file_are_kept_and_hold_from_the_start(path, mode):
    path.chmod(mode)
    with replacing(path) as write:
        write(b"new")
        for entry in path.parent.iterdir():
            assert entry.stat().st_mode & 0o777 == mode
    assert path.stat().st_mode & 0o777 == mode


def test_where_no_file_can_be(path, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such folder: create it first.*nowhere"):
        replace(tmp_path / "nowhere" / "model.losse")
    with pytest.raises(IsADirectoryError, match="this is a folder: add a file name"):
        replace(tmp_path)
    with pytest.raises(FileNotFoundError, match="no such folder"):
        replace(path / "model.losse")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileExistsError, match="give the path of an ordinary file"):
        replace(tmp_path / "pipe")
    assert {entry.name for entry in tmp_path.iterdir()} == {"model.losse", "pipe"}


ORDINARY = """
import os, sys, tempfile
import numpy as np
from losse import FTLRegressor, LosseEncoder
path = sys.argv[1]
X = np.linspace(-1, 1, 40).reshape(20, 2)
model = FTLRegressor(LosseEncoder(2, 2), ridge=1e-3).fit(X, X)
model.save(os.path.join(tempfile.mkdtemp(), "first"), progress=False)  # all is imported
if os.geteuid() == 0:  # nothing is forbidden to the superuser
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for attempt in range(2):
    try:
        model.save(path, progress=False)
    except PermissionError as error:
        print(error)
model.partial_fit(X, X)
print(model.n_samples_seen_)
"""


@pytest.mark.parametrize(
    ("folder", "file", "message"),
    [(0o755, 0o444, "write-protected"), (0o555, 0o666, "Ask for permission")],
)
def test_an_ordinary_user_without_permission(folder, file, message):
    with tempfile.TemporaryDirectory() as name:  # pytest's own may be entered by its owner only
        path = Path(name) / "model.losse"
        path.write_bytes(b"old")
        path.chmod(file)
        path.parent.chmod(folder)
        done = subprocess.run(
            [sys.executable, "-c", ORDINARY, path], capture_output=True, text=True, check=False
        )
        path.parent.chmod(0o755)
        assert done.returncode == 0, done.stderr
        *refusals, count = done.stdout.splitlines()
        assert len(refusals) == 2
        assert all(message in line and "model.losse" in line for line in refusals)
        assert count == "40"
        assert path.read_bytes() == b"old"
        assert list(path.parent.iterdir()) == [path]


def test_a_write_protected_file_is_not_replaced(path, monkeypatch):
    monkeypatch.setattr(atomic.os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match=r"write-protected: lift that .*model\.losse"):
        replace(path)
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, OSError(errno.EIO, "broken")])
@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_any_failure_leaves_the_old_file_and_nothing_else(path, monkeypatch, error, step):
    def fail(*_):
        raise error

    if step != "write":
        monkeypatch.setattr(atomic.os, step, fail)
    with (  # noqa: PT012
        pytest.raises(OSError if isinstance(error, OSError) else error),
        replacing(path) as write,
    ):
        write(b"new")
        if step == "write":
            fail()
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


class FullDisk(FileIO):
    """Takes four bytes, then no more."""

    code = errno.ENOSPC

    def write(self, data):
        if self.tell() >= 4:
            raise OSError(self.code, os.strerror(self.code))
        return super().write(data[:4])


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (errno.ENOSPC, "Free some space, or write to another disk"),
        (errno.EDQUOT, "Your quota is used up"),
        (errno.EFBIG, "raise the limit"),
        (errno.EIO, "Check the folder and the disk"),
    ],
)
def test_a_full_disk_is_explained(path, monkeypatch, code, remedy):
    monkeypatch.setattr(FullDisk, "code", code)
    monkeypatch.setattr(atomic, "FileIO", FullDisk)
    with (
        pytest.raises(OSError, match="as it was before") as caught,
        replacing(path, 12345) as write,
    ):
        write(b"123456")
    assert caught.value.errno == code
    for part in (str(path), os.strerror(code), "12,345 bytes are needed", "are free", remedy):
        assert part in str(caught.value)
    path.unlink()
    with pytest.raises(OSError, match="No file was made"), replacing(path) as write:
        write(b"123456")
    assert list(path.parent.iterdir()) == []


def test_writes_that_the_system_takes_in_parts(path, monkeypatch):
    class Slow(FileIO):
        def write(self, data):
            return super().write(data[:3])

    monkeypatch.setattr(atomic, "FileIO", Slow)
    replace(path, b"0123456789")
    assert path.read_bytes() == b"0123456789"


def test_a_limit_on_the_size_of_files(path):
    code = """
        import errno, resource, signal, sys
        from losse.storage.atomic import replacing
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            with replacing(sys.argv[1], 1_000_000) as write:
                for _ in range(100):
                    write(bytes(10_000))
        except OSError as error:
            assert error.errno == errno.EFBIG
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), path],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "The file of this name is as it was before. 1,000,000 bytes are needed" in done.stdout
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


def test_without_locks_files_are_replaced_and_temporaries_stay(path, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, "no locks here")

    monkeypatch.setattr(atomic.fcntl, "flock", no_locks)
    stale = path.with_name(".model.losse.0123456789abcdef.partial")
    stale.write_bytes(b"whose?")
    replace(path)
    assert path.read_bytes() == b"new"
    assert stale.exists()
