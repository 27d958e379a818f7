"""Dataset URNs: lumos://<platform>[@<instance>]/<path>[?env=DEV]."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import quote, unquote

import msgspec

from lumos.errors import MisuseError

SCHEME: Final = "lumos://"
DEFAULT_ENVIRONMENT: Final = "PROD"
# Does not match punctuation at the end, which belongs to the sentence around a URN.
_URN: Final = re.compile(r"lumos://[\w.+@%~=:,/?-]*[\w+@%~=/-]", re.ASCII)
_PLATFORM: Final = re.compile(r"[a-z][a-z0-9_.+-]*\Z", re.ASCII)
_ENVIRONMENT: Final = re.compile(r"[A-Z][A-Z0-9_-]*\Z", re.ASCII)
# All other characters are percent-encoded, so that a dataset has only one URN.
_UNENCODED_CHARACTERS: Final = "-._~=:@+,"

# Platforms whose dataset names are joined with dots in catalogs.
_PLATFORMS_WITH_DOTS: Final = frozenset(
    {"athena", "bigquery", "cassandra", "clickhouse", "cockroachdb", "databricks", "db2", "dbt",
     "delta-lake", "dremio", "druid", "duckdb", "glue", "hana", "hive", "iceberg", "impala", "kudu",
     "looker", "mariadb", "mongodb", "mssql", "mysql", "nessie", "netezza", "oracle", "postgres",
     "powerbi", "presto", "redshift", "sigma", "singlestore", "snowflake", "spark", "sqlite",
     "superset", "tableau", "teradata", "trino", "unity-catalog", "vertica"}
)  # fmt: skip


class InvalidUrn(MisuseError):
    """Text that is not a dataset URN."""

    def __init__(self, text: str, problem: str) -> None:
        self.text = text
        super().__init__(
            f"'{text}' is not a dataset URN: {problem}. "
            "A URN looks like lumos://s3/data-lake/raw/events or lumos://snowflake@eu/FINANCE/customers?env=DEV"
        )


class Urn(msgspec.Struct, frozen=True):
    """A dataset's platform, instance, path segments and environment."""

    platform: str
    path: tuple[str, ...]
    instance: str = ""
    environment: str = DEFAULT_ENVIRONMENT

    @classmethod
    def of(
        cls, platform: str, path: Iterable[str], *, instance: str = "", environment: str = ""
    ) -> "Urn":
        """A validated URN; an empty environment is the default one."""
        # A slash or an at sign in the platform would be parsed as path or instance.
        if not _PLATFORM.match(platform):
            raise InvalidUrn(platform, f"'{platform}' is not a valid platform name")
        return cls.parse(
            str(cls(platform, tuple(path), instance, environment or DEFAULT_ENVIRONMENT))
        )

    @classmethod
    def parse(cls, text: str) -> "Urn":
        if not text.startswith(SCHEME):
            raise InvalidUrn(text, f"it does not start with {SCHEME}")
        rest, mark, query = text[len(SCHEME) :].partition("?")
        authority, slash, path = rest.partition("/")
        platform, at, instance = authority.partition("@")
        if not _PLATFORM.match(platform):
            raise InvalidUrn(text, f"'{platform}' is not a valid platform name")
        if at and not instance:
            raise InvalidUrn(text, "the instance after '@' is empty")
        if not slash or not path:
            raise InvalidUrn(text, "it has no path")
        return cls(
            platform=platform,
            path=tuple(_decode(text, segment) for segment in path.split("/")),
            instance=_decode(text, instance),
            environment=_environment(text, query) if mark else DEFAULT_ENVIRONMENT,
        )

    @property
    def name(self) -> str:
        """The last segment, which is the name of the dataset."""
        return next((segment for segment in reversed(self.path) if segment), self.platform)

    @property
    def path_text(self) -> str:
        return "/".join(_encode(segment) for segment in self.path)

    def __str__(self) -> str:
        instance = f"@{_encode(self.instance)}" if self.instance else ""
        is_default = self.environment == DEFAULT_ENVIRONMENT
        environment = "" if is_default else f"?env={self.environment}"
        return f"{SCHEME}{self.platform}{instance}/{self.path_text}{environment}"


