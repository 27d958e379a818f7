"""Sources are scanned and catalogs told of it, whatever becomes of one of them."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import ClassVar

import msgspec
import pytest

from files import write_text
from lumos import Lumos, plugins
from lumos.catalogs import FailedEntry, WrittenEntry
from lumos.catalogs.datahub.file_platform import DatahubFile
from lumos.discovery.ingest import _groups_without_shared_limits
from lumos.discovery.targets import DatabaseTarget, ScanTargets, create_source
from lumos.errors import CatalogBusy, MisuseError
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Governance
from lumos.model.discovery import Discovery
from lumos.sources import TableSource
from lumos.sources.interface import ReadProgress
from lumos.sources.sql.source import SqlSource
from snapshots.stores import fill

pytestmark = pytest.mark.usefixtures("spark")

COPY = "datahub-file:copy.json"

# Several sources as the founding documents write them; warehouses cannot be scanned today.
SOURCES = """
lumos_config:
  sources:
    - type: file
      name: shop
      paths: [shop]
    - type: file
      name: stock
      paths: [stock]
    - type: snowflake
      name: snowflake-prod
      account: ${SNOWFLAKE_ACCOUNT}
      databases: [FINANCE, MARKETING, PRODUCT]
    - type: bigquery
      name: bigquery-analytics
      project: analytics-prod
    - type: databricks
      name: databricks-ml
      workspace: ${DATABRICKS_WORKSPACE}
"""


@pytest.fixture
def place(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two small lakes and the configuration of many sources."""
    for name in ("SNOWFLAKE_ACCOUNT", "DATABRICKS_WORKSPACE"):
        monkeypatch.setenv(name, "somewhere")
    (workplace / "lumos.yaml").write_text(SOURCES, encoding="utf-8")
    write_text(workplace / "shop/orders/part-0.csv", ["id,city", "1,Bonn"])
    write_text(workplace / "stock/parts/part-0.csv", ["id,shelf", "1,A"])
    return workplace


def told(path: str = "copy.json") -> dict[str, CatalogEntry]:
    return {entry.name: entry for entry in DatahubFile.at(path).export()}


def test_all_sources_go_into_a_catalog_and_then_only_what_changed(place: Path) -> None:
    known = CatalogEntry(urn="lumos://s3/lake/known", name="known", platform="s3")
    fill(Lumos(), {"datasets": [known]})
    report = Lumos().migration.sync(outputs=[COPY])
    assert report.sources == ("shop", "stock")
    assert report.passed_over == ("snowflake-prod", "bigquery-analytics", "databricks-ml")
    assert (report.is_complete, report.published[0].published) == (True, 3)
    assert set(told()) == {"orders", "parts", "known"}
    text = Path("copy.json").read_bytes()
    again = Lumos().migration.sync(outputs=[COPY])
    assert again.scanned is not None
    assert again.scanned.summary.files_read == 0
    assert (again.published[0].published, Path("copy.json").read_bytes()) == (0, text)
    write_text(place / "stock/parts/part-1.csv", ["id,shelf,bin", "1,A,7"])
    third = Lumos().migration.sync(outputs=[COPY])
    assert third.published[0].published == 1
    assert Lumos().snapshot.diff("local", COPY).summary.differences == 0


def test_everything_is_told_once_more_where_that_is_asked_for(place: Path) -> None:
    Lumos().migration.sync("shop", outputs=[COPY])
    (place / "copy.json").unlink()
    assert Lumos().migration.sync("shop", outputs=[COPY]).published[0].published == 0
    assert Lumos().migration.sync("shop", outputs=[COPY], full=True).published[0].published == 1
    assert set(told()) == {"orders"}


def test_one_scan_serves_several_catalogs_and_what_is_gone_is_hidden(place: Path) -> None:
    outputs = [COPY, "datahub-file:other.json"]
    for name in ("bolts", "nuts", "nails"):
        write_text(place / f"stock/{name}/part-0.csv", [f"id,{name}", "1,2"])
    Lumos().migration.sync(outputs=outputs)
    (entry,) = (each for each in told().values() if each.name == "orders")
    labels = Governance(tags=("by-hand",))
    DatahubFile.at("copy.json").put(msgspec.structs.replace(entry, governance=labels))
    (place / "stock/parts/part-0.csv").unlink()
    write_text(place / "shop/orders/part-1.csv", ["id,city,zip", "1,Bonn,53111"])
    report = Lumos().migration.sync(outputs=outputs)
    assert [each.hidden for each in report.published] == [1, 1]
    for path in ("copy.json", "other.json"):
        assert told(path)["parts"].deleted
        assert not told(path)["bolts"].deleted
    assert told()["orders"].governance == labels


