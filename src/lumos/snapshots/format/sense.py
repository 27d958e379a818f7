"""What an entry says that its types allow and nobody can mean."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from lumos.errors import MisuseError
from lumos.model.catalog import CatalogEntry, Job
from lumos.model.dataset import Quality, Versioning
from lumos.model.urn import SCHEME
from lumos.model.version import CloudVersion, SchemaVersion

_SCHEME_OF_URN: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S", re.ASCII)


class Oddity(NamedTuple):
    """Something odd at a path inside an entry; what comes from other catalogs is no error."""

    path: str
    code: str
    text: str
    is_error: bool = False


def oddities(key: str, value: Any) -> Iterator[Oddity]:
    """All that is odd with an entry."""
    if isinstance(value, CatalogEntry):
        yield from _of_dataset(value)
    elif isinstance(value, Job) and not _SCHEME_OF_URN.match(key):
        yield Oddity("urn", "urn", f"'{key}' is no URN.")
    if not getattr(value, "name", key):
        yield Oddity("name", "value", "The name is empty.")


def _of_dataset(dataset: CatalogEntry) -> Iterator[Oddity]:
    if (schema := dataset.schema) is not None:
        names = [field.name for field in schema.fields]
        if len(set(names)) != len(names):
            for index, name in _again(names):
                text = f"The column '{name}' stands here a second time."
                yield Oddity(f"schema.fields[{index}].name", "duplicate", text, is_error=True)
    if not _is_of_platform(dataset.urn, dataset.platform):
        text = f"It is '{dataset.platform}', and its URN says otherwise."
        yield Oddity("platform", "value", text)
    if dataset.lineage is not None and len(dataset.lineage.upstream) > 1:
        for index, urn in _again([edge.urn for edge in dataset.lineage.upstream]):
            text = f"The edge from '{urn}' stands here a second time."
            yield Oddity(f"lineage.upstream[{index}].urn", "duplicate", text)
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


def _of_versioning(versioning: Versioning) -> Iterator[Oddity]:
    steps = {"versioning": versioning} | {
        f"versioning.history[{index}]": step for index, step in enumerate(versioning.history)
    }
    for path, step in steps.items():
        for name, type in (("cloud_version", CloudVersion), ("schema_version", SchemaVersion)):
            try:
                type.parse(getattr(step, name))
            except MisuseError as problem:
                yield Oddity(f"{path}.{name}", "value", f"{problem}.")


def _of_quality(quality: Quality) -> Iterator[Oddity]:
    shares = {"quality.score": quality.score} | {
        f"quality.dimensions.{name}": share for name, share in quality.dimensions.items()
    }
    if quality.profile is not None:
        shares["quality.profile.sampled"] = quality.profile.sampled
    for path, share in shares.items():
        if share is not None and not 0 <= share <= 1:
            yield Oddity(path, "value", f"{share} is no share: one lies between 0 and 1.")
