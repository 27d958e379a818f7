"""Checks the entries of a snapshot one by one, and its counts and hashes."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from lumos.errors import MisuseError
from lumos.model.catalog import CatalogEntry, Job
from lumos.model.dataset import Quality, Versioning
from lumos.model.urn import SCHEME, InvalidUrn, Urn
from lumos.model.version import CloudVersion, SchemaVersion
from lumos.snapshots.format.codec import (
    HashedEntry,
    MalformedJson,
    canonical,
    decode_entry,
    decode_plain,
    digest,
    refuse_duplicate_keys,
)
from lumos.snapshots.format.document import (
    DATASETS,
    KINDS,
    EntryKind,
    SnapshotCounts,
    SnapshotHashes,
    SnapshotHeader,
    unknown_keys,
)
from lumos.snapshots.format.encodings import SnapshotContainer
from lumos.snapshots.format.errors import SnapshotError
from lumos.snapshots.format.manifest import ManifestBuilder
from lumos.snapshots.format.reader import order_error, split_stored
from lumos.snapshots.format.references import ReferenceIndex

# URNs that match are canonical; other URNs are parsed to check this. The default environment is
# omitted in canonical URNs.
_CANONICAL_URN: Final = re.compile(
    r"lumos://[a-z][a-z0-9_.+-]*(@[\w.~=:@+,-]+)?/[\w.~=:@+,/-]+(\?env=(?!PROD\Z)[A-Z][A-Z0-9_-]*)?",
    re.ASCII,
)
_NO_DATASET: Final = f"There is no {DATASETS.singular} "
# The platform in the header of snapshots of the store.
_STORE_PLATFORM: Final = "local"
_SINGULAR: Final = {kind.plural: kind.singular for kind in KINDS}

Severity = Literal["error", "warning"]


class SnapshotProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A problem of a snapshot; `path` is the path inside the file."""

    code: str
    path: str
    text: str
    severity: Severity = "error"

    @classmethod
    def of(cls, error: SnapshotError) -> "SnapshotProblem":
        """Convert an error to a problem."""
        return cls(code=error.code, path=error.path, text=error.problem)

    @property
    def is_lineage(self) -> bool:
        """Whether lineage refers to a missing dataset or job."""
        return self.code == "reference" and self.text.startswith(_NO_DATASET)

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


class EntryCheck:
    """Checks the entries of a container in one pass and counts them."""

    def __init__(
        self,
        file: Path,
        container: SnapshotContainer,
        header: SnapshotHeader,
        *,
        totals: ManifestBuilder,
        references: ReferenceIndex,
    ) -> None:
        self._file = file
        self._container = container
        self._header = header
        self._totals = totals
        self._references = references
        # The paths of reported problems because of which the counts and hashes are wrong, too.
        self._reported: set[str] = set()
        # The number of unreadable entries of each kind.
        self.broken: Counter[str] = Counter()

    @property
    def has_damage(self) -> bool:
        """Whether a problem was found because of which the counts and hashes are wrong, too."""
        return bool(self._reported)

    def entries(self, kind: EntryKind) -> Iterator[SnapshotProblem]:
        """The problems of the entries of a kind."""
        try:
            yield from self._entries(kind)
        except SnapshotError as error:
            yield from self._report_once(error)

    def _entries(self, kind: EntryKind) -> Iterator[SnapshotProblem]:
        seen: set[str] = set()
        last_key = ""
        for stored in self._container.entries(kind):
            if isinstance(stored, SnapshotError):
                self.broken[kind.plural] += 1
                yield from self._report_once(stored)
                continue
            try:
                stored_entry = split_stored(stored)
                value = decode_entry(kind, self._container.upgrade_entry(kind, stored_entry.body))
            except MalformedJson as problem:
                self.broken[kind.plural] += 1
                yield self._malformed(kind, stored.position, problem)
                self._references.add_broken(kind, stored.body)
                continue
            key = getattr(value, kind.key)
            is_out_of_order = self._container.streamed and key < last_key
            if key in seen or is_out_of_order:
                entry_path = self._container.path_of(kind, stored.position)
                previous_key = key if key in seen else last_key
                yield SnapshotProblem.of(
                    order_error(self._file, entry_path, kind, key, previous_key)
                )
            seen.add(key)
            last_key = key
            if kind is DATASETS and not _CANONICAL_URN.fullmatch(key):
                yield from self._check_urn(stored.position, key)
            for path, code, text, is_error in implausible_values(key, value):
                entry_path = f"{self._container.path_of(kind, stored.position)}.{path}"
                severity: Severity = "error" if is_error else "warning"
                yield SnapshotProblem(code=code, path=entry_path, text=text, severity=severity)
            # If the hash matches the stored JSON, no further checks are needed.
            if (actual_hash := digest(stored_entry.body)) != stored_entry.content_hash:
                actual_hash = digest(self._container.downgrade_entry(kind, canonical(value)))
                yield from self._check_content(
                    kind, stored.position, key, stored_entry, actual_hash
                )
            self._totals.add(kind, value, actual_hash)
            self._references.add(kind, stored.position, key, value)

    def _check_content(
        self, kind: EntryKind, position: int, key: str, stored_entry: HashedEntry, actual_hash: str
    ) -> Iterator[SnapshotProblem]:
        """The problems of an entry whose stored JSON does not match its hash.

        There are none if only the layout of the JSON differs.
        """
        entry_path = self._container.path_of(kind, position)
        if stored_entry.content_hash is not None and actual_hash != stored_entry.content_hash:
            text = f"'{key}' does not match its content hash: it was edited or damaged."
            yield SnapshotProblem(code="hash", path=entry_path, text=text)
            self._reported.add(entry_path)
        elif stored_entry.content_hash is None and self._header.hashes is not None:
            yield SnapshotProblem(
                code="hash", path=entry_path, text=f"'{key}' has no content hash."
            )
        try:
            refuse_duplicate_keys(stored_entry.body)
            # Decode all values, because the entire snapshot has to be valid JSON.
            plain = decode_plain(self._container.upgrade_entry(kind, stored_entry.body))
        except MalformedJson as problem:
            yield self._malformed(kind, position, problem)
            return
        if self._container.is_legacy:
            return
        for path in unknown_keys(kind, plain):
            yield _unknown_key_problem(f"{entry_path}{path}")

    def _check_urn(self, position: int, key: str) -> Iterator[SnapshotProblem]:
        path = f"{self._container.path_of(DATASETS, position)}.urn"
        try:
            canonical_urn = str(Urn.parse(key))
        except InvalidUrn as error:
            yield SnapshotProblem(code="urn", path=path, text=f"{error}.")
            return
        if canonical_urn != key:
            yield SnapshotProblem(
                code="urn", path=path, text=f"'{key}' must be written '{canonical_urn}'."
            )

    def _malformed(self, kind: EntryKind, position: int, problem: MalformedJson) -> SnapshotProblem:
        entry_path = self._container.path_of(kind, position)
        self._reported.add(entry_path)
        code = "truncated" if problem.is_truncated else "format"
        return SnapshotProblem(
            code=code, path=f"{entry_path}{problem.path}", text=f"{problem.problem}."
        )

    def _report_once(self, error: SnapshotError) -> Iterator[SnapshotProblem]:
        if str(error) not in self._reported:
            self._reported.add(str(error))
            yield SnapshotProblem.of(error)


