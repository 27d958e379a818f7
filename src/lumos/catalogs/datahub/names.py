"""Names in DataHub and in Lumos, from one to the other and back without loss.

`lumos://snowflake@eu/FINANCE/customers?env=DEV` is
`urn:li:dataset:(urn:li:dataPlatform:snowflake,eu.FINANCE.customers,DEV)`. Characters that DataHub
keeps for itself are percent-encoded as DataHub does it; text that only looks encoded gets another
`25`, so that every text has one spelling and every spelling one text.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from lumos.model.urn import InvalidUrn, Urn, separator_of

# The environments that a DataHub server accepts.
ENVIRONMENTS: Final = frozenset(
    {"DEV", "TEST", "QA", "UAT", "EI", "PRE", "STG", "NON_PROD", "PROD", "CORP", "RVW", "PRD",
     "TST", "SIT", "SBX", "SANDBOX", "CERT"}
)  # fmt: skip
# Characters of a URN, percent-encoded.
LONGEST: Final = 512
_HATCH: Final = "datahub"
_STRANGE_ENVIRONMENT: Final = "NON_PROD"
# Between an instance and a name that are kept apart, and before an environment in a name. Neither
# character is ever encoded for another reason.
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
    """A field of a dataset, by the names that DataHub has for both."""

    dataset: str
    path: str


class _Spelling:
    """One spelling for each text: some characters percent-encoded, and no others."""

    def __init__(self, encoded: str, kept: str = "") -> None:
        ends = [*map(_percent, f"{_RESERVED}{encoded}{kept}"), "%ED%[AB][0-9A-F]%[89AB][0-9A-F]"]
        self._escapes = re.compile(f"%((?:25)*)(?:{'|'.join(end[1:] for end in ends)})")
        self._characters = re.compile(f"[{re.escape(_RESERVED + encoded)}\ud800-\udfff]")

    def encoded(self, text: str) -> str:
        guarded = self._escapes.sub(lambda match: f"%25{match.group()[1:]}", text)
        return self._characters.sub(lambda match: _percent(match.group()), guarded)

    def decoded(self, text: str) -> str:
        return self._escapes.sub(_plain, text)


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def _plain(match: re.Match[str]) -> str:
    if match[1]:
        return f"%{match.group()[3:]}"
    return unquote(match.group(), errors="surrogatepass")


_NAMES: Final = _Spelling("")
_INSTANCES: Final = _Spelling("", kept="@")
_SEGMENTS: Final = {separator: _Spelling(separator, kept="@") for separator in "./"}


def encode_name(name: str) -> str:
    """A name, or a part of one, as it stands in a URN."""
    return _NAMES.encoded(name)


def decode_name(text: str) -> str:
    return _NAMES.decoded(text)


def entity_urn(type: str, name: str) -> str:
    """The URN of something that DataHub knows by one name: a tag, a term, a user."""
    return f"urn:li:{type}:{_NAMES.encoded(name)}"


def entity_name(type: str, urn: str) -> str | None:
    """The name in such a URN, or None for a URN of another type."""
    prefix = f"urn:li:{type}:"
    return _NAMES.decoded(urn[len(prefix) :]) if urn.startswith(prefix) and urn != prefix else None


def is_acceptable(urn: str) -> bool:
    """Whether a server of DataHub takes a URN, as far as its length and its ends go."""
    # A character is at most four bytes of three characters each.
    is_short = len(urn) * 12 <= LONGEST or len(quote(urn, safe="")) <= LONGEST
    return is_short and urn == urn.strip()


def platform_urn(platform: str) -> str:
    return f"{_PLATFORM}{platform}"


def instance_urn(platform: str, instance: str) -> str:
    return f"urn:li:dataPlatformInstance:({platform_urn(platform)},{_NAMES.encoded(instance)})"


def instance_name(urn: str) -> str | None:
    """The instance in a URN of one."""
    match = re.match(r"urn:li:dataPlatformInstance:\([^,]+,(.+)\)\Z", urn, re.DOTALL)
    return _NAMES.decoded(match[1]) if match else None


def field_urn(dataset: str, path: str) -> str:
    """The URN of a field of a dataset, by its DataHub path."""
    return f"urn:li:schemaField:({dataset},{_NAMES.encoded(path)})"


def field_name(urn: str) -> FieldName | None:
    match = _FIELD.match(urn)
    return FieldName(match["parent"], _NAMES.decoded(match["path"])) if match else None


@lru_cache(maxsize=4_096)
def dataset_urn(urn: Urn, *, apart: bool = False) -> str:
    """DataHub's URN of a dataset.

    An instance stands before a dot, as in names that DataHub's own sources make. So a dataset of
    another instance or of none can have the same name; then another sign keeps them `apart`.
    """
    hatched = _hatched(urn)
    if hatched is not None and lumos_urn(hatched) == urn:
        return hatched
    return _spelled(urn, apart=apart)


@lru_cache(maxsize=4_096)
def lumos_urn(urn: str, instance: str | None = None) -> Urn | None:
    """A dataset's URN in Lumos, or nothing where the text is no URN of a dataset.

    The `instance` of a dataset is in another aspect. A URN that Lumos would
    spell in another way is kept whole in the path, under a platform of its own.
    """
    if not urn.startswith("urn:li:dataset:"):
        return None
    read = _read(urn, instance)
    if read is not None and _spelled(read, apart=is_apart(urn)) == urn and not _is_hatch(read):
        return read
    # Nothing but the instance would be left of some names, which then are no names in it.
    return Urn(_HATCH, (urn,)) if instance is None else lumos_urn(urn)


def is_apart(urn: str) -> bool:
    """Whether a dataset's URN contains the instance of the dataset."""
    return _AT in urn


