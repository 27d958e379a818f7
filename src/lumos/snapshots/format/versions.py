"""Upgrades snapshots to the current version of the format, step by step.

For each new version, a step is added to `STEPS`, which converts headers and entries of the previous
version. Entries are upgraded while they are read.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

import msgspec

from lumos.snapshots.format import legacy_layout
from lumos.snapshots.format.codec import MalformedJson, canonical, decode_plain
from lumos.snapshots.format.document import FORMAT, FORMAT_VERSION, OTHERS, EntryKind
from lumos.snapshots.format.encodings.interface import SnapshotContainer, StoredJson
from lumos.snapshots.format.errors import NewerSnapshot, NotASnapshot, SnapshotError

_VERSION: Final = re.compile(r"(\d{1,4})\.(\d{1,4})(\.\d{1,4})?", re.ASCII)


class FormatUpgrade(NamedTuple):
    """The step from one version to the version `to`; its functions convert plain JSON.

    `paths` maps paths of the new header to paths of the old header. `downgrade` converts an entry
    back, to check its hash if the layout of its JSON differs.
    """

    to: str
    header: Callable[[Mapping[str, Any]], dict[str, Any]]
    entry: Callable[[EntryKind, Any], Any]
    paths: Mapping[str, str] = {}
    downgrade: Callable[[EntryKind, Any], Any] | None = None


def _upgrade_entry_of_1_0(_kind: EntryKind, entry: Any) -> Any:
    """Rename `carried` to `raw`; entries of `others` had no other keys in format 1.0."""
    if not isinstance(entry, dict):
        return entry
    return {"raw" if key == "carried" else key: value for key, value in entry.items()}


def _downgrade_entry_to_1_0(kind: EntryKind, entry: Any) -> dict[str, Any]:
    return {
        "carried" if key == "raw" else key: value
        for key, value in entry.items()
        if kind is not OTHERS or key in ("urn", "raw")
    }


STEPS: Final[dict[str, FormatUpgrade]] = {
    legacy_layout.NESTED: FormatUpgrade(
        "1.1",
        legacy_layout.header_of_nested,
        legacy_layout.convert_entry,
        legacy_layout.NESTED_PATHS,
    ),
    legacy_layout.FLAT: FormatUpgrade(
        "1.1", legacy_layout.header_of_flat, legacy_layout.convert_entry, legacy_layout.FLAT_PATHS
    ),
    # The header is not changed, so that its hash can be checked.
    "1.0": FormatUpgrade("1.1", dict, _upgrade_entry_of_1_0, downgrade=_downgrade_entry_to_1_0),
}


def upgrade_container(
    file: Path,
    container: SnapshotContainer,
    *,
    steps: Mapping[str, FormatUpgrade] = STEPS,
    current: str = FORMAT_VERSION,
) -> SnapshotContainer:
    """The container, upgraded to the current version."""
    try:
        header = decode_plain(container.header)
        version = _version(file, header)
        path: list[FormatUpgrade] = []
        while version != current:
            if version not in steps:
                raise _version_error(file, version, current)
            path.append(steps[version])
            version = steps[version].to
        return UpgradedContainer(container, header, path) if path else container
    except MalformedJson as problem:
        raise SnapshotError(file, problem.path.removeprefix("."), f"{problem.problem}.") from None


class UpgradedContainer(SnapshotContainer):
    """A container whose header and entries are upgraded to the current version."""

    def __init__(
        self, inner: SnapshotContainer, header: dict[str, Any], steps: list[FormatUpgrade]
    ) -> None:
        self.inner = inner
        self._steps = steps
        for step in steps:
            header = step.header(header)
        self.header = canonical(header)
        self.streamed = inner.streamed
        self.is_legacy = any(step.downgrade is None for step in steps)
        self.unknown_keys = inner.unknown_keys

    def entries(self, kind: EntryKind) -> Iterator[StoredJson | SnapshotError]:
        return self.inner.entries(kind)

    def upgrade_entry(self, kind: EntryKind, body: bytes) -> bytes:
        entry = decode_plain(body)
        for step in self._steps:
            entry = step.entry(kind, entry)
        return canonical(entry)

    def downgrade_entry(self, kind: EntryKind, body: bytes) -> bytes:
        # Keep the bytes of values and the order of keys.
        entry: Any = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        for step in reversed(self._steps):
            if step.downgrade is not None:
                entry = step.downgrade(kind, entry)
        return msgspec.json.encode(entry)

    def path_of(self, kind: EntryKind, position: int) -> str:
        return self.inner.path_of(kind, position)

    def header_path(self, path: str) -> str:
        for step in reversed(self._steps):
            path = step.paths.get(path, path)
        return self.inner.header_path(path)


def _version(file: Path, header: Mapping[str, Any]) -> str:
    if legacy_layout.NESTED in header:
        return _legacy_version(file, header[legacy_layout.NESTED], "version", legacy_layout.NESTED)
    if legacy_layout.FLAT in header:
        return _legacy_version(file, header, legacy_layout.FLAT, legacy_layout.FLAT)
    if header.get("format") != FORMAT:
        raise NotASnapshot(
            file,
            "format" if "format" in header else "",
            f"Not a Lumos snapshot: expected the key 'format' with the value '{FORMAT}'.",
        )
    version = header.get("format_version")
    if legacy_layout.is_number(version):
        _refuse_number(file, version)
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        problem = f"{version!r} is not a format version. Expected, for example, '{FORMAT_VERSION}'."
        raise SnapshotError(file, "format_version", problem)
    return version


def _refuse_number(file: Path, version: float) -> NoReturn:
    """Raise an error for a version that is a number: the number 1.10 is equal to 1.1."""
    if version > float(FORMAT_VERSION):
        raise _version_error(file, str(float(version)), FORMAT_VERSION)
    problem = f"{version} is a number. Put the version in quotes: '{FORMAT_VERSION}'."
    raise SnapshotError(file, "format_version", problem)


def _legacy_version(file: Path, header: object, key: str, layout: str) -> str:
    is_nested = layout == legacy_layout.NESTED
    path = f"{layout}.{key}" if is_nested else key
    value = header.get(key) if isinstance(header, dict) else None
    version = str(float(value) if legacy_layout.is_number(value) else value)
    match = _VERSION.fullmatch(version)
    if match is None or (int(match[1]), int(match[2])) != (1, 0):
        raise _version_error(file, version, "1.0.0", path)
    return layout


def _version_error(
    file: Path, version: str, current: str, path: str = "format_version"
) -> SnapshotError:
    if _numbers(version) > _numbers(current):
        return NewerSnapshot(
            file,
            path,
            f"The snapshot has format {version}, but this Lumos reads {current} and older. "
            "Upgrade Lumos: pip install --upgrade lumos",
        )
    return SnapshotError(
        file, path, f"Unknown format version {version}. The current one is {current}."
    )


def _numbers(version: str) -> tuple[int, int]:
    match = _VERSION.fullmatch(version)
    return (int(match[1]), int(match[2])) if match else (0, 0)
