"""The service behind `lumos token`: creating, listing, revoking and checking API tokens."""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from lumos.access.reports import TokenCreateReport, TokenEntry, TokenListReport, TokenRevokeReport
from lumos.access.roles import ROLES
from lumos.errors import MisuseError, UnknownName
from lumos.model.time_expression import parse_duration
from lumos.store import Store
from lumos.store.tokens import Role, StoredToken, revoke_token, save_token
from lumos.store.transaction import current_user

PREFIX: Final = "lumos"
_SECRET_BYTES: Final = 32
_ID_BYTES: Final = 5
_MAX_NAME: Final = 200
_MAX_AGE: Final = timedelta(days=3650)
# `last_used_at` is updated at most this often: a write for every request would serialise all
# readers of a SQLite store.
_LAST_USED_INTERVAL: Final = timedelta(minutes=5)
_NEVER: Final = "never"


class InvalidToken(MisuseError):
    """A token that does not exist, has expired or was revoked."""


class Tokens:
    """The API tokens of one store."""

    def __init__(
        self,
        open_store: Callable[[], Store],
        create_store: Callable[[], Store],
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._open_store = open_store
        self._create_store = create_store
        self._clock = clock

    def create(self, name: str, *, role: Role = "read", expires: str = "90d") -> TokenCreateReport:
        """Create a token; its secret is returned once and only its hash is stored.

        `expires` is a lifetime such as 90d, or `never`.
        """
        if not name.strip() or len(name) > _MAX_NAME:
            raise MisuseError(f"The name of a token must have 1 to {_MAX_NAME} characters.")
        if role not in ROLES:
            raise UnknownName("role", role, ROLES)
        at = self._clock()
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        token = StoredToken(
            id=secrets.token_hex(_ID_BYTES),
            name=name.strip(),
            role=role,
            digest=_digest(secret),
            created_by=current_user(),
            created_at=at,
            expires_at=_expiry(expires, at),
        )
        entry = TokenEntry.of(token, at=at)
        with self._create_store().transaction() as transaction:
            save_token(transaction, token)
            transaction.audit("token create", token.name, at=at, after=entry)
        return TokenCreateReport(token=entry, secret=f"{PREFIX}_{token.id}_{secret}")

    def list(self) -> TokenListReport:
        """All tokens with their roles and when they expire, never their secrets."""
        at = self._clock()
        tokens = self._open_store().tokens.all()
        return TokenListReport(tokens=tuple(TokenEntry.of(each, at=at) for each in tokens))

    def revoke(self, token: str) -> TokenRevokeReport:
        """Revoke a token, given its id or its name, with immediate effect."""
        store, at = self._open_store(), self._clock()
        tokens = store.tokens.all()
        matching = [each for each in tokens if token in (each.id, each.name)]
        if not matching:
            raise UnknownName(
                "token",
                token,
                {each.name for each in tokens},
                next="See all with: lumos token list",
            )
        if len(matching) > 1:
            ids = ", ".join(each.id for each in matching)
            raise MisuseError(f"Several tokens are called '{token}'. Give the id of one: {ids}")
        before = TokenEntry.of(matching[0], at=at)
        if matching[0].revoked_at is not None:
            return TokenRevokeReport(token=before, changed=False)
        with store.transaction() as transaction:
            revoke_token(transaction, matching[0].id, at=at)
            transaction.audit("token revoke", matching[0].name, at=at, before=before)
        revoked = store.tokens.get(matching[0].id)
        assert revoked is not None, "tokens are never deleted"
        return TokenRevokeReport(token=TokenEntry.of(revoked, at=at), changed=True)

    def authenticate(self, secret: str) -> TokenEntry:
        """The token that a client sent as `secret`; raises InvalidToken if it is not valid."""
        prefix, _, rest = secret.partition("_")
        id, _, random = rest.partition("_")
        store, at = self._open_store(), self._clock()
        token = store.tokens.get(id) if prefix == PREFIX and id else None
        # Unknown ids are compared too, so that response times do not reveal which ids exist.
        digest = "" if token is None else token.digest
        is_same = hmac.compare_digest(digest.encode(), _digest(random).encode())
        if token is None or not is_same:
            raise InvalidToken("The token is not valid. Create one with: lumos token create NAME")
        entry = TokenEntry.of(token, at=at)
        if entry.state != "active":
            raise InvalidToken(
                f"The token '{token.name}' is {entry.state}. "
                f"Create another one with: lumos token create NAME"
            )
        if token.last_used_at is None or at - token.last_used_at >= _LAST_USED_INTERVAL:
            store.tokens.mark_used(token.id, at=at)
        return entry

    def has_active(self) -> bool:
        """Whether a token exists that is valid now."""
        return any(each.state == "active" for each in self.list().tokens)


def _digest(secret: str) -> str:
    # The secret is random and as long as the hash, so a slow password hash would add nothing.
    return hashlib.sha256(secret.encode()).hexdigest()


def _expiry(text: str, at: datetime) -> datetime | None:
    if text == _NEVER:
        return None
    age = parse_duration(text)
    if age is None or not timedelta() < age <= _MAX_AGE:
        raise MisuseError(f"'{text}' is not a lifetime. Use for example 90d, 12h or never.")
    return at + age
