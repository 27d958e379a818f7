"""Programs that receive change events: webhooks, Redis Streams and Kafka topics."""

import base64
import binascii
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta, field

from lumos.config.secret import ConnectionString, Secret
from lumos.config.section import Section, alternative_names
from lumos.config.sources import KafkaSourceSettings, Names
from lumos.errors import MisuseError
from lumos.model.change import EventType, Verdict
from lumos.model.dataset_pattern import DatasetPattern

REDIS_SCHEMES: Final = ("redis://", "rediss://", "unix://")
# Secrets with this prefix are base64 (https://www.standardwebhooks.com).
_BASE64_PREFIX: Final = "whsec_"
_MIN_SECRET_BYTES: Final = 16


class ChangeFilter(Section, frozen=True, kw_only=True):
    """Filters for changes to send; an empty filter matches everything."""

    datasets: Annotated[Names, alternative_names(singular=("dataset",))] = ()
    verdicts: Annotated[tuple[Verdict, ...], alternative_names(singular=("verdict",))] = ()
    owners: Annotated[Names, alternative_names(singular=("owner",))] = ()
    events: Annotated[tuple[EventType, ...], alternative_names(singular=("event",))] = ()

    def __post_init__(self) -> None:
        for pattern in self.datasets:
            DatasetPattern(pattern)


class Subscriber(ChangeFilter, frozen=True, kw_only=True):
    """A program that receives change events as CloudEvents; `source` identifies this store."""

    type: str
    mode: Literal["structured", "binary"] = "structured"
    source: Annotated[
        str,
        Meta(pattern=r"^[\x21-\x7e]+$", description="a URI without spaces, such as /lumos/prod"),
    ] = "/lumos"


class WebhookSubscriber(Subscriber, frozen=True, kw_only=True):
    """An HTTP endpoint; requests are signed with each of the secrets."""

    type: Literal["webhook"] = "webhook"
    # A secret, since webhook addresses often contain a token.
    url: Secret
    secrets: Annotated[
        tuple[Secret, ...], Meta(min_length=1), alternative_names(singular=("secret",))
    ]
    headers: dict[str, Secret] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.url.reveal().startswith(("http://", "https://")):
            raise MisuseError("'url' is not an HTTP address. Expected: https://host/path")
        for key in self.keys():
            if len(key) < _MIN_SECRET_BYTES:
                raise MisuseError(
                    f"The secret of a webhook needs at least {_MIN_SECRET_BYTES} bytes. "
                    "Create one with: openssl rand -base64 32"
                )

    def keys(self) -> tuple[bytes, ...]:
        """The keys for signing requests."""
        return tuple(_key(each.reveal()) for each in self.secrets)


class RedisSubscriber(Subscriber, frozen=True, kw_only=True):
    """A Redis stream, which keeps about `max_length` events."""

    type: Literal["redis"] = "redis"
    url: ConnectionString
    stream: Annotated[str, Meta(min_length=1, max_length=200)] = "lumos:changes"
    max_length: Annotated[int, Meta(ge=1, description="a number of events, at least 1")] = 100_000

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.url.reveal().startswith(REDIS_SCHEMES):
            raise MisuseError("'url' is not a Redis URL. Expected: redis://host:6379/0")


class KafkaSubscriber(Subscriber, frozen=True, kw_only=True):
    """A Kafka topic; the connection has the same keys as a source of the type kafka."""

    rest: ClassVar[str | None] = "cluster"

    type: Literal["kafka"] = "kafka"
    topic: Annotated[str, Meta(min_length=1, max_length=249)]
    cluster: KafkaSourceSettings


SUBSCRIBERS: Final[dict[str, type[Subscriber]]] = {
    "webhook": WebhookSubscriber,
    "redis": RedisSubscriber,
    "kafka": KafkaSubscriber,
}


def _key(secret: str) -> bytes:
    if not secret.startswith(_BASE64_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_BASE64_PREFIX), validate=True)
    except binascii.Error:
        raise MisuseError("The secret of a webhook begins with whsec_ but is not base64.") from None
