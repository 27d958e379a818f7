"""Checks entries one by one, and what is summed up of all of them."""

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
    MalformedJson,
    SealedEntry,
    canonical,
    decode_plain,
    digest,
    entry_of,
    refuse_repeated,
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
from lumos.snapshots.format.reader import order_error, unseal_stored
from lumos.snapshots.format.references import ReferenceIndex

# A URN of this form has but one spelling; others are taken apart and put together again.
# The default environment is never spelled out.
_PLAIN_URN: Final = re.compile(
    r"lumos://[a-z][a-z0-9_.+-]*(@[\w.~=:@+,-]+)?/[\w.~=:@+,/-]+(\?env=(?!PROD\Z)[A-Z][A-Z0-9_-]*)?",
    re.ASCII,
)
_NO_DATASET: Final = f"There is no {DATASETS.singular} "
# What a snapshot of the store says that it was exported from.
_STORE: Final = "local"
_SINGULAR: Final = {kind.plural: kind.singular for kind in KINDS}

Severity = Literal["error", "warning"]


class SnapshotProblem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong, or with `warning` only odd; `path` leads into the file."""

    code: str
    path: str
    text: str
    severity: Severity = "error"

    @classmethod
    def of(cls, error: SnapshotError) -> "SnapshotProblem":
        """What an error says."""
        return cls(code=error.code, path=error.path, text=error.problem)

    @property
    def is_lineage(self) -> bool:
        """Whether lineage leads to a dataset or a job that is not there."""
        return self.code == "reference" and self.text.startswith(_NO_DATASET)

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


class EntryCheck:
    """One pass over the entries of a container, which sums up what it sees.

    An upgraded container is one that was written in an earlier version of the format.
    """

    def __init__(
        self,
        file: Path,
        container: SnapshotContainer,
        header: SnapshotHeader,
        *,
        tally: ManifestBuilder,
        references: ReferenceIndex,
    ) -> None:
        self._file = file
        self._container = container
        self._header = header
        self._tally = tally
        self._references = references
        # What has been told already and would show in the sums once more.
        self._told: set[str] = set()
        # How many entries of each kind could not be read.
        self.broken: Counter[str] = Counter()

    @property
    def has_damage(self) -> bool:
        """Whether something was found that makes the sums wrong."""
        return bool(self._told)

    def entries(self, kind: EntryKind) -> Iterator[SnapshotProblem]:
        """What is wrong with the entries of a kind."""
        try:
            yield from self._entries(kind)
        except SnapshotError as error:
            yield from self._once(error)

    def _entries(self, kind: EntryKind) -> Iterator[SnapshotProblem]:
        seen: set[str] = set()
        last = ""
        for stored in self._container.entries(kind):
            if isinstance(stored, SnapshotError):
                self.broken[kind.plural] += 1
                yield from self._once(stored)
                continue
            try:
                sealed = unseal_stored(stored)
                value = entry_of(kind, self._container.present(kind, sealed.body))
            except MalformedJson as problem:
                self.broken[kind.plural] += 1
                yield self._malformed(kind, stored.position, problem)
                self._references.add_broken(kind, stored.body)
                continue
            key = getattr(value, kind.key)
            is_out_of_order = self._container.streamed and key < last
            if key in seen or is_out_of_order:
                place = self._container.place(kind, stored.position)
                before = key if key in seen else last
                yield SnapshotProblem.of(order_error(self._file, place, kind, key, before))
            seen.add(key)
            last = key
            if kind is DATASETS and not _PLAIN_URN.fullmatch(key):
                yield from self._urn(stored.position, key)
            for path, code, text, is_error in implausible_values(key, value):
                place = f"{self._container.place(kind, stored.position)}.{path}"
                severity: Severity = "error" if is_error else "warning"
                yield SnapshotProblem(code=code, path=place, text=text, severity=severity)
            # Sealed as it stands, an entry needs no closer look.
            if (found := digest(sealed.body)) != sealed.content_hash:
                found = digest(self._container.as_written(kind, canonical(value)))
                yield from self._content(kind, stored.position, key, sealed, found)
            self._tally.add(kind, value, found)
            self._references.add(kind, stored.position, key, value)

    def _content(
        self, kind: EntryKind, position: int, key: str, sealed: SealedEntry, found: str
    ) -> Iterator[SnapshotProblem]:
        """What is odd with an entry that was not sealed as it stands; its layout may be all."""
        place = self._container.place(kind, position)
        if sealed.content_hash is not None and found != sealed.content_hash:
            text = f"'{key}' is not what its content hash says: it was edited or damaged."
            yield SnapshotProblem(code="hash", path=place, text=text)
            self._told.add(place)
        elif sealed.content_hash is None and self._header.hashes is not None:
            yield SnapshotProblem(code="hash", path=place, text=f"'{key}' has no content hash.")
        try:
            refuse_repeated(sealed.body)
            # What nobody reads need not even be text, but a snapshot is to be JSON throughout.
            plain = decode_plain(self._container.present(kind, sealed.body))
        except MalformedJson as problem:
            yield self._malformed(kind, position, problem)
            return
        if self._container.is_legacy:
            return
        for path in unknown_keys(kind, plain):
            yield _unread(f"{place}{path}")

    def _urn(self, position: int, key: str) -> Iterator[SnapshotProblem]:
        path = f"{self._container.place(DATASETS, position)}.urn"
        try:
            right = str(Urn.parse(key))
        except InvalidUrn as error:
            yield SnapshotProblem(code="urn", path=path, text=f"{error}.")
            return
        if right != key:
            yield SnapshotProblem(code="urn", path=path, text=f"'{key}' is spelled '{right}'.")

    def _malformed(self, kind: EntryKind, position: int, problem: MalformedJson) -> SnapshotProblem:
        place = self._container.place(kind, position)
        self._told.add(place)
        code = "truncated" if problem.cut_off else "format"
        return SnapshotProblem(code=code, path=f"{place}{problem.path}", text=f"{problem.problem}.")

    def _once(self, error: SnapshotError) -> Iterator[SnapshotProblem]:
        if str(error) not in self._told:
            self._told.add(str(error))
            yield SnapshotProblem.of(error)


def unknown_header_keys(container: SnapshotContainer) -> Iterator[SnapshotProblem]:
    """Keys beside those of the header that nobody reads."""
    for key in container.strangers:
        yield _unread(key)


def _unread(path: str) -> SnapshotProblem:
    text = "Unknown key; its value is ignored."
    return SnapshotProblem(code="unknown_key", path=path, text=text, severity="warning")


def check_missing(
    container: SnapshotContainer,
    header: SnapshotHeader,
    counts: SnapshotCounts,
    broken: Mapping[str, int],
) -> Iterator[SnapshotProblem]:
    """Where there are fewer entries than the header says, those counted that cannot be read."""
    for kind in KINDS:
        wanted = getattr(header.counts, kind.plural) if header.counts else 0
        found = getattr(counts, kind.plural)
        if found + broken.get(kind.plural, 0) < wanted:
            yield _miscounted(container, kind.plural, wanted, found)


def check_manifest(
    container: SnapshotContainer,
    header: SnapshotHeader,
    tally: ManifestBuilder,
) -> Iterator[SnapshotProblem]:
    """Where counts and hashes are not those of what was seen."""
    counted = tuple(_counts(container, header, tally))
    yield from counted
    # Another number of entries has other hashes anyway.
    if not any(problem.severity == "error" for problem in counted):
        yield from _hashes(container, header, tally)


def _counts(
    container: SnapshotContainer,
    header: SnapshotHeader,
    tally: ManifestBuilder,
) -> Iterator[SnapshotProblem]:
    if header.counts is None:
        text = "It has no counts, so its completeness cannot be verified."
        yield SnapshotProblem(
            code="count", path=container.header_place("counts"), text=text, severity="warning"
        )
        return
    found = msgspec.structs.asdict(tally.counts)
    for name, wanted in decode_plain(container.header)["counts"].items():
        if name not in found or wanted == found[name]:
            continue
        # Layouts before format 1.0 count but a part, and edges in a way of their own. Who takes the
        # hashes out has edited what is counted inside of entries.
        is_of_entries = name == DATASETS.plural or (name in _SINGULAR and not container.is_legacy)
        is_error = is_of_entries or (header.hashes is not None and not container.is_legacy)
        yield _miscounted(container, name, wanted, found[name], is_error=is_error)


def _miscounted(
    container: SnapshotContainer, name: str, wanted: int, found: int, *, is_error: bool = True
) -> SnapshotProblem:
    return SnapshotProblem(
        code="count",
        path=container.header_place(f"counts.{name}"),
        text=f"It should have {wanted} {_words(name)} and has {found}.",
        severity="error" if is_error else "warning",
    )


def _hashes(
    container: SnapshotContainer, header: SnapshotHeader, tally: ManifestBuilder
) -> Iterator[SnapshotProblem]:
    told = header.hashes
    if told is None:
        if not container.is_legacy:
            text = "It has no hashes, so edits cannot be detected."
            yield SnapshotProblem(code="hash", path="hashes", text=text, severity="warning")
        return
    found = tally.hashes(header)
    of_the_header = ("header", "overall") if container.is_legacy else ()
    differing = [
        name
        for name in SnapshotHashes.__struct_fields__
        if name not in of_the_header and getattr(found, name) != getattr(told, name)
    ]
    for name in differing:
        if name != "overall" or len(differing) == 1:
            text = f"The {_words(name)} are not what this hash says: something was edited."
            yield SnapshotProblem(code="hash", path=f"hashes.{name}", text=text)


def dangling_problem(
    header: SnapshotHeader, path: str, kinds: tuple[str, ...], key: str
) -> SnapshotProblem:
    """That a reference leads nowhere: an error in lineage, unless only a part was exported.

    Other catalogs hold lineage to datasets that they do not know themselves.
    """
    what = " or ".join(_SINGULAR[name] for name in kinds)
    is_whole = header.scope == "all" and header.platform in (None, _STORE)
    is_error = DATASETS.plural in kinds and is_whole
    return SnapshotProblem(
        code="reference",
        path=path,
        text=f"There is no {what} '{key}' in the snapshot.",
        severity="error" if is_error else "warning",
    )


def _words(name: str) -> str:
    spoken = {"header": "facts of the header", "overall": "contents", "glossary": "terms"}
    return spoken.get(name, name.replace("_", " "))


_SCHEME_OF_URN: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S", re.ASCII)


class ImplausibleValue(NamedTuple):
    """Something odd at a path inside an entry; what comes from other catalogs is no error."""

    path: str
    code: str
    text: str
    is_error: bool = False


def implausible_values(key: str, value: Any) -> Iterator[ImplausibleValue]:
    """All that is odd with an entry."""
    if isinstance(value, CatalogEntry):
        yield from _of_dataset(value)
    elif isinstance(value, Job) and not _SCHEME_OF_URN.match(key):
        yield ImplausibleValue("urn", "urn", f"'{key}' is no URN.")
    if getattr(value, "name", key) == "":
        yield ImplausibleValue("name", "value", "The name is empty.")


def _of_dataset(dataset: CatalogEntry) -> Iterator[ImplausibleValue]:
    if (schema := dataset.schema) is not None:
        names = [field.name for field in schema.fields]
        if len(set(names)) != len(names):
            for index, name in _again(names):
                text = f"The column '{name}' is duplicated."
                yield ImplausibleValue(
                    f"schema.fields[{index}].name", "duplicate", text, is_error=True
                )
    if not _is_of_platform(dataset.urn, dataset.platform):
        text = f"It is '{dataset.platform}', and its URN says otherwise."
        yield ImplausibleValue("platform", "value", text)
    if dataset.lineage is not None and len(dataset.lineage.upstream) > 1:
        for index, urn in _again([edge.urn for edge in dataset.lineage.upstream]):
            text = f"The edge from '{urn}' is duplicated."
            yield ImplausibleValue(f"lineage.upstream[{index}].urn", "duplicate", text)
    if dataset.versioning is not None:
        yield from _of_versioning(dataset.versioning)
    if dataset.quality is not None:
        yield from _of_quality(dataset.quality)


def _again(names: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The names that stood there before, with their places."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            yield index, name
        seen.add(name)


def _is_of_platform(urn: str, platform: str) -> bool:
    start = len(SCHEME) + len(platform)
    # What is no URN at all is told as such.
    return not urn.startswith(SCHEME) or (
        urn.startswith(platform, len(SCHEME)) and urn[start : start + 1] in ("/", "@")
    )


def _of_versioning(versioning: Versioning) -> Iterator[ImplausibleValue]:
    steps = {"versioning": versioning} | {
        f"versioning.history[{index}]": step for index, step in enumerate(versioning.history)
    }
    for path, step in steps.items():
        for name, type in (("cloud_version", CloudVersion), ("schema_version", SchemaVersion)):
            try:
                type.parse(getattr(step, name))
            except MisuseError as problem:
                yield ImplausibleValue(f"{path}.{name}", "value", f"{problem}.")


def _of_quality(quality: Quality) -> Iterator[ImplausibleValue]:
    shares = {"quality.score": quality.score} | {
        f"quality.dimensions.{name}": share for name, share in quality.dimensions.items()
    }
    if quality.profile is not None:
        shares["quality.profile.sampled"] = quality.profile.sampled
    for path, share in shares.items():
        if share is not None and not 0 <= share <= 1:
            yield ImplausibleValue(path, "value", f"{share} is not between 0 and 1.")
