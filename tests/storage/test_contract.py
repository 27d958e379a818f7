"""What every storage keeps to, each tried on a server of its own kind."""

import pickle
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from http_server import BROKEN_OFF
from lumos.storage import FileStorage, KeyRange, ListedFile, ListingItem, ListingProblem, storage_of
from lumos.storage.interface import TableRoot
from storage_folders import (
    HUSH,
    SERVED,
    InAzurite,
    InCluster,
    InFakeGcs,
    OnDisk,
    Served,
    StorageFolder,
)

NESTED = [f"d{day}/h{hour}/part-{part}.csv" for day in range(7) for hour in range(5)
          for part in range(8)]  # fmt: skip
FLAT = [f"{number:05}.csv" for number in range(2_300)]
UNEVEN = [*(f"a/{number:04}.csv" for number in range(1_100)), "a.csv", "a-b.csv", "b/c.csv",
          "b/d/e/f/g.csv", "z.csv", "~.csv"]  # fmt: skip
ODD = ["a b.csv", " lead.csv", "ü/é.csv", "e\u0301.csv", "\U0001f600.csv", "a%2Fb.csv", "100%.csv",
       "a+b&c=d.csv", "a?b#c.csv", "a<b>c.csv", "{curly}[square]^`|~.csv", "'single'\"double\".csv",
       "semi;colon.csv", "at@sign.csv", "*.csv", "dt=2024-01-01/x.csv"]  # fmt: skip


REAL = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("fake-gcs", "azurite", "hadoop")]


@pytest.fixture(params=["local", *SERVED, *REAL])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StorageFolder]:
    with ExitStack() as made:
        match request.param:
            case "local":
                yield OnDisk(tmp_path / "raw")
            case "fake-gcs":
                yield InFakeGcs(request.getfixturevalue("fake_gcs_url"))
            case "azurite":
                yield InAzurite(request.getfixturevalue("azurite_endpoint"))
            case "hadoop":
                yield InCluster(request.getfixturevalue("cluster").urls)
            case kind:
                yield SERVED[kind](made)


@pytest.fixture(params=SERVED)
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    with ExitStack() as made:
        yield SERVED[request.param](made)


def found(storage: FileStorage, root: str, *, parts: int, deep: bool = True) -> list[ListingItem]:
    met, stretches = storage.split(root, parts=parts, deep=deep)
    return [*met, *(each for stretch in stretches for each in storage.walk(stretch))]


def names(place: StorageFolder, listings: Iterable[ListingItem]) -> list[str]:
    assert all(isinstance(each, ListedFile) for each in listings)
    return sorted(each.path.removeprefix(f"{place.root}/") for each in listings)


