"""Resolves table names, locations and URNs to the datasets of a store."""

import posixpath
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import SequenceMatcher, get_close_matches
from fnmatch import fnmatchcase
from functools import cache, cached_property
from typing import Final, NamedTuple
from urllib.parse import unquote

import msgspec

from lumos.config import Settings
from lumos.config.sql_names import SqlName
from lumos.errors import UnknownName
from lumos.lineage.reported_lineage import (
    DatasetReference,
    LocationReference,
    Resolution,
    ResolutionMethod,
    TableName,
    UrnReference,
)
from lumos.lineage.sql.dialects import NameFolding, find_dialect
from lumos.lineage.sql_files import model_name
from lumos.model.dataset_pattern import name_spellings, strip_extensions
from lumos.model.urn import DEFAULT_ENVIRONMENT, SCHEME, InvalidUrn, Urn, separator_of
from lumos.storage.uris import canonical
from lumos.store import Store
from lumos.store.datasets import DatasetLocation

# The platform of tables without any hint of their platform.
UNKNOWN_PLATFORM: Final = "sql"
# Default schemas of databases.
_DEFAULT_SCHEMAS: Final = frozenset(("public", "main", "dbo", "default"))
# Platforms where two tables may differ only in the case of their names.
_CASE_SENSITIVE: Final = frozenset(("postgres",))
# Engines whose tables may be scanned files.
_LAKE_ENGINES: Final = frozenset(
    ("athena", "clickhouse", "databricks", "delta-lake", "dremio", "duckdb", "glue", "hive",
     "iceberg", "impala", "presto", "spark", "trino", "unity-catalog", UNKNOWN_PLATFORM)
)  # fmt: skip
_PLATFORMS: Final = {
    "tsql": "mssql", "sqlserver": "mssql", "postgresql": "postgres", "sparksql": "spark",
    "spark2": "spark", "fabric": "mssql",
}  # fmt: skip
_STORAGE_PLATFORMS: Final = {
    "s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gcs", "gcs": "gcs", "abfs": "azure",
    "abfss": "azure", "az": "azure", "wasb": "azure", "wasbs": "azure", "adl": "azure",
    "postgresql": "postgres",
}  # fmt: skip
_HADOOP: Final = ("hdfs", "webhdfs", "swebhdfs")
# Prefixes that Spark and others put before a path.
_FORMATS: Final = frozenset(
    ("parquet", "delta", "iceberg", "orc", "avro", "csv", "json", "text", "binaryfile")
)
# The similarity from which a table name is suggested, from 0 to 1.
_MIN_SIMILARITY: Final = 0.75


class _Candidate(NamedTuple):
    urn: str
    platform: str
    instance: str
    environment: str
    path: tuple[str, ...]
    # 2 for a live dataset, 1 for a deleted one, 0 for one known only from lineage.
    certainty: int
    # Whether the path ends with the name of the dataset instead of the end of its URN.
    matches_display_name: bool = False
    # Whether it is the table of a query file, which may be named by the end of its path.
    is_model: bool = False


