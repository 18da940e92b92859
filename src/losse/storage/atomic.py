"""Atomic replacement of files: a reader finds the old one or the whole new one, never a part.

The new content goes to ``.<name>.<16 hex digits>.partial`` beside the file, which takes the
file's place when all of it is on the disk. A process that is killed leaves this temporary behind.
The next one to replace the same file removes it. Whether its writer still lives is told by a
lock, not by a process number: numbers are reused, and mean nothing in other containers.
"""

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any

from losse.interrupts import deferred_interrupts

try:
    import fcntl
except ImportError:  # Windows, which never lets an open file be removed
    fcntl = None  # type: ignore[assignment]

REMEDIES = {
    errno.ENOSPC: "Free some space, or write to another disk",
    errno.EDQUOT: "Your quota is used up: free some space, or write to another disk",
    errno.EFBIG: "Files may not become that large here: raise the limit (ulimit -f), or write to "
    "another file system",
    errno.EACCES: "Ask for permission to write into this folder, or write elsewhere",
}
# Of a file's name that a temporary repeats, since names end at 255 bytes.
_NAME_PART = 40


@contextmanager
def replacing(
    path: str | os.PathLike[str], size: int | None = None
) -> Iterator[Callable[[Any], None]]:
    """Give a function that writes bytes; they replace ``path`` when the block ends well.

    On any error the file stays as it was. A symbolic link stays, and the file that it points to
    is replaced. The mode of a file is kept; a new one gets that of any other new file. ``size``,
    the bytes to come, makes errors more telling.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "greeting"
    >>> with replacing(path) as write:
    ...     write(b"Hello")
    ...     path.exists()
    False
    >>> path.read_bytes()
    b'Hello'
    """
    target = Path(os.path.realpath(path))
    mode = _mode(target)
    _remove_stale(target)
    try:
        file: FileIO | None = None
        try:
            with deferred_interrupts():
                file = _temporary(target, mode)
            yield partial(_write, file)
            os.fsync(file.fileno())
            if fcntl is None:
                file.close()  # Windows does not rename open files
            os.replace(file.name, target)
        except BaseException:
            if file is not None:
                file.close()
                with suppress(OSError):
                    os.unlink(file.name)
            raise
        finally:
            if file is not None:
                file.close()
    except OSError as error:
        raise _explained(error, target, mode is not None, size) from error
    # Makes the new name survive a power failure. Not every file system can do this, and without
    # it there still is a whole file, the old or the new.
    with suppress(OSError):
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _mode(target: Path) -> int | None:
    """Permissions of the file to replace, None if there is none; raises if it cannot be one."""
    if not target.parent.is_dir():
        text = "there is no such folder: create it first, or write elsewhere"
        raise FileNotFoundError(errno.ENOENT, text, str(target.parent))
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "this is a folder: add a file name", str(target))
    if not stat.S_ISREG(mode):
        text = "this is a device, pipe or socket: give the path of an ordinary file"
        raise FileExistsError(errno.EEXIST, text, str(target))
    if not os.access(target, os.W_OK):
        text = "this file is write-protected: lift that (chmod u+w), or write elsewhere"
        raise PermissionError(errno.EACCES, text, str(target))
    return stat.S_IMODE(mode)


def _temporary(target: Path, mode: int | None) -> FileIO:
    """A new file beside ``target``, locked for as long as it is open."""
    # Private content must not be open to others even for a moment.
    permissions = 0o666 if mode is None else mode
    while True:
        path = target.with_name(f".{target.name[:_NAME_PART]}.{secrets.token_hex(8)}.partial")
        file = FileIO(str(path), "xb", opener=lambda p, flags: os.open(p, flags, permissions))
        if mode is not None:
            with suppress(OSError):  # not every file system has permissions
                os.chmod(path, mode)
        if fcntl is not None:
            with suppress(OSError):  # without locks nobody removes temporaries
                fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(file.fileno()).st_nlink == 0:  # removed as stale before it was locked
                file.close()
                continue
        return file


def _remove_stale(target: Path) -> None:
    """Remove temporaries of ``target`` that no living process writes."""
    pattern = re.escape(f".{target.name[:_NAME_PART]}.") + r"[0-9a-f]{16}\.partial"
    with suppress(OSError):
        for entry in list(os.scandir(target.parent)):
            if re.fullmatch(pattern, entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError), open(entry.path, "r+b", buffering=0) as file:
                    if fcntl is not None:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(entry.path)


def _write(file: FileIO, data: Any) -> None:
    rest = memoryview(data).cast("B")
    while rest:  # the system may take a part only
        rest = rest[file.write(rest) :]


def _explained(error: OSError, target: Path, existed: bool, size: int | None) -> OSError:
    kept = "The file of this name is as it was before" if existed else "No file was made"
    needed = "" if size is None else f"{size:,} bytes are needed"
    with suppress(OSError):
        free = f"{shutil.disk_usage(target.parent).free:,} bytes are free on this disk"
        needed = f"{needed} and {free}" if needed else free
    remedy = REMEDIES.get(error.errno or 0, "Check the folder and the disk, or write elsewhere")
    text = f"cannot write {target}: {error.strerror or error}. {kept}. {needed}. {remedy}."
    return OSError(error.errno, text)
