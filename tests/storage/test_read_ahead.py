"""Many files are read ahead of their turn, and never more bytes of them than are allowed."""

import threading
from pathlib import Path

import pytest

from lumos.storage import LocalStorage, interface
from lumos.storage.interface import FileTooLong
from lumos.storage.s3 import S3Access, S3Storage
from s3_server import S3Server


class Counting(LocalStorage):
    """Counts the bytes that were read and not yet taken; the first reads wait for each other."""

    concurrency = 4

    def __init__(self) -> None:
        self.held = 0
        self.most = 0
        self._lock = threading.Lock()
        self._first = threading.Barrier(self.concurrency, timeout=30)
        self._begun = 0

    def read_within(self, path: str, max_bytes: int, *, size: int | None = None) -> bytes:
        with self._lock:
            self._begun += 1
            is_among_first = self._begun <= self.concurrency
        try:
            data = super().read_within(path, max_bytes, size=size)
            with self._lock:
                self.held += len(data)
                self.most = max(self.most, self.held)
            return data
        finally:
            if is_among_first:
                self._first.wait()

    def take(self, data: bytes) -> None:
        with self._lock:
            self.held -= len(data)


@pytest.mark.parametrize("are_listed", [True, False])
def test_bytes_that_are_read_ahead_are_bounded(
    are_listed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interface, "READ_AHEAD_BYTES", 4000)
    monkeypatch.setattr(interface, "_FIRST_READ_BYTES", 100)
    lengths = [5000, 5000, 5000, 5000, 1, 1000, 1001, 5000, *[1000] * 20, 9000, 3]
    paths = [str(tmp_path / f"{number}") for number in range(len(lengths))]
    for path, length in zip(paths, lengths, strict=True):
        Path(path).write_bytes(b"x" * length)
    sizes = dict(zip(paths, lengths, strict=True)) if are_listed else {}
    storage = Counting()
    found = []
    for data in storage.read_many(paths, max_bytes=8000, sizes=sizes):
        if isinstance(data, bytes):
            storage.take(data)
            found.append(len(data))
        else:
            assert isinstance(data, FileTooLong), data
            found.append(-1)
    assert found == [-1 if length == 9000 else length for length in lengths]
    # What is read ahead, and the one file whose turn it is.
    assert storage.most <= 4000 + 5000
    assert storage.held == 0


def test_a_short_object_is_read_by_one_request_and_a_long_one_is_not_read_in_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interface, "_FIRST_READ_BYTES", 100)
    objects = {"short": b"x" * 100, "longer": b"y" * 150, "long": b"z" * 10_000, "empty": b""}
    with S3Server({"lake": dict(objects)}) as server:
        storage = S3Storage(
            S3Access(endpoint_url=server.url, access_key_id="k", secret_access_key="s")
        )
        for name, requests in (("short", 1), ("empty", 1), ("longer", 2)):
            before = server.counted("GET", listing=False)
            assert storage.read_within(f"s3://lake/{name}", 1000) == objects[name]
            assert server.counted("GET", listing=False) - before == requests
        before = server.counted("GET", listing=False)
        with pytest.raises(FileTooLong, match="longer than"):
            storage.read_within("s3://lake/long", 1000)
        with pytest.raises(FileTooLong):
            storage.read_within("s3://lake/long", 1000, size=10_000)
        assert server.counted("GET", listing=False) - before == 1
