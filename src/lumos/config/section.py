"""The base class of all configuration sections, and the annotated types of their keys."""

from typing import Annotated, ClassVar, Final, TypeAlias

import msgspec
from msgspec import Meta

PATH: Final = "path"
ALIASES: Final = "aliases"
SINGULAR_NAMES: Final = "singular"
FORMER_NAMES: Final = "former"
SPLIT: Final = "split"
INTERNAL: Final = "internal"


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mapping with a fixed set of keys."""

    # The field for all keys that have no field of their own, if any.
    rest: ClassVar[str | None] = None
    # The field for a plain value that is given instead of a mapping, if any.
    shorthand: ClassVar[str | None] = None
    # A key under which the keys of the section may also be nested, if any.
    nested: ClassVar[str | None] = None


def alternative_names(
    *, also: tuple[str, ...] = (), singular: tuple[str, ...] = (), former: tuple[str, ...] = ()
) -> Meta:
    """Other names of a key; `singular` names take a single item instead of a list."""
    return Meta(extra={ALIASES: also, SINGULAR_NAMES: singular, FORMER_NAMES: former})


Price: TypeAlias = Annotated[float, Meta(ge=0, description="a price of 0 or more")]
Port: TypeAlias = Annotated[int, Meta(ge=1, le=65535, description="a port from 1 to 65535")]
Seconds: TypeAlias = Annotated[
    int, Meta(ge=1, description="a number of seconds (an integer), at least 1")
]
Days: TypeAlias = Annotated[
    int, Meta(ge=0, le=36_500, description="a number of days (an integer); 0 means no limit")
]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1, description="a share from 0 to 1")]
# Addresses are displayed, so credentials have separate, masked keys.
Address: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^https?://(?!.*@)\S+$",
        description="an address such as https://catalog.example.com, without user and password",
    ),
]
Location: TypeAlias = Annotated[
    str,
    Meta(
        # In Azure addresses the part before the @ is a container.
        pattern=r"^(?!(?!(?:abfs|wasb)s?://[^/:@]+@)\w[\w+.-]*://[^/]*@)[\s\S]+$",
        description="a path or an address without user and password",
        extra={PATH: True},
    ),
]
Bucket: TypeAlias = Annotated[
    str,
    Meta(pattern=r"^(?!.*://)[^\s]+$", description="a bucket name without a scheme such as s3://"),
]
