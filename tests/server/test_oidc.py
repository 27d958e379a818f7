"""People of an OpenID Connect provider: what their tokens must have, and which roles they get."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from lumos import Lumos
from lumos.config.server import OidcSettings
from lumos.errors import LumosError
from lumos.server.identity import NotAllowed, NotAuthenticated, OidcVerifier
from served_store import client_of
from servers.oidc_provider import oidc_provider

KEY, OTHER_KEY = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in "ab")


class Provider:
    """Serves a discovery document and a key set."""

    def __init__(self) -> None:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
        documents = {
            "/jwks": {"keys": [{**public, "kid": "k1", "use": "sig", "alg": "RS256"}]},
        }

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps(documents[self.path]).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"
        documents["/.well-known/openid-configuration"] = {  # type: ignore[assignment]
            "issuer": self.issuer,
            "jwks_uri": f"{self.issuer}/jwks",
        }
        Thread(target=self.server.serve_forever, daemon=True).start()

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
        return jwt.encode(kept, key, algorithm=algorithm, headers={"kid": "k1"})

    def settings(self) -> OidcSettings:
        roles = {"engineering": "write", "platform": "admin", "all": "read"}
        return OidcSettings(issuer=self.issuer, audience="lumos", roles=roles)


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    provider = Provider()
    yield provider
    provider.server.shutdown()
    provider.server.server_close()


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
