"""What counts as the same output, and what is written where it is not."""

import pytest

from docs.markdown import updated


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        pytest.param("4 files, in 4.9 s.", "4 files, in 12.1 s.", id="durations"),
        pytest.param("2026-11-15 08:04:11  x", "2027-01-01 00:00:00  x", id="times"),
        pytest.param("customers  46 B  new", "customers  1.2 kB  new", id="sizes"),
        pytest.param("hash e1e52dd45789b944", "hash 0123456789abcdef", id="hashes"),
        pytest.param("http://127.0.0.1:8080/x", "http://127.0.0.1:41234/x", id="ports"),
        pytest.param("NAME  ROWS", "NAME      ROWS", id="widths of columns"),
        pytest.param("a\n...\nd", "a\nb\nc\nd", id="lines that are left out"),
        pytest.param("a ... d", "a b c d", id="words that are left out"),
        pytest.param("a\n", "a", id="an empty line before the next command"),
    ],
)
def test_what_differs_from_run_to_run_stays_as_it_is_shown(shown: str, printed: str) -> None:
    lines = tuple(shown.split("\n"))
    assert updated(lines, printed) == lines


@pytest.mark.parametrize(
    ("shown", "printed", "written"),
    [
        pytest.param("3 new", "4 new", "4 new", id="a number"),
        pytest.param("S-1 1.0.0", "S-2 2.0.0", "S-2 2.0.0", id="a version"),
        pytest.param("dt=2024-05-01", "dt=2024-05-02", "dt=2024-05-02", id="a day of the example"),
        pytest.param("a", "a\nb", "a\nb", id="a line more"),
        pytest.param("a\nb", "a", "a", id="a line less"),
        pytest.param("a\n...\nd", "a\nb\nc\ne", "a\n...\ne", id="after what is left out"),
        pytest.param("...\nd", "b\nc\nd\ne", "...\nd\ne", id="behind the end"),
        pytest.param("a, in 4.9 s.\nb", "a, in 7.1 s.\nc", "a, in 4.9 s.\nc", id="one line of two"),
    ],
)
def test_what_else_differs_is_written_anew(shown: str, printed: str, written: str) -> None:
    assert updated(tuple(shown.split("\n")), printed) == tuple(written.split("\n"))


def test_rows_of_a_table_stay_below_each_other() -> None:
    shown = ("NAME    SIZE", "orders  46 B")
    assert updated(shown, "NAME         SIZE\norders       46 B\ncustomers  1.2 kB") == (
        "NAME         SIZE",
        "orders       46 B",
        "customers  1.2 kB",
    )
