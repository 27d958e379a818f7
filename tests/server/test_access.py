"""Who may do what: roles of all routes, loopback, rate limits."""

import asyncio
import json
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from lumos import Lumos
from lumos.access.roles import ROLES, includes
from lumos.errors import MisuseError
from lumos.server import app
from lumos.server.app import EXTRA_ROUTES, ApiServer
from lumos.server.identity import RateLimiter
from lumos.server.openapi import document
from lumos.server.routes import ROUTES
from lumos.server.run import serve
from served_store import OPTIONS, client_of

OPERATIONS = [
    (method.upper(), path, operation)
    for path, methods in document(EXTRA_ROUTES)["paths"].items()
    for method, operation in methods.items()
]


def test_the_openapi_document_has_the_routes_and_roles_of_the_table() -> None:
    documented = {
        (method, path): operation.get("x-lumos-role") for method, path, operation in OPERATIONS
    }
    table = {(each.method, each.url): each.role for each in ROUTES}
    extra = {(each.method, each.url): each.role for each in EXTRA_ROUTES}
    assert documented == {**table, **extra}
    open_to_all = {path for (_, path), role in documented.items() if role is None}
    assert open_to_all == {"/health", "/ready", "/openapi.json"}
    for _, _, operation in OPERATIONS:
        needs_token = operation.get("x-lumos-role") is not None
        assert operation["security"] == ([{"token": []}] if needs_token else [])


def test_tuples_are_described_for_tools_that_do_not_know_prefix_items() -> None:
    assert "prefixItems" not in json.dumps(document(EXTRA_ROUTES))


def test_no_route_can_be_used_with_a_lower_role(lumos: Lumos) -> None:
    secrets = {role: lumos.tokens.create(role, role=role).secret for role in ROLES}
    with client_of(lumos, address="10.0.0.9") as client:
        for method, path, operation in OPERATIONS:
            needed = operation.get("x-lumos-role")
            if needed is None:
                continue
            assert client.request(method, path).status_code == 401, (method, path)
            for role in ROLES:
                if includes(role, needed):
                    continue
                headers = {"Authorization": f"Bearer {secrets[role]}"}
                response = client.request(method, path, headers=headers)
                assert response.status_code == 403, (method, path, role)
                assert f"This needs the role {needed}" in response.json()["detail"]


def test_every_route_that_only_reads_is_for_readers(lumos: Lumos) -> None:
    """Routes that write need more than the role read, by what they do to the store."""
    writing = {
        each.url for each in ROUTES if each.method in ("PUT", "DELETE") and each.role == "read"
    }
    assert writing == set()
    posted = {each.url for each in ROUTES if each.method == "POST" and each.role == "read"}
    assert posted == {
        f"/api/v1/{each}"
        for each in (
            "datasets/names",
            "schemas/predict",
            "lineage/paths",
            "impact",
            "impact/changes",
        )
    }
    assert lumos.audit.verify().problems == ()


@pytest.mark.parametrize("header", ["Bearer x", "Bearer lumos_1_2", "Basic eDp5", "Bearer "])
def test_wrong_tokens_are_refused_even_on_this_machine(client: Any, header: str) -> None:
    response = client.get("/api/v1/datasets", headers={"Authorization": header})
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == 'Bearer realm="lumos"'


def test_a_revoked_token_is_refused(lumos: Lumos) -> None:
    headers = {"Authorization": f"Bearer {lumos.tokens.create('ci').secret}"}
    with client_of(lumos, address="10.0.0.9") as client:
        assert client.get("/api/v1/datasets", headers=headers).status_code == 200
        lumos.tokens.revoke("ci")
        assert client.get("/api/v1/datasets", headers=headers).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"Host": "evil.example"}, id="DNS rebinding"),
        pytest.param({"Origin": "https://evil.example"}, id="another site"),
        pytest.param({"Origin": "null"}, id="a sandboxed page"),
        pytest.param({"Sec-Fetch-Site": "cross-site"}, id="an image in another site"),
        pytest.param({"Sec-Fetch-Site": "same-site"}, id="another port of this machine"),
        pytest.param({"X-Forwarded-For": "203.0.113.9"}, id="behind a proxy"),
        pytest.param({"Forwarded": "for=203.0.113.9"}, id="behind another proxy"),
        pytest.param({"X-Forwarded-Host": "lumos.example"}, id="a proxy that names the host"),
        pytest.param({"X-Forwarded-Proto": "https"}, id="a proxy that names the protocol"),
        pytest.param({"CF-Connecting-IP": "203.0.113.9"}, id="behind Cloudflare"),
        pytest.param({"True-Client-IP": "203.0.113.9"}, id="behind Akamai"),
    ],
)
def test_only_requests_of_this_machine_need_no_token(client: Any, headers: dict[str, str]) -> None:
    assert client.get("/api/v1/datasets").status_code == 200
    assert client.get("/api/v1/datasets", headers=headers).status_code == 401