class NameIndex:
    """Finds the datasets of a store by name, location or URN."""

    def __init__(
        self,
        datasets: Iterable[DatasetLocation],
        ends: Iterable[str] = (),
        *,
        rules: Iterable[SqlName] = (),
        environment: str = DEFAULT_ENVIRONMENT,
        query_files: Iterable[str] = (),
    ) -> None:
        self._rules = tuple(rules)
        self._environment = environment
        self._by_name: dict[str, list[_Candidate]] = {}
        self._by_location: dict[str, str] = {}
        self._patterns: dict[str, list[tuple[str, str]]] = {}
        self._known: set[str] = set()
        self._assumed_before: set[str] = set()
        # The files that create tables named after their paths.
        self._model_files: dict[tuple[str, ...], list[str]] = {}
        for file in query_files:
            self._model_files.setdefault(model_name(file).path, []).append(file)
        for each in datasets:
            self._add(each)
        for urn in ends:
            if urn not in self._known:
                self._add_lineage_urn(urn)
        self._found: dict[tuple[DatasetReference, str | None], Resolution] = {}

    def __contains__(self, urn: str) -> bool:
        """Whether a URN belongs to a dataset."""
        return urn in self._known

    def find(
        self,
        reference: DatasetReference,
        *,
        dialect: str | None = None,
        others: Iterable[DatasetReference] = (),
    ) -> Resolution:
        """Resolve a reference by its name, or else by one of its `others`."""
        first = self._find(reference, dialect)
        if first.method not in (ResolutionMethod.ASSUMED, ResolutionMethod.AMBIGUOUS):
            return first
        for other in others:
            found = self._find(other, dialect)
            if found.method not in (ResolutionMethod.ASSUMED, ResolutionMethod.AMBIGUOUS):
                return found
        return first

    def assume(self, urn: str) -> None:
        """Register a derived URN, so that later uses of the name resolve to it."""
        if urn not in self._known and urn not in self._assumed_before:
            self._add_lineage_urn(urn)

    def has_rule(self, table: TableName, *, dialect: str | None) -> bool:
        """Whether a rule of the configuration applies to a name."""
        return any(rule.applies_to(table.parts, dialect) for rule in self._rules)

    def add_model(
        self, path: tuple[str, ...], file: str, *, dialect: str | None, dataset: str | None = None
    ) -> None:
        """Register the table, or the dataset, that a query file creates, under its path."""
        if dataset is not None:
            known = self._candidate(dataset, 2)._replace(path=path, is_model=True)
            self._by_name.setdefault(path[-1].lower(), []).append(known)
        else:
            files = self._model_files.setdefault(path, [])
            if file not in files:
                files.append(file)
            folded = _fold(path, dialect)
            urn = self._assumed_urn(TableName(parts=path), folded, dialect)
            # Read with another dialect before, the file created a table of another platform.
            same_name = self._by_name.get(path[-1].lower(), [])
            same_name[:] = (
                each for each in same_name if not each.is_model or _lower(each.path) != path
            )
            self._add_candidate(urn, 0)
        self._found.clear()

    def definitions(self, urns: Iterable[str]) -> dict[str, str]:
        """The query files that create some tables, and the shortest unambiguous name of each table.

        Empty if one of the tables is not created by a query file.
        """
        paths = {urn: _lower(tuple(filter(None, Urn.parse(urn).path))) for urn in urns}
        if not all(path in self._model_files for path in paths.values()):
            return {}
        found: dict[str, str] = {}
        for path in paths.values():
            others = [each for each in paths.values() if each != path]
            ends = (path[-count:] for count in range(1, len(path)))
            unique_ends = (
                end for end in ends if not any(each[-len(end) :] == end for each in others)
            )
            found |= dict.fromkeys(self._model_files[path], ".".join(next(unique_ends, path)))
        return dict(sorted(found.items()))

    def nearest(self, table: TableName, *, created: Collection[str] = ()) -> str | None:
        """Return the known dataset with the most similar name; `created` URNs count as known.

        The result has as many parts as the table's name, or is a URN if both names are equal.
        """
        name_to_match = ".".join(table.parts).lower()
        last = table.parts[-1].lower()
        comparable = {last, *self._names_by_end["^" + last[:3]], *self._names_by_end[last[-3:]]}
        best: tuple[float, int, str, str] | None = None
        for name in get_close_matches(last, comparable, n=5, cutoff=_MIN_SIMILARITY):
            for each in self._by_name.get(name, ()):
                is_known = each.urn in self._known or each.urn in created
                if not is_known or each.environment != self._environment:
                    continue
                path = (*each.path[:-1], strip_extensions(each.path[-1]))
                spelled = ".".join(path[-len(table.parts) :])
                similarity = SequenceMatcher(None, name_to_match, spelled.lower()).ratio()
                best = max(best or (0, 0, "", ""), (similarity, each.certainty, spelled, each.urn))
        if best is None:
            return None
        _, _, spelled, urn = best
        return urn if spelled.lower() == name_to_match else spelled

    @cached_property
    def _names_by_end(self) -> Mapping[str, list[str]]:
        """Names by their first and last three letters, so that few are compared."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for name in self._by_name:
            found["^" + name[:3]].append(name)
            found[name[-3:]].append(name)
        return found

    def _find(self, reference: DatasetReference, dialect: str | None) -> Resolution:
        key = (reference, dialect)
        if key not in self._found:
            match reference:
                case UrnReference():
                    self._found[key] = Resolution(
                        urn=str(Urn.parse(reference.urn)), method=ResolutionMethod.URN
                    )
                case LocationReference():
                    self._found[key] = self._find_location(reference.uri)
                case TableName():
                    self._found[key] = self._find_table(reference, dialect)
        return self._found[key]

    # Locations

    def _find_location(self, uri: str) -> Resolution:
        location = _normalize_uri(uri)
        for parent in _parents(location):
            if (urn := self._by_location.get(parent)) is not None:
                return Resolution(urn=urn, method=ResolutionMethod.LOCATION)
            for pattern, urn in self._patterns.get(posixpath.dirname(parent), ()):
                if fnmatchcase(parent, pattern):
                    return Resolution(urn=urn, method=ResolutionMethod.LOCATION)
        return Resolution(urn=self._assumed_location(location), method=ResolutionMethod.ASSUMED)

    def _assumed_location(self, location: str) -> str:
        scheme, is_address, rest = location.partition("://")
        if not is_address:
            path = [segment for segment in location.split("/") if segment]
            return str(Urn.of("file", path or [location], environment=self._environment))
        platform = _STORAGE_PLATFORMS.get(scheme.lower(), scheme.lower())
        authority, _, path_text = rest.partition("/")
        container, _, account = authority.partition("@")
        path = [part for part in (container, *path_text.split("/")) if part]
        instance = account.partition(".")[0]
        return str(Urn.of(platform, path, instance=instance, environment=self._environment))

    # Tables

    def _find_table(self, table: TableName, dialect: str | None) -> Resolution:
        if any("://" in part for part in table.parts):
            # Removes credentials from a URL.
            parts = tuple(_normalize_uri(part) if "://" in part else part for part in table.parts)
            table = msgspec.structs.replace(table, parts=parts)
        if (reference := _reference_in(table.parts)) is not None:
            return self._find(reference, dialect)
        ruled = self._apply_rules(table, dialect)
        if ruled is not None:
            return Resolution(urn=ruled, method=ResolutionMethod.RULE)
        table = self._complete_name(table, dialect)
        folded = _fold(table.parts, table.platform or dialect)
        candidates = self._candidates(table, folded, _platform_of(dialect))
        best = _best_candidates(candidates, folded, prefer=_platform_of(dialect))
        if len(best) == 1:
            # A name that only lineage mentions was assumed before.
            method = ResolutionMethod.NAME if best[0].certainty else ResolutionMethod.ASSUMED
            return Resolution(urn=best[0].urn, method=method)
        assumed = self._assumed_urn(table, folded, dialect)
        if best and (best[0].is_model or assumed not in {each.urn for each in best}):
            urns = tuple(sorted(each.urn for each in best))
            return Resolution(urn=assumed, method=ResolutionMethod.AMBIGUOUS, candidates=urns)
        return Resolution(urn=assumed, method=ResolutionMethod.ASSUMED)

    def _apply_rules(self, table: TableName, dialect: str | None) -> str | None:
        for rule in self._rules:
            if (
                rule.applies_to(table.parts, dialect)
                and (urn := rule.urn_of(table.parts)) is not None
            ):
                return urn
        return None

    def _complete_name(self, table: TableName, dialect: str | None) -> TableName:
        """The name, completed by the rules of the configuration."""
        for rule in self._rules:
            if rule.urn is not None or not rule.applies_to(table.parts, dialect):
                continue
            parts = table.parts
            if len(parts) == 1 and rule.schema:
                parts = (rule.schema, *parts)
            if len(parts) == 2 and rule.database:
                parts = (rule.database, *parts)
            return TableName(
                parts=parts,
                platform=table.platform or rule.platform,
                instance=table.instance or rule.instance,
            )
        return table

    def _candidates(
        self, table: TableName, folded: tuple[str, ...], platform: str | None
    ) -> list[_Candidate]:
        # delta.csv.gz is recorded as delta.csv.
        spelled = (self._by_name.get(each.lower()) for each in name_spellings(folded[-1]))
        named = [
            each
            for each in next(filter(None, spelled), ())
            if each.environment == self._environment
        ]
        if table.platform is None:
            if platform is None or platform in _LAKE_ENGINES:
                return named
            # A table assumed on another platform is a different table.
            fitting = (platform, UNKNOWN_PLATFORM)
            return [each for each in named if each.certainty or each.platform in fitting]
        own = [each for each in named if each.platform == table.platform]
        if table.instance is not None:
            # The store may have a configured instance name, other tools the host name.
            same = [each for each in own if each.instance == table.instance]
            own = same or own
        # Only a scanned dataset excludes files of the same name; an assumed table does not.
        is_scanned = any(each.certainty and _rank(each, folded) for each in own)
        if is_scanned or table.platform not in _LAKE_ENGINES:
            return own
        return [*own, *(each for each in named if _is_lake(each.platform))]

    def _assumed_urn(self, table: TableName, folded: tuple[str, ...], dialect: str | None) -> str:
        platform = table.platform or _platform_of(dialect) or UNKNOWN_PLATFORM
        instance = table.instance or ""
        try:
            return str(Urn.of(platform, folded, instance=instance, environment=self._environment))
        except InvalidUrn:
            return str(Urn.of(UNKNOWN_PLATFORM, folded, environment=self._environment))

    # Registration

    def _add(self, listing: DatasetLocation) -> None:
        self._known.add(listing.urn)
        if listing.state == "split":
            # Its files now belong to other datasets.
            return
        self._add_candidate(listing.urn, 2 if listing.state == "live" else 1, listing.name)
        if listing.uri is None or (
            listing.state != "live" and _normalize_uri(listing.uri) in self._by_location
        ):
            return
        location = _normalize_uri(listing.uri)
        if set(location) & set("*?["):
            self._patterns.setdefault(posixpath.dirname(location), []).append(
                (location, listing.urn)
            )
        else:
            self._by_location[location] = listing.urn

    def _add_lineage_urn(self, urn: str) -> None:
        self._assumed_before.add(urn)
        try:
            self._add_candidate(urn, 0)
        except InvalidUrn:
            # Imported URNs may come from other tools; no table has such a name.
            return

    def _candidate(self, urn: str, certainty: int) -> _Candidate:
        parsed = Urn.parse(urn)
        path = tuple(segment for segment in parsed.path if segment)
        is_model = certainty == 0 and _lower(path) in self._model_files
        return _Candidate(
            urn, parsed.platform, parsed.instance, parsed.environment, path, certainty,
            is_model=is_model,
        )  # fmt: skip

    def _add_candidate(self, urn: str, certainty: int, display_name: str = "") -> None:
        candidate = self._candidate(urn, certainty)
        path = candidate.path
        if not path:
            return
        for name in {path[-1].lower(), strip_extensions(path[-1]).lower()}:
            self._by_name.setdefault(name, []).append(candidate)
        if not display_name or not _is_lake(candidate.platform):
            return
        # rates_NNN.csv is named rates, and orders/orders.csv may be referred to by its folder.
        if display_name.lower() not in (path[-1].lower(), strip_extensions(path[-1]).lower()):
            named = candidate._replace(path=(*path[:-1], display_name), matches_display_name=True)
            self._by_name.setdefault(display_name.lower(), []).append(named)
        if len(path) > 1 and path[-2].lower() == display_name.lower():
            parent = candidate._replace(path=path[:-1], matches_display_name=True)
            self._by_name.setdefault(display_name.lower(), []).append(parent)


def load_name_index(settings: Settings, store: Store | None) -> NameIndex:
    """The name index of a store."""
    return NameIndex(
        () if store is None else store.dataset_locations(),
        () if store is None else store.lineage.ends(),
        rules=settings.sql_names,
        environment=settings.environment,
        query_files=()
        if store is None
        else (name.removeprefix("sql:") for name in store.lineage.reporter_names("sql:")),
    )


def _best_candidates(
    candidates: Iterable[_Candidate], folded: tuple[str, ...], *, prefer: str | None
) -> list[_Candidate]:
    """The candidates with the highest rank: live datasets, matching parts, then the platform."""
    ranked: dict[tuple[int, ...], list[_Candidate]] = {}
    for each in candidates:
        if (rank := _rank(each, folded)) is not None:
            is_preferred = int(each.platform == prefer)
            key = (
                each.certainty,
                int(each.is_model),
                *rank,
                int(not each.matches_display_name),
                is_preferred,
            )
            ranked.setdefault(key, []).append(each)
    best = ranked[max(ranked)] if ranked else []
    return list({each.urn: each for each in best}.values())


def _rank(candidate: _Candidate, folded: tuple[str, ...]) -> tuple[int, int] | None:
    """Count matching trailing parts, and those in the same case; None if a part differs.

    A query file matches by the end of its path. Paths of files need not contain catalogs and
    default schemas. A dataset that was never scanned must match in full.
    """
    path = _fold(candidate.path, candidate.platform)
    if candidate.is_model:
        is_end = _lower(path[-len(folded) :]) == _lower(folded)
        return (len(folded), int(path[-len(folded) :] == folded)) if is_end else None
    if _is_lake(candidate.platform) and path[-1].lower() != folded[-1].lower():
        path = (*path[:-1], strip_extensions(path[-1]))
        if path[-1].lower() != folded[-1].lower():
            folded = (*folded[:-1], strip_extensions(folded[-1]))
    common = min(len(path), len(folded))
    equal = [
        own.lower() == given.lower()
        for own, given in zip(reversed(path[-common:]), reversed(folded[-common:]), strict=True)
    ]
    if not equal[0] or (candidate.certainty == 0 and len(path) != len(folded)):
        return None
    needed = equal
    if _is_lake(candidate.platform) and candidate.certainty:
        is_default_schema = len(folded) > 1 and folded[-2] in _DEFAULT_SCHEMAS
        needed = equal[:1] if is_default_schema else equal[:2]
    if not all(needed):
        return None
    matched = next((number for number, same in enumerate(equal) if not same), len(equal))
    is_exact = path[-matched:] == folded[-matched:]
    if not is_exact and candidate.platform in _CASE_SENSITIVE:
        return None
    return matched, int(is_exact)


def _lower(parts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.lower() for part in parts)


def _is_lake(platform: str) -> bool:
    return separator_of(platform) == "/"


def _fold(parts: tuple[str, ...], dialect: str | None) -> tuple[str, ...]:
    """Parts in the case that the dialect stores."""
    folding = _folding(dialect)
    return tuple(folding.text(part, quoted=True) for part in parts)


@cache
def _folding(dialect: str | None) -> NameFolding:
    try:
        return NameFolding(find_dialect(dialect))
    except UnknownName:
        return NameFolding(find_dialect(None))


def _platform_of(dialect: str | None) -> str | None:
    name = (dialect or "").lower()
    return _PLATFORMS.get(name, name) or None


def _reference_in(parts: tuple[str, ...]) -> DatasetReference | None:
    """The URN or path that a query uses like a table name."""
    text = parts[-1]
    if len(parts) == 1 and text.startswith(SCHEME):
        return UrnReference(urn=text)
    is_path = "://" in text or text.startswith("/")
    is_alone = len(parts) == 1 or (len(parts) == 2 and parts[0].lower() in _FORMATS)
    return LocationReference(uri=text) if is_path and is_alone else None


def _normalize_uri(uri: str) -> str:
    """The normal form of a location, as scans record it."""
    scheme, is_address, rest = uri.partition("://")
    if not is_address:
        if uri.startswith("file:"):
            uri = unquote(uri.removeprefix("file:"))
        return uri.rstrip("/") or "/"
    scheme = scheme.lower()
    without_query, _, query = rest.partition("?")
    if "=" in query:
        # Query parameters of connections and signed URLs are often secret and not part of the
        # location.
        rest = without_query
    if scheme == "file":
        path = unquote(rest)
        return (path if path.startswith("/") else "/" + path.partition("/")[2]).rstrip("/") or "/"
    if scheme in _HADOOP:
        # Ports distinguish name nodes from web servers, not file systems.
        host, slash, path = rest.partition("/")
        scheme, rest = "hdfs", f"{host.partition(':')[0]}{slash}{path}"
    return canonical(f"{scheme}://{rest.rstrip('/')}")


def _parents(location: str) -> Iterator[str]:
    """A location and its parents, nearest first."""
    scheme, is_address, rest = location.partition("://")
    start = f"{scheme}://" if is_address else ""
    path = rest if is_address else location
    while path and path != "/":
        yield start + path
        path = path.rpartition("/")[0]