@pytest.mark.parametrize("parts", [1, 6, 40])
@pytest.mark.parametrize("files", [NESTED, FLAT, UNEVEN, ["one.csv"], []])
def test_parts_cover_every_file_once(place: StorageFolder, files: list[str], parts: int) -> None:
    files = files[:: -(-len(files) // place.most) or 1]
    place.put(dict.fromkeys(files, b"1"))
    if files or isinstance(place, OnDisk):
        assert names(place, found(place.storage, place.root, parts=parts)) == sorted(files)


def test_files_in_folders_are_left_out_where_nobody_wants_them(place: StorageFolder) -> None:
    place.put(dict.fromkeys(UNEVEN[-place.most :], b"1"))
    listed = found(place.storage, place.root, parts=4, deep=False)
    assert names(place, listed) == ["a-b.csv", "a.csv", "z.csv", "~.csv"]


def test_a_listing_has_size_time_and_identity(place: StorageFolder) -> None:
    place.put({"a.csv": b"12345"})
    (listed,) = found(place.storage, place.root, parts=1)
    assert isinstance(listed, ListedFile)
    assert listed.size == 5
    assert 1_600_000_000_000_000 < listed.modified < 4_000_000_000_000_000
    assert found(place.storage, place.root, parts=1) == [listed]


def test_a_root_that_is_a_file_is_that_file(place: StorageFolder) -> None:
    place.put({"a.csv": b"12345", "a.csv.bak": b""})
    (listed,) = found(place.storage, f"{place.root}/a.csv", parts=4)
    assert isinstance(listed, ListedFile)
    assert (listed.path, listed.size) == (f"{place.root}/a.csv", 5)


def test_scratch_space_and_hidden_files_are_not_listed(place: StorageFolder) -> None:
    data = ["a.csv", "sub/b.csv", "_year=2024/e.csv", ".dt=1/f.csv"]
    other = ["_SUCCESS", ".a.csv.crc", "_temporary/0/c.csv", "sub/.x/d.csv"]
    place.put(dict.fromkeys([*data, *other], b"1"))
    assert names(place, found(place.storage, place.root, parts=4)) == sorted(data)


def test_roots_of_tables_are_markers(place: StorageFolder) -> None:
    logs = ["t/delta/_delta_log/00000000000000000000.json", "t/hudi/.hoodie/hoodie.properties",
            "t/ice/metadata/v1.metadata.json", "t/plain/metadata/readme.json"]  # fmt: skip
    place.put(dict.fromkeys([*logs, "t/plain/a.csv"], b"{}"))
    markers = {
        each for each in found(place.storage, place.root, parts=8) if type(each) is TableRoot
    }
    kinds = {(each.folder.removeprefix(f"{place.root}/t/"), each.kind) for each in markers}
    assert kinds == {("delta", "delta"), ("hudi", "hudi"), ("ice", "iceberg")}


@pytest.mark.parametrize("name", ODD)
def test_any_name_is_listed_opened_and_read(place: StorageFolder, name: str) -> None:
    place.put({name: name.encode()})
    (listed,) = found(place.storage, place.root, parts=2)
    assert isinstance(listed, ListedFile)
    assert listed.path == f"{place.root}/{name}"
    with place.storage.open(listed.path, size=listed.size) as file:
        assert file.head(1_000) == name.encode()
    assert place.storage.read(listed.path) == name.encode()


@pytest.mark.parametrize("size", [None, 300_000])
def test_parts_of_a_file_are_its_bytes(place: StorageFolder, size: int | None) -> None:
    data = bytes(number % 251 for number in range(300_000))
    place.put({"a.bin": data})
    with place.storage.open(f"{place.root}/a.bin", size=size) as file:
        assert file.size == len(data)
        assert file.head(10) == data[:10]
        assert file.tail(10) == data[-10:]
        assert file.part(1_000, 50) == data[1_000:1_050]
        assert file.part(299_990, 50) == data[299_990:]
        assert file.part(400_000, 50) == b""
        assert file.tail(400_000) == data
        assert file.head(400_000) == data


@pytest.mark.parametrize("data", [b"", b"x", b"hello"])
def test_reads_past_the_end_give_what_there_is(place: StorageFolder, data: bytes) -> None:
    place.put({"a.bin": data})
    for size in (None, len(data)):
        with place.storage.open(f"{place.root}/a.bin", size=size) as file:
            assert (file.head(100), file.tail(100), file.size) == (data, data, len(data))
            assert file.part(3, 100) == data[3:]


def test_little_of_a_large_file_is_fetched(served: Served) -> None:
    served.put({"a.bin": bytes(4_000_000)})
    before = served.server.sent
    with served.storage.open(f"{served.root}/a.bin", size=4_000_000) as file:
        file.head(8)
        file.tail(30_000)
    assert served.server.sent - before < 200_000


def test_what_is_written_is_there_at_once_and_whole(place: StorageFolder) -> None:
    path = f"{place.root}/state/of/a.bin"
    for data in (b"first", b"second", bytes(200_000), b""):
        place.storage.write(path, data)
        assert place.storage.read(path) == data
    place.storage.write(f"{place.root}/state/of/b.bin", b"2")
    assert place.storage.files(f"{place.root}/state/of") == ["a.bin", "b.bin"]
    place.storage.discard([path, f"{place.root}/state/of/never-there"])
    assert place.storage.files(f"{place.root}/state/of") == ["b.bin"]
    assert place.storage.files(f"{place.root}/nowhere") == []


def test_what_is_not_there_is_not_found(place: StorageFolder) -> None:
    place.put({"a.csv": b"1"})
    with pytest.raises(FileNotFoundError):
        place.storage.read(f"{place.root}/b.csv")
    with (
        pytest.raises(FileNotFoundError),
        place.storage.open(f"{place.root}/b.csv", size=3) as file,
    ):
        file.head(3)


def test_a_file_exists_until_it_is_removed(place: StorageFolder) -> None:
    place.put({"a.csv": b"1", "a.csv.bak": b"2", "empty.csv": b"", "folder/b.csv": b"3"})
    there = {
        name: place.storage.exists(f"{place.root}/{name}")
        for name in (
            "a.csv",
            "empty.csv",
            "folder/b.csv",
            "a",
            "a.cs",
            "b.csv",
            "folder",
            "a.csv/x",
        )
    }
    assert [name for name, exists in there.items() if exists] == [
        "a.csv",
        "empty.csv",
        "folder/b.csv",
    ]
    place.storage.discard([f"{place.root}/a.csv"])
    assert not place.storage.exists(f"{place.root}/a.csv")
    assert place.storage.exists(f"{place.root}/a.csv.bak")


def test_whether_a_file_exists_is_not_guessed_where_the_server_fails(served: Served) -> None:
    served.put({"a.csv": b"1"})
    served.fail(served.denied)
    with pytest.raises(PermissionError):
        served.storage.exists(f"{served.root}/a.csv")


def test_entries_are_in_order_with_hidden_ones_and_behind_a_name(place: StorageFolder) -> None:
    files = ["log/0.json", "log/1.json", "log/2.json", "log/_last", "log/sub/x.json"]
    place.put(dict.fromkeys(files, b"1"))
    folder = f"{place.root}/log"

    def entries(**wanted: object) -> list[str]:
        listed = place.storage.entries(folder, **wanted)  # type: ignore[arg-type]
        return [each.path.removeprefix(f"{folder}/") for each in listed]

    assert entries() == ["0.json", "1.json", "2.json", "_last"]
    assert entries(after="1.json") == ["2.json", "_last"]
    assert entries(deep=True) == ["0.json", "1.json", "2.json", "_last", "sub/x.json"]
    assert list(place.storage.entries(f"{place.root}/nowhere")) == []


def test_many_are_read_in_their_order_and_failures_stand_in_their_place(
    place: StorageFolder,
) -> None:
    files = {f"{number:03}": str(number).encode() for number in range(50)}
    place.put(files)
    paths = [f"{place.root}/{name}" for name in files]
    answers = list(place.storage.read_many([*paths[:7], f"{place.root}/none", *paths[7:]]))
    assert isinstance(answers.pop(7), FileNotFoundError)
    assert answers == list(files.values())


# Faults


def test_a_busy_server_is_asked_again_until_it_serves(served: Served) -> None:
    served.put({"a.csv": b"data"})
    path = f"{served.root}/a.csv"
    for busy in served.busy:
        served.fail(busy, times=2)
        assert names(served, found(served.storage, served.root, parts=1)) == ["a.csv"]
        served.fail(busy, times=2)
        assert served.storage.read(path) == b"data"
        served.fail(busy, times=2)
        served.storage.write(f"{served.root}/b.csv", b"more")
        served.storage.discard([f"{served.root}/b.csv"])


def test_a_server_that_stays_busy_is_a_problem_and_no_crash(served: Served) -> None:
    served.put({"a.csv": b"data"})
    served.fail(served.busy[0])
    (listing,) = served.storage.walk(KeyRange(served.root))
    assert isinstance(listing, ListingProblem)
    assert (listing.path, listing.code) == (served.root, "storage_busy")
    assert "\n" not in listing.reason
    with pytest.raises(OSError, match=r"^[^\n]+$"):
        served.storage.read(f"{served.root}/a.csv")


def test_a_server_that_breaks_off_is_a_problem_and_no_crash(served: Served) -> None:
    served.fail(BROKEN_OFF)
    (listing,) = served.storage.walk(KeyRange(served.root))
    assert isinstance(listing, ListingProblem)
    assert listing.code == "not_listed"
    with pytest.raises(OSError, match=r"^[^\n]+$"):
        served.storage.write(f"{served.root}/a.csv", b"1")


def test_missing_permissions_are_reported_without_secrets(served: Served) -> None:
    served.put({"a.csv": b"data"})
    # Once, so that there is a token which the refusal could repeat.
    list(served.storage.walk(KeyRange(served.root)))
    served.fail(served.denied)
    (listing,) = served.storage.walk(KeyRange(served.root))
    assert isinstance(listing, ListingProblem)
    assert listing.code == "permission_denied"
    with pytest.raises(PermissionError) as refused:
        served.storage.read(f"{served.root}/a.csv")
    output = f"{listing} {refused.value!r} {served.access!r} {served.access}"
    assert HUSH not in output
    assert "\n" not in str(refused.value)


def test_access_travels_to_executors_and_finds_the_same(served: Served) -> None:
    served.put({"a.csv": b"data"})
    access = pickle.loads(pickle.dumps(served.access))
    storage = storage_of(served.root, access)
    assert storage is storage_of(served.root, served.access)
    assert names(served, found(storage, served.root, parts=1)) == ["a.csv"]
