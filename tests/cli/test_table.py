"""Tables: aligned columns on a pipe, folded cells on a terminal."""

import io

import pytest
from rich.text import Text

from lumos.cli.console import SafeConsole
from lumos.cli.screen import Table, stdout


def on_terminal(table: Table, width: int) -> list[str]:
    output = io.StringIO()
    SafeConsole(file=output, force_terminal=True, no_color=True, width=width).print(table)
    return [Text.from_ansi(line).plain.rstrip() for line in output.getvalue().splitlines()]


def test_a_pipe_gets_whole_lines_with_numbers_at_the_right(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = Table("DATASET", ">ROWS", "WHAT")
    table.add("orders", "1,200", "x" * 2000)
    table.add("東京", "7", "")
    stdout().print(table)
    assert capsys.readouterr().out.splitlines() == [
        "DATASET   ROWS  WHAT",
        f"orders   1,200  {'x' * 2000}",
        "東京         7",
    ]


def test_a_terminal_folds_cells_in_their_columns() -> None:
    table = Table("NAME", ">ROWS")
    table.add("sales_orders", "12")
    assert on_terminal(table, width=12) == ["NAME    ROWS", "sales_    12", "orders"]
    assert on_terminal(table, width=40) == list(table.lines())


def test_a_table_without_names_has_no_header() -> None:
    table = Table("", ">", widths=(6, 4))
    table.add("files", "3")
    assert list(table.lines()) == on_terminal(table, width=40) == ["files      3"]


def test_a_table_without_rows_prints_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    stdout().print(Table("LOG", empty="No logs yet."))
    stdout().print(Table("LOG"))
    assert capsys.readouterr().out == "No logs yet.\n"


def test_a_compact_table_leaves_out_empty_columns() -> None:
    table = Table("READER", ">BYTES", "LAST READ", compact=True)
    table.add("jane", "", "today")
    assert list(table.lines()) == ["READER  LAST READ", "jane    today"]


def test_texts_keep_their_lines_in_their_column() -> None:
    table = Table("", "", "")
    table.add("note", Text("one\ntwo"), "end")
    assert list(table.lines()) == ["note  one  end", "      two"]


def test_the_last_column_is_folded_at_a_given_width_everywhere() -> None:
    table = Table(">SAVES", "DATASETS", fold_at=20)
    table.add("$1.00", "orders, customers")
    expected = ["SAVES  DATASETS", "$1.00  orders,", "       customers"]
    assert list(table.lines()) == on_terminal(table, width=80) == expected


def test_a_long_table_is_plain_on_a_terminal() -> None:
    table = Table("A", "B")
    for number in range(1_001):
        table.add(f"name_{number:04}", "x" * 50)
    assert on_terminal(table, width=20) == list(table.lines())
