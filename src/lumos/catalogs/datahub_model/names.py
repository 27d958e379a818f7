"""Names in DataHub and in Lumos, from one to the other and back without loss.

`lumos://snowflake@eu/FINANCE/customers?env=DEV` is
`urn:li:dataset:(urn:li:dataPlatform:snowflake,eu.FINANCE.customers,DEV)`. Characters that DataHub
keeps for itself are percent-encoded as DataHub does it; text that only looks encoded gets another
`25`, so that every text has one spelling and every spelling one text.
"""

import re
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
    """The name of such a thing, or nothing where the URN is of another type."""
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
    another instance or of none can have the same name; then they are kept `apart` by another sign.
    """
    hatched = _hatched(urn)
    if hatched is not None and lumos_urn(hatched) == urn:
        return hatched
    return _spelled(urn, apart=apart)


@lru_cache(maxsize=4_096)
def lumos_urn(urn: str, instance: str | None = None) -> Urn | None:
    """A dataset's URN in Lumos, or nothing where the text is no URN of a dataset.

    DataHub says in another place which `instance` a dataset belongs to. A URN that Lumos would
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
    """Whether a dataset's URN says by itself which instance the dataset is in."""
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
