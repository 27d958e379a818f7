"""Settings of the catalogs that Lumos publishes metadata to: one section per platform."""

import os
import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Self, TypeAlias
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, field

from lumos.config.secret import ConnectionString, Secret
from lumos.config.section import Address, Location, Port, Seconds, Section, alternative_names
from lumos.config.sources import User
from lumos.errors import MisuseError

LOCAL: Final = "local"
PlatformName: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^(?![\w-]+:\w+://[^/]*@)",
        description="a platform such as datahub or datahub:ADDRESS, without user and password",
    ),
]


_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def normalize_address(address: str) -> str:
    """Normalize an address: lower-case host, no default port, no slash at the end."""
    parts = urlsplit(address)
    if "@" in parts.netloc:
        raise MisuseError(
            "An address must not contain a user or password. Set the token with its own key."
        )
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    try:
        port = parts.port
    except ValueError:
        raise MisuseError(
            f"'{address}' has an invalid port. Use a number from 1 to 65535."
        ) from None
    if not host or parts.scheme not in _DEFAULT_PORTS:
        raise MisuseError(
            f"'{address}' is not a valid address. Write it as https://catalog.example.com."
        )
    if port is not None and port != _DEFAULT_PORTS[parts.scheme]:
        host = f"{host}:{port}"
    return f"{parts.scheme}://{host}{parts.path.rstrip('/')}"


def platform_kind(platform: str) -> str:
    """The kind of a platform without its address: `datahub-file` for `datahub-file:copy.json`."""
    return platform.partition(":")[0]


class LocalPlatformSettings(Section, frozen=True, kw_only=True):
    """The store of Lumos itself, which has no settings."""


class Retries(Section, frozen=True, kw_only=True):
    """The maximum number of attempts of a request, and of seconds for all of them."""

    shorthand: ClassVar[str | None] = "attempts"

    attempts: Annotated[int, Meta(ge=1, le=100, description="a number from 1 to 100")] = 12
    longest: Seconds = 900


class ServerPlatform(Section, frozen=True, kw_only=True):
    """Settings of catalogs with an address and a token."""

    # The environment variable with the default token.
    variable: ClassVar[str]
    # The keys of the address and of the token.
    address_key: ClassVar[str]
    token_key: ClassVar[str]

    timeout: Seconds = 30
    retries: Retries = Retries()
    parallel: Annotated[int, Meta(ge=1, le=32, description="a number from 1 to 32")] = 4
    ca_file: Location | None = None

    @property
    def address(self) -> str:
        """The normalized address, so that two spellings of it are the same catalog."""
        return normalize_address(getattr(self, self.address_key))

    def secret(self, environment: Mapping[str, str] = os.environ) -> Secret | None:
        """The configured token, or the token in the environment variable of the catalog.

        Surrounding whitespace is ignored, since files with tokens often end in a line break.
        """
        configured: Secret | None = getattr(self, self.token_key)
        value = environment.get(self.variable, "") if configured is None else configured.reveal()
        token = value.strip()
        if not token:
            return None
        if not (token.isascii() and token.isprintable() and " " not in token):
            raise MisuseError(
                f"Invalid token: it contains spaces, line breaks or non-ASCII characters. Check "
                f"'{self.token_key}' in the catalog's section of platform_config, or the "
                f"environment variable {self.variable}."
            )
        return Secret(token)

    def has_login(self, environment: Mapping[str, str] = os.environ) -> bool:
        """Whether requests carry a token or a password."""
        return self.secret(environment) is not None

    def at(self, address: str) -> Self:
        """The settings for another address, without the token of the configured one."""
        other_settings = msgspec.structs.replace(self, **{self.address_key: address})
        if other_settings.address == self.address:
            return self
        return msgspec.structs.replace(other_settings, **{self.token_key: None})


class DatahubPlatform(ServerPlatform, frozen=True, kw_only=True):
    """DataHub, by the address of its metadata service (GMS)."""

    variable: ClassVar[str] = "DATAHUB_GMS_TOKEN"
    address_key: ClassVar[str] = "gms_server"
    token_key: ClassVar[str] = "token"

    gms_server: Annotated[Address, alternative_names(also=("server",))] = "http://localhost:8080"
    token: Annotated[Secret | None, alternative_names(also=("auth_token",))] = None


