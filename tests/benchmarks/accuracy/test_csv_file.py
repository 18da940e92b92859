"""A user's CSV file: what becomes numbers, and what is refused with its place."""

import re

import numpy as np
import pytest

from benchmarks.accuracy.streams.csv_file import LEAST_ROWS, CsvFile, read_csv

ROWS = [f"{i},{'ab'[i % 2]},{i / 2}" for i in range(LEAST_ROWS)]


@pytest.fixture
def write(tmp_path):
    def written(*lines, encoding="utf-8"):
        path = tmp_path / "my table.csv"
        path.write_bytes("\n".join(lines).encode(encoding))
        return path

    return written


def test_the_last_column_is_the_target(write):
    table = read_csv(write("size,colour,price", *ROWS))
    assert table.target == "price"
    assert table.Y[:, 0].tolist() == [i / 2 for i in range(LEAST_ROWS)]
    assert table.X[:3].tolist() == [[0, 0], [1, 1], [2, 0]]
    (note,) = table.notes
    assert "'colour' has 2 words, which become the codes 0 to 1" in note


def test_any_column_can_be_the_target(write):
    table = read_csv(write("size,colour,price", *ROWS), "size")
    assert table.Y[3, 0] == 3
    assert table.X[3].tolist() == [1, 1.5]


def test_without_a_header(write):
    table = read_csv(write(*ROWS))
    assert table.X.shape == (LEAST_ROWS, 2)
    assert table.target == "column 3"


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters_and_marks_of_spreadsheets(write, delimiter):
    lines = [line.replace(",", delimiter) for line in ("a,b,c", *ROWS, "")]
    path = write(*lines, encoding="utf-8-sig")
    assert read_csv(path, "a").X.shape == (LEAST_ROWS, 2)


def test_the_name_is_one_word(write):
    assert CsvFile(write(*ROWS)).name == "my-table"


def test_a_change_of_the_file_changes_its_digest(write):
    first = read_csv(write(*ROWS)).digest
    assert read_csv(write(*ROWS)).digest == first
    assert read_csv(write(*ROWS, "1,a,1")).digest != first


@pytest.mark.parametrize(
    ("lines", "target", "message"),
    [
        (["x,y", "1,2"], None, f"has 1 rows; it takes at least {LEAST_ROWS}"),
        ([""], None, "has 0 rows"),
        (["x", *map(str, range(60))], None, "has one column"),
        (["s,c,p", *ROWS, "1,a,"], None, "line 52, column 'p': the value is missing ('')"),
        (["s,c,p", *ROWS, "?,a,1"], None, "line 52, column 's': the value is missing ('?'); fill"),
        ([*ROWS, "1,NA,1"], None, "line 51, column 'column 2': the value is missing ('NA')"),
        (["s,c,p", *ROWS, "1,a,inf"], None, "line 52, column 'p': inf is not finite"),
        (["s,c,p", *ROWS, "big,a,1"], None, "line 52, column 's': the column consists of numbers"),
        (["s,c,p", *ROWS, "1,7,1"], None, "line 52, column 'c': the column consists of words"),
        (["s,c,p", *ROWS, "1,a"], None, "line 52 has 2 cells, and line 1 has 3"),
        (["s,c,p", *ROWS], "c", "line 2, column 'c': the target must be a number, not 'a'"),
        (["s,c,p", *ROWS], "q", "line 1 has no column 'q'; its columns are s, c, p"),
        (["s,c,s", *ROWS], "s", "line 1 has several columns 's'"),
        (ROWS, "price", "has no header, so it has no column 'price'"),
        ([f"{i},5" for i in range(60)], None, "column 'column 2': the target is 5 in all rows"),
    ],
)
def test_errors_name_the_place_and_the_remedy(write, lines, target, message):
    path = write(*lines)
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        read_csv(path, target)
    assert str(path) in str(caught.value)


def test_what_is_no_text(write):
    path = write("a,b,c", *ROWS, "1,é,2", encoding="latin-1")
    with pytest.raises(ValueError, match=r"line 52: not UTF-8; save the file"):
        read_csv(path)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*none\.csv; --table takes"):
        read_csv(tmp_path / "none.csv")


def test_quoted_cells_may_have_commas(write):
    path = write("s,c,p", *(f'{i},"a, {i % 3}",{i}' for i in range(60)))
    assert np.unique(read_csv(path).X[:, 1]).tolist() == [0, 1, 2]