def unknown_header_keys(container: SnapshotContainer) -> Iterator[SnapshotProblem]:
    """Warnings for unknown keys in the header."""
    for key in container.unknown_keys:
        yield _unknown_key_problem(key)


def _unknown_key_problem(path: str) -> SnapshotProblem:
    text = "Unknown key; its value is ignored."
    return SnapshotProblem(code="unknown_key", path=path, text=text, severity="warning")


def check_missing(
    container: SnapshotContainer,
    header: SnapshotHeader,
    counts: SnapshotCounts,
    broken: Mapping[str, int],
) -> Iterator[SnapshotProblem]:
    """Problems if there are fewer entries than in the header; unreadable entries are included."""
    for kind in KINDS:
        expected = getattr(header.counts, kind.plural) if header.counts else 0
        found = getattr(counts, kind.plural)
        if found + broken.get(kind.plural, 0) < expected:
            yield _count_problem(container, kind.plural, expected, found)


def check_manifest(
    container: SnapshotContainer,
    header: SnapshotHeader,
    totals: ManifestBuilder,
) -> Iterator[SnapshotProblem]:
    """Problems if the counts or hashes in the header do not match the entries."""
    count_problems = tuple(_check_counts(container, header, totals))
    yield from count_problems
    # With a wrong count, the hashes cannot match, either.
    if not any(problem.severity == "error" for problem in count_problems):
        yield from _check_hashes(container, header, totals)


def _check_counts(
    container: SnapshotContainer,
    header: SnapshotHeader,
    totals: ManifestBuilder,
) -> Iterator[SnapshotProblem]:
    if header.counts is None:
        text = "It has no counts, so its completeness cannot be verified."
        yield SnapshotProblem(
            code="count", path=container.header_path("counts"), text=text, severity="warning"
        )
        return
    actual = msgspec.structs.asdict(totals.counts)
    for name, expected in decode_plain(container.header)["counts"].items():
        if name not in actual or expected == actual[name]:
            continue
        # Legacy layouts have incomplete counts and count edges differently. Without hashes, the
        # counts of values inside entries may be outdated after an edit.
        is_entry_count = name == DATASETS.plural or (name in _SINGULAR and not container.is_legacy)
        is_error = is_entry_count or (header.hashes is not None and not container.is_legacy)
        yield _count_problem(container, name, expected, actual[name], is_error=is_error)


def _count_problem(
    container: SnapshotContainer, name: str, expected: int, found: int, *, is_error: bool = True
) -> SnapshotProblem:
    return SnapshotProblem(
        code="count",
        path=container.header_path(f"counts.{name}"),
        text=f"Expected {expected} {_describe(name)}, found {found}.",
        severity="error" if is_error else "warning",
    )


