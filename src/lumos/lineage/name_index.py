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

# The platform of tables whose platform is unknown.
UNKNOWN_PLATFORM: Final = "sql"
# Default schemas of databases.
_DEFAULT_SCHEMAS: Final = frozenset(("public", "main", "dbo", "default"))
# Platforms on which two tables may differ only in the case of their names.
_CASE_SENSITIVE: Final = frozenset(("postgres",))
# Engines whose tables may be files or folders that were scanned.
_LAKE_ENGINES: Final = frozenset(
    ("athena", "clickhouse", "databricks", "delta-lake", "dremio", "duckdb", "glue", "hive",
     "iceberg", "impala", "presto", "spark", "trino", "unity-catalog", UNKNOWN_PLATFORM)
)  # fmt: skip
_PLATFORM_BY_DIALECT: Final = {
    "tsql": "mssql", "sqlserver": "mssql", "postgresql": "postgres", "sparksql": "spark",
    "spark2": "spark", "fabric": "mssql",
}  # fmt: skip
_PLATFORM_BY_SCHEME: Final = {
    "s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gcs", "gcs": "gcs", "abfs": "azure",
    "abfss": "azure", "az": "azure", "wasb": "azure", "wasbs": "azure", "adl": "azure",
    "postgresql": "postgres",
}  # fmt: skip
_HDFS_SCHEMES: Final = ("hdfs", "webhdfs", "swebhdfs")
# Formats before a path, as in Spark's parquet.`/data/orders`.
_FORMATS: Final = frozenset(
    ("parquet", "delta", "iceberg", "orc", "avro", "csv", "json", "text", "binaryfile")
)
# How certain it is that a candidate exists: as a dataset, as a deleted one, or only in lineage.
_LIVE: Final = 2
_DELETED: Final = 1
_ONLY_IN_LINEAGE: Final = 0
# The minimum similarity of a suggested table name, from 0 to 1.
_MIN_SIMILARITY: Final = 0.75


class _Candidate(NamedTuple):
    urn: str
    platform: str
    instance: str
    environment: str
    path: tuple[str, ...]
    certainty: int
    # Whether `path` ends with the display name of the dataset, not with the last part of its URN.
    matches_display_name: bool = False
    # Whether a query file creates the table; it may be named by the end of the file's path.
    is_model: bool = False


