"""The HTTP client, with the transport of storages and with that of catalogs."""

import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from http_server import RecordingServer, Request, Response
from lumos.http import client as http_client
from lumos.http.client import (
    HttpClient,
    HttpTransport,
    InvalidRequest,
    NotConnected,
    ResponseLost,
    ResponseTooLarge,
    TimeLimits,
)
from lumos.http.httpx_transport import HttpxTransport
from lumos.http.pooled_transport import PooledTransport
from lumos.http.retries import ONCE, RetryPolicy, RetryState

LIMITS = TimeLimits(connect=5, read=5)
BRIEF = RetryPolicy(tries=3, seconds=5, first_wait=0.01, max_wait=0.05)
LOGIN = {"authorization": "Bearer hush-hush"}
TRANSPORTS: dict[str, Callable[[], HttpTransport]] = {
    "pooled": lambda: PooledTransport(limits=LIMITS),
    "httpx": lambda: HttpxTransport(limits=LIMITS, connections=4, tls=ssl.create_default_context()),
}


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ssl_cert_file"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> Callable[[], HttpTransport]:
    return TRANSPORTS[request.param]


@pytest.fixture
def client(transport: Callable[[], HttpTransport]) -> Iterator[HttpClient]:
    made = HttpClient(transport())
    yield made
    made.close()


class Echo(RecordingServer):
    def respond(self, request: Request) -> Response:
        return Response(200, request.method.encode())