def test_this_machine_can_need_a_token_too(lumos: Lumos) -> None:
    with client_of(lumos, open_loopback=False) as client:
        assert client.get("/api/v1/datasets").status_code == 401


def test_no_other_site_may_read_answers(client: Any) -> None:
    preflight = {"Origin": "https://evil.example", "Access-Control-Request-Method": "PUT"}
    responses = [
        client.options("/api/v1/annotations/tags", headers=preflight),
        client.get("/api/v1/datasets", headers={"Origin": "http://127.0.0.1:8765"}),
    ]
    for response in responses:
        assert not [name for name in response.headers if name.startswith("access-control")]


FORMS = ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain")


def test_forms_of_other_sites_reach_no_route(client: Any) -> None:
    """Browsers send forms anywhere without asking; all else needs a preflight, which fails."""
    for method, path, operation in OPERATIONS:
        if method == "GET" or "requestBody" not in operation:
            continue
        for kind in FORMS:
            answer = client.request(method, path, content=b"{}", headers={"Content-Type": kind})
            assert answer.status_code == 415, (method, path, kind)
        nothing = client.request(method, path, content=b"{}")
        assert nothing.status_code == 415, (method, path)


def test_preflights_fail_for_every_route(client: Any) -> None:
    for method, path, _ in OPERATIONS:
        headers = {
            "Origin": "https://evil.example",
            "Access-Control-Request-Method": method,
            "Access-Control-Request-Headers": "content-type,authorization",
        }
        answer = client.options(path, headers=headers)
        assert not [name for name in answer.headers if name.startswith("access-control")], path


def test_no_cookie_is_set_or_believed(client: Any, lumos: Lumos) -> None:
    created = lumos.tokens.create("ci", role="admin")
    answer = client.get("/api/v1/datasets")
    assert "set-cookie" not in answer.headers
    with client_of(lumos, address="10.0.0.9") as remote:
        for name in ("token", "Authorization", "session"):
            cookie = {"Cookie": f"{name}={created.secret}"}
            assert remote.get("/api/v1/datasets", headers=cookie).status_code == 401


