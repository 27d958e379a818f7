"""The section `server`: limits of `lumos serve` and the provider of identities."""

from typing import Annotated, TypeAlias

from msgspec import Meta, field

from lumos.config.section import Address, Port, Seconds, Section

AtLeastOne: TypeAlias = Annotated[int, Meta(ge=1, description="a number, at least 1")]
RoleName: TypeAlias = Annotated[
    str, Meta(pattern="^(read|write|admin)$", description="read, write or admin")
]


class OidcSettings(Section, frozen=True, kw_only=True):
    """The OpenID Connect provider with which people log in.

    `issuer` is the URL whose `/.well-known/openid-configuration` describes the provider. Tokens
    must be issued for `audience`. `role_claim` is the claim with the groups of a person, and
    `roles` maps groups to roles. People without a role have no access.
    """

    issuer: Address
    audience: str
    role_claim: str = "groups"
    name_claim: str = "email"
    roles: dict[str, RoleName] = field(default_factory=dict)


class ServerSettings(Section, frozen=True, kw_only=True):
    """Settings of `lumos serve`."""

    host: str = "127.0.0.1"
    port: Port = 8765
    max_request_bytes: AtLeastOne = 10 << 20
    request_seconds: Seconds = 60
    requests_per_minute: AtLeastOne = 1_200
    event_streams: AtLeastOne = 500
    oidc: OidcSettings | None = None
