"""Authentication of requests by API token, OpenID token or loopback address."""

import hashlib
import ipaddress
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec

from lumos.access.roles import ROLES
from lumos.access.service import PREFIX, InvalidToken, Tokens
from lumos.actor import Actor
from lumos.config.server import OidcSettings
from lumos.errors import LumosError, MissingDependency, MisuseError
from lumos.store.tokens import Role

_SCHEME: Final = "bearer "
_LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
# Headers of reverse proxies: if one is set, a local peer only forwards the request.
_PROXY_PREFIXES: Final = ("x-forwarded-", "x-original-", "x-envoy-", "cf-")
_PROXY_HEADERS: Final = frozenset(
    (
        "forwarded",
        "via",
        "x-real-ip",
        "x-client-ip",
        "x-cluster-client-ip",
        "x-proxyuser-ip",
        "true-client-ip",
        "fastly-client-ip",
        "fly-client-ip",
        "client-ip",
        "cdn-loop",
    )
)
# Values of Sec-Fetch-Site for an address that a user typed, and for requests of the server's page.
_ALLOWED_FETCH_SITES: Final = ("none", "same-origin")
_KEY_CACHE_SECONDS: Final = 300
_TIMEOUT_SECONDS: Final = 10
_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
_MAX_BUCKETS: Final = 10_000


class NotAuthenticated(MisuseError):
    """A request without a valid token."""


class NotAllowed(MisuseError):
    """A request that needs a higher role."""


class ProviderUnavailable(LumosError):
    """An OpenID Connect provider that does not answer, or not as one; may succeed later."""

    def __init__(self, issuer: str, reason: str) -> None:
        super().__init__(f"The OpenID Connect provider {issuer} cannot be used: {reason}.")


class Identity(NamedTuple):
    """The sender of a request; `key` identifies it for rate limits and contains no secret."""

    role: Role
    actor: Actor
    key: str


class Peer(NamedTuple):
    """The address and headers of a request before authentication; header names in lower case."""

    address: str
    headers: Mapping[str, str]
    request_id: str

    @property
    def is_loopback(self) -> bool:
        """Whether the request comes from a program on this machine, and is addressed to it.

        False for requests from pages of other sites in a local browser, which have a foreign Host
        (DNS rebinding), Origin or Sec-Fetch-Site.
        """
        if any(name in _PROXY_HEADERS or name.startswith(_PROXY_PREFIXES) for name in self.headers):
            return False
        if self.headers.get("sec-fetch-site", "none") not in _ALLOWED_FETCH_SITES:
            return False
        origin = self.headers.get("origin")
        host = self.headers.get("host", "")
        is_own_origin = origin is None or origin.partition("://")[2] == host
        return is_loopback(self.address) and _host_name(host) in _LOOPBACK_NAMES and is_own_origin


