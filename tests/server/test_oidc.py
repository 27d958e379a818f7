"""People of an OpenID Connect provider: what their tokens must have, and which roles they get."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from lumos import Lumos
from lumos.config.server import OidcSettings
from lumos.errors import LumosError
from lumos.server.identity import (
    NotAllowed,
    NotAuthenticated,
    OidcVerifier,
    ProviderUnavailable,
)
from served_store import client_of
from servers.oidc_provider import oidc_provider

KEY, OTHER_KEY = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in "ab")

DISCOVERY = "/.well-known/openid-configuration"


class Provider:
    """Serves a discovery document and a key set."""

    def __init__(self) -> None:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
        keys = {"keys": [{**public, "kid": "k1", "use": "sig", "alg": "RS256"}]}
        documents: dict[str, bytes | None] = {"/jwks": json.dumps(keys).encode()}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = documents[self.path] or b""
                self.send_response(200 if body else 404)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"
        discovery = {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/jwks"}
        documents[DISCOVERY] = json.dumps(discovery).encode()
        self.documents = documents
        # Noticed at once when it is closed.
        Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def token(self, *, key: Any = KEY, algorithm: str = "RS256", **claims: Any) -> str:
        payload = {
            "iss": self.issuer,
            "aud": "lumos",
            "sub": "u-1",
            "email": "ann@example.com",
            "groups": ["engineering", "chess"],
            "exp": datetime.now(UTC) + timedelta(minutes=5),
            **claims,
        }
        kept = {name: value for name, value in payload.items() if value is not None}
        return self.token_of(kept, key=key, algorithm=algorithm)

    def token_of(self, payload: dict[str, Any], *, key: Any = KEY, algorithm: str = "RS256") -> str:
        return jwt.encode(payload, key, algorithm=algorithm, headers={"kid": "k1"})

    def settings(self) -> OidcSettings:
        roles = {"engineering": "write", "platform": "admin", "all": "read"}
        return OidcSettings(issuer=self.issuer, audience="lumos", roles=roles)


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    provider = Provider()
    yield provider
    provider.close()


def test_a_person_gets_the_highest_role_of_their_groups(provider: Provider) -> None:
    verifier = OidcVerifier(provider.settings())
    assert verifier.verify(provider.token()) == ("u-1", "ann@example.com", "write")
    assert verifier.verify(provider.token(groups=["all", "platform"])).role == "admin"
    assert verifier.verify(provider.token(groups="all", email=None)) == ("u-1", "u-1", "read")


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param({"exp": datetime.now(UTC) - timedelta(minutes=5)}, id="expired"),
        pytest.param({"exp": None}, id="without expiry"),
        pytest.param({"aud": "another"}, id="for another program"),
        pytest.param({"iss": "https://evil.example"}, id="of another issuer"),
        pytest.param({"sub": None}, id="of nobody"),
        pytest.param({"key": OTHER_KEY}, id="signed with another key"),
        pytest.param({"key": "secret" * 8, "algorithm": "HS256"}, id="signed with a shared key"),
    ],
)
def test_other_tokens_are_refused(provider: Provider, claims: dict[str, Any]) -> None:
    with pytest.raises(NotAuthenticated):
        OidcVerifier(provider.settings()).verify(provider.token(**claims))


def test_an_unsigned_token_is_refused(provider: Provider) -> None:
    unsigned = jwt.encode({"iss": provider.issuer, "aud": "lumos"}, None, algorithm="none")
    for text in (unsigned, "a.b.c", "x" * 10_000):
        with pytest.raises(NotAuthenticated):
            OidcVerifier(provider.settings()).verify(text)


def test_whoever_has_no_group_with_a_role_has_no_access(provider: Provider) -> None:
    with pytest.raises(NotAllowed, match=r"server\.oidc\.roles"):
        OidcVerifier(provider.settings()).verify(provider.token(groups=["chess"]))


@pytest.mark.parametrize("groups", [None, 1, True, {"engineering": 1}, [{"name": "engineering"}]])
def test_a_role_claim_that_names_no_group_gives_no_access(provider: Provider, groups: Any) -> None:
    claims = jwt.decode(provider.token(), options={"verify_signature": False})
    token = provider.token_of({**claims, "groups": groups})
    with pytest.raises(NotAllowed, match=r"server\.oidc\.roles"):
        OidcVerifier(provider.settings()).verify(token)


@pytest.mark.parametrize("name", [None, 1, "", ["ann"], {"first": "ann"}])
def test_without_a_name_that_is_a_text_the_subject_names_the_person(
    provider: Provider, name: Any
) -> None:
    claims = jwt.decode(provider.token(), options={"verify_signature": False})
    token = provider.token_of({**claims, "email": name})
    assert OidcVerifier(provider.settings()).verify(token).name == "u-1"


def test_a_token_signed_with_another_kind_of_key_is_refused(provider: Provider) -> None:
    token = provider.token(key=ec.generate_private_key(ec.SECP256R1()), algorithm="ES256")
    with pytest.raises(NotAuthenticated):
        OidcVerifier(provider.settings()).verify(token)


@pytest.mark.parametrize(
    ("documents", "words"),
    [
        pytest.param({DISCOVERY: b"<html>"}, "is not valid JSON", id="discovery is a page"),
        pytest.param({DISCOVERY: b"[]"}, "is not a JSON object", id="discovery is a list"),
        pytest.param({DISCOVERY: b'{"issuer": "ISSUER"}'}, "no valid 'jwks_uri'", id="no jwks_uri"),
        pytest.param(
            {DISCOVERY: b'{"issuer": "ISSUER", "jwks_uri": "file:///etc/passwd"}'},
            "no valid 'jwks_uri'",
            id="keys in a file",
        ),
        pytest.param({"/jwks": b"<html>"}, "cannot be read", id="keys are a page"),
        pytest.param({"/jwks": b"\xff\xfe\xfd"}, "cannot be read", id="keys are bytes"),
        pytest.param({"/jwks": b"[]"}, "cannot be read", id="keys are a list"),
        pytest.param({"/jwks": b'{"keys": []}'}, "cannot be read", id="no keys"),
        pytest.param({"/jwks": b'{"keys": [{"kty": 1}]}'}, "cannot be read", id="odd keys"),
        pytest.param({"/jwks": None}, "cannot be read", id="keys are missing"),
        pytest.param({DISCOVERY: None}, "status 404", id="discovery is missing"),
    ],
)
def test_a_broken_provider_is_named(documents: dict[str, bytes | None], words: str) -> None:
    broken = Provider()
    for path, body in documents.items():
        broken.documents[path] = body and body.replace(b"ISSUER", broken.issuer.encode())
    try:
        with pytest.raises(ProviderUnavailable, match=words) as failed:
            OidcVerifier(broken.settings()).verify(broken.token())
    finally:
        broken.close()
    assert f"The OpenID Connect provider {broken.issuer}" in str(failed.value)


def test_requests_get_503_while_the_provider_cannot_be_reached(lumos: Lumos) -> None:
    gone = Provider()
    gone.close()
    with client_of(configured(lumos, gone.issuer), address="10.0.0.9") as client:
        headers = {"Authorization": f"Bearer {gone.token()}"}
        response = client.get("/api/v1/datasets", headers=headers)
    assert response.status_code == 503
    assert "retry-after" in response.headers
    assert "The OpenID Connect provider" in response.json()["detail"]


def test_a_provider_that_calls_itself_otherwise_is_refused(provider: Provider) -> None:
    settings = provider.settings()
    with pytest.raises(LumosError, match="They must be the same"):
        OidcVerifier(settings, fetch=lambda _: {"issuer": "https://evil.example"}).verify("a.b.c")


def configured(lumos: Lumos, issuer: str) -> Lumos:
    """Lumos with a provider in its configuration."""
    file = lumos.settings.origin.file
    assert file is not None
    oidc = f"{{issuer: '{issuer}', audience: lumos, roles: {{engineering: write}}}}"
    with open(file, "a") as config:
        config.write(f"\nserver: {{oidc: {oidc}}}\n")
    return Lumos(file)


def test_people_use_the_server_with_their_tokens(provider: Provider, lumos: Lumos) -> None:
    lumos = configured(lumos, provider.issuer)
    with client_of(lumos, address="10.0.0.9") as client:
        headers = {"Authorization": f"Bearer {provider.token()}"}
        body = {"dataset": "orders", "names": ["seen"]}
        assert client.put("/api/v1/annotations/tags", json=body, headers=headers).status_code == 200
        assert client.get("/api/v1/audit", headers=headers).status_code == 403
        wrong = {"Authorization": f"Bearer {provider.token(aud='another')}"}
        assert client.get("/api/v1/datasets", headers=wrong).status_code == 401
    (entry,) = lumos.audit.list(limit=1).entries
    assert (entry.kind, entry.actor) == ("user", "ann@example.com")


@pytest.mark.slow
def test_tokens_of_a_certified_provider_are_accepted(lumos: Lumos) -> None:
    with oidc_provider() as provider:
        lumos = configured(lumos, provider.issuer)
        tokens = {
            "ann": provider.token("ann"),
            "eve": provider.token("eve"),
            "for another program": provider.token("ann", audience="another"),
        }
        with client_of(lumos, address="10.0.0.9") as client:
            statuses = {
                name: client.get(
                    "/api/v1/datasets", headers={"Authorization": f"Bearer {token}"}
                ).status_code
                for name, token in tokens.items()
            }
            tampered = tokens["ann"][:-5] + "AAAAA"
            headers = {"Authorization": f"Bearer {tampered}"}
            assert client.get("/api/v1/datasets", headers=headers).status_code == 401
    assert statuses == {"ann": 200, "eve": 403, "for another program": 401}
