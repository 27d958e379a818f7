"""A server that is busy, breaks off or cannot be reached."""

import socket
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from lumos.http.retries import RetryPolicy, RetryState
from lumos.storage import KeyRange, ListingProblem
from lumos.storage.errors import StorageBusy, StorageDenied, error_from_response
from lumos.storage.http import StorageCircuitBreaker
from lumos.storage.s3 import S3Access, S3Storage
from s3_server import Request, Response, S3Server, error

BRIEF = RetryPolicy(seconds=5, tries=4, first_wait=0.01, max_wait=0.05)
SLOW_DOWN = error(503, "SlowDown", "Please reduce your request rate")
BUSY = [
    SLOW_DOWN,
    error(429, "TooManyRequests", "Please reduce your request rate"),
    error(500, "InternalError", "We encountered an internal error"),
]


def storage_at(url: str, retries: RetryPolicy = BRIEF) -> S3Storage:
    return S3Storage(S3Access(endpoint_url=url, anonymous=True), retries=retries)


def at_first(answer: Response, times: int) -> Callable[[Request], Response | None]:
    tries = count()
    return lambda _request: answer if next(tries) < times else None


@pytest.mark.parametrize("busy", BUSY)
@pytest.mark.parametrize("key", ["a.csv", "odd//a.csv"])
def test_a_busy_server_is_asked_again_until_it_serves(busy: Response, key: str) -> None:
    with S3Server({"lake": {key: b"data"}}) as server:
        storage = storage_at(server.url)
        server.answer = at_first(busy, 3)
        assert [each.path for each in storage.walk(KeyRange("s3://lake"))] == [f"s3://lake/{key}"]
        server.answer = at_first(busy, 3)
        assert storage.read(f"s3://lake/{key}") == b"data"
        assert len(server.requests) == 8


def test_writing_to_a_busy_server_is_tried_again() -> None:
    with S3Server({"lake": {}}, answer=at_first(SLOW_DOWN, 3)) as server:
        storage_at(server.url).write("s3://lake/a.json", b"data")
        assert server.buckets["lake"] == {"a.json": b"data"}


@pytest.mark.parametrize("key", ["a.csv", "odd//a.csv"])
def test_a_server_that_stays_busy_is_a_problem_and_no_crash(key: str) -> None:
    with S3Server({"lake": {key: b"data"}}, answer=lambda _request: SLOW_DOWN) as server:
        storage = storage_at(server.url)
        (listing,) = storage.walk(KeyRange("s3://lake/raw"))
        assert isinstance(listing, ListingProblem)
        assert (listing.path, listing.code) == ("s3://lake/raw", "storage_busy")
        assert "SlowDown" in listing.reason
        assert len(server.requests) == BRIEF.tries
        with (
            storage.open(f"s3://lake/{key}", size=4) as file,
            pytest.raises(OSError, match="SlowDown"),
        ):
            file.head(4)
        assert len(server.requests) == 2 * BRIEF.tries


def test_patience_ends_after_its_time() -> None:
    hurried = RetryPolicy(seconds=0.05, tries=1_000, first_wait=0.02, max_wait=0.02)
    with S3Server({"lake": {}}, answer=lambda _request: SLOW_DOWN) as server:
        (listing,) = storage_at(server.url, hurried).walk(KeyRange("s3://lake"))
        assert isinstance(listing, ListingProblem)
        assert len(server.requests) < 20


def test_waits_grow_and_vary() -> None:
    retries = RetryPolicy(first_wait=1, max_wait=8)
    states = [RetryState(retries) for _ in range(50)]
    after_each = [[state.next_wait() or 0 for state in states] for _ in range(9)]
    waits = [after_each[tried - 1] for tried in (1, 2, 3, 9)]
    assert [round(max(some)) for some in waits] == [1, 2, 4, 8]
    assert all(min(some) >= max(some) / 2.1 for some in waits)
    assert all(len(set(some)) > 1 for some in waits)