class NameIndex:
    """Finds the datasets of a store by name, location or URN."""

    def __init__(
        self,
        datasets: Iterable[DatasetLocation],
        lineage_urns: Iterable[str] = (),
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
        self._dataset_urns: set[str] = set()
        self._lineage_urns: set[str] = set()
        # The files that create tables named after their paths.
        self._model_files: dict[tuple[str, ...], list[str]] = {}
        for file in query_files:
            self._model_files.setdefault(model_name(file).path, []).append(file)
        for each in datasets:
            self._add(each)
        for urn in lineage_urns:
            if urn not in self._dataset_urns:
                self._add_lineage_urn(urn)
        self._cache: dict[tuple[DatasetReference, str | None], Resolution] = {}

    def __contains__(self, urn: str) -> bool:
        """Whether the store has a dataset with this URN."""
        return urn in self._dataset_urns

    def find(
        self,
        reference: DatasetReference,
        *,
        dialect: str | None = None,
        others: Iterable[DatasetReference] = (),
    ) -> Resolution:
        """Resolve a reference, or else the first of `others` that can be resolved."""
        unresolved = (ResolutionMethod.ASSUMED, ResolutionMethod.AMBIGUOUS)
        first = self._find(reference, dialect)
        if first.method not in unresolved or not others:
            return first
        resolutions = (self._find(each, dialect) for each in others)
        return next((each for each in resolutions if each.method not in unresolved), first)

    def assume(self, urn: str) -> None:
        """Register an assumed URN, so that later uses of the name resolve to it."""
        if urn not in self._dataset_urns and urn not in self._lineage_urns:
            self._add_lineage_urn(urn)

    def has_rule(self, table: TableName, *, dialect: str | None) -> bool:
        """Whether a rule of the configuration applies to a name."""
        return any(rule.applies_to(table.parts, dialect) for rule in self._rules)

    def add_model(
        self, path: tuple[str, ...], file: str, *, dialect: str | None, dataset: str | None = None
    ) -> None:
        """Register the table that a query file creates under the file's path.

        `dataset` is the URN of that table if it is in the store.
        """
        if dataset is not None:
            candidate = self._candidate(dataset, _LIVE)._replace(path=path, is_model=True)
            self._by_name.setdefault(path[-1].lower(), []).append(candidate)
        else:
            files = self._model_files.setdefault(path, [])
            if file not in files:
                files.append(file)
            folded = _fold(path, dialect)
            urn = self._assumed_urn(TableName(parts=path), folded, dialect)
            # With the dialect of an earlier run, the file created a table of another platform.
            same_name = self._by_name.get(path[-1].lower(), [])
            same_name[:] = (
                each for each in same_name if not each.is_model or _lower_parts(each.path) != path
            )
            self._add_candidate(urn, _ONLY_IN_LINEAGE)
        self._cache.clear()

    def defining_files(self, urns: Iterable[str]) -> dict[str, str]:
        """The query files that create the tables, each with its table's shortest unambiguous name.

        Empty unless all of the tables are created by query files.
        """
        paths = {urn: _lower_parts(tuple(filter(None, Urn.parse(urn).path))) for urn in urns}
        if not all(path in self._model_files for path in paths.values()):
            return {}
        names_by_file: dict[str, str] = {}
        for path in paths.values():
            others = [each for each in paths.values() if each != path]
            ends = (path[-count:] for count in range(1, len(path)))
            unique_ends = (
                end for end in ends if not any(each[-len(end) :] == end for each in others)
            )
            name = ".".join(next(unique_ends, path))
            names_by_file |= dict.fromkeys(self._model_files[path], name)
        return dict(sorted(names_by_file.items()))

    def nearest(self, table: TableName, *, created: Collection[str] = ()) -> str | None:
        """The most similar name of a dataset in the store, or of a table among the `created` URNs.

        The result has as many parts as the given name. If it equals the given name, the URN is
        returned instead. If no name is similar, but a folder of that name contains a single
        dataset, this is the end of the dataset's path.
        """
        given = ".".join(table.parts).lower()
        last = table.parts[-1].lower()
        comparable = {last, *self._names_by_end["^" + last[:3]], *self._names_by_end[last[-3:]]}
        best: tuple[float, int, str, str] | None = None
        for name in get_close_matches(last, comparable, n=5, cutoff=_MIN_SIMILARITY):
            for each in self._by_name.get(name, ()):
                exists = each.urn in self._dataset_urns or each.urn in created
                if not exists or each.environment != self._environment:
                    continue
                path = (*each.path[:-1], strip_extensions(each.path[-1]))
                similar = ".".join(path[-len(table.parts) :])
                similarity = SequenceMatcher(None, given, similar.lower()).ratio()
                best = max(best or (0, 0, "", ""), (similarity, each.certainty, similar, each.urn))
        if best is None:
            in_folder = self._dataset_paths_by_folder.get(last, ())
            return "/".join(in_folder[0][-2:]) if len(in_folder) == 1 else None
        _, _, similar, urn = best
        return urn if similar.lower() == given else similar

    @cached_property
    def _dataset_paths_by_folder(self) -> Mapping[str, list[tuple[str, ...]]]:
        """The paths of datasets by the name of the folder that contains them."""
        paths: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
        for urn in self._dataset_urns:
            path = tuple(filter(None, Urn.parse(urn).path))
            if len(path) > 1:
                paths[path[-2].lower()].append(path)
        return paths

    @cached_property
    def _names_by_end(self) -> Mapping[str, list[str]]:
        """Names by their first and last three letters, so that few names are compared."""
        names: defaultdict[str, list[str]] = defaultdict(list)
        for name in self._by_name:
            names["^" + name[:3]].append(name)
            names[name[-3:]].append(name)
        return names

    def _find(self, reference: DatasetReference, dialect: str | None) -> Resolution:
        key = (reference, dialect)
        if key not in self._cache:
            match reference:
                case UrnReference():
                    self._cache[key] = Resolution(
                        urn=str(Urn.parse(reference.urn)), method=ResolutionMethod.URN
                    )
                case LocationReference():
                    self._cache[key] = self._find_location(reference.uri)
                case TableName():
                    self._cache[key] = self._find_table(reference, dialect)
        return self._cache[key]

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
        scheme, has_scheme, after_scheme = location.partition("://")
        if not has_scheme:
            path = [segment for segment in location.split("/") if segment]
            return str(Urn.of("file", path or [location], environment=self._environment))
        platform = _PLATFORM_BY_SCHEME.get(scheme.lower(), scheme.lower())
        authority, _, path_text = after_scheme.partition("/")
        container, _, account = authority.partition("@")
        path = [part for part in (container, *path_text.split("/")) if part]
        instance = account.partition(".")[0]
        return str(Urn.of(platform, path, instance=instance, environment=self._environment))

    # Tables

    def _find_table(self, table: TableName, dialect: str | None) -> Resolution:
        if any("://" in part for part in table.parts):
            # This removes credentials from a URL.
            parts = tuple(_normalize_uri(part) if "://" in part else part for part in table.parts)
            table = msgspec.structs.replace(table, parts=parts)
        if (reference := _reference_in(table.parts)) is not None:
            return self._find(reference, dialect)
        urn = self._apply_rules(table, dialect)
        if urn is not None:
            return Resolution(urn=urn, method=ResolutionMethod.RULE)
        table = self._complete_name(table, dialect)
        folded = _fold(table.parts, table.platform or dialect)
        candidates = self._candidates(table, folded, _platform_of(dialect))
        best = _best_candidates(candidates, folded, prefer=_platform_of(dialect))
        if len(best) == 1:
            # A URN that is only known from lineage was assumed in an earlier run.
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
        """Add missing parts of a name by the rules of the configuration."""
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
        # A file delta.csv.gz is recorded as delta.csv.
        matches = (self._by_name.get(each.lower()) for each in name_spellings(folded[-1]))
        same_name = [
            each
            for each in next(filter(None, matches), ())
            if each.environment == self._environment
        ]
        if table.platform is None:
            if platform is None or platform in _LAKE_ENGINES:
                return same_name
            # A table that was assumed on another platform is a different table.
            platforms = (platform, UNKNOWN_PLATFORM)
            return [each for each in same_name if each.certainty or each.platform in platforms]
        on_platform = [each for each in same_name if each.platform == table.platform]
        if table.instance is not None:
            # The store may use a configured instance name where other tools use the host name.
            same_instance = [each for each in on_platform if each.instance == table.instance]
            on_platform = same_instance or on_platform
        # A scanned table of this name excludes files of the same name, an assumed table does not.
        is_scanned = any(each.certainty and _rank(each, folded) for each in on_platform)
        if is_scanned or table.platform not in _LAKE_ENGINES:
            return on_platform
        return [*on_platform, *(each for each in same_name if _is_lake(each.platform))]

    def _assumed_urn(self, table: TableName, folded: tuple[str, ...], dialect: str | None) -> str:
        platform = table.platform or _platform_of(dialect) or UNKNOWN_PLATFORM
        instance = table.instance or ""
        try:
            return str(Urn.of(platform, folded, instance=instance, environment=self._environment))
        except InvalidUrn:
            return str(Urn.of(UNKNOWN_PLATFORM, folded, environment=self._environment))

    # Registration

    def _add(self, dataset: DatasetLocation) -> None:
        self._dataset_urns.add(dataset.urn)
        if dataset.state == "split":
            # Its files now belong to other datasets.
            return
        is_live = dataset.state == "live"
        self._add_candidate(dataset.urn, _LIVE if is_live else _DELETED, dataset.name)
        if dataset.uri is None:
            return
        location = _normalize_uri(dataset.uri)
        if not is_live and location in self._by_location:
            return
        if set(location) & set("*?["):
            patterns = self._patterns.setdefault(posixpath.dirname(location), [])
            patterns.append((location, dataset.urn))
        else:
            self._by_location[location] = dataset.urn

    def _add_lineage_urn(self, urn: str) -> None:
        self._lineage_urns.add(urn)
        try:
            self._add_candidate(urn, _ONLY_IN_LINEAGE)
        except InvalidUrn:
            # A URN of another tool in imported lineage; no table has such a name.
            return

    def _candidate(self, urn: str, certainty: int) -> _Candidate:
        parsed = Urn.parse(urn)
        path = tuple(segment for segment in parsed.path if segment)
        is_model = certainty == _ONLY_IN_LINEAGE and _lower_parts(path) in self._model_files
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
        # The display name of rates_NNN.csv is rates; orders/orders.csv may be named by its folder.
        if display_name.lower() not in (path[-1].lower(), strip_extensions(path[-1]).lower()):
            by_display_name = candidate._replace(
                path=(*path[:-1], display_name), matches_display_name=True
            )
            self._by_name.setdefault(display_name.lower(), []).append(by_display_name)
        if len(path) > 1 and path[-2].lower() == display_name.lower():
            by_folder = candidate._replace(path=path[:-1], matches_display_name=True)
            self._by_name.setdefault(display_name.lower(), []).append(by_folder)


def load_name_index(settings: Settings, store: Store | None) -> NameIndex:
    """Load the name index of a store."""
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
    """The candidates with the highest rank: by certainty, then matching parts, then platform."""
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
    """The number of equal parts at the end of both names, and whether they are in the same case.

    None if the names do not match. The table of a query file matches by the end of its path. Paths
    of files need not contain the catalog or a default schema of the name. A dataset that was never
    scanned must match in full.
    """
    path = _fold(candidate.path, candidate.platform)
    if candidate.is_model:
        is_end = _lower_parts(path[-len(folded) :]) == _lower_parts(folded)
        return (len(folded), int(path[-len(folded) :] == folded)) if is_end else None
    if _is_lake(candidate.platform) and path[-1].lower() != folded[-1].lower():
        path = (*path[:-1], strip_extensions(path[-1]))
        if path[-1].lower() != folded[-1].lower():
            folded = (*folded[:-1], strip_extensions(folded[-1]))
    common = min(len(path), len(folded))
    are_equal = [
        own.lower() == given.lower()
        for own, given in zip(reversed(path[-common:]), reversed(folded[-common:]), strict=True)
    ]
    if not are_equal[0] or (candidate.certainty == _ONLY_IN_LINEAGE and len(path) != len(folded)):
        return None
    required = len(are_equal)
    if _is_lake(candidate.platform) and candidate.certainty:
        is_default_schema = len(folded) > 1 and folded[-2] in _DEFAULT_SCHEMAS
        required = 1 if is_default_schema else 2
    if not all(are_equal[:required]):
        return None
    matched = are_equal.index(False) if False in are_equal else len(are_equal)
    is_same_case = path[-matched:] == folded[-matched:]
    if not is_same_case and candidate.platform in _CASE_SENSITIVE:
        return None
    return matched, int(is_same_case)


def _lower_parts(parts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.lower() for part in parts)


def _is_lake(platform: str) -> bool:
    return separator_of(platform) == "/"


def _fold(parts: tuple[str, ...], dialect: str | None) -> tuple[str, ...]:
    """Fold the parts of a name to the case in which the dialect stores names."""
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
    return _PLATFORM_BY_DIALECT.get(name, name) or None


def _reference_in(parts: tuple[str, ...]) -> DatasetReference | None:
    """The reference that a query uses as a table name, if it is a URN or path."""
    text = parts[-1]
    if len(parts) == 1 and text.startswith(SCHEME):
        return UrnReference(urn=text)
    is_path = "://" in text or text.startswith("/")
    is_complete = len(parts) == 1 or (len(parts) == 2 and parts[0].lower() in _FORMATS)
    return LocationReference(uri=text) if is_path and is_complete else None


def _normalize_uri(uri: str) -> str:
    """Normalise a location to the form that scans record."""
    scheme, has_scheme, after_scheme = uri.partition("://")
    if not has_scheme:
        if uri.startswith("file:"):
            uri = unquote(uri.removeprefix("file:"))
        return uri.rstrip("/") or "/"
    scheme = scheme.lower()
    without_query, _, query = after_scheme.partition("?")
    if "=" in query:
        # Parameters of connections and signed URLs are often secret, and not part of the location.
        after_scheme = without_query
    if scheme == "file":
        path = unquote(after_scheme)
        return (path if path.startswith("/") else "/" + path.partition("/")[2]).rstrip("/") or "/"
    if scheme in _HDFS_SCHEMES:
        # Ports distinguish name nodes from web servers, not file systems.
        host, slash, path = after_scheme.partition("/")
        scheme, after_scheme = "hdfs", f"{host.partition(':')[0]}{slash}{path}"
    return canonical(f"{scheme}://{after_scheme.rstrip('/')}")


def _parents(location: str) -> Iterator[str]:
    """A location and its parents, nearest first."""
    scheme, has_scheme, after_scheme = location.partition("://")
    start = f"{scheme}://" if has_scheme else ""
    path = after_scheme if has_scheme else location
    while path and path != "/":
        yield start + path
        path = path.rpartition("/")[0]
