"""Portable snapshots, as `Lumos().snapshot` offers them."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lumos.config import Settings
from lumos.engine.scanning import LOCAL
from lumos.engine.snapshots.catalogs import Catalogs
from lumos.engine.snapshots.exporting import (
    OPTIONAL,
    Wanted,
    export,
    file_in,
    is_folder_for_snapshots,
)
from lumos.engine.snapshots.reports import (
    ExportReport,
    SnapshotDiffReport,
    ValidateReport,
)
from lumos.errors import UnknownName
from lumos.snapshot import Selection
from lumos.snapshot.encodings import ENDINGS
from lumos.store import Store

if TYPE_CHECKING:
    from lumos.engine.ingest import Announce

DEFAULT_ENDING: Final = ".yaml"


def _say_nothing(_step: str, **_progress: object) -> None:
    """Announces nothing."""


class Snapshots:
    """Takes snapshots of catalogs, checks and compares them, and brings them into catalogs.

    A platform is named `local`, by its kind and an address such as `datahub-file:estate.json`, or
    as it is configured.
    """

    def __init__(self, settings: Settings, store: Callable[[], Store]) -> None:
        self._catalogs = Catalogs(settings, store)

    def export(
        self,
        output: str | Path,
        *,
        platform: str = LOCAL,
        include_cost: bool = True,
        include_quality: bool = True,
        include_statistics: bool = True,
        include_ranges: bool = False,
        patterns: Iterable[str] = (),
        tags: Iterable[str] = (),
        owners: Iterable[str] = (),
        since: str | Path | None = None,
        ending: str = DEFAULT_ENDING,
        announce: "Announce" = _say_nothing,
    ) -> ExportReport:
        """Writes a snapshot of a platform.

        The output's ending says how it is encoded. In a folder the file is called after the time,
        with the given ending. `patterns`, `tags` and `owners` select datasets that have one of
        each; `since` takes what changed since another snapshot. `include_ranges` lets the lowest
        and highest values of columns leave, which are data.
        """
        at = datetime.now(UTC)
        selection = Selection(patterns=tuple(patterns), tags=tuple(tags), owners=tuple(owners))
        included = dict(
            zip(OPTIONAL, (include_cost, include_quality, include_statistics), strict=True)
        )
        wanted = Wanted(
            omitted=tuple(name for name, is_included in included.items() if not is_included),
            ranges=include_ranges,
            selection=selection if selection != Selection() else None,
            since=None if since is None else Path(since),
        )
        file = Path(output)
        if is_folder_for_snapshots(output):
            if ending not in ENDINGS:
                raise UnknownName("ending", ending, ENDINGS)
            file = file_in(file, ending, at=at)
        return export(self._catalogs.named(platform), file, wanted, at=at, announce=announce)

    def validate(self, file: str | Path) -> ValidateReport:
        """Checks format, required fields, hashes, counts and references of a snapshot."""
        from lumos.engine.snapshots.validating import validated

        return validated(Path(file))

    def diff(
        self,
        source: str | Path,
        target: str | Path,
        *,
        aspects: Iterable[str] = (),
        announce: "Announce" = _say_nothing,
    ) -> SnapshotDiffReport:
        """What differs between two snapshots or platforms, in any mix.

        By default the aspects are schema, lineage, ownership, documentation, governance and
        quality.
        """
        from lumos.engine.snapshots.comparing import diff

        sides = (str(source), str(target))
        return diff(self._catalogs, *sides, aspects=aspects, announce=announce)