def test_nobody_at_the_endpoint_is_a_problem_that_names_it() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        (listing,) = storage_at(url).walk(KeyRange("s3://lake"))
        assert isinstance(listing, ListingProblem)
        assert url in listing.reason
        with pytest.raises(OSError, match="does not answer"):
            storage_at(url).read("s3://lake/a.csv")


def test_connections_that_the_server_closes_are_made_again() -> None:
    """A server that answers one request on each connection, without announcing it."""
    body = b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    served = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for _ in range(3):
                connection, _address = listener.accept()
                with connection:
                    served.append(connection.recv(65_536))
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        once = RetryPolicy(tries=1)
        storage = storage_at(f"http://127.0.0.1:{listener.getsockname()[1]}", once)
        for _ in range(3):
            assert list(storage.walk(KeyRange("s3://lake"))) == []
        thread.join(10)
    assert len(served) == 3


def test_a_server_that_is_gone_does_not_cost_patience_for_every_file() -> None:
    now = [0.0]
    breaker = StorageCircuitBreaker(clock=lambda: now[0])
    asked = []

    def ask(problem: Exception | None) -> None:
        with breaker.guard():
            asked.append(problem)
            if problem is not None:
                raise problem

    ask(None)
    for _ in range(200):
        with pytest.raises(OSError, match=r"busy|requests are paused"):
            ask(StorageBusy("busy"))
    assert 10 < len(asked) < 100
    now[0] += 60
    ask(None)
    for _ in range(10):
        with pytest.raises(OSError, match="busy"):
            ask(StorageBusy("busy"))
    ask(None)


def test_files_that_are_missing_say_nothing_about_the_server() -> None:
    with S3Server({"lake": {"a.csv": b"data"}}) as server:
        storage = storage_at(server.url)
        for number in range(100):
            with pytest.raises(FileNotFoundError):
                storage.read(f"s3://lake/{number}")
        assert storage.read("s3://lake/a.csv") == b"data"


def test_a_server_that_knows_no_beginning_is_listed_right_all_the_same() -> None:
    body = "".join(
        f"<Contents><Key>{name}</Key><Size>1</Size><LastModified>2024-01-01T00:00:00Z</LastModified>"
        f"<ETag>e</ETag></Contents>"
        for name in "abc"
    )
    answer = Response(200, f"<ListBucketResult>{body}</ListBucketResult>".encode())
    with S3Server({"lake": {}}, answer=lambda _request: answer) as server:
        within = KeyRange("s3://lake", after="s3://lake/a", until="s3://lake/b")
        found = list(storage_at(server.url).walk(within))
    assert [each.path for each in found] == ["s3://lake/b"]


@pytest.mark.parametrize("key", ["a.csv", "odd//a.csv"])
def test_a_certificate_of_ones_own_is_trusted_once_it_is_named(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    once = RetryPolicy(tries=1)
    with S3Server({"lake": {key: b"data"}}, certificate=certificate) as server:
        (listing,) = storage_at(server.url, once).walk(KeyRange("s3://lake"))
        assert isinstance(listing, ListingProblem)
        assert "certificate verify failed" in listing.reason
        with pytest.raises(OSError, match="does not answer"):
            storage_at(server.url, once).read(f"s3://lake/{key}")
        monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
        storage = storage_at(server.url)
        assert [each.path for each in storage.walk(KeyRange("s3://lake"))] == [f"s3://lake/{key}"]
        assert storage.read(f"s3://lake/{key}") == b"data"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("R&D key & more", "R&D key & more (AccessDenied)"),
        ("Access&nbsp;Denied", "Access Denied (AccessDenied)"),
        ("a\x01b&#1;", "a b (AccessDenied)"),
        ("&lt;a&gt; &amp;amp;", "<a> &amp; (AccessDenied)"),
        ("", "the request failed (AccessDenied)"),
    ],
)
def test_a_message_that_is_not_valid_xml_is_still_reported(message: str, expected: str) -> None:
    body = f"<Error><Code>AccessDenied</Code><Message>{message}</Message></Error>"
    problem = error_from_response(403, body.encode())
    assert isinstance(problem, StorageDenied)
    assert str(problem) == expected
