"""Exports schemas to text files in a folder, with URNs that are the same in every checkout.

For example, if the folder `lake` is scanned, `lumos://file/home/ann/shop/lake/orders` is exported
as `lumos://file/orders`. URNs of buckets, clusters and databases do not depend on the machine, so
they are not changed.
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

_LOCAL_PLATFORM: Final = "file"


class RecordedUrn(NamedTuple):
    """A dataset of the store, its source, and whether it is live."""

    urn: str
    source: str
    is_live: bool = True


def portable_urns(recorded: Iterable[RecordedUrn]) -> dict[str, str]:
    """Map the URN of each dataset to its URN in exports.

    If several local folders were scanned, the path in the new URN starts with the name of the
    folder. URNs are not changed if several datasets would get the same URN.
    """
    datasets = list(recorded)
    roots = {each.source: _root(each.source) for each in datasets if each.is_live}
    labels = _shortest_labels({root for root in roots.values() if root is not None})
    portable = {
        each.urn: each.urn if (root := roots.get(each.source)) is None
        else _from_root(Urn.parse(each.urn), root, labels[root])
        for each in datasets
    }  # fmt: skip
    live_counts = Counter(portable[each.urn] for each in datasets if each.is_live)

    def is_taken(each: RecordedUrn) -> bool:
        return live_counts[portable[each.urn]] > (1 if each.is_live else 0)

    return {each.urn: each.urn if is_taken(each) else portable[each.urn] for each in datasets}


def _root(source: str) -> tuple[str, ...] | None:
    """The path of the folder that a local source such as `file@eu:/lake` scans, in segments."""
    identity, _, path = source.partition(":")
    return (
        tuple(path.strip("/").split("/")) if identity.partition("@")[0] == _LOCAL_PLATFORM else None
    )


def _shortest_labels(roots: set[tuple[str, ...]]) -> dict[tuple[str, ...], tuple[str, ...]]:
    """For each root, the shortest end of its path that no other root has; empty for one root."""
    if len(roots) == 1:
        return dict.fromkeys(roots, ())
    tails = Counter(root[-size:] for root in roots for size in range(1, len(root) + 1))
    return {
        root: next((root[-size:] for size in range(1, len(root)) if tails[root[-size:]] == 1), root)
        for root in roots
    }


def _from_root(urn: Urn, root: tuple[str, ...], label: tuple[str, ...]) -> str:
    if urn.platform != _LOCAL_PLATFORM or urn.path[: len(root)] != root:
        return str(urn)
    # If the root itself is a dataset, use the name of its folder.
    path = (*label, *urn.path[len(root) :]) or root[-1:]
    return str(msgspec.structs.replace(urn, path=path))


def is_same_dataset(one: str, other: str) -> bool:
    """Whether two URNs differ at most in the leading folders, which exports do not contain."""
    first, second = Urn.parse(one), Urn.parse(other)
    longer, shorter = sorted((first, second), key=lambda urn: len(urn.path), reverse=True)
    tail = msgspec.structs.replace(longer, path=longer.path[-len(shorter.path) :])
    return tail == shorter and (longer.platform == _LOCAL_PLATFORM or one == other)


def align_urns(
    before: Mapping[str, DatasetSchema], after: Mapping[str, DatasetSchema]
) -> dict[str, DatasetSchema]:
    """Rename the datasets in `before` to the URNs that they have in `after`.

    Exports of older versions contain full paths. So a local dataset that only one side has is
    matched with the dataset on the other side whose path has the same end, if there is exactly one.
    """
    old, new = _unmatched(before, after), _unmatched(after, before)
    pairs = [
        *_match_by_path_end(old, new),
        *((tail, path) for path, tail in _match_by_path_end(new, old)),
    ]
    old_counts, new_counts = Counter(pair[0] for pair in pairs), Counter(pair[1] for pair in pairs)
    renamed = {
        old_urn: new_urn
        for old_urn, new_urn in pairs
        if old_counts[old_urn] == new_counts[new_urn] == 1
    }
    return {
        renamed.get(urn, urn): msgspec.structs.replace(each, urn=renamed.get(urn, urn))
        for urn, each in before.items()
    }


def _unmatched(
    candidates: Mapping[str, DatasetSchema], others: Mapping[str, DatasetSchema]
) -> dict[Urn, str]:
    urns = {Urn.parse(urn): urn for urn in candidates if urn not in others}
    return {urn: text for urn, text in urns.items() if urn.platform == _LOCAL_PLATFORM}


def _match_by_path_end(
    urns: Mapping[Urn, str], candidates: Mapping[Urn, str]
) -> Iterable[tuple[str, str]]:
    """Pair each URN with the candidate whose path is the longest end of the URN's path."""
    for urn, text in urns.items():
        for start in range(1, len(urn.path)):
            path_end = msgspec.structs.replace(urn, path=urn.path[start:])
            if path_end in candidates:
                yield text, candidates[path_end]
                break


