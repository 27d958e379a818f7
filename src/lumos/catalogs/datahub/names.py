"""Converts names between DataHub and Lumos without loss.

`lumos://snowflake@eu/FINANCE/customers?env=DEV` is
`urn:li:dataset:(urn:li:dataPlatform:snowflake,eu.FINANCE.customers,DEV)`. Characters that DataHub
reserves are percent-encoded as by DataHub.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import quote

from lumos.catalogs.escaping import PercentEscaping
from lumos.errors import MisuseError
from lumos.model.urn import InvalidUrn, Urn, separator_of

# The environments that a DataHub server accepts.
ENVIRONMENTS: Final = frozenset(
    {"DEV", "TEST", "QA", "UAT", "EI", "PRE", "STG", "NON_PROD", "PROD", "CORP", "RVW", "PRD",
     "TST", "SIT", "SBX", "SANDBOX", "CERT"}
)  # fmt: skip
MAX_URN_LENGTH: Final = 512
"""The maximum number of characters of a percent-encoded URN."""
_WRAPPER_PLATFORM: Final = "datahub"
_OTHER_ENVIRONMENT: Final = "NON_PROD"
# Separates an explicit instance from the name. `@` is only encoded here, and `?` only before an
# environment in a name.
_AT: Final = "%40"
_ENVIRONMENT: Final = re.compile(r"%(?P<more>(?:25)*)3Fenv=(?P<name>[A-Z][A-Z0-9_-]*)\Z", re.ASCII)
_RESERVED: Final = "(),\u241f"
_PLATFORM: Final = "urn:li:dataPlatform:"
_DATASET: Final = re.compile(
    rf"urn:li:dataset:\({_PLATFORM}(?P<platform>[^,()]+),(?P<name>.+),(?P<environment>[^,()]+)\)\Z",
    re.DOTALL,
)
_FIELD: Final = re.compile(
    r"urn:li:schemaField:\((?P<parent>urn:li:dataset:\(.*\)),(?P<path>.*)\)\Z", re.DOTALL
)


class FieldName(NamedTuple):
    """The DataHub URN of a dataset and the DataHub path of one of its fields."""

    dataset: str
    path: str


_NAMES: Final = PercentEscaping(_RESERVED)
_INSTANCES: Final = PercentEscaping(_RESERVED, reserved=[_AT])
_SEGMENTS: Final = {
    separator: PercentEscaping(_RESERVED + separator, reserved=[_AT]) for separator in "./"
}


def encode_name(name: str) -> str:
    """Encode a name, or a part of one, for a URN."""
    return _NAMES.encode(name)


def decode_name(text: str) -> str:
    return _NAMES.decode(text)


def entity_urn(type: str, name: str) -> str:
    """The URN of an entity with a single name: a tag, a term, a user."""
    return f"urn:li:{type}:{_NAMES.encode(name)}"


def entity_name(type: str, urn: str) -> str | None:
    """The name in the URN of a tag, a term or a user; None for a URN of another type."""
    prefix = f"urn:li:{type}:"
    return _NAMES.decode(urn[len(prefix) :]) if urn.startswith(prefix) and urn != prefix else None


def is_acceptable(urn: str) -> bool:
    """Whether a server accepts the length of a URN and its first and last character."""
    # A character has at most four bytes, each encoded as three characters.
    is_short = len(urn) * 12 <= MAX_URN_LENGTH or len(quote(urn, safe="")) <= MAX_URN_LENGTH
    return is_short and urn == urn.strip()


def platform_urn(platform: str) -> str:
    return f"{_PLATFORM}{platform}"


def instance_urn(platform: str, instance: str) -> str:
    return f"urn:li:dataPlatformInstance:({platform_urn(platform)},{_NAMES.encode(instance)})"


def instance_name(urn: str) -> str | None:
    """The instance in the URN of a platform instance."""
    match = re.match(r"urn:li:dataPlatformInstance:\([^,]+,(.+)\)\Z", urn, re.DOTALL)
    return _NAMES.decode(match[1]) if match else None


def field_urn(dataset: str, path: str) -> str:
    """The URN of a field of a dataset, by its DataHub path."""
    return f"urn:li:schemaField:({dataset},{_NAMES.encode(path)})"


def field_name(urn: str) -> FieldName | None:
    match = _FIELD.match(urn)
    return FieldName(match["parent"], _NAMES.decode(match["path"])) if match else None


@lru_cache(maxsize=4_096)
def dataset_urn(urn: Urn, *, explicit_instance: bool = False) -> str:
    """DataHub's URN of a dataset.

    The instance is separated by a dot, as by DataHub's own sources, so datasets of other instances
    can have the same URN. With `explicit_instance` the separator is unambiguous.
    """
    wrapped = _wrapped_urn(urn)
    if wrapped is not None and lumos_urn(wrapped) == urn:
        return wrapped
    return _encode_urn(urn, explicit_instance=explicit_instance)


@lru_cache(maxsize=4_096)
def lumos_urn(urn: str, instance: str | None = None) -> Urn | None:
    """A dataset's URN in Lumos, or None if this is not the URN of a dataset.

    DataHub stores the `instance` of a dataset in an aspect. A URN that does not round-trip
    (converting the result back gives another URN) is wrapped: it becomes the path of a URN with the
    platform `datahub`.
    """
    if not urn.startswith("urn:li:dataset:"):
        return None
    decoded = _decode_urn(urn, instance)
    if (
        decoded is not None
        and _encode_urn(decoded, explicit_instance=has_explicit_instance(urn)) == urn
        and ((wrapped := _wrapped_urn(decoded)) is None or lumos_urn(wrapped) != decoded)
    ):
        return decoded
    # Without its instance, the name may be empty; then it does not start with an instance.
    return Urn(_WRAPPER_PLATFORM, (urn,)) if instance is None else lumos_urn(urn)


def has_explicit_instance(urn: str) -> bool:
    """Whether a dataset's URN contains the instance explicitly."""
    return _AT in urn


