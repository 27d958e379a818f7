"""Where things lie as people say it: from the root of a repository or of a scan."""

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

_OWN_FOLDER: Final = ".lumos"
_LOCAL: Final = ("", "file")
# What the files of a dataset end with, where that is not the name of its format.
_FILES_END: Final = {"delta": "parquet", "iceberg": "parquet", "hudi": "parquet"}


def lasting_name(settings: Settings, file: Path) -> str:
    """What a file is called from whichever folder somebody names it, and no other file."""
    return FileNames(_beside(settings)).of(file)


def in_repository(settings: Settings, name: str, root: Path) -> str | None:
    """The path from a repository's root of a lasting name; nothing of what lies elsewhere."""
    own = lasting_name(settings, root)
    if REPOSITORY_SEPARATOR in name:
        if REPOSITORY_SEPARATOR not in own:
            return name.partition(REPOSITORY_SEPARATOR)[2]
        return name.removeprefix(own).lstrip("/") if is_inside(name, own) else None
    folder = _beside(settings)
    if folder is not None and folder.name == _OWN_FOLDER:
        folder = folder.parent
    place = Path(name) if folder is None else folder / name
    inside = from_root(place, root)
    # What lineage was told of on another machine is called as it was there.
    return name if inside is None and not place.exists() else inside


def _beside(settings: Settings) -> Path | None:
    return None if settings.storage.path is None else Path(settings.storage.path).parent


def from_root(path: str | Path, root: Path) -> str | None:
    """A path from a folder that it lies in, also where a link leads there."""
    for place, base in (
        (os.path.abspath(path), os.path.abspath(root)),
        (os.path.realpath(path), os.path.realpath(root)),
    ):
        if Path(place).is_relative_to(base):
            return Path(place).relative_to(base).as_posix()
    return None


def below_source(known: KnownDataset, dataset: Dataset) -> str | None:
    """The path of files on this machine from the folder that was scanned, with that folder's name.

    What lies above the folder is an accident of the machine. Nothing of what lies elsewhere.
    """
    place = local_path(dataset)
    root = known.source.partition(":")[2]
    if place is None or not root.startswith("/"):
        return None
    inside = from_root(place, Path(root))
    if inside is None:
        return None
    return f"{Path(root).name}/{inside}" if inside != "." else Path(root).name


def local_path(dataset: Dataset) -> str | None:
    """Where the data lies on this machine."""
    if dataset.location is None:
        return None
    split = urlsplit(dataset.location.uri)
    if split.scheme not in _LOCAL:
        return None
    return unquote(split.path) if split.scheme else dataset.location.uri


def distant_path(dataset: Dataset) -> str | None:
    """The path in a bucket, or wherever else than on this machine the data lies."""
    if dataset.location is None or local_path(dataset) is not None:
        return None
    return unquote(urlsplit(dataset.location.uri).path)


def with_files(path: str, dataset: Dataset) -> Iterator[str]:
    """A path, and that of a file as one would lie below it where it is a folder of files."""
    yield path
    ending = _FILES_END.get(dataset.format or "", dataset.format or "")
    if ending in FORMAT_EXTENSIONS and strip_extensions(path) == path:
        yield f"{path}/part-0.{ending}"


def fits(pattern: DatasetPattern, known: KnownDataset, dataset: Dataset) -> bool:
    """Whether a pattern means a dataset by where it lies below the folder that was scanned."""
    inside = None if pattern.text.startswith(SCHEME) else below_source(known, dataset)
    if inside is None:
        return pattern.matches(dataset.urn, dataset.name)
    urn = Urn.of(Urn.parse(dataset.urn).platform, inside.split("/"))
    return pattern.matches(str(urn), dataset.name)