class OpenmetadataPlatform(ServerPlatform, frozen=True, kw_only=True):
    """OpenMetadata; `services` maps existing services to sources."""

    variable: ClassVar[str] = "OPENMETADATA_JWT_TOKEN"
    address_key: ClassVar[str] = "server"
    token_key: ClassVar[str] = "auth_token"

    server: Address
    auth_token: Annotated[Secret | None, alternative_names(also=("token",))] = None
    services: dict[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The address without the path of the API, which other clients require."""
        return re.sub(r"/api(/v1)?\Z", "", super().address)


class AtlasPlatform(ServerPlatform, frozen=True, kw_only=True):
    """Apache Atlas, with a user and password or with a token."""

    variable: ClassVar[str] = "ATLAS_TOKEN"
    address_key: ClassVar[str] = "server"
    token_key: ClassVar[str] = "auth_token"

    server: Address
    user: User = None
    password: Secret | None = None
    auth_token: Annotated[Secret | None, alternative_names(also=("token",))] = None
    # Atlas needs tens of milliseconds for each entity that a request writes.
    timeout: Seconds = 120

    @property
    def address(self) -> str:
        """The address without the path of the API, which other clients require."""
        return re.sub(r"/api/atlas(/v2)?\Z", "", super().address)

    def has_login(self, environment: Mapping[str, str] = os.environ) -> bool:
        """Whether requests carry a token or a password."""
        return self.user is not None or super().has_login(environment)

    def at(self, address: str) -> Self:
        """The settings for another address, without the credentials of the configured one."""
        other = super().at(address)
        if other.address == self.address:
            return other
        return msgspec.structs.replace(other, user=None, password=None)


class AmundsenPlatform(Section, frozen=True, kw_only=True):
    """Amundsen: its metadata service for reads, its Neo4j or SQL database for writes."""

    server: Address
    auth_token: Annotated[Secret | None, alternative_names(also=("token",))] = None
    neo4j_uri: ConnectionString | None = None
    neo4j_user: str | None = None
    neo4j_password: Secret | None = None
    connection_string: ConnectionString | None = None
    timeout: Seconds = 30
    ca_file: Location | None = None


class SnowflakePlatform(Section, frozen=True, kw_only=True):
    """Snowflake as a catalog: metadata is in tags and comments, the rest in tables of a schema."""

    account: str
    user: User = None
    password: Secret | None = None
    token: Secret | None = None
    authenticator: str | None = None
    private_key: Secret | None = None
    private_key_file: Location | None = None
    private_key_passphrase: Secret | None = None
    warehouse: str | None = None
    role: str | None = None
    database: str | None = None
    schema: str | None = None


class BigqueryPlatform(Section, frozen=True, kw_only=True):
    """BigQuery as a catalog."""

    project: str
    dataset: str | None = None
    location: str | None = None
    credentials_file: Location | None = None
    credentials: Secret | None = None


class RedshiftPlatform(Section, frozen=True, kw_only=True):
    """Redshift as a catalog."""

    connection_string: ConnectionString | None = None
    host: str | None = None
    port: Port = 5439
    database: str | None = None
    schema: str | None = None
    user: User = None
    password: Secret | None = None


class PlatformConfig(Section, frozen=True, kw_only=True):
    """Settings by platform; `others` are platforms of other packages with their own options."""

    rest: ClassVar[str | None] = "others"

    local: LocalPlatformSettings | None = None
    datahub: DatahubPlatform | None = None
    openmetadata: OpenmetadataPlatform | None = None
    atlas: AtlasPlatform | None = None
    amundsen: AmundsenPlatform | None = None
    snowflake: SnowflakePlatform | None = None
    bigquery: BigqueryPlatform | None = None
    redshift: RedshiftPlatform | None = None
    others: dict[str, dict[str, object]] = field(default_factory=dict)

    def of(self, platform: str) -> Section | dict[str, object] | None:
        """The settings of a platform, or None."""
        if platform in PLATFORMS:
            section: Section | None = getattr(self, platform)
            return section
        return self.others.get(platform)

    def address_of(self, platform: str) -> str | None:
        """The address of a platform that is given as KIND or KIND:ADDRESS, if it has one."""
        kind, _, address = platform.partition(":")
        section = self.of(kind)
        if isinstance(section, ServerPlatform):
            return (section.at(address) if address else section).address
        if isinstance(section, AmundsenPlatform):
            return section.server
        return address if address.startswith(("http://", "https://")) else None

    def named(self) -> tuple[str, ...]:
        """The platforms with settings."""
        ours = (name for name in PLATFORMS if getattr(self, name) is not None)
        return (*ours, *self.others)


PLATFORMS: Final = tuple(
    name for name in PlatformConfig.__struct_fields__ if name != PlatformConfig.rest
)