def is_ambiguous(urn: str) -> bool:
    """Whether a dataset with an instance may have the same DataHub URN."""
    match = _DATASET.match(urn)
    return match is not None and not has_explicit_instance(urn) and "." in match["name"][1:-1]


def _wrapped_urn(urn: Urn) -> str | None:
    """The DataHub URN that a URN of Lumos wraps, or None."""
    is_only_segment = urn == Urn(_WRAPPER_PLATFORM, urn.path) and len(urn.path) == 1
    return urn.path[0] if is_only_segment and urn.path[0].startswith("urn:li:dataset:") else None


def _encode_urn(urn: Urn, *, explicit_instance: bool) -> str:
    separator = separator_of(urn.platform)
    name = separator.join(map(_SEGMENTS[separator].encode, urn.path))
    if explicit_instance or urn.instance:
        name = f"{_INSTANCES.encode(urn.instance)}{_AT if explicit_instance else '.'}{name}"
    environment = urn.environment
    if environment not in ENVIRONMENTS:
        name, environment = f"{name}%3Fenv={environment}", _OTHER_ENVIRONMENT
    elif environment == _OTHER_ENVIRONMENT:
        name = _ENVIRONMENT.sub(lambda match: f"%25{match.group()[1:]}", name)
    return f"urn:li:dataset:({platform_urn(urn.platform)},{name},{environment})"


def _decode_urn(urn: str, instance: str | None) -> Urn | None:
    match = _DATASET.match(urn)
    if match is None:
        return None
    name, environment = match["name"], match["environment"]
    if environment == _OTHER_ENVIRONMENT and (end := _ENVIRONMENT.search(name)):
        if end["more"]:
            name = f"{name[: end.start()]}%{end.group()[3:]}"
        else:
            name, environment = name[: end.start()], end["name"]
    prefix, separator, rest = name.partition(_AT)
    if separator:
        instance, name = _INSTANCES.decode(prefix), rest
    elif instance is not None:
        prefix = f"{_INSTANCES.encode(instance)}."
        if name.startswith(prefix):
            name = name[len(prefix) :]
        else:
            instance = None
    separator = separator_of(match["platform"])
    path = map(_SEGMENTS[separator].decode, name.split(separator))
    try:
        return Urn.of(match["platform"], path, instance=instance or "", environment=environment)
    except InvalidUrn:
        return None


