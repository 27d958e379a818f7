"""Which metadata file is the current one.

A catalog would know. Without it: a hint beside the files says so, or their numbers do.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from lumos.formats.interface import Remark, UnreadableFile
from lumos.formats.tables.iceberg.metadata import (
    LONGEST,
    CutOff,
    Metadata,
    broken,
    parsed,
    too_long,
)
from lumos.formats.tables.interface import Entry, Folder

METADATA: Final = "metadata"
_HINT: Final = "version-hint.text"
_LONGEST_HINT: Final = 4096
_ENDING: Final = re.compile(r"(?:\.(?:gz|gzip|zst|zstd))?\.metadata\.json(?:\.(?:gz|zst))?\Z")
_UUID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
# A name that is nothing but a UUID is a file that was not committed yet.
_UNCOMMITTED: Final = re.compile(_UUID + r"\Z", re.IGNORECASE)
# So a catalog calls the files that it is to point at once they are whole.
_OF_CATALOG: Final = re.compile(rf"\d+-{_UUID}\Z", re.IGNORECASE)
_MOST_CUT_OFF: Final = 100
_NUMBER: Final = re.compile(r"v?(\d{1,18})(?:-.*)?\Z", re.DOTALL)


class Current(NamedTuple):
    """The current metadata file, and what was odd about finding it."""

    name: str
    metadata: Metadata
    # Of all metadata files.
    sizes: dict[str, int]
    remarks: tuple[Remark, ...] = ()


class _File(NamedTuple):
    number: int
    entry: Entry


def signature(folder: Folder) -> str:
    """Changes whenever a metadata file or the hint does."""
    hash = hashlib.blake2b(digest_size=16)
    for entry in folder.entries(METADATA):
        if entry.name == _HINT or _ENDING.search(entry.name):
            hash.update(repr(tuple(entry)).encode("utf-8", "surrogatepass"))
    return hash.hexdigest()


def number_of(name: str) -> int | None:
    """How many-th metadata file it is; nothing for one that was not committed."""
    stem = _ENDING.sub("", name)
    match = _NUMBER.match(stem)
    return None if match is None or _UNCOMMITTED.match(stem) else int(match.group(1))


def current(folder: Folder, *, seen: str = "") -> Current:
    """The current metadata file; raises UnreadableFile. `seen` is the one that once was it."""
    files: list[_File] = []
    has_hint = False
    sizes: dict[str, int] = {}
    for entry in folder.entries(METADATA):
        if entry.name == _HINT:
            has_hint = entry.size <= _LONGEST_HINT
        elif _ENDING.search(entry.name):
            sizes[entry.name] = entry.size
            if (number := number_of(entry.name)) is not None:
                files.append(_File(number, entry))
    hinted = _hinted(folder, files) if has_hint else []
    committed = {seen, *(file.entry.name for file in hinted)}
    cut_off: list[Remark] = []
    while files:
        try:
            found = _chosen(folder, hinted, files, sizes)
            return found._replace(remarks=(*cut_off, *found.remarks))
        except CutOff as problem:
            if problem.name in committed or not _OF_CATALOG.match(_ENDING.sub("", problem.name)):
                raise
            if len(cut_off) == _MOST_CUT_OFF:
                raise
            # No catalog points at what is not whole, so that the file before it is the table.
            files = [file for file in files if file.entry.name != problem.name]
            cut_off.append(_remark_on(problem))
    raise UnreadableFile(
        "half_written_table", "There is no committed metadata file in its folder yet"
    )


def _remark_on(problem: CutOff) -> Remark:
    said = problem.reason.rstrip(".")
    return Remark("half_written_table", f"{said}; it was never committed, the one before counts.")


def _chosen(
    folder: Folder, hinted: list[_File], files: list[_File], sizes: dict[str, int]
) -> Current:
    chosen = _followed(hinted, files)
    if len(chosen) == 1:
        return Current(chosen[0].name, _metadata(folder, chosen[0]), sizes)
    return _settled(folder, chosen or _newest(files), files, sizes)


def _metadata(folder: Folder, entry: Entry) -> Metadata:
    if entry.size > LONGEST:
        raise too_long(entry.name)
    try:
        return parsed(entry.name, folder.read(f"{METADATA}/{entry.name}"))
    except FileNotFoundError:
        raise broken(f"{entry.name} is listed, but is not there") from None


def _hinted(folder: Folder, files: Iterable[_File]) -> list[_File]:
    """The files with the number that the hint gives, or the one that it names."""
    try:
        text = folder.read(f"{METADATA}/{_HINT}").decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return []
    if text.isascii() and text.isdigit() and len(text) < 19:
        return [file for file in files if file.number == int(text)]
    named = _ENDING.sub("", text.rpartition("/")[2])
    return [file for file in files if _ENDING.sub("", file.entry.name) == named]


def _followed(hinted: list[_File], files: Iterable[_File]) -> list[Entry]:
    """The hint is written after the file, so that files which follow it count already."""
    by_number: dict[int, list[_File]] = {}
    for file in files:
        by_number.setdefault(file.number, []).append(file)
    while hinted and (following := by_number.get(hinted[0].number + 1)):
        hinted = following
    return [file.entry for file in hinted]


def _newest(files: list[_File]) -> list[Entry]:
    highest = max(file.number for file in files)
    return [file.entry for file in files if file.number == highest]


def _rival(folder: Folder, entry: Entry, metadata: Metadata) -> list[tuple[Entry, Metadata]]:
    """A file of another table, if it is one; an older file that is damaged is nobody's trouble."""
    try:
        other = _metadata(folder, entry)
    except UnreadableFile:
        return []
    return [(entry, other)] if other.table_uuid != metadata.table_uuid else []


def _settled(
    folder: Folder, chosen: list[Entry], files: list[_File], sizes: dict[str, int]
) -> Current:
    """Of several files with the highest number, one; and a table that was made anew counts.

    A table that was dropped and made again at its place begins with number 0, beside the files
    that the dropped one left behind.
    """
    latest = max((file.entry for file in files), key=lambda entry: entry.modified)
    read = [(entry, _metadata(folder, entry)) for entry in chosen]
    if latest.modified > max(entry.modified for entry in chosen):
        read.extend(_rival(folder, latest, read[0][1]))
    if len(read) == 1:
        return Current(read[0][0].name, read[0][1], sizes)
    named = {
        entry.metadata_file.rpartition("/")[2]
        for _, metadata in read
        for entry in metadata.metadata_log or ()
    }
    last = [one for one in read if one[0].name not in named] or read
    entry, metadata = max(last, key=lambda one: (one[1].last_updated_ms, one[0].name))
    if len(last) == 1:
        return Current(entry.name, metadata, sizes)
    others = ", ".join(sorted(one[0].name for one in last if one[0] is not entry)[:3])
    remark = Remark(
        "ambiguous_metadata",
        f"{entry.name} is taken for the current metadata, since it was updated last, but it may "
        f"be {others}; a catalog would know.",
    )
    return Current(entry.name, metadata, sizes, (remark,))
