"""Reading and writing objects: few requests, no byte twice, errors as of local files."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from lumos.storage.interface import ReadableFile
from lumos.storage.s3 import S3Access, S3Storage
from s3_server import Request, Response, S3Server, error

LARGE = bytes(range(256)) * 1024
SMALL = b"0123456789" * 100


def storage_at(server: S3Server) -> S3Storage:
    return S3Storage(S3Access(endpoint_url=server.url, anonymous=True))


def ranges(server: S3Server) -> list[str | None]:
    return [request.headers.get("range") for request in server.requests]


def test_a_footer_is_one_request_for_the_end() -> None:
    with S3Server({"lake": {"a.parquet": LARGE}}) as server:
        with storage_at(server).open("s3://lake/a.parquet", size=len(LARGE)) as file:
            assert file.tail(65_536) == LARGE[-65_536:]
            assert file.tail(100) == LARGE[-100:]
            assert file.size == len(LARGE)
        assert ranges(server) == ["bytes=-65536"]


def test_a_beginning_is_one_request() -> None:
    with S3Server({"lake": {"a.csv": LARGE}}) as server:
        with storage_at(server).open("s3://lake/a.csv", size=len(LARGE)) as file:
            assert file.head(1000) == LARGE[:1000]
            assert file.head(16) == LARGE[:16]
        assert ranges(server) == ["bytes=0-999"]


@pytest.mark.parametrize(
    "reads",
    [
        lambda file: (file.head(16), file.tail(500)),
        lambda file: (file.tail(8), file.head(5000), file.tail(5000)),
    ],
)
def test_a_small_file_is_fetched_once(reads: Callable[[ReadableFile], object]) -> None:
    with S3Server({"lake": {"a.csv": SMALL}}) as server:
        with storage_at(server).open("s3://lake/a.csv", size=len(SMALL)) as file:
            reads(file)
        assert len(server.requests) == 1


def test_no_byte_is_fetched_twice() -> None:
    with S3Server({"lake": {"a": LARGE}}) as server:
        with storage_at(server).open("s3://lake/a", size=len(LARGE)) as file:
            assert file.head(1_000) == LARGE[:1_000]
            assert file.head(3_000) == LARGE[:3_000]
            assert file.tail(2_000) == LARGE[-2_000:]
            assert file.tail(70_000) == LARGE[-70_000:]
            assert file.head(10**9) == file.tail(10**9) == LARGE
        last = len(LARGE)
        assert ranges(server) == [
            "bytes=0-999", "bytes=1000-2999", "bytes=-2000",
            f"bytes={last - 70_000}-{last - 2_001}", f"bytes=3000-{last - 70_001}",
        ]  # fmt: skip


def test_an_empty_file_costs_no_request_when_its_size_is_known() -> None:
    with S3Server({"lake": {"empty": b""}}) as server:
        with storage_at(server).open("s3://lake/empty", size=0) as file:
            assert (file.head(10), file.tail(10), file.size) == (b"", b"", 0)
        assert server.requests == []


@pytest.mark.parametrize("data", [b"", SMALL, LARGE])
def test_the_size_is_found_out_where_it_is_not_known(data: bytes) -> None:
    with S3Server({"lake": {"a": data}}) as server:
        storage = storage_at(server)
        with storage.open("s3://lake/a") as file:
            assert file.size == len(data)
        with storage.open("s3://lake/a") as file:
            assert file.tail(50) == data[-50:]


@pytest.mark.parametrize("now", [b"", b"short", LARGE * 2])
def test_a_file_replaced_since_it_was_listed_is_read_as_it_is_now(now: bytes) -> None:
    with (
        S3Server({"lake": {"a": now}}) as server,
        storage_at(server).open("s3://lake/a", size=100_000) as file,
    ):
        assert file.tail(1_000) == now[-1_000:]
        assert file.size == len(now)
        assert file.head(10) == now[:10]


@pytest.mark.parametrize("key", ["a", "odd//a"])
def test_pieces_of_two_different_files_are_never_put_together(key: str) -> None:
    with (
        S3Server({"lake": {key: LARGE}}) as server,
        storage_at(server).open(f"s3://lake/{key}", size=len(LARGE)) as file,
    ):
        file.tail(100)
        server.buckets["lake"][key] = LARGE[::-1]
        with pytest.raises(OSError, match="has changed"):
            file.head(100)


@pytest.mark.parametrize("key", ["gone.csv", "odd//gone.csv"])
def test_a_file_that_is_gone_raises_as_a_local_one_does(key: str) -> None:
    with S3Server({"lake": {}}) as server:
        storage = storage_at(server)
        with storage.open(f"s3://lake/{key}", size=10) as file, pytest.raises(FileNotFoundError):
            file.head(10)
        with pytest.raises(FileNotFoundError):
            storage.read(f"s3://lake/{key}")


@pytest.mark.parametrize("key", ["a.csv", "odd//a.csv"])
def test_a_file_that_must_not_be_read_raises_as_a_local_one_does(key: str) -> None:
    denied = error(403, "AccessDenied", "Access Denied")
    with (
        S3Server({"lake": {key: b"1"}}, answer=lambda _request: denied) as server,
        storage_at(server).open(f"s3://lake/{key}", size=10) as file,
        pytest.raises(PermissionError, match="AccessDenied"),
    ):
        file.tail(10)


def test_an_archived_file_is_no_question_of_permission() -> None:
    archived = error(403, "InvalidObjectState", "The operation is not valid for the storage class")
    with (
        S3Server({"lake": {"a.csv": b"1"}}, answer=lambda _request: archived) as server,
        storage_at(server).open("s3://lake/a.csv", size=1) as file,
        pytest.raises(OSError, match="archived") as caught,
    ):
        file.head(1)
    assert not isinstance(caught.value, PermissionError)


def test_many_files_are_read_at_a_time() -> None:
    # Nobody is answered before all have asked, so reads that wait for each other never end.
    together = threading.Barrier(S3Storage.concurrency, timeout=30)

    def wait(_request: Request) -> Response | None:
        together.wait()
        return None

    keys = [str(number) for number in range(S3Storage.concurrency)]
    with S3Server({"lake": {key: key.encode() for key in keys}}, answer=wait) as server:
        storage = storage_at(server)
        with ThreadPoolExecutor(len(keys)) as pool:
            assert (
                list(pool.map(lambda key: storage.read(f"s3://lake/{key}").decode(), keys)) == keys
            )


def test_state_is_written_found_and_removed() -> None:
    with S3Server({"lake": {"state-of-others/x": b"1"}}) as server:
        storage = storage_at(server)
        storage.write("s3://lake/state/1/a.json", b"one")
        storage.write("s3://lake/state/1/parts/b", b"two")
        storage.write("s3://lake/state/2/a.json", b"three")
        assert storage.read("s3://lake/state/1/a.json") == b"one"
        storage.write("s3://lake/state/1/c.json", b"four")
        assert storage.files("s3://lake/state/1") == ["a.json", "c.json"]
        assert storage.files("s3://lake/nothing") == []
        storage.discard(["s3://lake/state/1/a.json", "s3://lake/state/1/never-there"])
        storage.discard([])
        assert sorted(server.buckets["lake"]) == [
            "state-of-others/x", "state/1/c.json", "state/1/parts/b", "state/2/a.json",
        ]  # fmt: skip


def test_a_key_that_cannot_be_written_is_refused_before_anything_happens() -> None:
    with S3Server({"lake": {}}) as server:
        with pytest.raises(OSError, match="empty or dotted part"):
            storage_at(server).write("s3://lake/state//a.json", b"1")
        assert server.requests == []
