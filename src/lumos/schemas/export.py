"""Writes the schemas of all datasets as text files that can be reviewed and kept in git."""

from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final

from lumos.errors import LumosError, MisuseError
from lumos.model.schema import fingerprint
from lumos.model.urn import Urn
from lumos.schemas.files import ENDING, WRITER, Described, files_in, header, place_of, written
from lumos.schemas.reports import ExportReport
from lumos.schemas.texts import decoded

_APART: Final = 8


def export(datasets: Iterable[Described], folder: Path) -> ExportReport:
    """Brings a folder up to date; only files that an export wrote are ever removed."""
    if folder.exists() and not folder.is_dir():
        raise MisuseError(f"{folder} is a file. Name a folder to write schemas to.")
    described = {each.urn: each for each in datasets}
    places = places_of(described)
    for parent in sorted({place.parent for place in places.values()}):
        _make(folder / parent, inside=folder)
    foreign = {
        place
        for place in places.values()
        if (folder / place).exists() and not _is_own(folder / place, place)
    }
    changed = [
        place.as_posix()
        for urn, place in places.items()
        if _write(folder / place, written(described[urn]))
    ]
    removed = _remove_others(folder, set(places.values()))
    return ExportReport(
        folder=str(folder),
        datasets=len(described),
        written=tuple(changed),
        replaced=tuple(sorted(place.as_posix() for place in foreign)),
        removed=tuple(removed),
    )


def places_of(urns: Iterable[str]) -> dict[str, PurePosixPath]:
    """The file of each dataset; such as only a case-blind disk would mix up are told apart."""
    places = {urn: place_of(Urn.parse(urn)) for urn in urns}
    alike: dict[str, list[str]] = {}
    for urn, place in places.items():
        alike.setdefault(str(place).casefold(), []).append(urn)
    for group in alike.values():
        for urn in group if len(group) > 1 else ():
            mark = fingerprint([urn])[:_APART]
            places[urn] = places[urn].with_name(
                f"{places[urn].name.removesuffix(ENDING)}%~{mark}{ENDING}"
            )
    return places


def _make(parent: Path, *, inside: Path) -> None:
    if not parent.resolve().is_relative_to(inside.resolve()):
        raise MisuseError(f"{parent} is a link that leads out of {inside}. Remove it first.")
    parent.mkdir(parents=True, exist_ok=True)


def _write(file: Path, text: str) -> bool:
    """Writes a file unless it is as it should be; says whether it did."""
    data = text.encode("utf-8", "surrogatepass")
    if file.is_file() and not file.is_symlink() and file.read_bytes() == data:
        return False
    unfinished = file.with_name(f"{file.name}.part")
    unfinished.write_bytes(data)
    unfinished.replace(file)
    return True


def _remove_others(folder: Path, places: set[PurePosixPath]) -> list[str]:
    """Removes the files of datasets that are gone, and folders that are empty then."""
    removed = []
    for file in list(files_in(folder)) if folder.is_dir() else ():
        place = PurePosixPath(file.relative_to(folder).as_posix())
        if place in places or file.is_symlink() or not _is_own(file, place):
            continue
        file.unlink()
        removed.append(place.as_posix())
        for above in place.parents[:-1]:
            if any((folder / above).iterdir()):
                break
            (folder / above).rmdir()
    return removed


def _is_own(file: Path, place: PurePosixPath) -> bool:
    """Whether an export wrote the file here, rather than a person."""
    try:
        told = header(decoded(str(file), file.read_bytes()))
        named = place_of(Urn.parse(told.get("urn", "")))
    except LumosError:
        return False
    same = place.parent == named.parent and place.name.startswith(named.name.removesuffix(ENDING))
    return same and told.get("written by") == WRITER