class Naming:
    """The names of datasets in one catalog, and which of them are taken.

    In one catalog, each DataHub URN belongs to one dataset and each dataset has one DataHub URN,
    even if the dataset does not exist and only edges refer to it.
    """

    def __init__(self) -> None:
        self._to_lumos: dict[str, str] = {}
        self._to_datahub: dict[str, str] = {}
        self._expected: dict[str, str] = {}
        self._reserved_to_lumos: dict[str, str] = {}
        self._reserved_to_datahub: dict[str, str] = {}

    def add(self, datahub: str, instance: str | None) -> None:
        """Add an existing dataset with its instance."""
        self.remove(datahub)
        self._expected.pop(datahub, None)
        urn = lumos_urn(datahub, instance)
        assert urn is not None, f"{datahub} is not the URN of a dataset"
        self._to_lumos[datahub] = str(urn)
        self._to_datahub[str(urn)] = datahub

    def remove(self, datahub: str) -> None:
        """Release the name of a dataset that does not exist."""
        lumos = self._to_lumos.pop(datahub, None)
        if lumos is not None and self._to_datahub.get(lumos) == datahub:
            del self._to_datahub[lumos]

    def reserve(self, lumos: str, datahub: str | None = None) -> None:
        """Reserve the name of a dataset that edges refer to, whether or not it exists."""
        if datahub is None:
            datahub = self.to_datahub(lumos)
        if datahub is not None:
            self._reserved_to_lumos.setdefault(datahub, lumos)
            self._reserved_to_datahub.setdefault(lumos, datahub)

    def expect(self, lumos: str) -> str | None:
        """Assume that a dataset will be added; return its DataHub URN if it does not exist yet."""
        datahub = self.to_datahub(lumos)
        if datahub is None or datahub in self._to_lumos:
            return None
        self._expected[datahub] = lumos
        return datahub

    def take_missing(self) -> frozenset[str]:
        """Return and forget the expected datasets that were not added."""
        missing = frozenset(self._expected)
        self._expected.clear()
        return missing

    def existing_datasets(self) -> Mapping[str, str]:
        """The DataHub URNs of existing datasets by their URNs in Lumos."""
        return self._to_datahub

    def to_lumos(self, datahub: str) -> str:
        """The URN in Lumos; URNs that are not of datasets are returned unchanged."""
        known = self._to_lumos.get(datahub) or self._expected.get(datahub)
        if known is not None:
            return known
        urn = lumos_urn(datahub)
        return datahub if urn is None else str(urn)

    def to_datahub(self, lumos: str) -> str | None:
        """The DataHub URN of a dataset, or None if `lumos` is not the URN of a dataset."""
        if (known := self._to_datahub.get(lumos)) is not None:
            return known
        reserved = self._reserved_to_datahub.get(lumos)
        if reserved is not None and self._is_free(reserved, lumos):
            return reserved
        if (urn := parse_dataset_urn(lumos)) is None:
            return None
        datahub = dataset_urn(urn)
        is_free = self._is_free(datahub, lumos)
        return datahub if is_free else dataset_urn(urn, explicit_instance=True)

    def _is_free(self, datahub: str, lumos: str) -> bool:
        """Whether no other dataset has a name; existing datasets precede those that reserve it."""
        owner = self._to_lumos.get(datahub, self._reserved_to_lumos.get(datahub, lumos))
        return owner == lumos


@lru_cache(maxsize=65_536)
def may_refer_to(datahub: str, lumos: str) -> bool:
    """Whether a DataHub URN may belong to a dataset of Lumos."""
    urn = parse_dataset_urn(lumos)
    return (
        urn is not None
        and dataset_urn(urn, explicit_instance=has_explicit_instance(datahub)) == datahub
    )


@lru_cache(maxsize=4_096)
def parse_dataset_urn(text: str) -> Urn | None:
    """Parse the canonical URN of a dataset, or return None."""
    try:
        urn = Urn.parse(text)
    except InvalidUrn:
        return None
    return urn if str(urn) == text else None


def check_dataset_urn(text: str) -> None:
    """Raise an error unless this is the canonical URN of a dataset."""
    if (urn := str(Urn.parse(text))) != text:
        raise MisuseError(f"'{text}' is not the canonical form of a URN. Use '{urn}'.")