def is_loopback(host: str) -> bool:
    """Whether a host is a loopback address, which other machines cannot reach."""
    if host in _LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host_name(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


class Authenticator:
    """Identifies the sender of a request; with `open_loopback`, local requests need no token."""

    def __init__(self, tokens: Tokens, *, oidc: "OidcVerifier | None", open_loopback: bool) -> None:
        self._tokens = tokens
        self._oidc = oidc
        self._open_loopback = open_loopback

    def identify(self, peer: Peer) -> Identity:
        """The sender; raises NotAuthenticated."""
        header = peer.headers.get("authorization", "")
        if header[: len(_SCHEME)].lower() == _SCHEME:
            return self._from_bearer(header[len(_SCHEME) :].strip(), peer)
        if header:
            raise NotAuthenticated("Send the token as: Authorization: Bearer TOKEN")
        if self._open_loopback and peer.is_loopback:
            actor = self._actor("user", "local", peer)
            return Identity("admin", actor, f"local:{peer.address}")
        raise NotAuthenticated(
            "This server needs a token. Create one on the server with: lumos token create NAME, "
            "and set it as LUMOS_TOKEN."
        )

    def _from_bearer(self, bearer: str, peer: Peer) -> Identity:
        if bearer.startswith(f"{PREFIX}_") or self._oidc is None:
            try:
                token = self._tokens.authenticate(bearer)
            except InvalidToken as problem:
                raise NotAuthenticated(str(problem)) from None
            actor = self._actor("token", token.name, peer)
            return Identity(token.role, actor, f"token:{token.id}")
        person = self._oidc.verify(bearer)
        return Identity(
            person.role, self._actor("user", person.name, peer), f"user:{person.subject}"
        )

    @staticmethod
    def _actor(kind: Any, name: str, peer: Peer) -> Actor:
        return Actor(kind=kind, name=name, origin=peer.address, request_id=peer.request_id)


class Person(NamedTuple):
    """A user whom an OpenID provider has authenticated."""

    subject: str
    name: str
    role: Role


class OidcVerifier:
    """Verifies tokens of an OpenID Connect provider: signature, issuer, audience and expiry."""

    def __init__(
        self,
        settings: OidcSettings,
        *,
        fetch: Callable[[str], Mapping[str, Any]] | None = None,
    ) -> None:
        try:
            import jwt
        except ModuleNotFoundError:
            raise MissingDependency("OpenID Connect", "pyjwt", "server") from None
        self._jwt = jwt
        self._settings = settings
        self._fetch = fetch or _discover
        self._lock = threading.Lock()
        self._keys: Any = None

    def verify(self, bearer: str) -> Person:
        """The person of a token; raises NotAuthenticated, NotAllowed or ProviderUnavailable."""
        settings = self._settings
        try:
            key = self._signing_key(bearer)
            claims = self._jwt.decode(
                bearer,
                key.key,
                algorithms=list(_ALGORITHMS),
                audience=settings.audience,
                issuer=settings.issuer,
                options={"require": ["exp", "iss", "aud", "sub"]},
                leeway=30,
            )
        except (self._jwt.PyJWTError, TypeError) as problem:
            # PyJWT raises TypeError for an algorithm of another kind of key.
            raise NotAuthenticated(
                f"The token of {settings.issuer} is not valid: {problem}."
            ) from None
        groups = claims.get(settings.role_claim)
        # Any JSON value may be in a claim; only texts name groups.
        names = groups if isinstance(groups, list) else [groups]
        roles = [
            settings.roles[name]
            for name in names
            if isinstance(name, str) and name in settings.roles
        ]
        if not roles:
            raise NotAllowed(
                f"None of your {settings.role_claim} has a role here. "
                "Ask an administrator to add one to server.oidc.roles in lumos.yaml."
            )
        subject = str(claims["sub"])
        name = claims.get(settings.name_claim)
        role: Any = max(roles, key=lambda each: [*ROLES].index(each))  # type: ignore[arg-type]
        return Person(subject, name if isinstance(name, str) and name else subject, role)

    def _signing_key(self, bearer: str) -> Any:
        """The provider's key for a token; raises PyJWTError if the token names none of its keys."""
        client = self._key_client()
        issuer = self._settings.issuer
        try:
            client.get_signing_keys()
        except (self._jwt.PyJWTError, TypeError, ValueError, OSError) as problem:
            reason = f"its keys at {client.uri} cannot be read ({problem})"
            raise ProviderUnavailable(issuer, reason) from None
        try:
            # Reads the keys again if they may have been replaced.
            return client.get_signing_key_from_jwt(bearer)
        except (self._jwt.PyJWKClientConnectionError, ValueError, OSError) as problem:
            reason = f"its keys at {client.uri} cannot be read again ({problem})"
            raise ProviderUnavailable(issuer, reason) from None

    def _key_client(self) -> Any:
        with self._lock:
            if self._keys is None:
                issuer = self._settings.issuer
                document = self._fetch(issuer)
                if document.get("issuer") != issuer:
                    raise ProviderUnavailable(
                        issuer,
                        f"it calls itself {document.get('issuer')!r}, but server.oidc.issuer is "
                        f"{issuer!r}. They must be the same",
                    )
                try:
                    self._keys = self._jwt.PyJWKClient(
                        str(document.get("jwks_uri")),
                        lifespan=_KEY_CACHE_SECONDS,
                        timeout=_TIMEOUT_SECONDS,
                    )
                except (self._jwt.PyJWTError, ValueError):
                    reason = "its discovery document has no valid 'jwks_uri'"
                    raise ProviderUnavailable(issuer, reason) from None
            return self._keys


def _discover(issuer: str) -> Mapping[str, Any]:
    """The discovery document of a provider."""
    from lumos.http.client import HttpClient, HttpError, TimeLimits
    from lumos.http.pooled_transport import PooledTransport
    from lumos.model.json_codec import decode_json

    url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    limits = TimeLimits(connect=_TIMEOUT_SECONDS, read=_TIMEOUT_SECONDS)
    try:
        response = HttpClient(PooledTransport(limits=limits)).send("GET", url)
    except HttpError as problem:
        raise ProviderUnavailable(issuer, str(problem)) from None
    if response.status != HTTPStatus.OK:
        raise ProviderUnavailable(issuer, f"{url} answered with status {response.status}")
    try:
        document = decode_json(response.body)
    except msgspec.DecodeError as problem:
        raise ProviderUnavailable(issuer, f"{url} is not valid JSON ({problem})") from None
    if not isinstance(document, dict):
        raise ProviderUnavailable(issuer, f"{url} is not a JSON object")
    return document


class RateLimiter:
    """A token bucket per sender: `per_minute` requests on average, in bursts of up to a tenth."""

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_minute / 60
        self._burst = max(1.0, per_minute / 10)
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: dict[str, tuple[float, float]] = {}

    def wait(self, key: str) -> float | None:
        """Count a request; return the seconds to wait if there were too many, or None."""
        # Hashed, so that clients cannot fill the memory with long keys.
        name = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
        now = self._clock()
        with self._lock:
            if len(self._buckets) > _MAX_BUCKETS:
                self._buckets = {
                    each: bucket
                    for each, bucket in self._buckets.items()
                    if now - bucket[1] < self._burst / self._rate
                }
            left, since = self._buckets.get(name, (self._burst, now))
            left = min(self._burst, left + (now - since) * self._rate)
            if left < 1:
                self._buckets[name] = (left, now)
                return (1 - left) / self._rate
            self._buckets[name] = (left - 1, now)
            return None
