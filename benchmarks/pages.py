"""Places in pages of the documentation that are filled with tables."""

from __future__ import annotations

import re
from collections.abc import Mapping


def fill(page: str, tables: Mapping[str, str]) -> str:
    """Put tables into a page, between `<!-- table: name -->` and `<!-- end -->`.

    A place whose table is not among them stays as it is.

    >>> page = "a <!-- table: one --> b <!-- end --> c <!-- table: two --> d <!-- end -->"
    >>> print(fill(page, {"one": "| 1 |"}))
    a <!-- table: one -->
    | 1 |
    <!-- end --> c <!-- table: two --> d <!-- end -->
    """

    def replace(place: re.Match[str]) -> str:
        text = tables.get(place[2])
        return place[0] if text is None else f"{place[1]}\n{text}\n{place[3]}"

    return re.sub(r"(<!-- table: ([\w -]+) -->).*?(<!-- end -->)", replace, page, flags=re.DOTALL)
