"""Reports of `lumos token`."""

from datetime import datetime
from typing import Literal

from lumos.model.report import FORMAT_VERSION, Report
from lumos.store.tokens import Role, StoredToken

TokenState = Literal["active", "expired", "revoked"]


class TokenEntry(Report, frozen=True, kw_only=True):
    """A token without its secret, which is shown once, when it is created."""

    id: str
    name: str
    role: Role
    state: TokenState
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None

    @classmethod
    def of(cls, token: StoredToken, *, at: datetime) -> "TokenEntry":
        state: TokenState = "active"
        if token.revoked_at is not None:
            state = "revoked"
        elif token.expires_at is not None and token.expires_at <= at:
            state = "expired"
        return cls(
            id=token.id,
            name=token.name,
            role=token.role,
            state=state,
            created_by=token.created_by,
            created_at=token.created_at,
            expires_at=token.expires_at,
            revoked_at=token.revoked_at,
            last_used_at=token.last_used_at,
        )


class TokenCreateReport(Report, frozen=True, kw_only=True):
    """The report of `lumos token create`; `secret` is the token that clients send."""

    format_version: str = FORMAT_VERSION
    token: TokenEntry
    secret: str


class TokenRevokeReport(Report, frozen=True, kw_only=True):
    """The report of `lumos token revoke`; `changed` is false if the token was already revoked."""

    format_version: str = FORMAT_VERSION
    token: TokenEntry
    changed: bool


class TokenListReport(Report, frozen=True, kw_only=True):
    """The report of `lumos token list`, the oldest token first."""

    format_version: str = FORMAT_VERSION
    tokens: tuple[TokenEntry, ...]