def is_ambiguous(urn: str) -> bool:
    """Whether a dataset's URN may mean another dataset, which is in some instance."""
    match = _DATASET.match(urn)
    return match is not None and not is_apart(urn) and "." in match["name"][1:-1]


def _is_hatch(urn: Urn) -> bool:
    inside = _hatched(urn)
    return inside is not None and lumos_urn(inside) == urn


def _hatched(urn: Urn) -> str | None:
    """The DataHub URN that is kept whole in one of Lumos."""
    is_whole = urn == Urn(_HATCH, urn.path) and len(urn.path) == 1
    return urn.path[0] if is_whole and urn.path[0].startswith("urn:li:dataset:") else None


def _spelled(urn: Urn, *, apart: bool) -> str:
    separator = separator_of(urn.platform)
    name = separator.join(map(_SEGMENTS[separator].encoded, urn.path))
    if apart or urn.instance:
        name = f"{_INSTANCES.encoded(urn.instance)}{_AT if apart else '.'}{name}"
    environment = urn.environment
    if environment not in ENVIRONMENTS:
        name, environment = f"{name}%3Fenv={environment}", _STRANGE_ENVIRONMENT
    elif environment == _STRANGE_ENVIRONMENT:
        name = _ENVIRONMENT.sub(lambda match: f"%25{match.group()[1:]}", name)
    return f"urn:li:dataset:({platform_urn(urn.platform)},{name},{environment})"


def _read(urn: str, instance: str | None) -> Urn | None:
    match = _DATASET.match(urn)
    if match is None:
        return None
    name, environment = match["name"], match["environment"]
    if environment == _STRANGE_ENVIRONMENT and (end := _ENVIRONMENT.search(name)):
        if end["more"]:
            name = f"{name[: end.start()]}%{end.group()[3:]}"
        else:
            name, environment = name[: end.start()], end["name"]
    stated, mark, rest = name.partition(_AT)
    if mark:
        instance, name = _INSTANCES.decoded(stated), rest
    elif instance is not None:
        prefix = f"{_INSTANCES.encoded(instance)}."
        if name.startswith(prefix):
            name = name[len(prefix) :]
        else:
            instance = None
    separator = separator_of(match["platform"])
    path = map(_SEGMENTS[separator].decoded, name.split(separator))
    try:
        return Urn.of(match["platform"], path, instance=instance or "", environment=environment)
    except InvalidUrn:
        return None


