"""Files that are whole or not there: atomic writes, checksummed archives, and checked state."""

from losse.storage.archive import ArchiveError

__all__ = ["ArchiveError"]
