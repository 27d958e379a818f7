"""Whether a snapshot is whole and sound: every problem, with the path to it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

from lumos.model.urn import InvalidUrn, Urn
from lumos.snapshot.codec import Malformed, Sealed, canonical, digest, entry_of, plain_json
from lumos.snapshot.document import DATASETS, KINDS, Counts, Hashes, Header, Kind
from lumos.snapshot.errors import SnapshotError
from lumos.snapshot.manifest import Tally
from lumos.snapshot.reading import Snapshot, misplaced, open_snapshot, sealed_of
from lumos.snapshot.references import References
from lumos.snapshot.strangers import unknown_keys
from lumos.snapshot.versions import Upgraded

# A URN of this form has but one spelling; others are taken apart and put together again.
_PLAIN_URN: Final = re.compile(
    r"lumos://[a-z][a-z0-9_.+-]*(@[\w.~=:@+,-]+)?/[\w.~=:@+,/-]+(\?env=[A-Z][A-Z0-9_-]*)?", re.ASCII
)

_SINGULAR: Final = {kind.plural: kind.singular for kind in KINDS}


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong, or with `warning` only odd; `path` leads into the file."""

    code: str
    path: str
    text: str
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


class Validation:
    """The problems of a snapshot, found while somebody goes through them.

    When all have been seen, `counts` says what the snapshot holds.
    """

    def __init__(self, path: str | Path) -> None:
        self.file = Path(path)
        self.header: Header | None = None
        self._tally = Tally()

    @property
    def counts(self) -> Counts:
        """How much was found so far."""
        return self._tally.counts

    def __iter__(self) -> Iterator[Problem]:
        self._tally = Tally()
        try:
            snapshot = open_snapshot(self.file)
        except SnapshotError as error:
            yield _of_error(error)
            return
        self.header = snapshot.header
        yield from _Check(snapshot, self._tally).problems()


def validate(path: str | Path) -> Validation:
    """Checks format, required fields, order, hashes, counts and references; iterate over it."""
    return Validation(path)