def test_a_source_that_fails_is_told_and_the_others_go_on(place: Path) -> None:
    (place / "stock/parts/part-0.csv").unlink()
    (place / "stock/parts").rmdir()
    (place / "stock").rmdir()
    report = Lumos().migration.sync(outputs=[COPY])
    assert not report.is_complete
    assert [failure.path for failure in report.failed] == ["stock"]
    assert set(told()) == {"orders"}
    alone = Lumos().migration.sync("stock", outputs=[COPY])
    assert (alone.scanned, [failure.path for failure in alone.failed]) == (None, ["stock"])
    assert set(told()) == {"orders"}


@pytest.mark.usefixtures("workplace")
def test_each_of_several_unusable_sources_has_its_own_problem() -> None:
    sources = [
        {"type": "file", "name": "gone", "path": "gone"},
        {"type": "sql", "name": "missing", "connection_string": "sqlite:///missing.db"},
    ]
    lumos = Lumos(overrides={"sources": sources})
    report = lumos.migration.sync(outputs=[COPY])
    assert report.scanned is None
    assert [failure.path for failure in report.failed] == ["gone", "missing"]
    assert "gone" in report.failed[0].reason
    assert "missing.db" in report.failed[1].reason
    with pytest.raises(MisuseError, match=r"No source can be used\. gone: .*missing\.db"):
        lumos.ingest()


