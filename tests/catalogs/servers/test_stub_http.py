"""The server that the stubs are made of, and its bad days."""

import http.client
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

from .faults import (
    ALL_KINDS,
    RESET_AFTER,
    RESET_BEFORE,
    TIME_OUT_AFTER,
    TOO_MANY,
    UNAVAILABLE,
    Faults,
    InTurn,
)
from .http import Answer, Mishap, Request, Server


class Counting:
    """Counts what takes effect."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    def __call__(self, request: Request) -> Answer:
        self.taken.append(request.path)
        return Answer.of(
            {"path": request.path, "query": request.query, "body": request.body.decode()}
        )


@pytest.fixture
def counting() -> Counting:
    return Counting()


@pytest.fixture
def server(counting: Counting) -> Iterator[Server]:
    with Server(counting) as server:
        yield server


def connected(server: Server, timeout: float = 5) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(server.address).netloc, timeout=timeout)


def ask(
    connection: http.client.HTTPConnection, path: str, body: str | None = None
) -> tuple[int, bytes]:
    connection.request("POST", path, body)
    response = connection.getresponse()
    return response.status, response.read()


def test_requests_are_answered_and_recorded_over_one_connection(server: Server) -> None:
    connection = connected(server)
    assert ask(connection, "/a%2Fb?x=1&y=", "{}") == (
        200,
        b'{"path":"/a%2Fb","query":{"x":"1","y":""},"body":"{}"}',
    )
    ask(connection, "/second")
    assert [(request.number, request.method, request.path) for request in server.requests] == [
        (1, "POST", "/a%2Fb"),
        (2, "POST", "/second"),
    ]
    assert server.requests[0].json == {}
    assert server.counts() == {"calls": 2, "connections": 1, "bytes_in": 2, "bytes_out": 93}


def test_hooks_are_told_before_and_after(server: Server, counting: Counting) -> None:
    told: list[object] = []
    server.before.append(lambda _: told.append(list(counting.taken)))
    server.after.append(lambda request, answer: told.append((request.path, answer.status)))
    ask(connected(server), "/a")
    assert told == [[], ("/a", 200)]


@pytest.mark.parametrize(("mishap", "status"), [(TOO_MANY, 429), (UNAVAILABLE, 503)])
def test_a_busy_server_says_so_and_does_nothing(
    server: Server, counting: Counting, mishap: Mishap, status: int
) -> None:
    server.mishaps = InTurn(None, mishap)
    connection = connected(server)
    assert [ask(connection, path)[0] for path in ("/a", "/b", "/c")] == [200, status, 200]
    assert counting.taken == ["/a", "/c"]


def test_a_429_says_when_to_come_back(server: Server) -> None:
    server.mishaps = InTurn(TOO_MANY)
    connection = connected(server)
    connection.request("GET", "/a")
    assert connection.getresponse().getheader("Retry-After") == "0"


@pytest.mark.parametrize(
    ("mishap", "error", "taken"),
    [
        (RESET_BEFORE, ConnectionResetError, []),
        (RESET_AFTER, ConnectionResetError, ["/a"]),
        (TIME_OUT_AFTER, socket.timeout, ["/a"]),
    ],
    ids=lambda value: value.name if isinstance(value, Mishap) else None,
)
def test_an_answer_is_lost_before_or_after_the_write(
    server: Server, counting: Counting, mishap: Mishap, error: type[Exception], taken: list[str]
) -> None:
    server.mishaps = InTurn(mishap)
    with pytest.raises(error):
        ask(connected(server, timeout=0.2), "/a")
    assert counting.taken == taken
    assert ask(connected(server), "/b")[0] == 200


def test_a_bad_day_can_be_had_again() -> None:
    def day(seed: int) -> list[Mishap | None]:
        faults = Faults(seed)
        return [faults(Request(number, "GET", "/", {}, b"")) for number in range(1, 2_001)]

    assert day(7) == day(7)
    assert day(7) != day(8)
    kinds = Counter(mishap.name for mishap in day(7) if mishap)
    assert set(kinds) == {kind.name for kind in ALL_KINDS}
    assert 0.27 < kinds.total() / 2_000 < 0.33
    assert min(kinds.values()) > 80


@pytest.mark.parametrize("make", [Faults, lambda _, **only: InTurn(RESET_BEFORE, **only)])
def test_faults_can_spare_some_routes(make: Callable[..., Faults | InTurn]) -> None:
    faults = make(1, only=lambda request: request.path != "/config")
    spared = [faults(Request(number, "GET", "/config", {}, b"")) for number in range(50)]
    others = [faults(Request(number, "GET", "/other", {}, b"")) for number in range(50)]
    assert not any(spared)
    assert any(others)


def test_an_error_of_the_stub_itself_is_heard_of(server: Server) -> None:
    """A hook or a route that fails must not look like a fault that was asked for."""

    def broken(request: Request) -> Answer:
        raise AssertionError(f"nobody shall ask for {request.path}")

    server.application = broken
    assert ask(connected(server), "/a")[0] == 500
    assert [str(error) for error in server.errors] == ["nobody shall ask for /a"]
    server.errors.clear()