class _Check:
    """One pass over a snapshot."""

    def __init__(self, snapshot: Snapshot, tally: Tally) -> None:
        self._file = snapshot.file
        self._container = snapshot.container
        self._header = snapshot.header
        self._is_present = not isinstance(snapshot.container, Upgraded)
        self._tally = tally
        self._references = References()
        # What has been told already and would show in the sums once more.
        self._told: set[str] = set()

    def problems(self) -> Iterator[Problem]:
        """All of them, in the order of the file."""
        for kind in KINDS:
            try:
                yield from self._of_kind(kind)
            except SnapshotError as error:
                yield from self._once(error)
        if not self._told:
            yield from self._of_counts()
            yield from self._of_hashes()
        yield from self._of_references()

    def _of_kind(self, kind: Kind) -> Iterator[Problem]:
        seen: set[str] = set()
        last = ""
        for stored in self._container.entries(kind):
            if isinstance(stored, SnapshotError):
                yield from self._once(stored)
                continue
            try:
                sealed = sealed_of(stored)
                value = entry_of(kind, self._container.present(kind, sealed.body))
            except Malformed as problem:
                yield from self._malformed(kind, stored.position, problem)
                continue
            key = getattr(value, kind.key)
            is_out_of_order = self._container.streamed and key < last
            if key in seen or is_out_of_order:
                place = self._container.place(kind, stored.position)
                before = key if key in seen else last
                yield _of_error(misplaced(self._file, place, kind, key, before))
            seen.add(key)
            last = key
            if kind is DATASETS and not _PLAIN_URN.fullmatch(key):
                yield from self._of_urn(stored.position, key)
            # Sealed as it was, an entry needs no closer look.
            if (found := digest(sealed.body)) != sealed.content_hash:
                found = digest(canonical(value))
                yield from self._of_content(kind, stored.position, key, sealed, found)
            self._tally.add(kind, value, found)
            self._references.add(kind, stored.position, key, value)

    def _of_content(
        self, kind: Kind, position: int, key: str, sealed: Sealed, found: str
    ) -> Iterator[Problem]:
        """What is odd with an entry that was not sealed as it stands; its layout may be all."""
        place = self._container.place(kind, position)
        if sealed.content_hash is not None and found != sealed.content_hash:
            text = f"'{key}' is not what its content hash says: it was edited or damaged."
            yield Problem(code="hash", path=place, text=text)
            self._told.add(place)
        elif sealed.content_hash is None and self._header.hashes is not None:
            yield Problem(code="hash", path=place, text=f"'{key}' has no content hash.")
        if not self._is_present:
            return
        try:
            plain = plain_json(sealed.body)
        except Malformed as problem:
            # What nobody reads need not even be text, but a snapshot is to be JSON throughout.
            yield from self._malformed(kind, position, problem)
            return
        for path in unknown_keys(kind, plain):
            text = "The format has no such key, and what stands there is not read."
            yield Problem(code="unknown_key", path=f"{place}{path}", text=text, severity="warning")

    def _of_urn(self, position: int, key: str) -> Iterator[Problem]:
        path = f"{self._container.place(DATASETS, position)}.urn"
        try:
            right = str(Urn.parse(key))
        except InvalidUrn as error:
            yield Problem(code="urn", path=path, text=f"{error}.")
            return
        if right != key:
            yield Problem(code="urn", path=path, text=f"'{key}' is spelled '{right}'.")

    def _of_counts(self) -> Iterator[Problem]:
        if self._header.counts is None:
            text = "It has no counts, so that nobody can tell whether it is whole."
            yield Problem(code="count", path="counts", text=text, severity="warning")
            return
        found = msgspec.structs.asdict(self._tally.counts)
        # Layouts before format 1.0 count but a part, and edges in a way of their own.
        for name, wanted in plain_json(self._container.header)["counts"].items():
            if name in found and wanted != found[name]:
                self._told.add(name)
                yield Problem(
                    code="count",
                    path=f"counts.{name}",
                    text=f"It should have {wanted} {_words(name)} and has {found[name]}.",
                    severity="error" if self._is_present or name == "datasets" else "warning",
                )

    def _of_hashes(self) -> Iterator[Problem]:
        told = self._header.hashes
        if told is None:
            if self._is_present:
                text = "It has no hashes, so that nobody can tell whether it was edited."
                yield Problem(code="hash", path="hashes", text=text, severity="warning")
            return
        found = self._tally.hashes(self._header)
        differing = [
            name
            for name in Hashes.__struct_fields__
            if getattr(found, name) != getattr(told, name)
            and (self._is_present or name not in ("header", "overall"))
        ]
        if self._told:
            return
        for name in differing:
            if name == "overall" and len(differing) > 1:
                continue
            text = f"The {_words(name)} are not what this hash says: something was edited."
            yield Problem(code="hash", path=f"hashes.{name}", text=text)

    def _of_references(self) -> Iterator[Problem]:
        is_part = self._header.scope != "all"
        for kind, position, reference in self._references.dangling():
            place = self._container.place(kind, position)
            what = " or ".join(_SINGULAR[name] for name in reference.kinds)
            yield Problem(
                code="reference",
                path=f"{place}.{reference.place}",
                text=f"There is no {what} '{reference.key}' in the snapshot.",
                severity="warning" if is_part or not reference.is_lineage else "error",
            )

    def _malformed(self, kind: Kind, position: int, problem: Malformed) -> Iterator[Problem]:
        place = self._container.place(kind, position)
        self._told.add(place)
        code = "truncated" if problem.cut_off else "format"
        yield Problem(code=code, path=f"{place}{problem.path}", text=f"{problem.problem}.")

    def _once(self, error: SnapshotError) -> Iterator[Problem]:
        if str(error) not in self._told:
            self._told.add(str(error))
            yield _of_error(error)


def _of_error(error: SnapshotError) -> Problem:
    return Problem(code=error.code, path=error.path, text=error.problem)


def _words(name: str) -> str:
    spoken = {"header": "facts of the header", "overall": "contents", "glossary": "terms"}
    return spoken.get(name, name.replace("_", " "))
