"""Texts of SQL that reporters took edges from, on every database."""

from typing import Any

import pytest
from sqlalchemy import event as sqlalchemy_event

from lumos.model.lineage import Edge, Script
from lumos.store import Store
from lumos.store.lineage.report_contents import MAX_SCRIPT_BYTES
from store.conftest import AT, dataset

A, B, C, D = (f"lumos://file/lake/{name}" for name in "abcd")
TEXT = "CREATE TABLE b AS\nSELECT id FROM a -- 'ü' \0"
TABLES = ((("a",), A), (("shop", "b"), B))


def script(sql: str = TEXT, **facts: Any) -> Script:
    return Script(sql=sql, **{"dialect": "spark", "file": "b.sql", "tables": TABLES, **facts})


def report(
    store: Store, reporter: str, *links: tuple[str, str], scripts: tuple[Script, ...] = ()
) -> None:
    edges = [Edge(upstream=up, downstream=down, origin=reporter, at=AT) for up, down in links]
    with store.transaction() as transaction:
        transaction.lineage.report(reporter, edges, scripts=scripts, at=AT)


def put(store: Store, *names: str) -> None:
    with store.transaction() as transaction:
        for name in names:
            transaction.save(dataset(name))


def test_a_text_comes_out_as_it_was_reported_for_all_that_its_reporter_makes(store: Store) -> None:
    report(store, "sql:b.sql", (A, B), (A, C), (B, C), scripts=(script(),))
    kept = (("sql:b.sql", script()),)
    assert store.lineage.scripts([A, B, C, D]) == {A: (), B: kept, C: kept, D: ()}


def test_a_text_of_one_dataset_makes_that_one_alone(store: Store) -> None:
    one, other = script(dataset=B), script("SELECT 2", dataset=C)
    report(store, "dbt:shop", (A, B), (B, C), (C, D), scripts=(one, other))
    found = store.lineage.scripts([B, C, D])
    assert found == {B: (("dbt:shop", one),), C: (("dbt:shop", other),), D: ()}


def test_the_texts_of_several_reporters_come_in_the_order_of_their_names(store: Store) -> None:
    report(store, "view:b", (A, B), scripts=(script("SELECT 2", dataset=B),))
    report(store, "sql:b.sql", (A, B), scripts=(script(), script("SELECT 3", file="a.sql")))
    found = store.lineage.scripts([B])[B]
    assert [(name, each.sql) for name, each in found] == [
        ("sql:b.sql", "SELECT 3"),
        ("sql:b.sql", TEXT),
        ("view:b", "SELECT 2"),
    ]


def test_a_report_replaces_the_texts_of_its_reporter_and_nobody_elses(store: Store) -> None:
    report(store, "sql:b.sql", (A, B), scripts=(script(),))
    report(store, "sql:c.sql", (A, C), scripts=(script(),))
    report(store, "sql:b.sql", (A, B), scripts=(script("SELECT 2"),))
    assert store.lineage.scripts([B])[B] == (("sql:b.sql", script("SELECT 2")),)
    report(store, "sql:b.sql", (A, B))
    assert store.lineage.scripts([B, C]) == {B: (), C: (("sql:c.sql", script()),)}


def test_what_is_added_to_a_report_leaves_its_texts(store: Store) -> None:
    report(store, "sql:b.sql", (A, B), scripts=(script(),))
    with store.transaction() as transaction:
        more = Edge(upstream=A, downstream=C, origin="sql:b.sql", at=AT)
        transaction.lineage.add("sql:b.sql", [more], at=AT)
    assert store.lineage.scripts([C])[C] == (("sql:b.sql", script()),)


def test_the_same_texts_again_write_nothing(store: Store) -> None:
    texts = (script(dataset=B), script("SELECT 2", dataset=C))
    report(store, "dbt:shop", (A, B), (A, C), scripts=texts)
    written: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "lineage_script" in statement and not statement.startswith("SELECT"):
            written.append(statement)

    engine = store._database.engine
    sqlalchemy_event.listen(engine, "before_cursor_execute", note)
    report(store, "dbt:shop", (A, B), (A, C), scripts=texts[::-1])
    assert written == []
    report(store, "dbt:shop", (A, B), (A, C), scripts=(texts[0], script("SELECT 3", dataset=C)))
    assert [statement.split()[0] for statement in written] == ["DELETE", "INSERT"]


@pytest.mark.parametrize(
    ("bytes", "is_kept"), [(MAX_SCRIPT_BYTES, True), (MAX_SCRIPT_BYTES + 1, False)]
)
def test_texts_that_are_too_long_are_not_kept(store: Store, bytes: int, is_kept: bool) -> None:
    long = script("ü" + "x" * (bytes - 2))
    report(store, "sql:b.sql", (A, B), scripts=(long,))
    assert bool(store.lineage.scripts([B])[B]) == is_kept


def test_a_text_goes_with_a_reporter_that_falls_silent(store: Store) -> None:
    put(store, "b")
    reporter = f"snapshot:{B}"
    report(store, reporter, (A, B), scripts=(script(),))
    with store.transaction() as transaction:
        transaction.lineage.delete_aspect(B)
    assert store.lineage.reporters() == ()
    assert store.lineage.scripts([B]) == {B: ()}


def test_texts_follow_a_dataset_to_another_urn(store: Store) -> None:
    put(store, "a", "b")
    report(store, "dbt:shop", (A, B), scripts=(script(dataset=B),))
    with store.transaction() as transaction:
        transaction.rename(dataset("a"), to=C, name="c", at=AT)
        transaction.rename(dataset("b"), to=D, name="d", at=AT)
    moved = script(dataset=D, tables=((("a",), C), (("shop", "b"), D)))
    assert store.lineage.scripts([D, B]) == {D: (("dbt:shop", moved),), B: (("dbt:shop", moved),)}
    # Whoever still speaks of the old name means the new one.
    report(store, "dbt:shop", (A, B), scripts=(script(dataset=B),))
    assert store.lineage.scripts([D])[D] == (("dbt:shop", moved),)


def test_a_dataset_that_takes_another_in_takes_its_texts(store: Store) -> None:
    put(store, "b", "c")
    report(store, "dbt:shop", (A, B), (A, C), scripts=(script(dataset=B), script(dataset=C)))
    report(store, "sql:b.sql", (A, B), scripts=(script("SELECT 2"),))
    with store.transaction() as transaction:
        transaction.merge_into(dataset("b"), into=C, at=AT)
    found = store.lineage.scripts([C])[C]
    assert [(name, each.dataset) for name, each in found] == [
        ("dbt:shop", C), ("dbt:shop", C), ("sql:b.sql", None),
    ]  # fmt: skip
    assert {urn for _, each in found for _, urn in each.tables} == {A, C}