def _check_hashes(
    container: SnapshotContainer, header: SnapshotHeader, totals: ManifestBuilder
) -> Iterator[SnapshotProblem]:
    hashes = header.hashes
    if hashes is None:
        if not container.is_legacy:
            text = "It has no hashes, so edits cannot be detected."
            yield SnapshotProblem(code="hash", path="hashes", text=text, severity="warning")
        return
    actual = totals.hashes(header)
    skipped = ("header", "overall") if container.is_legacy else ()
    differing = [
        name
        for name in SnapshotHashes.__struct_fields__
        if name not in skipped and getattr(actual, name) != getattr(hashes, name)
    ]
    for name in differing:
        if name != "overall" or len(differing) == 1:
            text = f"The {_describe(name)} do not match this hash: something was edited."
            yield SnapshotProblem(code="hash", path=f"hashes.{name}", text=text)


def dangling_problem(
    header: SnapshotHeader, path: str, kinds: tuple[str, ...], key: str
) -> SnapshotProblem:
    """The problem for a reference without a target.

    It is an error if it is lineage in a full snapshot of the store. In other catalogs, lineage may
    refer to datasets that the catalog does not contain.
    """
    kind_names = " or ".join(_SINGULAR[name] for name in kinds)
    is_full_snapshot = header.scope == "all" and header.platform in (None, _STORE_PLATFORM)
    is_error = DATASETS.plural in kinds and is_full_snapshot
    return SnapshotProblem(
        code="reference",
        path=path,
        text=f"There is no {kind_names} '{key}' in the snapshot.",
        severity="error" if is_error else "warning",
    )


def _describe(name: str) -> str:
    descriptions = {"header": "facts of the header", "overall": "contents", "glossary": "terms"}
    return descriptions.get(name, name.replace("_", " "))


_URN_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S", re.ASCII)


class ImplausibleValue(NamedTuple):
    """An implausible value at a path inside an entry; most are only warnings."""

    path: str
    code: str
    text: str
    is_error: bool = False


def implausible_values(key: str, value: Any) -> Iterator[ImplausibleValue]:
    """Yield the implausible values of an entry."""
    if isinstance(value, CatalogEntry):
        yield from _check_dataset(value)
    elif isinstance(value, Job) and not _URN_SCHEME.match(key):
        yield ImplausibleValue("urn", "urn", f"'{key}' is not a URN.")
    if getattr(value, "name", key) == "":
        yield ImplausibleValue("name", "value", "The name is empty.")


def _check_dataset(dataset: CatalogEntry) -> Iterator[ImplausibleValue]:
    if (schema := dataset.schema) is not None:
        names = [field.name for field in schema.fields]
        if len(set(names)) != len(names):
            for index, name in _duplicates(names):
                text = f"The column '{name}' is duplicated."
                yield ImplausibleValue(
                    f"schema.fields[{index}].name", "duplicate", text, is_error=True
                )
    if not _has_platform(dataset.urn, dataset.platform):
        text = f"The platform '{dataset.platform}' does not match the URN."
        yield ImplausibleValue("platform", "value", text)
    if dataset.lineage is not None and len(dataset.lineage.upstream) > 1:
        for index, urn in _duplicates([edge.urn for edge in dataset.lineage.upstream]):
            text = f"The edge from '{urn}' is duplicated."
            yield ImplausibleValue(f"lineage.upstream[{index}].urn", "duplicate", text)
    if dataset.versioning is not None:
        yield from _check_versioning(dataset.versioning)
    if dataset.quality is not None:
        yield from _check_quality(dataset.quality)


def _duplicates(names: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the duplicates in a list, with their indexes."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            yield index, name
        seen.add(name)


def _has_platform(urn: str, platform: str) -> bool:
    start = len(SCHEME) + len(platform)
    # Invalid URNs are reported separately.
    return not urn.startswith(SCHEME) or (
        urn.startswith(platform, len(SCHEME)) and urn[start : start + 1] in ("/", "@")
    )


def _check_versioning(versioning: Versioning) -> Iterator[ImplausibleValue]:
    records = {"versioning": versioning} | {
        f"versioning.history[{index}]": record for index, record in enumerate(versioning.history)
    }
    for path, record in records.items():
        for name, type in (("cloud_version", CloudVersion), ("schema_version", SchemaVersion)):
            try:
                type.parse(getattr(record, name))
            except MisuseError as problem:
                yield ImplausibleValue(f"{path}.{name}", "value", f"{problem}.")


def _check_quality(quality: Quality) -> Iterator[ImplausibleValue]:
    shares = {"quality.score": quality.score} | {
        f"quality.dimensions.{name}": share for name, share in quality.dimensions.items()
    }
    if quality.profile is not None:
        shares["quality.profile.sampled"] = quality.profile.sampled
    for path, share in shares.items():
        if share is not None and not 0 <= share <= 1:
            yield ImplausibleValue(path, "value", f"{share} is not between 0 and 1.")
