"""Writes snapshots: whole or not at all, and the same bytes for the same state."""

import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Literal

import msgspec

from lumos.model.catalog import GlossaryTerm, Group, Item, Job, Other, User
from lumos.model.dataset import Dataset
from lumos.snapshots.format.codec import Malformed, canonical, decoded, digest, entry_of
from lumos.snapshots.format.document import (
    DATASETS,
    GLOSSARY,
    GROUPS,
    JOBS,
    KINDS,
    OTHERS,
    USERS,
    Facts,
    Header,
    Kind,
)
from lumos.snapshots.format.encodings import MANIFEST, Keyed, encoding_of
from lumos.snapshots.format.errors import Duplicate, SnapshotError
from lumos.snapshots.format.manifest import Tally, header_of_facts
from lumos.snapshots.format.sort import Sorter


class _Manifest(msgspec.Struct):
    """What tells the manifest of a snapshot from other files of that name."""

    format: Literal["lumos-snapshot"]
    files: dict[str, list[str]]


def write_snapshot(
    path: str | Path,
    facts: Facts,
    datasets: Iterable[Dataset],
    *,
    glossary: Iterable[GlossaryTerm] = (),
    users: Iterable[User] = (),
    groups: Iterable[Group] = (),
    jobs: Iterable[Job] = (),
    others: Iterable[Other] = (),
) -> Header:
    """Writes a snapshot of entries in any order and gives the header it has.

    The path's ending chooses the encoding. What was there before is replaced when all is written.
    """
    file = Path(path)
    encoding = encoding_of(file)
    given: dict[Kind, Iterable[Item]] = {
        GLOSSARY: glossary,
        USERS: users,
        GROUPS: groups,
        JOBS: jobs,
        OTHERS: others,
        DATASETS: datasets,
    }
    with ExitStack() as open_sorters:
        tally = Tally()
        sorters = {kind: open_sorters.enter_context(Sorter(kind)) for kind in KINDS}
        for kind, sorter in sorters.items():
            _collect(file, kind, given[kind], sorter, tally)
        header = header_of_facts(facts, tally)
        bodies = {kind.plural: _in_order(file, kind, sorters[kind]) for kind in KINDS}
        with _replacing(file, is_folder=encoding.is_folder) as place:
            try:
                encoding.write(place, canonical(header), bodies)
            except Malformed as problem:
                raise SnapshotError(file, problem.path, f"{problem.problem}.") from None
    return header


def _collect(file: Path, kind: Kind, values: Iterable[Item], sorter: Sorter, tally: Tally) -> None:
    keyed = attrgetter(kind.key)
    for value in values:
        key = keyed(value)
        try:
            body = canonical(value)
        except UnicodeEncodeError:
            problem = f"The {kind.singular} {key!r} holds text that is not Unicode."
            raise SnapshotError(file, kind.plural, problem) from None
        except RecursionError:
            problem = f"The {kind.singular} '{key}' nests too deeply."
            raise SnapshotError(file, kind.plural, problem) from None
        if not isinstance(value, Dataset) or value.quality or value.cost:
            _check_numbers(file, kind, key, body)
        content_hash = digest(body)
        tally.add(kind, value, content_hash)
        sorter.add(key, body, content_hash)


def _check_numbers(file: Path, kind: Kind, key: str, body: bytes) -> None:
    # What is not known is left out, so that null can only be in what is carried along, in a text,
    # or in the place of a number that JSON has no word for.
    if b":null" not in body:
        return
    try:
        is_same = canonical(entry_of(kind, body)) == body
    except Malformed:
        is_same = False
    if not is_same:
        problem = f"The {kind.singular} '{key}' holds NaN or infinity in the place of a number."
        raise SnapshotError(file, kind.plural, problem)


def _in_order(file: Path, kind: Kind, sorter: Sorter) -> Iterator[Keyed]:
    last = None
    for entry in sorter.in_order():
        key = entry[0]
        if key == last:
            raise Duplicate(file, kind.plural, f"The {kind.singular} '{key}' was given twice.")
        last = key
        yield entry


@contextmanager
def _replacing(file: Path, *, is_folder: bool) -> Iterator[Path]:
    """A place beside the file, which takes the file's place once all is written."""
    if file.is_dir():
        _check_replaceable(file, is_folder=is_folder)
    file.parent.mkdir(parents=True, exist_ok=True)
    place = file.with_name(f".{file.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        yield place
        _settle(place)
        if file.is_dir():
            before = file.with_name(f".{file.name}.{uuid.uuid4().hex[:8]}.old")
            file.rename(before)
            place.rename(file)
            shutil.rmtree(before)
        else:
            os.replace(place, file)
    finally:
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)


def _settle(place: Path) -> None:
    """Makes sure that what was written is on the disk before it takes the place of anything."""
    for file in place.iterdir() if place.is_dir() else (place,):
        with file.open("rb") as written:
            os.fsync(written.fileno())


def _check_replaceable(folder: Path, *, is_folder: bool) -> None:
    """Refuses a folder that holds anything but a snapshot."""
    names = {each.name for each in folder.iterdir()} if is_folder else {""}
    if not names:
        return
    foreign = names - _files_of_snapshot(folder)
    if foreign:
        named = f", such as {min(foreign)}" if is_folder else ""
        problem = f"There is a folder of that name already, with other things{named}."
        raise SnapshotError(folder, "", problem)


def _files_of_snapshot(folder: Path) -> set[str]:
    """The files that a snapshot in Parquet is made of; none where the folder holds no snapshot."""
    try:
        manifest = decoded((folder / MANIFEST).read_bytes(), _Manifest)
    except (OSError, Malformed):
        return set()
    return {MANIFEST, *(name for names in manifest.files.values() for name in names)}
