"""Exports schemas to text files in a folder, with URNs that are the same in every checkout.

`lumos://file/home/ann/shop/lake/orders`, scanned as `lake`, is exported as `lumos://file/orders`.
URNs of buckets, clusters and databases are the same everywhere and stay as they are.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

import msgspec

from lumos.config.settings import StorageSettings
from lumos.errors import LumosError, MisuseError
from lumos.model.schema import fingerprint
from lumos.model.urn import Urn
from lumos.schemas.files import (
    SCHEMA_SUFFIX,
    WRITER,
    DatasetSchema,
    decode_text,
    file_path_of,
    read_header,
    schema_file_text,
    schema_files_in,
)
from lumos.schemas.reports import SchemaExportReport
from lumos.storage import storage_of
from lumos.store import Store

_LOCAL: Final = "file"


class RecordedUrn(NamedTuple):
    """A dataset of the store, its source, and whether it is live."""

    urn: str
    source: str
    is_live: bool = True


def portable_urns(recorded: Iterable[RecordedUrn]) -> dict[str, str]:
    """The URN of each dataset in an export.

    If several local folders were scanned, it begins with the name of the folder. Datasets that
    would get the same URN keep their own.
    """
    datasets = list(recorded)
    roots = {each.source: _root(each.source) for each in datasets if each.is_live}
    labels = _labels({root for root in roots.values() if root is not None})
    found = {
        each.urn: each.urn if (root := roots.get(each.source)) is None
        else _from_root(Urn.parse(each.urn), root, labels[root])
        for each in datasets
    }  # fmt: skip
    live = Counter(found[each.urn] for each in datasets if each.is_live)

    def is_taken(each: RecordedUrn) -> bool:
        return live[found[each.urn]] > (1 if each.is_live else 0)

    return {each.urn: each.urn if is_taken(each) else found[each.urn] for each in datasets}


def _root(source: str) -> tuple[str, ...] | None:
    """The segments of the folder that a local source scans: `file:/lake`, `file@eu:/lake`."""
    identity, _, path = source.partition(":")
    return tuple(path.strip("/").split("/")) if identity.partition("@")[0] == _LOCAL else None


def _labels(roots: set[tuple[str, ...]]) -> dict[tuple[str, ...], tuple[str, ...]]:
    """The shortest distinct ends of the root paths; empty for a single root."""
    if len(roots) == 1:
        return dict.fromkeys(roots, ())
    tails = Counter(root[-size:] for root in roots for size in range(1, len(root) + 1))
    return {
        root: next((root[-size:] for size in range(1, len(root)) if tails[root[-size:]] == 1), root)
        for root in roots
    }


def _from_root(urn: Urn, root: tuple[str, ...], label: tuple[str, ...]) -> str:
    if urn.platform != _LOCAL or urn.path[: len(root)] != root:
        return str(urn)
    # A root that is a dataset itself is named after its folder.
    path = (*label, *urn.path[len(root) :]) or root[-1:]
    return str(msgspec.structs.replace(urn, path=path))


def is_same_dataset(one: str, other: str) -> bool:
    """Whether two URNs are equal but for leading folders, which exports leave out."""
    first, second = Urn.parse(one), Urn.parse(other)
    longer, shorter = sorted((first, second), key=lambda urn: len(urn.path), reverse=True)
    tail = msgspec.structs.replace(longer, path=longer.path[-len(shorter.path) :])
    return tail == shorter and (longer.platform == _LOCAL or one == other)


def align_urns(
    before: Mapping[str, DatasetSchema], after: Mapping[str, DatasetSchema]
) -> dict[str, DatasetSchema]:
    """The first datasets under the URNs of the second ones, also from older exports.

    Older exports wrote full paths: a local dataset that only one side has is matched with the only
    such dataset of the other side whose path has the same end.
    """
    old, new = _unmatched(before, after), _unmatched(after, before)
    pairs = [*_by_tail(old, new), *((tail, path) for path, tail in _by_tail(new, old))]
    olds, news = Counter(pair[0] for pair in pairs), Counter(pair[1] for pair in pairs)
    renamed = {a: b for a, b in pairs if olds[a] == news[b] == 1}
    return {
        renamed.get(urn, urn): msgspec.structs.replace(each, urn=renamed.get(urn, urn))
        for urn, each in before.items()
    }


def _unmatched(
    candidates: Mapping[str, DatasetSchema], others: Mapping[str, DatasetSchema]
) -> dict[Urn, str]:
    urns = {Urn.parse(urn): urn for urn in candidates if urn not in others}
    return {urn: text for urn, text in urns.items() if urn.platform == _LOCAL}


def _by_tail(path: Mapping[Urn, str], tails: Mapping[Urn, str]) -> Iterable[tuple[str, str]]:
    """Pairs of each URN with the URN that matches the longest end of its path."""
    for urn, text in path.items():
        for start in range(1, len(urn.path)):
            tail = msgspec.structs.replace(urn, path=urn.path[start:])
            if tail in tails:
                yield text, tails[tail]
                break


_SUFFIX_LENGTH: Final = 8


def export_schemas(datasets: Iterable[DatasetSchema], folder: Path) -> SchemaExportReport:
    """Writes schemas to a folder and removes files of earlier exports that are obsolete."""
    if folder.exists() and not folder.is_dir():
        raise MisuseError(f"{folder} is a file. Name a folder to write schemas to.")
    described = {each.urn: each for each in datasets}
    paths = file_paths_of(described)
    for parent in sorted({path.parent for path in paths.values()}):
        _create_folder(folder / parent, inside=folder)
    written_by_people = {
        path
        for path in paths.values()
        if (folder / path).exists() and not _is_own(folder / path, path)
    }
    changed = [
        path.as_posix()
        for urn, path in paths.items()
        if _write(folder / path, schema_file_text(described[urn]))
    ]
    removed = _remove_obsolete(folder, set(paths.values()))
    return SchemaExportReport(
        folder=str(folder),
        datasets=len(described),
        written=tuple(changed),
        replaced=tuple(sorted(path.as_posix() for path in written_by_people)),
        removed=tuple(removed),
    )


def file_paths_of(urns: Iterable[str]) -> dict[str, PurePosixPath]:
    """The file of each dataset; paths that only differ in case get distinct suffixes."""
    paths = {urn: file_path_of(Urn.parse(urn)) for urn in urns}
    alike: dict[str, list[str]] = {}
    for urn, path in paths.items():
        alike.setdefault(str(path).casefold(), []).append(urn)
    for group in alike.values():
        for urn in group if len(group) > 1 else ():
            mark = fingerprint([urn])[:_SUFFIX_LENGTH]
            paths[urn] = paths[urn].with_name(
                f"{paths[urn].name.removesuffix(SCHEMA_SUFFIX)}%~{mark}{SCHEMA_SUFFIX}"
            )
    return paths


def _create_folder(parent: Path, *, inside: Path) -> None:
    if not parent.resolve().is_relative_to(inside.resolve()):
        raise MisuseError(f"{parent} is a link that leads out of {inside}. Remove it first.")
    parent.mkdir(parents=True, exist_ok=True)


def _write(file: Path, text: str) -> bool:
    """Writes a file unless it has this text already; returns whether it did."""
    data = text.encode("utf-8", "surrogatepass")
    if file.is_file() and not file.is_symlink() and file.read_bytes() == data:
        return False
    unfinished = file.with_name(f"{file.name}.part")
    unfinished.write_bytes(data)
    unfinished.replace(file)
    return True


def _remove_obsolete(folder: Path, paths: set[PurePosixPath]) -> list[str]:
    """Removes obsolete files of earlier exports, and folders that become empty."""
    removed = []
    for file in list(schema_files_in(folder)) if folder.is_dir() else ():
        path = PurePosixPath(file.relative_to(folder).as_posix())
        if path in paths or file.is_symlink() or not _is_own(file, path):
            continue
        file.unlink()
        removed.append(path.as_posix())
        for above in path.parents[:-1]:
            if any((folder / above).iterdir()):
                break
            (folder / above).rmdir()
    return removed


def _is_own(file: Path, path: PurePosixPath) -> bool:
    """Whether an export wrote the file, rather than a person."""
    try:
        header = read_header(decode_text(str(file), file.read_bytes()))
        named = file_path_of(Urn.parse(header.get("urn", "")))
    except LumosError:
        return False
    same = path.parent == named.parent and path.name.startswith(
        named.name.removesuffix(SCHEMA_SUFFIX)
    )
    return same and header.get("written by") == WRITER


def mirror_schemas(store: Store, urns: Iterable[str], *, storage: StorageSettings) -> None:
    """Write every schema version of the datasets as `<platform>/<path>/<version>.schema`.

    Only stores with `storage.backend: file` have these readable copies.
    """
    if storage.backend != "file":
        return
    for urn in urns:
        path = (Path(str(storage.path)) / "schemas" / file_path_of(Urn.parse(urn))).with_suffix("")
        for record in store.history(urn):
            text = (
                f"# {urn}\n# {record.cloud_version}, {record.recorded_at:%Y-%m-%d %H:%M:%S} UTC\n"
            )
            file = path / f"{record.version}.schema"
            if not file.exists():
                storage_of(str(file)).write(str(file), f"{text}{record.schema}\n".encode())
