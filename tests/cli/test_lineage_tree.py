"""lumos lineage show and path on the screen."""

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def chain(lumos: Any, workplace: Path) -> Any:
    """A column that is handed on by * and decides about what comes after."""
    (workplace / "m.sql").write_text(
        "create table b as select * from a;\n"
        "create table c as select b.y, b.amount * 2 as twice from b where b.x > 1;\n"
        "create table d as select c.y as z from c;\n"
        "create view v as select z from d;\n"
    )
    lumos("lineage", "ingest", "m.sql")
    return lumos


def test_a_tree_follows_columns_through_a_star(chain: Any) -> None:
    output = chain("lineage", "show", "a", "--column", "amount", "--downstream").words
    assert "b amount" in output
    assert "c twice b.amount * 2, m.sql:2" in output
    back = chain("lineage", "show", "c", "--column", "twice", "--upstream").words
    assert "b amount b.amount * 2, m.sql:2" in back
    assert "a amount" in back


def test_a_tree_goes_past_what_is_only_decided_about(chain: Any) -> None:
    output = chain("lineage", "show", "a", "--column", "x", "--downstream").words
    assert "c (all columns) FILTER: " in output
    assert "b.x > 1, m.sql:2 · indirect" in output
    assert "v (all columns) indirect" in output
    assert chain("lineage", "path", "a", "x", "v", "z").code == 0


def test_values_alone_are_followed_if_wished(chain: Any) -> None:
    output = chain("lineage", "show", "a", "--column", "x", "--downstream", "--direct").words
    assert "b x" in output
    assert "── c" not in output
    assert chain("lineage", "path", "a", "x", "v", "z", "--direct").code == 3
    assert chain("lineage", "path", "a", "y", "v", "z", "--direct").code == 0


def test_a_column_has_no_way_to_go_to_itself(chain: Any) -> None:
    done = chain("lineage", "path", "b", "x", "b", "X")
    assert done.code == 0
    assert "there is no step between" in done.words
    assert chain("lineage", "path", "b", "x", "b", "x", "--json").json["paths"] == [[]]


def test_where_nothing_follows_that_alone_is_said(chain: Any) -> None:
    output = chain("lineage", "show", "v", "--downstream")
    assert "downstream └── nothing" in output.words
    assert "No lineage is known" not in output.out


def test_on_a_narrow_terminal_a_tree_is_wrapped_and_nothing_is_cut_off(
    lumos: Any, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = " + ".join(f"amount * {number}" for number in range(10))
    (workplace / "wide.sql").write_text(f"create table b as select {wide} as total from a;\n")
    lumos("lineage", "ingest", "wide.sql")
    monkeypatch.setenv("FORCE_COLOR", "1")
    output = lumos("lineage", "show", "a", "--column", "amount", "--downstream")
    assert "wide.sql:1" in output.out
