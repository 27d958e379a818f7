"""Paths of datasets and files relative to a repository or to the scanned folder."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from lumos.config import Settings
from lumos.model.dataset import Dataset
from lumos.model.dataset_pattern import FORMAT_EXTENSIONS, DatasetPattern, strip_extensions
from lumos.model.urn import SCHEME, Urn
from lumos.storage.file_names import REPOSITORY_SEPARATOR, FileNames, is_inside
from lumos.store import KnownDataset

_LUMOS_FOLDER: Final = ".lumos"
_LOCAL_SCHEMES: Final = ("", "file")
# The extension of data files if it is not the name of the format.
_DATA_EXTENSIONS: Final = {"delta": "parquet", "iceberg": "parquet", "hudi": "parquet"}


def stable_file_name(settings: Settings, file: Path) -> str:
    """A unique name of a file that does not depend on the working folder."""
    return FileNames(_store_folder(settings)).of(file)


def path_in_repository(settings: Settings, name: str, root: Path) -> str | None:
    """The path of a file relative to the root of a repository; None for files elsewhere."""
    root_name = stable_file_name(settings, root)
    if REPOSITORY_SEPARATOR in name:
        if REPOSITORY_SEPARATOR not in root_name:
            return name.partition(REPOSITORY_SEPARATOR)[2]
        return name.removeprefix(root_name).lstrip("/") if is_inside(name, root_name) else None
    folder = _store_folder(settings)
    if folder is not None and folder.name == _LUMOS_FOLDER:
        folder = folder.parent
    path = Path(name) if folder is None else folder / name
    relative = path_from_root(path, root)
    # Lineage that was ingested on another machine contains file names of that machine.
    return name if relative is None and not path.exists() else relative


def _store_folder(settings: Settings) -> Path | None:
    return None if settings.storage.path is None else Path(settings.storage.path).parent


def path_from_root(path: str | Path, root: Path) -> str | None:
    """A path relative to a folder that contains it, directly or through a link; else None."""
    for absolute, base in (
        (os.path.abspath(path), os.path.abspath(root)),
        (os.path.realpath(path), os.path.realpath(root)),
    ):
        if Path(absolute).is_relative_to(base):
            return Path(absolute).relative_to(base).as_posix()
    return None


def path_below_source(known: KnownDataset, dataset: Dataset) -> str | None:
    """Return the path of local files, starting with the name of the scanned folder.

    The path omits the parents of that folder, which differ between machines. None for data in
    other locations.
    """
    path = local_path(dataset)
    root = known.source.partition(":")[2]
    if path is None or not root.startswith("/"):
        return None
    relative = path_from_root(path, Path(root))
    if relative is None:
        return None
    return f"{Path(root).name}/{relative}" if relative != "." else Path(root).name


def local_path(dataset: Dataset) -> str | None:
    """The path of the data on this machine."""
    if dataset.location is None:
        return None
    split = urlsplit(dataset.location.uri)
    if split.scheme not in _LOCAL_SCHEMES:
        return None
    return unquote(split.path) if split.scheme else dataset.location.uri


def remote_path(dataset: Dataset) -> str | None:
    """The path of the data in a bucket or another remote location."""
    if dataset.location is None or local_path(dataset) is not None:
        return None
    return unquote(urlsplit(dataset.location.uri).path)


def possible_paths(path: str, dataset: Dataset) -> Iterator[str]:
    """The path itself and, if it may be a folder of data files, the path of a file in it."""
    yield path
    extension = _DATA_EXTENSIONS.get(dataset.format or "", dataset.format or "")
    if extension in FORMAT_EXTENSIONS and strip_extensions(path) == path:
        yield f"{path}/part-0.{extension}"


def is_match(pattern: DatasetPattern, known: KnownDataset, dataset: Dataset) -> bool:
    """Whether a pattern matches a dataset by its path below the scanned folder."""
    relative = None if pattern.text.startswith(SCHEME) else path_below_source(known, dataset)
    if relative is None:
        return pattern.matches(dataset.urn, dataset.name)
    urn = Urn.of(Urn.parse(dataset.urn).platform, relative.split("/"))
    return pattern.matches(str(urn), dataset.name)
