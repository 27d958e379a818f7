"""Delete files: how many there are, and which data files each of them is about."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from lumos.formats.tables.iceberg.manifests import LiveRow, Part
from lumos.formats.tables.interface import Deletes, LiveFile

_POSITIONS: Final = 1
_VECTORS: Final = "puffin"


class Counts(NamedTuple):
    """Live files, and the delete files beside them."""

    files: int = 0
    bytes: int = 0
    rows: int = 0
    vectors: int = 0
    position_files: int = 0
    equality_files: int = 0
    delete_bytes: int = 0
    deleted_rows: int = 0

    @property
    def rows_exact(self) -> bool:
        """Positions may be deleted twice, and nobody counts the rows that values match."""
        return not (self.position_files or self.equality_files)

    @property
    def live_rows(self) -> int:
        """Rows without those that are known to be deleted."""
        return max(0, self.rows - self.deleted_rows)


def counted(parts: Sequence[Part]) -> Counts:
    """What the manifests of a snapshot add up to."""
    data = [part for part in parts if not part.deletes]
    deletes = [part for part in parts if part.deletes]
    rows = [row for part in deletes for row in part.live()]
    vectors = [row for row in rows if row.format == _VECTORS]
    positions = [row for row in rows if row.format != _VECTORS and row.content == _POSITIONS]
    # A vector whose data file is gone deletes nothing.
    gone = {row.referenced for row in vectors}
    if gone:
        gone -= {row.path for part in data for row in part.live()}
    return Counts(
        files=sum(part.files for part in data),
        bytes=sum(part.size for part in data),
        rows=sum(part.rows for part in data),
        vectors=len(vectors),
        position_files=len(positions),
        equality_files=len(rows) - len(vectors) - len(positions),
        delete_bytes=sum(part.size for part in deletes),
        deleted_rows=sum(row.rows for row in vectors if row.referenced not in gone)
        + sum(row.rows for row in positions),
    )


def live_files(parts: Sequence[Part]) -> Iterator[LiveFile]:
    """The live data files, one manifest after the other, with the deletes that apply to each."""
    deletes = _Applying(part for part in parts if part.deletes)
    for part in parts:
        if part.deletes:
            continue
        for row in part.live():
            yield LiveFile(
                path=row.path,
                size=row.size,
                rows=row.rows,
                partition=row.partition,
                deletes=deletes.to(row, part.spec_id),
                format=row.format,
            )


class _Applying:
    """Delete files by what they apply to."""

    def __init__(self, parts: Iterable[Part]) -> None:
        self._by_file: dict[str, list[LiveRow]] = {}
        self._by_partition: dict[object, list[LiveRow]] = {}
        self._everywhere: list[LiveRow] = []
        for part in parts:
            for row in part.live():
                if row.referenced is not None:
                    self._by_file.setdefault(row.referenced, []).append(row)
                elif row.content != _POSITIONS and not row.partition:
                    self._everywhere.append(row)
                else:
                    key = part.spec_id, row.partition
                    self._by_partition.setdefault(key, []).append(row)

    def to(self, data: LiveRow, spec_id: int) -> tuple[Deletes, ...]:
        """What deletes rows of a data file."""
        of_file = self._by_file.get(data.path, ())
        vectors = [row for row in of_file if row.format == _VECTORS]
        around = self._by_partition.get((spec_id, data.partition), ())
        found = [*vectors, *self._everywhere]
        # A vector holds what earlier files of positions did, so that these count no more.
        found += [
            row
            for row in (*of_file, *around)
            if row.format != _VECTORS and not (vectors and row.content == _POSITIONS)
        ]
        return tuple(_deletes(row) for row in found if _is_later(row, data))


def _is_later(row: LiveRow, data: LiveRow) -> bool:
    """Positions may be of the commit that wrote the file; values are of later ones."""
    if row.content == _POSITIONS:
        return row.sequence >= data.sequence
    return row.sequence > data.sequence


def _deletes(row: LiveRow) -> Deletes:
    kind: Literal["dv", "positions", "equality"] = "equality"
    if row.format == _VECTORS:
        kind = "dv"
    elif row.content == _POSITIONS:
        kind = "positions"
    return Deletes(
        kind=kind,
        path=row.path,
        offset=row.offset or 0,
        length=row.length or row.size,
        count=row.rows,
    )
