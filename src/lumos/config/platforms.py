"""The catalogs metadata goes to: one section for each platform."""

import os
import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Self, TypeAlias
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, field

from lumos.config.secret import ConnectionString, Secret
from lumos.config.section import Address, Location, Port, Seconds, Section, spelled
from lumos.config.sources import User
from lumos.errors import MisuseError

LOCAL: Final = "local"
PlatformName: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^(?![\w-]+:\w+://[^/]*@)",
        description="the name of a platform, with an address without user and password if any",
    ),
]


_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def normal_address(address: str) -> str:
    """An address without what makes no difference: case of the host, usual port, last slash."""
    parts = urlsplit(address)
    if "@" in parts.netloc:
        raise MisuseError("An address has no user and password; a token has a key of its own.")
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    try:
        port = parts.port
    except ValueError:
        raise MisuseError(f"'{address}' has no port that could be one.") from None
    if not host or parts.scheme not in _DEFAULT_PORTS:
        raise MisuseError(f"'{address}' is no address such as https://catalog.example.com.")
    if port is not None and port != _DEFAULT_PORTS[parts.scheme]:
        host = f"{host}:{port}"
    return f"{parts.scheme}://{host}{parts.path.rstrip('/')}"


def kind_of(platform: str) -> str:
    """The kind of a platform, which an address may follow: `datahub-file:estate.json`."""
    return platform.partition(":")[0]


class LocalPlatform(Section, frozen=True, kw_only=True):
    """The store of Lumos itself, which needs no settings of its own."""


class Retries(Section, frozen=True, kw_only=True):
    """How often a call that failed is made again, and for how long in all."""

    shorthand: ClassVar[str | None] = "attempts"

    attempts: Annotated[int, Meta(ge=1, le=100, description="a number from 1 to 100")] = 12
    longest: Seconds = 900


class ServerPlatform(Section, frozen=True, kw_only=True):
    """What catalogs behind an address and a token have in common."""

    # Where a token is looked for that is not configured: a variable of the catalog's own.
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
        """The address in its one normal form, so that two spellings of it are one catalog."""
        return normal_address(getattr(self, self.address_key))

    def secret(self, environment: Mapping[str, str] = os.environ) -> Secret | None:
        """The token, or else the one that the environment has for the catalog's own programs.

        Blanks around it are not part of it: files from which it is read end in line breaks.
        """
        configured: Secret | None = getattr(self, self.token_key)
        given = environment.get(self.variable, "") if configured is None else configured.reveal()
        token = given.strip()
        if not token:
            return None
        if not (token.isascii() and token.isprintable() and " " not in token):
            raise MisuseError(
                f"This cannot be a token: it has blanks, line breaks or characters beyond ASCII "
                f"in it. It is given as '{self.token_key}' in the catalog's section of "
                f"platform_config, or in the environment variable {self.variable}."
            )
        return Secret(token)

    def at(self, address: str) -> Self:
        """The settings for another address, where the configured token has no business."""
        there = msgspec.structs.replace(self, **{self.address_key: address})
        if there.address == self.address:
            return self
        return msgspec.structs.replace(there, **{self.token_key: None})


class DatahubPlatform(ServerPlatform, frozen=True, kw_only=True):
    """DataHub, by the address of its metadata service."""

    variable: ClassVar[str] = "DATAHUB_GMS_TOKEN"
    address_key: ClassVar[str] = "gms_server"
    token_key: ClassVar[str] = "token"

    gms_server: Annotated[Address, spelled(also=("server",))] = "http://localhost:8080"
    token: Annotated[Secret | None, spelled(also=("auth_token",))] = None


class OpenmetadataPlatform(ServerPlatform, frozen=True, kw_only=True):
    """OpenMetadata, by the address of its server; `services` says what existing ones stand for."""

    variable: ClassVar[str] = "OPENMETADATA_JWT_TOKEN"
    address_key: ClassVar[str] = "server"
    token_key: ClassVar[str] = "auth_token"

    server: Address
    auth_token: Annotated[Secret | None, spelled(also=("token",))] = None
    services: dict[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Without the path of its interface, which other programs want to be told."""
        return re.sub(r"/api(/v1)?\Z", "", super().address)


class AtlasPlatform(Section, frozen=True, kw_only=True):
    """Apache Atlas, by the address of its server."""

    server: Address
    user: User = None
    password: Secret | None = None
    auth_token: Annotated[Secret | None, spelled(also=("token",))] = None
    timeout: Seconds = 30
    ca_file: Location | None = None


class AmundsenPlatform(Section, frozen=True, kw_only=True):
    """Amundsen: its metadata service for reads, its Neo4j or SQL database for writes."""

    server: Address
    auth_token: Annotated[Secret | None, spelled(also=("token",))] = None
    neo4j_uri: ConnectionString | None = None
    neo4j_user: str | None = None
    neo4j_password: Secret | None = None
    connection_string: ConnectionString | None = None
    timeout: Seconds = 30
    ca_file: Location | None = None


class SnowflakePlatform(Section, frozen=True, kw_only=True):
    """Snowflake as a catalog: metadata in its tags, comments and a schema for the rest."""

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

    local: LocalPlatform | None = None
    datahub: DatahubPlatform | None = None
    openmetadata: OpenmetadataPlatform | None = None
    atlas: AtlasPlatform | None = None
    amundsen: AmundsenPlatform | None = None
    snowflake: SnowflakePlatform | None = None
    bigquery: BigqueryPlatform | None = None
    redshift: RedshiftPlatform | None = None
    others: dict[str, dict[str, object]] = field(default_factory=dict)

    def of(self, platform: str) -> Section | dict[str, object] | None:
        """The settings of one platform, if any are given."""
        if platform in PLATFORMS:
            section: Section | None = getattr(self, platform)
            return section
        return self.others.get(platform)

    def named(self) -> tuple[str, ...]:
        """The platforms that have settings."""
        ours = (name for name in PLATFORMS if getattr(self, name) is not None)
        return (*ours, *self.others)


PLATFORMS: Final = tuple(
    name for name in PlatformConfig.__struct_fields__ if name != PlatformConfig.rest
)
