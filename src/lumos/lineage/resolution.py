"""How a name that somebody uses was found among the datasets."""

import enum

import msgspec


class Way(enum.StrEnum):
    """How a dataset was found."""

    URN = "urn"
    RULE = "rule"
    PLACE = "place"
    NAME = "name"
    # No dataset is called so: a URN was made up, under which it will be known until one is found.
    ASSUMED = "assumed"
    # Several are called so, and none was taken.
    AMBIGUOUS = "ambiguous"


class Found(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A dataset's URN, how it was found, and which others it could have been."""

    urn: str
    way: Way
    candidates: tuple[str, ...] = ()