def test_sources_without_a_shared_limit_are_read_at_the_same_time(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("lite", "light"):
        with closing(sqlite3.connect(workplace / f"{name}.db")) as connection:
            connection.execute(f"CREATE TABLE {name}_orders (id INTEGER)")
    sources = [
        {"type": "sql", "name": "lite", "connection_string": "sqlite:///lite.db"},
        {"type": "mysql", "name": "down", "connection_string": "mysql://reader@127.0.0.1:1/shop"},
        {
            "type": "sql",
            "name": "light",
            "connection_string": "sqlite:///light.db",
            "instance": "light",
        },
    ]
    both, read = Barrier(2, timeout=60), SqlSource.read

    def read_together(self: SqlSource, report_progress: ReadProgress) -> Discovery:
        both.wait()
        return read(self, report_progress)

    monkeypatch.setattr(SqlSource, "read", read_together)
    report = Lumos(overrides={"sources": sources}).migration.sync(outputs=[COPY])
    assert [failure.path for failure in report.failed] == ["down"]
    assert set(told()) == {"main.lite_orders", "main.light_orders"}


def test_sources_on_one_server_are_read_one_after_another() -> None:
    addresses = ("a:3306/shop", "b/shop", "reader@a:3306/stock")
    sections = [{"type": "mysql", "connection_string": f"mysql://{each}"} for each in addresses]
    made = [create_source(each) for each in Lumos(overrides={"sources": sections}).settings.sources]
    databases = [DatabaseTarget(each) for each in made if isinstance(each, TableSource)]
    groups = _groups_without_shared_limits(ScanTargets([], databases))
    assert groups == [[databases[0], databases[2]], [databases[1]]]


class Busy(DatahubFile):
    """A catalog that is busy until somebody says otherwise."""

    kind: ClassVar[str] = "busy"
    is_busy: ClassVar[bool] = True

    def put_many(
        self, entries: Sequence[CatalogEntry], *, current: Mapping[str, CatalogEntry | None]
    ) -> Iterator[WrittenEntry | FailedEntry]:
        if self.is_busy:
            raise CatalogBusy(
                self.name, "a write", attempts=8, seconds=60, last="no time", status=503
            )
        yield from super().put_many(entries, current=current)


@pytest.fixture
def busy() -> Iterator[str]:
    plugins.register(plugins.PLATFORMS, "busy", Busy)
    yield "busy:busy.json"
    plugins.unregister(plugins.PLATFORMS, "busy")


@pytest.mark.usefixtures("place")
def test_what_a_busy_catalog_did_not_hear_waits_for_the_next_time(
    busy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = Lumos().migration.sync(outputs=[busy, COPY])
    first, second = report.published
    assert (report.is_complete, first.waiting, second.published) == (False, 2, 2)
    assert first.pending_message is not None
    assert "2 datasets not yet published to" in first.pending_message
    monkeypatch.setattr(Busy, "is_busy", False)
    again = Lumos().migration.sync(outputs=[busy])
    assert (again.is_complete, again.published[0].published) == (True, 2)
    assert {entry.name for entry in Busy.at("busy.json").export()} == {"orders", "parts"}


def test_the_configured_catalog_is_meant_where_none_is_named(place: Path) -> None:
    text = SOURCES.replace("lumos_config:", "lumos_config:\n  platform: datahub-file:own.json")
    (place / "lumos.yaml").write_text(text, encoding="utf-8")
    report = Lumos().migration.sync()
    assert (len(report.published), report.published[0].published) == (1, 2)
    assert set(told("own.json")) == {"orders", "parts"}


def test_only_the_catalogs_that_are_named_are_told(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = SOURCES.replace("lumos_config:", "lumos_config:\n  platform: datahub-file:own.json")
    (place / "lumos.yaml").write_text(text, encoding="utf-8")
    report = Lumos().migration.sync("shop", outputs=[COPY])
    assert [each.published for each in report.published] == [1]
    assert set(told()) == {"orders"}
    assert not Path("own.json").exists()
    assert Lumos().migration.sync("shop").published[0].published == 1
    assert [each for each in caplog.records if "told" in each.getMessage()] == []


def test_a_name_of_several_sources_means_all_of_them(place: Path) -> None:
    text = SOURCES.replace("name: stock", "name: shop")
    (place / "lumos.yaml").write_text(text, encoding="utf-8")
    report = Lumos().migration.sync("shop", outputs=[COPY])
    assert report.sources == ("shop", "shop")
    assert set(told()) == {"orders", "parts"}


@pytest.mark.usefixtures("place")
def test_where_no_source_can_be_scanned_what_waits_is_told() -> None:
    known = CatalogEntry(urn="lumos://s3/lake/known", name="known", platform="s3")
    fill(Lumos(), {"datasets": [known]})
    report = Lumos().migration.sync("databricks-ml", "snowflake-prod", outputs=[COPY])
    assert (report.sources, report.passed_over) == ((), ("databricks-ml", "snowflake-prod"))
    assert (report.scanned, report.is_complete, report.published[0].published) == (None, True, 1)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("names", "outputs", "complaint"),
    [
        (["shops"], [COPY], "Did you mean 'shop'"),
        (["shop"], ["data-hub"], "No platform named 'data-hub'"),
    ],
)
def test_a_wrong_name_is_refused_before_anything_is_scanned(
    names: list[str], outputs: list[str], complaint: str
) -> None:
    with pytest.raises(MisuseError, match=complaint):
        Lumos().migration.sync(*names, outputs=outputs)
    assert not Path(".lumos/lumos.db").exists()


def test_a_configuration_without_sources_has_nothing_to_sync(workplace: Path) -> None:
    (workplace / "lumos.yaml").write_text("platform: local", encoding="utf-8")
    with pytest.raises(MisuseError, match="No source to scan and no catalog"):
        Lumos().migration.sync()


def test_sources_that_are_not_named_are_scanned_with_all(workplace: Path) -> None:
    text = "platform: local\nsources: [{type: file, path: lake}]"
    (workplace / "lumos.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(MisuseError) as refused:
        Lumos().migration.sync(scan=False)
    assert str(refused.value) == (
        "No source is named and no catalog is configured. "
        "Scan the 1 configured source with: lumos sync --all"
    )


@pytest.mark.parametrize("words", [["--all"], []])
def test_without_sources_a_catalog_is_told_what_waits(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    from lumos.cli import main as cli

    (workplace / "lumos.yaml").write_text(f"platform: {COPY}", encoding="utf-8")
    known = CatalogEntry(urn="lumos://s3/lake/known", name="known", platform="s3")
    fill(Lumos(), {"datasets": [known]})
    monkeypatch.setattr("sys.argv", ["lumos", "sync", *words])
    with pytest.raises(SystemExit, match="0"):
        cli.main()
    assert set(told()) == {"known"}


@pytest.mark.usefixtures("place")
def test_nothing_is_scanned_where_that_is_not_asked_for() -> None:
    report = Lumos().migration.sync(outputs=[COPY], scan=False)
    assert (report.sources, report.scanned, report.published[0].published) == ((), None, 0)


@pytest.mark.usefixtures("place")
def test_the_command_tells_what_was_scanned_and_told(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from lumos.cli import main as cli

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["lumos", *words])
        capfd.readouterr()
        try:
            cli.main()
            code = 0
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    code, out, err = run("sync", "--all", "--output", COPY)
    name = f"datahub-file:{Path('copy.json').resolve()}"
    assert (code, out.splitlines()[-2:]) == (
        0,
        [
            "[ok] 2 datasets scanned: 2 new, 0 changed, 0 unchanged, 0 missing",
            f"[ok] {name}: 2 datasets published, 0 unchanged",
        ],
    )
    assert "remark   databricks-ml: skipped, this version cannot scan it" in err
    code, out, _ = run("sync", "shop", "--output", COPY)
    assert (code, out.splitlines()[-1]) == (0, f"[ok] {name}: up to date")
    code, out, _ = run("sync", "shop", "stock", "--output", COPY, "--json")
    assert json.loads(out)["told"][0]["told"] == 0
    assert run("sync", "--output", COPY)[:2] == (0, f"[ok] {name}: up to date\n")
    assert run("sync", "shop", "--all")[0] == 2


def test_more_refusals_than_are_shown_are_counted(capfd: pytest.CaptureFixture[str]) -> None:
    from lumos.catalogs.reports import PublishReport, RefusedPublish
    from lumos.cli.screen import stdout
    from lumos.cli.sync import _print_published
    from lumos.cli.text import Names

    refused = tuple(RefusedPublish(kind="dataset", key=str(n), problem="no") for n in range(25))
    report = PublishReport(platform="busy:x", kind="busy", refused=refused)
    _print_published(stdout(), report, Names(Lumos()))
    assert "problem  ... and 5 more; --json lists them" in capfd.readouterr().err