@pytest.fixture
def frozen_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rate limits that never fill again, however long requests take."""
    frozen = partial(RateLimiter, clock=lambda: 0.0)
    monkeypatch.setattr(app, "RateLimiter", frozen)


@pytest.mark.usefixtures("frozen_limits")
def test_a_limit_counts_every_kind_of_route(lumos: Lumos) -> None:
    headers = {"Authorization": f"Bearer {lumos.tokens.create('a', role='admin').secret}"}
    with client_of(lumos, requests_per_minute=30) as client:
        calls = [
            client.get("/metrics", headers=headers),
            client.put("/api/v1/annotations/tags", headers=headers, json={}),
            client.post("/api/v1/lineage", headers=headers, json={}),
            client.post("/api/v1/lineage", headers=headers, json={}),
            client.get("/api/v1/changes/events", headers=headers),
            client.get("/api/v1/changes/export", headers=headers),
        ]
        assert [each.status_code for each in calls] == [200, 400, 422, 429, 429, 429]
        assert int(calls[-1].headers["retry-after"]) >= 1
        # Probes of load balancers are not limited.
        assert [client.get("/health").status_code for _ in range(9)] == [200] * 9


@pytest.mark.usefixtures("frozen_limits")
def test_requests_are_limited_by_sender(lumos: Lumos) -> None:
    secrets = [lumos.tokens.create(name).secret for name in ("a", "b")]
    with client_of(lumos, requests_per_minute=30) as client:

        def status(secret: str) -> int:
            headers = {"Authorization": f"Bearer {secret}"}
            response = client.get("/api/v1/datasets/platforms", headers=headers)
            assert (response.status_code == 429) == ("retry-after" in response.headers)
            return int(response.status_code)

        assert [status(secrets[0]) for _ in range(5)] == [200, 200, 200, 429, 429]
        assert status(secrets[1]) == 200
        assert [status("lumos_1_2") for _ in range(5)] == [401, 401, 401, 429, 429]


def test_a_bucket_fills_again_with_time() -> None:
    now = 0.0
    limiter = RateLimiter(60, clock=lambda: now)
    assert [limiter.wait("a") is None for _ in range(7)] == [True] * 6 + [False]
    assert limiter.wait("a") == pytest.approx(1)
    now = 2.0
    assert [limiter.wait("a") is None for _ in range(3)] == [True, True, False]


def test_a_server_for_other_machines_needs_a_token_first(lumos: Lumos) -> None:
    with pytest.raises(MisuseError, match="lumos token create NAME --role admin"):
        serve(lumos, host="0.0.0.0", port=0)
    with pytest.raises(MisuseError, match="lumos token create NAME --role admin"):
        serve(lumos, require_token=True, port=0)
    expired = lumos.tokens.create("old")
    lumos.tokens.revoke(expired.token.id)
    with pytest.raises(MisuseError, match="there is none"):
        serve(lumos, host="0.0.0.0", port=0)


def test_a_stream_ends_after_its_token_was_revoked(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumos.server.app._KEEP_ALIVE_SECONDS", 0.1)
    token = lumos.tokens.create("bi", role="read")
    app = ApiServer(lumos, OPTIONS._replace(open_loopback=False)).app()
    begun, ended = asyncio.Event(), asyncio.Event()

    async def receive() -> Any:
        await ended.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            (begun if message["more_body"] else ended).set()

    async def follow() -> None:
        headers = [(b"host", b"x"), (b"authorization", f"Bearer {token.secret}".encode())]
        scope = {
            "type": "http", "method": "GET", "path": "/api/v1/changes/events", "raw_path": b"",
            "root_path": "", "scheme": "http", "query_string": b"", "headers": headers,
            "http_version": "1.1", "client": ("10.0.0.1", 5), "server": ("10.0.0.2", 80),
        }  # fmt: skip
        following = asyncio.create_task(app(scope, receive, send))
        async with asyncio.timeout(30):
            await begun.wait()
            await asyncio.sleep(0.5)
            assert not ended.is_set()
            lumos.tokens.revoke("bi")
            await following

    asyncio.run(follow())


def test_clients_that_connect_at_the_same_time_cannot_exceed_the_limit_of_streams(
    lumos: Lumos,
) -> None:
    server = ApiServer(lumos, OPTIONS._replace(event_streams=2))
    app = server.app()
    statuses: list[int] = []

    async def connect(answered: asyncio.Event, left: asyncio.Event) -> None:
        async def receive() -> Any:
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                if len(statuses) == 6:
                    answered.set()

        scope = {
            "type": "http", "method": "GET", "path": "/api/v1/changes/events", "raw_path": b"",
            "root_path": "", "scheme": "http", "query_string": b"",
            "headers": [(b"host", b"127.0.0.1")], "http_version": "1.1",
            "client": ("127.0.0.1", 5), "server": ("127.0.0.1", 80),
        }  # fmt: skip
        await app(scope, receive, send)

    async def connect_together() -> None:
        answered, left = asyncio.Event(), asyncio.Event()
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            for _ in range(6):
                group.create_task(connect(answered, left))
            await answered.wait()
            left.set()

    asyncio.run(connect_together())
    assert sorted(statuses) == [200, 200, 503, 503, 503, 503]
    assert server._open_streams == 0


def test_a_certificate_that_cannot_be_used_is_reported_before_anything_is_announced(
    lumos: Lumos, tmp_path: Path
) -> None:
    one, other = (self_signed(tmp_path / name) for name in ("one", "other"))
    text = tmp_path / "text"
    text.write_text("text")
    for certificate, key, words in (
        (tmp_path / "nope.pem", one[1], r"--tls-certificate .*nope\.pem cannot be read"),
        (one[0], tmp_path / "nope.key", r"--tls-key .*nope\.key cannot be read"),
        (one[0], tmp_path, "cannot be read"),
        (one[0], other[1], r"other\.key is not the key of the certificate .*one\.pem"),
        (text, one[1], "text and .* are not a certificate and its key"),
        (one[0], text, "text are not a certificate and its key"),
    ):
        with pytest.raises(MisuseError, match=words):
            serve(lumos, port=0, certificate=certificate, key=key, started=pytest.fail)


def self_signed(file: Path) -> tuple[Path, Path]:
    """A certificate and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "lumos")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime(2024, 1, 1))
        .not_valid_after(datetime(2124, 1, 1))
        .sign(key, hashes.SHA256())
    )
    pem, secret = file.with_suffix(".pem"), file.with_suffix(".key")
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return pem, secret
