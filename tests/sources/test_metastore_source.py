"""What all metastores have in common, on a client that is only a stub: servers cannot be made to fail."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest

from lumos.config.sources import GlueSourceSettings, IcebergSourceSettings
from lumos.model.discovery import Problem
from lumos.sources.interface import (
    RegisteredPartition,
    RegisteredTable,
    Registration,
    SourceNotUsable,
)
from lumos.sources.metastores.glue import GlueSource
from lumos.sources.metastores.iceberg import IcebergSource
from lumos.sources.metastores.source import MetastoreEntry, UnreadableEntry
from lumos.sources.metastores.tables import (
    MetastoreColumn,
    MetastoreTable,
    dataset_of,
    registered_table,
)
from lumos.sources.relational import path_of


class StubClient:
    def __init__(self, tables: dict[str, list[MetastoreTable]]) -> None:
        self._tables = tables

    def databases(self) -> list[str]:
        return list(self._tables)

    def entries(self, database: str, is_selected: Any, _progress: Any) -> Iterator[Any]:
        if database == "closed":
            raise UnreadableEntry("not authorized", "no_permission")
        if database == "dropped":
            raise UnreadableEntry("no such database", "gone")
        for table in self._tables[database]:
            if not is_selected(table.name):
                continue
            if table.name == "broken":
                yield Problem(path=table.path, reason="invalid", code="unreadable")
                continue
            yield MetastoreEntry(dataset_of(table, address="stub://"), registered_table(table))

    def partitions(self, _database: str, entry: MetastoreEntry) -> Iterator[RegisteredPartition]:
        yield RegisteredPartition(entry.found.path, ("1",), "s3://lake/t/k=1")
        if entry.found.path.endswith("/unlisted"):
            raise UnreadableEntry("denied", "no_permission")


def _table(name: str, database: str = "shop", **facts: Any) -> MetastoreTable:
    return MetastoreTable(
        database=database,
        name=name,
        location=f"s3://lake/{name}",
        columns=(MetastoreColumn("id", "int"),),
        **facts,
    )


def _source(
    monkeypatch: pytest.MonkeyPatch, tables: dict[str, list[MetastoreTable]], **settings: Any
) -> GlueSource:
    @contextmanager
    def connect(_self: GlueSource) -> Iterator[StubClient]:
        yield StubClient(tables)

    monkeypatch.setattr(GlueSource, "_connect", connect)
    return GlueSource(GlueSourceSettings(region="eu-west-1", **settings))


def test_a_database_without_permission_is_a_problem_and_a_dropped_one_is_not(monkeypatch) -> None:
    tables = {"shop": [_table("a")], "closed": [], "dropped": []}
    found = _source(monkeypatch, tables).read(lambda _: None)
    assert [each.path for each in found.datasets] == ["shop/a"]
    assert [(each.path, each.code, each.remark) for each in found.problems] == [
        ("closed", "no_permission", False)
    ]


def test_a_table_that_cannot_be_read_does_not_stop_the_others(monkeypatch) -> None:
    found = _source(monkeypatch, {"shop": [_table("broken"), _table("ok")]}).read(lambda _: None)
    assert [each.name for each in found.datasets] == ["shop.ok"]
    assert [each.path for each in found.problems] == ["shop/broken"]


def test_partitions_are_counted_unless_some_could_not_be_listed(monkeypatch) -> None:
    keys = (MetastoreColumn("k", "string"),)
    tables = [_table("all", partition_columns=keys), _table("unlisted", partition_columns=keys)]
    rows: list[Registration] = []
    found = _source(monkeypatch, {"shop": tables}).read_registered(rows.append, lambda _: None)
    counts = {each.name: each.statistics.partition_count for each in found.datasets}
    assert counts == {"shop.all": 1, "shop.unlisted": None}
    registered = [row for row in rows if isinstance(row, RegisteredTable)]
    assert [(row.path, row.partition_count) for row in registered] == [
        ("shop/all", 1),
        ("shop/unlisted", None),
    ]
    assert [(each.path, each.remark) for each in found.problems] == [("shop/unlisted", True)]


def test_an_identity_that_two_tables_have_is_no_identity(monkeypatch) -> None:
    tables = [_table("a", identity="1"), _table("b", identity="1"), _table("c", identity="2")]
    found = _source(monkeypatch, {"shop": tables}).read(lambda _: None)
    assert [each.location.identity for each in found.datasets] == [None, None, "2"]


def test_patterns_select_tables_and_unknown_databases_are_remarks(monkeypatch) -> None:
    tables = {
        "shop": [_table("orders"), _table("tmp_x"), _table("Sélect *")],
        "other": [_table("orders", "other")],
    }
    settings = {"databases": ("shop", "shpo"), "exclude": ("shop.tmp_*",)}
    source = _source(monkeypatch, tables, **settings)
    found = source.read(lambda _: None)
    assert [each.name for each in found.datasets] == ["shop.orders", "shop.Sélect *"]
    assert [(each.code, each.remark) for each in found.problems] == [("no_such_database", True)]
    assert "Did you mean 'shop'?" in found.problems[0].reason
    assert source.covers("shop/orders")
    assert source.covers(path_of("shop", "Sélect *"))
    assert not source.covers("shop/tmp_x")
    assert not source.covers("other/orders")


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        (0, "1 database"),
        (3, "the same page of a list again and again"),
    ],
    ids=["ends", "repeats"],
)
def test_a_catalog_that_repeats_its_pages_is_given_up(calls: int, message: str) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            body: dict[str, Any] = {"defaults": {}, "overrides": {}}
            if url.path.endswith("/namespaces"):
                asked.append(url.query)
                body = {"namespaces": [["shop"]]}
                if "parent=" not in url.query and calls:
                    # The second and the third page refer to each other.
                    body["next-page-token"] = "b" if "pageToken=a" in url.query else "a"
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    asked: list[str] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            uri = f"http://127.0.0.1:{server.server_port}"
            source = IcebergSource(IcebergSourceSettings(uri=uri))
            try:
                text = source.check()
            except SourceNotUsable as refused:
                text = str(refused)
        finally:
            server.shutdown()
            thread.join()
    assert message in text
    assert len([each for each in asked if "parent=" not in each]) == max(1, calls)
