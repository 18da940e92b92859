"""The user's cache folder, for downloads and for data that can be made again."""

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """The folder `losse` in the user's cache, by the platform's convention.

    >>> cache_folder().name
    'losse'
    """
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "losse"
