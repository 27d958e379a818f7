"""Stores whose clocks are wrong, and whose listings lag behind what is there."""

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from discovery.lake.tables_scanned import Scans
from files import write_parquet
from lumos import Lumos
from lumos.config.secret import Secret
from lumos.config.sources import S3SourceSettings as Section
from lumos.sources import SourceNotUsable
from lumos.sources.s3 import S3Source
from lumos.storage import KeyRange, ListingProblem
from lumos.storage.s3 import S3Access, S3Storage
from s3_server import S3Server, error

DAY = 86_400
NOW = 1_700_000_000


def parquet(folder: Path, *columns: str, rows: int = 1) -> bytes:
    file = write_parquet(folder / "made.parquet", rows=rows, **dict.fromkeys(columns, pa.int64()))
    return file.read_bytes()


@pytest.fixture
def server() -> Iterator[S3Server]:
    with S3Server({"lake": {}}) as server:
        yield server


@pytest.fixture
def scans(server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scans:
    access = S3Access(endpoint_url=server.url, access_key_id="k", secret_access_key="s")
    return Scans("s3://lake", tmp_path / "state", monkeypatch, access=access)


@pytest.mark.parametrize("clocks", [
    [0, 0, 0, 0], [DAY] * 4, [-DAY] * 4, [DAY, -DAY, DAY, -DAY], [0, -DAY, -2 * DAY, 400 * DAY],
])  # fmt: skip
def test_wrong_clocks_of_a_store_lose_and_double_nothing(
    clocks: list[int], server: S3Server, scans: Scans, tmp_path: Path
) -> None:
    seen: list[str] = []
    for number, clock in enumerate(clocks):
        key = f"orders/part-{number % 2}.parquet"
        server.put("lake", key, parquet(tmp_path, "id", rows=number + 1))
        server.modified[key] = NOW + clock
        first = scans.scan()
        assert first.files_read == 1
        seen.append(first.datasets[0].content)
        again = scans.scan()
        assert again.files_read == 0
        assert again.datasets == first.datasets
    assert len(set(seen)) == len(clocks)


def test_a_changed_file_of_the_same_time_and_size_is_recognised_by_its_etag(
    server: S3Server, scans: Scans
) -> None:
    server.put("lake", "a.csv", b"id,b\n1,2\n")
    assert scans.found() == {"a.csv": "csv"}
    server.put("lake", "a.csv", b"id,c\n1,2\n")
    assert scans.scan().files_read == 1
    assert scans.dataset("a.csv").schema.fields[1].name == "c"


def test_a_clock_of_this_machine_that_is_wrong_is_named(server: S3Server) -> None:
    message = "The difference between the request time and the current time is too large."
    server.answer = lambda _request: error(403, "RequestTimeTooSkewed", message)
    section = Section(
        buckets=("lake",),
        endpoint_url=server.url,
        access_key_id=Secret("key-id"),
        secret_access_key=Secret("hush-hush"),
    )
    with pytest.raises(SourceNotUsable, match="Set the clock of this machine"):
        S3Source(section).roots()
    access = S3Access(
        endpoint_url=server.url, access_key_id="key-id", secret_access_key="hush-hush"
    )
    (unlisted,) = S3Storage(access).walk(KeyRange("s3://lake"))
    assert isinstance(unlisted, ListingProblem)
    assert "set the clock of this machine" in unlisted.reason
    assert "RequestTimeTooSkewed" in unlisted.reason


def test_what_is_listed_but_gone_keeps_what_was_known(
    server: S3Server, scans: Scans, tmp_path: Path
) -> None:
    server.put("lake", "orders/a.parquet", parquet(tmp_path, "id"))
    server.put("lake", "new.csv", b"a,b\n1,2\n")
    server.answer = lambda request: (
        error(404, "NoSuchKey", "gone") if request.path.endswith("new.csv") else None
    )
    assert scans.found() == {"orders/a.parquet": "parquet"}
    assert scans.problems == {("new.csv", "vanished")}
    server.answer = lambda _request: None
    assert scans.found() == {"orders/a.parquet": "parquet", "new.csv": "csv"}


def test_what_is_there_but_not_listed_yet_is_found_by_the_next_scan(
    server: S3Server, scans: Scans, tmp_path: Path
) -> None:
    server.put("lake", "orders/a.parquet", parquet(tmp_path, "id"))
    server.put("lake", "new.csv", b"a,b\n1,2\n")
    server.is_unlisted = lambda key: key == "new.csv"
    assert scans.found() == {"orders/a.parquet": "parquet"}
    assert scans.problems == set()
    server.is_unlisted = lambda _key: False
    assert scans.found() == {"orders/a.parquet": "parquet", "new.csv": "csv"}


def test_a_dataset_that_a_listing_leaves_out_is_looked_for(
    server: S3Server, scans: Scans, tmp_path: Path
) -> None:
    server.put("lake", "orders/a.parquet", parquet(tmp_path, "id"))
    server.put("lake", "x.csv", b"a,b\n1,2\n")
    scans.scan()
    server.is_unlisted = lambda key: key == "x.csv"
    scans.scan()
    assert scans.problems == {("x.csv", "not_listed_yet")}
    server.is_unlisted = lambda _key: False
    scans.scan()
    server.drop("lake", "x.csv")
    scans.scan()
    assert scans.problems == set(), "what is gone is gone"


@pytest.mark.usefixtures("spark", "workplace")
@pytest.mark.parametrize("seed", [7])
def test_listings_that_lag_make_nothing_disappear(
    seed: int, server: S3Server, tmp_path: Path
) -> None:
    names = ["orders", "users", "visits", "wares", "stock", "bills", "rates", "towns"]
    for name in names:
        server.put("lake", f"{name}/x.parquet", parquet(tmp_path, "id", f"{name}_at", f"of_{name}"))
    section = {
        "type": "s3", "buckets": ["lake"], "endpoint_url": server.url,
        "access_key_id": "k", "secret_access_key": "s",
    }  # fmt: skip
    lumos = Lumos(overrides={"sources": [section], "scan.max_removed_share": 1})
    urns = {each.urn for each in lumos.ingest().datasets}
    assert len(urns) == len(names)
    chance = random.Random(seed)
    for _ in range(3):
        unlisted = {f"{name}/x.parquet" for name in chance.sample(names, 2)}
        server.is_unlisted = unlisted.__contains__
        report = lumos.ingest()
        assert report.missing == ()
        assert len(report.held) == 2
        server.is_unlisted = lambda _key: False
        report = lumos.ingest()
        assert (report.missing, report.held) == ((), ())
        assert {each.urn for each in report.datasets} == urns
    assert list(lumos.changes(types=["DELETED", "RESTORED", "SCHEMA_CHANGED"]).events) == []
    server.drop("lake", "towns/x.parquet")
    assert len(lumos.ingest().missing) == 1
