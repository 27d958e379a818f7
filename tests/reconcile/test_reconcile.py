"""Real files in a scanned folder, compared with the tables of a metastore in memory."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lumos import Lumos
from lumos.cli.main import main
from lumos.discovery.targets import create_source
from lumos.errors import MisuseError
from lumos.reconcile.reports import ReconcileReport
from lumos.sources.interface import RegisteredPartition
from lumos.sources.metastores.glue import GlueSource
from lumos.sources.metastores.source import MetastoreEntry
from lumos.sources.metastores.tables import (
    MetastoreColumn,
    MetastoreTable,
    dataset_of,
    registered_table,
)

PARQUET = ("org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",)
pytestmark = pytest.mark.usefixtures("workplace", "spark")


class TablesInMemory:
    """Stands in for the client of a metastore, which the tests of the sources try for real."""

    def __init__(self) -> None:
        self.tables: dict[str, MetastoreTable] = {}
        self.registered: dict[str, list[RegisteredPartition]] = {}

    def put(
        self, name: str, location: Path, *columns: str, keys: tuple[str, ...] = (), **facts
    ) -> None:
        pairs = (each.split(" ") for each in columns)
        self.tables[name] = MetastoreTable(
            database="shop",
            name=name,
            columns=tuple(MetastoreColumn(each, type) for each, type in pairs),
            partition_columns=tuple(MetastoreColumn(key, "string") for key in keys),
            location=f"file:{location}",
            format_classes=facts.pop("format_classes", PARQUET),
            **facts,
        )

    def databases(self) -> list[str]:
        return ["shop"]

    def entries(self, *_selection: object) -> Iterator[MetastoreEntry]:
        for _, table in sorted(self.tables.items()):
            yield MetastoreEntry(dataset_of(table, address="glue://test"), registered_table(table))

    def partitions(self, _database, entry) -> Iterator[RegisteredPartition]:
        yield from self.registered.get(entry.found.path, ())

    def register(self, table: str, value: str, location: Path) -> None:
        path = f"shop/{table}"
        self.registered.setdefault(path, []).append(
            RegisteredPartition(path, (value,), f"file:{location}")
        )


@pytest.fixture
def metastore(monkeypatch: pytest.MonkeyPatch) -> TablesInMemory:
    client = TablesInMemory()

    @contextmanager
    def connect(_source: GlueSource) -> Iterator[TablesInMemory]:
        yield client

    monkeypatch.setattr(GlueSource, "_connect", connect)
    return client


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "lake"


def _write(file: Path, **columns: list[object]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), file)


def _configure(lake: Path) -> None:
    sources = [
        {"type": "glue", "name": "catalog", "region": "eu-west-1"},
        {"type": "file", "path": str(lake)},
    ]
    Path("lumos.yaml").write_text(json.dumps({"sources": sources}))


def _run(*words: str) -> int:
    """The exit code of a command line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["lumos", *words])
        try:
            main()
        except SystemExit as exit:
            return int(exit.code or 0)
    return 0


def _findings(report: ReconcileReport) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in report.findings:
        name = each.table or each.location.partition("/lake/")[2].partition("/")[0]
        found.setdefault(each.kind, []).append(name)
    return found


