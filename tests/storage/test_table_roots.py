"""Roots of tables: met wherever a listing begins or ends, and never by chance."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lumos.storage import FileSelection, FileStorage, KeyRange, ListedFile, LocalStorage, TableRoot
from lumos.storage.s3 import S3Access, S3Storage
from lumos.storage.table_roots import RelativeTableRoot, outermost_roots, table_root_in
from lumos.storage.uris import absolute, canonical
from s3_server import S3Server

UUID = "3f1c8a52-0b1e-4c62-9a53-0d3f7b0f5a11"


@pytest.mark.parametrize(
    ("path", "met"),
    [
        ("t/_delta_log/00000000000000000000.json", RelativeTableRoot("t", "delta")),
        ("_delta_log/00000000000000000000.json", RelativeTableRoot("", "delta")),
        ("a/t/_delta_log/_sidecars/x.parquet", RelativeTableRoot("a/t", "delta")),
        ("a/t/_delta_log/", RelativeTableRoot("a/t", "delta")),
        ("t/.hoodie/hoodie.properties", RelativeTableRoot("t", "hudi")),
        ("t/.hoodie/metadata/.hoodie/hoodie.properties", RelativeTableRoot("t", "hudi")),
        ("t/metadata/v1.metadata.json", RelativeTableRoot("t", "iceberg")),
        (f"t/metadata/00012-{UUID}.metadata.json", RelativeTableRoot("t", "iceberg")),
        (f"t/metadata/00012-{UUID}.gz.metadata.json", RelativeTableRoot("t", "iceberg")),
        (f"t/metadata/00012-{UUID}.metadata.json.gz", RelativeTableRoot("t", "iceberg")),
        ("metadata/v3.metadata.json", RelativeTableRoot("", "iceberg")),
        ("t/metadata/orders.metadata.json", None),
        ("t/metadata/deeper/v1.metadata.json", None),
        ("t/metadata/snap-1.avro", None),
        ("t/v1.metadata.json", None),
        ("t/_delta_log", None),
        ("t/_delta_logs/0.json", None),
        ("_temporary/t/_delta_log/0.json", None),
        (".trash/t/metadata/v1.metadata.json", None),
        ("dt=1/_x=2/_delta_log/0.json", RelativeTableRoot("dt=1/_x=2", "delta")),
        ("plain/part-0.parquet", None),
    ],
)
def test_a_log_file_belongs_to_the_outermost_table(
    path: str, met: RelativeTableRoot | None
) -> None:
    assert table_root_in(path) == met


def test_what_lies_inside_a_table_is_no_table_of_its_own() -> None:
    markers = [
        TableRoot("/l/t/clone", "delta"), TableRoot("/l/t", "iceberg"), TableRoot("/l/t", "delta"),
        TableRoot("/l/t-2", "hudi"), TableRoot("/l/t/x", "hudi"), TableRoot("/l/t0", "delta"),
    ]  # fmt: skip
    assert outermost_roots(markers) == {
        "/l/t": ("delta", "iceberg"), "/l/t-2": ("hudi",), "/l/t0": ("delta",)
    }  # fmt: skip


@pytest.mark.parametrize(
    ("spelled", "meant"),
    [
        ("s3a://lake/t/x y", "s3://lake/t/x y"), ("s3n://lake/t", "s3://lake/t"),
        ("S3://lake/T", "s3://lake/T"), ("file:/lake/t", "/lake/t"), ("file:///lake/t", "/lake/t"),
        ("file://localhost/lake/t", "/lake/t"), ("/lake/t", "/lake/t"),
        ("wasbs://c@acc.blob.core.windows.net/t", "abfss://c@acc.dfs.core.windows.net/t"),
        ("gcs://lake/t", "gs://lake/t"), ("hdfs://nn:8020/t", "hdfs://nn:8020/t"),
    ],
)  # fmt: skip
def test_an_address_has_one_spelling(spelled: str, meant: str) -> None:
    assert canonical(spelled) == meant


@pytest.mark.parametrize(
    ("root", "exclude", "recursive", "counts"),
    [
        ("/l/sales/orders", (), True, True),
        ("/l/sales/orders", ("sales/*",), True, False),
        ("/l/sales/orders", ("sales/orders/*",), True, False),
        ("/l/sales/orders", ("orders",), True, False),
        ("/l/sales/orders", ("*.parquet", "tmp/*"), True, True),
        ("/l/sales/orders", (), False, False),
        ("/l", ("*.parquet",), False, True),
    ],
)
def test_a_table_counts_unless_its_root_is_excluded(
    root: str, exclude: tuple[str, ...], recursive: bool, counts: bool
) -> None:
    selection = FileSelection("/l", ("*.parquet",), exclude, recursive)
    assert selection.has_table(root) is counts


LAKE = [
    "loose/a.csv", "loose/metadata/about.json", "loose/metadata/x.metadata.json",
    "lake/delta/A=1/p.parquet", "lake/delta/_delta_log/00000000000000000000.json",
    "lake/delta/part-0.parquet", "lake/delta/z/_delta_log/00000000000000000000.json",
    "lake/iceberg/data/x.parquet", f"lake/iceberg/metadata/00001-{UUID}.metadata.json",
    "lake/iceberg/metadata/snap-1.avro",
    "lake/hudi/.hoodie/hoodie.properties", "lake/hudi/.hoodie/metadata/.hoodie/hoodie.properties",
    "lake/hudi/p/f_0_1.parquet",
    "lake/both/_delta_log/00000000000000000000.json", "lake/both/metadata/v1.metadata.json",
    "_temporary/t/_delta_log/00000000000000000000.json",
]  # fmt: skip
ROOTS = {
    ("lake/delta", "delta"), ("lake/iceberg", "iceberg"), ("lake/hudi", "hudi"),
    ("lake/both", "delta"), ("lake/both", "iceberg"),
}  # fmt: skip


@contextmanager
def _local(keys: Iterable[str], folder: Path) -> Iterator[tuple[FileStorage, str]]:
    for key in keys:
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_bytes(b"x")
    yield LocalStorage(), str(folder)


@contextmanager
def _s3(keys: Iterable[str], page_size: int = 1000) -> Iterator[tuple[FileStorage, str]]:
    with S3Server({"lake": dict.fromkeys(keys, b"x")}, page_size=page_size) as server:
        access = S3Access(endpoint_url=server.url, access_key_id="k", secret_access_key="s")
        yield S3Storage(access), "s3://lake"


def met_in(storage: FileStorage, root: str, *, parts: int = 4, deep: bool = True) -> set[object]:
    """Everything that is listed: markers as pairs, loose files that no marker is above of."""
    met, stretches = storage.split(root, parts=parts, deep=deep)
    found = [*met, *(each for stretch in stretches for each in storage.walk(stretch))]
    roots = outermost_roots(each for each in found if isinstance(each, TableRoot))
    tables = {
        (folder.removeprefix(root).strip("/"), kind)
        for folder, kinds in roots.items()
        for kind in kinds
    }
    loose = {
        each.path.removeprefix(f"{root}/")
        for each in found
        if isinstance(each, ListedFile)
        and not any(each.path.startswith(f"{folder}/") for folder in roots)
    }
    return tables | loose


LOOSE = {"loose/a.csv", "loose/metadata/about.json", "loose/metadata/x.metadata.json"}


def test_tables_are_met_on_disk(tmp_path: Path) -> None:
    with _local(LAKE, tmp_path) as (storage, root):
        assert met_in(storage, root) == ROOTS | LOOSE
        (marker,) = storage.walk(KeyRange(f"{root}/lake/delta"))
        assert marker == TableRoot(f"{root}/lake/delta", "delta")


@pytest.mark.parametrize("page_size", [2, 3, 5, 1000])
@pytest.mark.parametrize("parts", [1, 2, 40])
def test_tables_are_met_in_buckets_however_they_are_cut(page_size: int, parts: int) -> None:
    with _s3(LAKE, page_size) as (storage, root):
        assert met_in(storage, root, parts=parts) == ROOTS | LOOSE


def test_a_root_that_is_a_table_needs_no_listing_of_its_files() -> None:
    keys = ["t/_delta_log/00000000000000000000.json", *(f"t/p{n:05d}.parquet" for n in range(3000))]
    with _s3(keys) as (storage, root):
        assert storage.split(f"{root}/t", parts=8) == ([TableRoot(f"{root}/t", "delta")], [])
        found = list(storage.walk(KeyRange(root)))
    # The rest of the page on which the log was met is there; what follows was jumped over.
    assert found[0] == TableRoot(f"{root}/t", "delta")
    assert len(found) <= 1000


@pytest.mark.parametrize("where", ["local", "s3"])
def test_a_shallow_listing_meets_the_table_that_its_folder_is(where: str, tmp_path: Path) -> None:
    with _local(LAKE, tmp_path) if where == "local" else _s3(LAKE) as (storage, root):
        for name in ("lake/delta", "lake/iceberg", "lake/hudi"):
            met, stretches = storage.split(f"{root}/{name}", parts=2, deep=False)
            found = [*met, *(each for stretch in stretches for each in storage.walk(stretch))]
            kind = name.removeprefix("lake/")
            assert TableRoot(f"{root}/{name}", kind) in found  # type: ignore[arg-type]
        assert met_in(storage, f"{root}/loose", deep=False) == {"a.csv"}


@pytest.mark.parametrize("where", ["local", "s3"])
def test_where_tables_do_not_count_nothing_is_a_marker(where: str, tmp_path: Path) -> None:
    with _local(LAKE, tmp_path) if where == "local" else _s3(LAKE, 4) as (storage, root):
        met, stretches = storage.split(root, parts=4, tables=False)
        walked = [each for one in stretches for each in storage.walk(one, tables=False)]
        found = {each.path.removeprefix(f"{root}/") for each in (*met, *walked)}  # type: ignore[union-attr]
    assert found == {key for key in LAKE if not any(
        part in key for part in ("_delta_log", ".hoodie", "_temporary"))}  # fmt: skip


@pytest.mark.parametrize("where", ["local", "s3"])
def test_entries_are_all_files_right_in_a_folder_in_order(where: str, tmp_path: Path) -> None:
    keys = [f"t/_delta_log/{n:020d}.json" for n in range(5)] + [
        "t/_delta_log/_last_checkpoint", "t/_delta_log/.x.crc", "t/_delta_log/_sidecars/a.parquet"
    ]  # fmt: skip
    with _local(keys, tmp_path) if where == "local" else _s3(keys, 2) as (storage, root):
        folder = f"{root}/t/_delta_log"
        names = [each.path.removeprefix(f"{folder}/") for each in storage.entries(folder)]
        assert names == sorted(key.removeprefix("t/_delta_log/") for key in keys[:-1])
        later = [each.path[-6:] for each in storage.entries(folder, after=f"{2:020d}.json")]
        assert later[:2] == ["3.json", "4.json"]
        deep = [each.path.removeprefix(f"{root}/") for each in storage.entries(root, deep=True)]
        assert deep == sorted(keys)
        inside = storage.entries(
            folder, deep=True, excluded_folders=("_sidecars", "_last_checkpoint")
        )
        assert [each.path.removeprefix(f"{folder}/") for each in inside] == names
        assert list(storage.entries(f"{root}/nowhere")) == []


def test_a_failure_stands_in_its_file_s_place_among_many(tmp_path: Path) -> None:
    class Side(LocalStorage):
        concurrency = 4

    paths = [str(tmp_path / f"{n}") for n in range(50)]
    for n, path in enumerate(paths):
        if n != 7:
            Path(path).write_bytes(b"%d" % n)
    found = list(Side().read_many(paths))
    assert [each for each in found if isinstance(each, bytes)] == [
        b"%d" % n for n in range(50) if n != 7
    ]
    assert isinstance(found[7], FileNotFoundError)


@pytest.mark.parametrize(
    ("spelled", "meant"),
    [
        ("hdfs://nn:8020/lake/x", "hdfs://nn/lake/x"),
        ("hdfs:///lake/x", "hdfs://nn/lake/x"),
        ("/lake/x", "hdfs://nn/lake/x"),
        ("hdfs://other:8020/lake/x", "hdfs://other:8020/lake/x"),
        ("s3://me:hush@bucket/x", "s3://bucket/x"),
        ("part/x", "hdfs://nn/lake/t/part/x"),
    ],
)
def test_addresses_without_name_node_or_port_are_of_the_place_they_are_met_in(
    spelled: str, meant: str
) -> None:
    assert absolute(spelled, "hdfs://nn/lake/t") == meant


def test_name_nodes_with_other_ports_are_others() -> None:
    assert canonical("hdfs://nn:9000/x", "hdfs://nn:8020/y") == "hdfs://nn:9000/x"
    assert canonical("hdfs://nn/x", "hdfs://nn:8020/y") == "hdfs://nn:8020/x"


def test_an_empty_log_among_other_folders_hides_nothing(tmp_path: Path) -> None:
    keys = [
        "wh/a/_delta_log/00000000000000000000.json", "wh/b/x.parquet", "wh/y.parquet",
        "new/day=1/x.parquet", "new/y.parquet",
    ]  # fmt: skip
    for name in ("wh", "new"):
        (tmp_path / name / "_delta_log").mkdir(parents=True)
    with _local(keys, tmp_path) as (storage, root):
        found = met_in(storage, root)
    assert found == {("wh/a", "delta"), ("new", "delta"), "wh/b/x.parquet", "wh/y.parquet"}


def test_other_folders_beside_the_log_of_a_table_are_part_of_it(tmp_path: Path) -> None:
    keys = [
        f"ice/metadata/00001-{UUID}.metadata.json", "ice/files/x.parquet", "ice/tmp/y.csv",
        "delta/_delta_log/00000000000000000000.json", "delta/ab/x.parquet",
    ]  # fmt: skip
    with _local(keys, tmp_path) as (storage, root):
        assert met_in(storage, root) == {("ice", "iceberg"), ("delta", "delta")}