_SUFFIX_LENGTH: Final = 8


def export_schemas(datasets: Iterable[DatasetSchema], folder: Path) -> SchemaExportReport:
    """Write schemas to a folder, and remove obsolete files of earlier exports."""
    if folder.exists() and not folder.is_dir():
        raise MisuseError(f"{folder} is a file. Name a folder to write schemas to.")
    schemas = {each.urn: each for each in datasets}
    paths = file_paths_of(schemas)
    for parent in sorted({path.parent for path in paths.values()}):
        if not (folder / parent).resolve().is_relative_to(folder.resolve()):
            raise MisuseError(
                f"{folder / parent} is a link that leads out of {folder}. Remove it first."
            )
        (folder / parent).mkdir(parents=True, exist_ok=True)
    replaced = {
        path
        for path in paths.values()
        if (folder / path).exists() and not _is_exported_file(folder / path, path)
    }
    changed = [
        path.as_posix()
        for urn, path in paths.items()
        if _write(folder / path, schema_file_text(schemas[urn]))
    ]
    removed = _remove_obsolete(folder, set(paths.values()))
    return SchemaExportReport(
        folder=str(folder),
        datasets=len(schemas),
        written=tuple(changed),
        replaced=tuple(sorted(path.as_posix() for path in replaced)),
        removed=tuple(removed),
    )


def file_paths_of(urns: Iterable[str]) -> dict[str, PurePosixPath]:
    """The path of each dataset's file; paths that only differ in case get distinct suffixes."""
    paths = {urn: file_path_of(Urn.parse(urn)) for urn in urns}
    urns_by_folded_path: dict[str, list[str]] = {}
    for urn, path in paths.items():
        urns_by_folded_path.setdefault(str(path).casefold(), []).append(urn)
    for group in urns_by_folded_path.values():
        for urn in group if len(group) > 1 else ():
            digest = fingerprint([urn])[:_SUFFIX_LENGTH]
            paths[urn] = paths[urn].with_name(
                f"{paths[urn].name.removesuffix(SCHEMA_SUFFIX)}%~{digest}{SCHEMA_SUFFIX}"
            )
    return paths


def _write(file: Path, text: str) -> bool:
    """Write a file unless it already has this text; return whether it was written."""
    data = text.encode("utf-8", "surrogatepass")
    if file.is_file() and not file.is_symlink() and file.read_bytes() == data:
        return False
    temporary = file.with_name(f"{file.name}.part")
    temporary.write_bytes(data)
    temporary.replace(file)
    return True


def _remove_obsolete(folder: Path, paths: set[PurePosixPath]) -> list[str]:
    """Remove obsolete files of earlier exports, and folders that become empty."""
    removed = []
    for file in list(schema_files_in(folder)) if folder.is_dir() else ():
        path = PurePosixPath(file.relative_to(folder).as_posix())
        if path in paths or file.is_symlink() or not _is_exported_file(file, path):
            continue
        file.unlink()
        removed.append(path.as_posix())
        for parent in path.parents[:-1]:
            if any((folder / parent).iterdir()):
                break
            (folder / parent).rmdir()
    return removed


def _is_exported_file(file: Path, path: PurePosixPath) -> bool:
    """Whether an export wrote the file."""
    try:
        header = read_header(decode_text(str(file), file.read_bytes()))
        expected = file_path_of(Urn.parse(header.get("urn", "")))
    except LumosError:
        return False
    is_same_path = path.parent == expected.parent and path.name.startswith(
        expected.name.removesuffix(SCHEMA_SUFFIX)
    )
    return is_same_path and header.get("written by") == WRITER


def mirror_schemas(store: Store, urns: Iterable[str], *, storage: StorageSettings) -> None:
    """Write all schema versions of the datasets as `<platform>/<path>/<version>.schema`.

    These readable copies are only written if `storage.backend` is `file`.
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