class Naming:
    """Names that depend on each other: which instances there are, and which names are taken.

    In one catalog a name means one dataset, and a dataset has one name, whether it is there itself
    or only edges lead to it.
    """

    def __init__(self) -> None:
        self._lumos: dict[str, str] = {}
        self._datahub: dict[str, str] = {}
        self._expected: dict[str, str] = {}
        self._meant: dict[str, str] = {}
        self._called: dict[str, str] = {}

    def know(self, datahub: str, instance: str | None) -> None:
        """Adds a dataset that is there, with its instance."""
        self.forget(datahub)
        self._expected.pop(datahub, None)
        urn = lumos_urn(datahub, instance)
        assert urn is not None, "datasets have URNs of datasets"
        self._lumos[datahub] = str(urn)
        self._datahub[str(urn)] = datahub

    def forget(self, datahub: str) -> None:
        """Frees the name of a dataset that is no longer there."""
        lumos = self._lumos.pop(datahub, None)
        if lumos is not None and self._datahub.get(lumos) == datahub:
            del self._datahub[lumos]

    def mean(self, datahub: str, lumos: str) -> None:
        """Keeps a name for a dataset that an edge leads to by it, also while it is not there."""
        self._meant.setdefault(datahub, lumos)
        self._called.setdefault(lumos, datahub)

    def refer(self, lumos: str) -> None:
        """Settles the name of a dataset that edges will lead to."""
        if (datahub := self.datahub(lumos)) is not None:
            self.mean(datahub, lumos)

    def expect(self, lumos: str) -> str | None:
        """Assumes that a dataset will be there; returns its name if it is not there yet."""
        datahub = self.datahub(lumos)
        if datahub is None or datahub in self._lumos:
            return None
        self._expected[datahub] = lumos
        return datahub

    def missing(self) -> frozenset[str]:
        """The names of datasets that were expected in vain, which they no longer are."""
        missing = frozenset(self._expected)
        self._expected.clear()
        return missing

    def known(self) -> Mapping[str, str]:
        """The datasets that are there: Lumos's names, and DataHub's."""
        return self._datahub

    def lumos(self, datahub: str) -> str:
        """The URN in Lumos; anything but a dataset keeps its own."""
        known = self._lumos.get(datahub) or self._expected.get(datahub)
        if known is not None:
            return known
        urn = lumos_urn(datahub)
        return datahub if urn is None else str(urn)

    def datahub(self, lumos: str) -> str | None:
        """The name in DataHub, or nothing where this names no dataset of Lumos."""
        if (known := self._datahub.get(lumos)) is not None:
            return known
        called = self._called.get(lumos)
        if called is not None and self._is_free(called, lumos):
            return called
        if (urn := _urn(lumos)) is None:
            return None
        datahub = dataset_urn(urn)
        return datahub if self._is_free(datahub, lumos) else dataset_urn(urn, apart=True)

    def _is_free(self, datahub: str, lumos: str) -> bool:
        """Whether a name means no other dataset; one that is there goes before what edges mean."""
        return self._lumos.get(datahub, self._meant.get(datahub, lumos)) == lumos


@lru_cache(maxsize=65_536)
def can_mean(datahub: str, lumos: str) -> bool:
    """Whether a dataset may have that name in DataHub."""
    urn = _urn(lumos)
    return urn is not None and dataset_urn(urn, apart=is_apart(datahub)) == datahub


@lru_cache(maxsize=4_096)
def _urn(text: str) -> Urn | None:
    try:
        urn = Urn.parse(text)
    except InvalidUrn:
        return None
    return urn if str(urn) == text else None