def display_names(urns: Iterable[str], recorded: Mapping[str, str]) -> dict[str, str]:
    """The display name of each dataset: its name, if no other dataset has the same.

    Datasets with equal names are distinguished by the shortest suffixes of their paths, or by URN
    if the paths are equal. `recorded` are the names of all stored datasets, from which display
    names of other datasets must differ.
    """
    distinct_urns = dict.fromkeys(urns)
    by_name: dict[str, list[str]] = {}
    for urn in {**distinct_urns, **recorded}:
        by_name.setdefault(recorded.get(urn) or name_in(urn), []).append(urn)
    names: dict[str, str] = {}
    for name, homonyms in by_name.items():
        is_unique = len(homonyms) == 1
        names |= {homonyms[0]: name} if is_unique else _distinct_suffixes(homonyms, by_name)
    return {urn: names[urn] for urn in distinct_urns}


class DisplayNames:
    """Replaces URNs in texts by display names; `find` returns the display names of given URNs."""

    def __init__(self, find: Callable[[Collection[str]], Mapping[str, str]]) -> None:
        self._find = find
        self._names: dict[str, str] = {}

    def look_up(self, texts: Iterable[str]) -> None:
        """Look up the display names of all URNs in the texts at once."""
        urns = {urn for text in texts for urn in _urns_in(text)}
        if new := urns - self._names.keys():
            self._names |= self._find(new)

    def __call__(self, text: str) -> str:
        self.look_up((text,))
        return self._names.get(text) or _URN.sub(lambda match: self._names[match.group()], text)


def _urns_in(text: str) -> list[str]:
    # A URN may end in characters that are punctuation in a sentence.
    return [text] if text.startswith(SCHEME) and " " not in text else _URN.findall(text)


def name_in(urn: str) -> str:
    """The last segment of a URN; other text unchanged."""
    try:
        return Urn.parse(urn).name
    except InvalidUrn:
        return urn


def _distinct_suffixes(urns: Iterable[str], taken: Container[str]) -> dict[str, str]:
    """The shortest suffixes of paths that are distinct, and not `taken` as names of others."""
    paths = {urn: _path_of(urn) for urn in urns}
    names = {urn: urn for urn in paths}
    unresolved = set(paths)
    for length in range(1, max(map(len, paths.values())) + 1):
        suffixes = {urn: "/".join(path[-length:]) for urn, path in paths.items()}
        count = Counter(suffixes.values())
        distinct = {
            urn
            for urn in unresolved
            if count[suffixes[urn]] == 1
            and length <= len(paths[urn])
            and suffixes[urn] not in taken
        }
        names |= {urn: suffixes[urn] for urn in distinct}
        unresolved -= distinct
    return names


def _path_of(urn: str) -> tuple[str, ...]:
    try:
        return tuple(segment for segment in Urn.parse(urn).path if segment)
    except InvalidUrn:
        return (urn,)


def separator_of(platform: str) -> str:
    """The separator of path segments in catalogs that identify a dataset by one name."""
    return "." if platform in _PLATFORMS_WITH_DOTS else "/"


def _environment(text: str, query: str) -> str:
    key, _, value = query.partition("=")
    if key != "env" or not _ENVIRONMENT.match(value):
        raise InvalidUrn(text, f"'?{query}' is not an environment such as ?env=DEV")
    return value


@lru_cache(maxsize=4096)
def _encode(segment: str) -> str:
    return quote(segment, safe=_UNENCODED_CHARACTERS, errors="surrogatepass")


def _decode(text: str, segment: str) -> str:
    try:
        return unquote(segment, errors="surrogatepass")
    except UnicodeDecodeError:
        raise InvalidUrn(text, f"'{segment}' is not percent-encoded UTF-8") from None