def test_every_kind_of_difference_is_found_and_has_a_plan(
    metastore: TablesInMemory, lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _configure(lake)
    _write(lake / "good" / "a.parquet", id=[1, 2], name=["x", "y"])
    metastore.put("good", lake / "good", "id bigint", "name string", parameters={"numRows": "2"})
    _write(lake / "orphan" / "a.parquet", id=[1])
    metastore.put("empty", lake / "empty", "id bigint")
    _write(lake / "drifted" / "a.parquet", id=["one"], extra=[1])
    metastore.put("drifted", lake / "drifted", "id bigint", "gone string")
    _write(lake / "stale" / "a.parquet", id=list(range(50)))
    metastore.put(
        "stale", lake / "stale", "id bigint", parameters={"numRows": "10", "numFiles": "1"}
    )
    (lake / "text").mkdir()
    (lake / "text" / "a.csv").write_text("id,name\n1,x\n")
    metastore.put("text", lake / "text", "id bigint", "name string")
    for day in ("2024-01-01", "2024-01-02"):
        _write(lake / "daily" / f"dt={day}" / "a.parquet", id=[1])
    _write(tmp_path / "lake" / "elsewhere" / "b.parquet", id=[1])
    metastore.put("daily", lake / "daily", "id bigint", keys=("dt",))
    metastore.register("daily", "2024-01-01", lake / "daily" / "dt=2024-01-01")
    metastore.register("daily", "2024-01-03", lake / "daily" / "dt=2024-01-03")
    metastore.register("daily", "2023-12-31", lake / "elsewhere")
    metastore.put("twin", lake / "good", "id bigint", "name string")
    metastore.put("inner", lake / "daily" / "dt=2024-01-02" / "x", "id bigint")
    metastore.put("far", Path("/somewhere/else"), "id bigint")
    Lumos().ingest()
    report = Lumos().reconciliation.compare("catalog", fix_plan=True)
    assert _findings(report) == {
        "data_without_table": ["orphan"],
        "format_difference": ["shop.text"],
        "nested_location": ["shop.inner"],
        "partitions_missing": ["shop.daily"],
        "partitions_unregistered": ["shop.daily"],
        "schema_difference": ["shop.drifted"],
        "shared_location": ["shop.good"],
        "stale_statistics": ["shop.stale"],
        "table_without_data": ["shop.empty", "shop.inner"],
    }
    by_kind = {each.kind: each for each in report.findings}
    assert [each.values for each in by_kind["partitions_missing"].partitions] == [("2024-01-03",)]
    assert [each.values for each in by_kind["partitions_unregistered"].partitions] == [
        ("2024-01-02",)
    ]
    drift = {
        row.path: (row.kind, row.consumer.value) for row in by_kind["schema_difference"].changes
    }
    assert drift.keys() == {"id", "gone", "extra"}
    assert by_kind["schema_difference"].verdict is not None
    assert [(each.tables, each.examples) for each in report.not_scanned] == [(1, ("shop.far",))]
    assert (report.tables, report.compared, report.partitions) == (9, 8, 3)
    plan = "\n".join(report.statements or ())
    day = lake / "daily" / "dt=2024-01-02"
    assert (
        f"ALTER TABLE `shop`.`daily` ADD IF NOT EXISTS PARTITION (`dt`='2024-01-02') LOCATION '{day}';"
        in plan
    )
    assert "ALTER TABLE `shop`.`daily` DROP IF EXISTS PARTITION (`dt`='2024-01-03');" in plan
    assert "ANALYZE TABLE `shop`.`stale` COMPUTE STATISTICS;" in plan
    assert "ALTER TABLE `shop`.`drifted` ADD COLUMNS (`extra` bigint);" in plan
    assert "\n-- DROP TABLE `shop`.`empty`;" in f"\n{plan}"
    assert not any(line.startswith("DROP") for line in plan.splitlines())

    # The same report again, from the store alone.
    metastore.tables.clear()
    assert Lumos().reconciliation.compare(fix_plan=True) == report
    assert _run("reconcile", "catalog", "--html", "page.html") == 0
    out = capsys.readouterr().out
    assert "Registered partitions without files: 1" in out
    assert "8 of 9 tables compared, 3 partitions: 10 differences." in out
    assert "<h2>Stale statistics</h2>" in Path("page.html").read_text()
    assert _run("reconcile", "--json") == 0
    assert json.loads(capsys.readouterr().out)["counts"]["table_without_data"] == 2
    with pytest.raises(MisuseError, match="Scanned: catalog, glue"):
        Lumos().reconciliation.compare("hiev")


def test_names_cannot_inject_statements(metastore: TablesInMemory, lake: Path) -> None:
    _configure(lake)
    name = "a`; DROP TABLE x; --\nDROP TABLE y"
    _write(lake / "t" / "dt=1'; DROP TABLE z; --" / "a.parquet", id=[1])
    metastore.put(name, lake / "t", "id bigint", keys=("dt",))
    metastore.put("none`\nDROP TABLE v;", lake / "none", "id bigint")
    Lumos().ingest()
    plan = Lumos().reconciliation.compare(fix_plan=True).statements or ()
    assert any(
        "ADD IF NOT EXISTS PARTITION (`dt`='1\\'; DROP TABLE z; --')" in each for each in plan
    )
    assert not any(
        line.startswith("DROP")
        for each in plan
        for line in each.splitlines()
        if each.startswith("--")
    )
    quoted = [each for each in plan if not each.startswith("--")]
    assert all("`a``; DROP TABLE x; --\nDROP TABLE y`" in each for each in quoted)


def test_a_source_is_created_for_each_metastore() -> None:
    Path("lumos.yaml").write_text(json.dumps({"sources": [{"type": "hive", "uri": "thrift://h"}]}))
    source = create_source(Lumos().settings.sources[0])
    assert source.address == "thrift://h:9083"  # type: ignore[union-attr]