@contextmanager
def raw_server(*answers: bytes) -> Iterator[str]:
    """A server that answers one request on each connection with these bytes, and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65_536)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join(10)


COMPLETE = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwell"
HALF = b"HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\nhalf"
HALF_CHUNK = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100\r\nhalf"
CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nmany\r\n4\r\nmore\r\n0\r\n\r\n"
UNTIL_CLOSED = b"HTTP/1.1 200 OK\r\n\r\nwell"


def test_requests_share_connections_and_carry_headers_and_body(client: HttpClient) -> None:
    with Echo() as server:
        for method, body in (("GET", b""), ("PUT", b"data"), ("DELETE", b"")):
            answer = client.send(
                method, f"{server.url}/a%2Fb?q=%20", headers=lambda: LOGIN, body=body
            )
            assert (answer.status, answer.body) == (200, method.encode())
        assert {each.target for each in server.requests} == {"/a%2Fb?q=%20"}
        assert [each.body for each in server.requests] == [b"", b"data", b""]
        assert all(each.headers["authorization"] == "Bearer hush-hush" for each in server.requests)


@pytest.mark.parametrize("answer", [COMPLETE, UNTIL_CLOSED])
def test_idle_connections_that_the_server_closed_are_opened_again(
    client: HttpClient, answer: bytes
) -> None:
    with raw_server(answer, answer, answer) as url:
        assert [client.send("GET", url).body for _ in range(3)] == [b"well"] * 3


def test_a_connection_that_the_server_closes_during_the_next_request_is_opened_again(
    client: HttpClient,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            first, _ = listener.accept()
            with first:
                first.recv(65_536)
                first.sendall(COMPLETE)
                # Only now is the connection closed, so that the client cannot know before it sends.
                first.recv(65_536)
            second, _ = listener.accept()
            with second:
                second.recv(65_536)
                second.sendall(COMPLETE)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert [client.send("GET", url).body for _ in range(2)] == [b"well"] * 2
        thread.join(10)


@pytest.mark.parametrize("half", [HALF, HALF_CHUNK])
def test_a_half_body_is_requested_again_and_never_returned(client: HttpClient, half: bytes) -> None:
    with raw_server(half, half, COMPLETE) as url:
        assert client.send("GET", url, retries=BRIEF).body == b"well"
    with raw_server(half) as url, pytest.raises(ResponseLost, match="does not answer"):
        client.send("GET", url)


def test_headers_are_made_for_each_try(client: HttpClient) -> None:
    made: list[int] = []

    def headers() -> dict[str, str]:
        made.append(len(made))
        return {"x-try": str(made[-1])}

    with Echo(answer=lambda _request: Response(503)) as server:
        assert client.send("GET", server.url, headers=headers, retries=BRIEF).status == 503
        assert [each.headers["x-try"] for each in server.requests] == ["0", "1", "2"]


@pytest.mark.parametrize("status", [400, 401, 404, 409, 501])
def test_a_status_that_will_not_change_is_returned_at_once(client: HttpClient, status: int) -> None:
    with Echo(answer=lambda _request: Response(status)) as server:
        assert client.send("GET", server.url, retries=BRIEF).status == status
        assert len(server.requests) == 1


def in_seconds(seconds: int) -> str:
    return str(seconds)


def as_date(seconds: int) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize("form", [in_seconds, as_date])
def test_the_server_says_how_long_to_wait(
    client: HttpClient, monkeypatch: pytest.MonkeyPatch, form: Callable[[int], str]
) -> None:
    slept: list[float] = []
    # Only this client's clock: other threads of the process sleep too.
    monkeypatch.setattr(http_client, "time", SimpleNamespace(sleep=slept.append))
    patient = RetryPolicy(tries=2, seconds=60, first_wait=0.01, max_wait=0.05)
    busy = Response(503, b"", {"Retry-After": form(30)})
    with Echo(answer=lambda _request: busy) as server:
        assert client.send("GET", server.url, retries=patient).status == 503
        assert len(server.requests) == 2
    assert len(slept) == 1
    assert 25 < slept[0] <= 30
    # A wait that does not fit into the time is not begun.
    late = Response(503, b"", {"Retry-After": form(90)})
    with Echo(answer=lambda _request: late) as server:
        assert client.send("GET", server.url, retries=patient).status == 503
        assert len(server.requests) == 1
    assert len(slept) == 1


def test_a_redirect_is_returned_and_not_followed(client: HttpClient) -> None:
    with Echo() as elsewhere:
        moved = Response(307, b"", {"Location": elsewhere.url})
        with Echo(answer=lambda _request: moved) as server:
            answer = client.send("GET", server.url, headers=lambda: LOGIN)
        assert (answer.status, answer.headers["location"]) == (307, elsewhere.url)
        assert elsewhere.requests == []


@pytest.mark.parametrize("answer", [COMPLETE, CHUNKS, UNTIL_CLOSED])
def test_a_response_that_is_too_large_is_refused_once(client: HttpClient, answer: bytes) -> None:
    with raw_server(answer) as url, pytest.raises(ResponseTooLarge, match="longer than 3 bytes"):
        client.send("GET", url, retries=BRIEF, max_bytes=3)
    with raw_server(answer) as url:
        assert client.send("GET", url, max_bytes=8).body in (b"well", b"manymore")


def test_an_address_where_nothing_listens_is_named_without_its_query(client: HttpClient) -> None:
    with pytest.raises(NotConnected) as caught:
        client.send("GET", "http://127.0.0.1:1/path?sig=hush", headers=lambda: LOGIN)
    assert str(caught.value).startswith("http://127.0.0.1:1 does not answer: ")
    assert "refused" in caught.value.reason
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("odd", ["hush\r\nx: y", "hush é\u20ac"])
def test_a_header_that_cannot_be_sent_is_not_repeated_in_the_error(
    client: HttpClient, odd: str
) -> None:
    with Echo() as server, pytest.raises(InvalidRequest) as caught:
        client.send("GET", server.url, headers=lambda: {"authorization": odd}, retries=BRIEF)
    assert "hush" not in str(caught.value)
    assert server.requests == []


def test_certificates_of_the_environment_are_trusted(
    transport: Callable[[], HttpTransport], certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Echo(certificate=certificate) as server:
        with pytest.raises(NotConnected, match="certificate verify failed"):
            HttpClient(transport()).send("GET", server.url)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert HttpClient(transport()).send("GET", server.url).status == 200


def test_requests_go_through_the_proxy_of_the_environment_with_its_login(
    client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Echo() as proxy, Echo() as server:
        address = proxy.url.removeprefix("http://")
        monkeypatch.setenv("HTTP_PROXY", f"http://user:p%40ss@{address}")
        monkeypatch.setenv("http_proxy", f"http://user:p%40ss@{address}")
        assert client.send("GET", f"{server.url}/a?b=c", headers=lambda: LOGIN).status == 200
        (request,) = proxy.requests
        assert request.target == f"{server.url}/a?b=c"
        assert request.headers["host"] == server.url.removeprefix("http://")
        assert request.headers["proxy-authorization"] == "Basic dXNlcjpwQHNz"
        assert server.requests == []


def test_hosts_in_no_proxy_are_asked_directly(
    transport: Callable[[], HttpTransport], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Echo() as proxy, Echo() as server:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "example.com,127.0.0.1")
        assert HttpClient(transport()).send("GET", server.url).status == 200
        assert (len(proxy.requests), len(server.requests)) == (0, 1)


@contextmanager
def tunnel(to: tuple[str, int], seen: list[bytes]) -> Iterator[str]:
    """A proxy for a single tunnel."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def copy(source: socket.socket, target: socket.socket) -> None:
            while data := source.recv(65_536):
                target.sendall(data)
            target.close()

        def serve() -> None:
            inner, _ = listener.accept()
            seen.append(inner.recv(65_536))
            outer = socket.create_connection(to)
            inner.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            threading.Thread(target=copy, args=(outer, inner), daemon=True).start()
            copy(inner, outer)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_https_is_tunnelled_so_that_the_proxy_sees_no_login(
    transport: Callable[[], HttpTransport], certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bytes] = []
    with Echo(certificate=certificate) as server:
        host = server.url.removeprefix("https://")
        with tunnel(("127.0.0.1", int(host.rpartition(":")[2])), seen) as proxy:
            monkeypatch.setenv("https_proxy", proxy)
            monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
            client = HttpClient(transport())
            assert client.send("GET", server.url, headers=lambda: LOGIN).status == 200
            client.close()
    assert seen[0].startswith(f"CONNECT {host} ".encode())
    assert b"hush" not in seen[0]


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        # Workers that scan local paths.
        ("lumos.discovery.lake.scan_task", {"httpx", "http.client", "lumos.http.client"}),
        ("lumos.storage.s3", {"httpx", "botocore"}),
        ("lumos.notifications.service", {"httpx", "http.client"}),
        ("lumos.catalogs.openmetadata.server", {"httpx"}),
    ],
)
def test_network_libraries_are_imported_only_where_they_are_used(
    module: str, unwanted: set[str]
) -> None:
    code = f"import sys, {module}; print(*{unwanted!r} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_a_policy_with_one_try_never_waits() -> None:
    assert RetryState(ONCE).next_wait(0.0) is None
