"""Opens files: format, schema and rows from footers and headers alone."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from lumos.discovery.summaries import FileRow
from lumos.formats.columns import pack_columns
from lumos.formats.identification import read_file
from lumos.formats.interface import UnreadableFile
from lumos.storage import FileStorage, ListedFile

# No file has this size: what could not be opened is tried again by the next scan.
_TRY_AGAIN: Final = -1


class Reader:
    """Reads files of one storage and keeps the schemas met, each once."""

    def __init__(self, storage: FileStorage, *, column_stats: bool) -> None:
        self._storage = storage
        self._column_stats = column_stats
        self.bodies: dict[str, bytes] = {}

    def read(self, files: Iterable[tuple[ListedFile, FileRow | None]]) -> Iterator[FileRow]:
        """What each file says of itself, in order.

        A file that can no longer be read keeps what was known of it, so that it changes no
        dataset.
        """
        if self._storage.concurrency == 1:
            yield from (self._row(listed, known) for listed, known in files)
            return
        with ThreadPoolExecutor(self._storage.concurrency) as threads:
            yield from threads.map(lambda file: self._row(*file), files)

    def _row(self, listed: ListedFile, known: FileRow | None) -> FileRow:
        try:
            return self._read(listed)
        except UnreadableFile as problem:
            failed = _failed(listed, problem.code, problem.reason)
        except FileNotFoundError:
            failed = _not_opened(listed, "vanished", "The file was gone before it could be read.")
        except PermissionError:
            failed = _not_opened(listed, "permission_denied", "No permission to read the file.")
        except Exception as problem:  # noqa: BLE001 - one hostile file must never end a scan
            reason = f"It could not be read: {type(problem).__name__}: {problem}"
            failed = _not_opened(listed, "unreadable", reason)
        if known is None or known.full is None:
            return failed
        return known._replace(failed=True, code=failed.code, reason=failed.reason)

    def _read(self, listed: ListedFile) -> FileRow:
        with self._storage.open(listed.path, size=listed.size) as file:
            name = listed.path.rpartition("/")[2]
            found = read_file(name, file, column_stats=self._column_stats)
        if found is None:
            return _row(listed)
        format, facts = found
        full = facts.known.full
        if full not in self.bodies:
            self.bodies[full] = facts.known.body
        code, reason = facts.remarks[0] if facts.remarks else (None, None)
        return _row(
            listed,
            format=format.name,
            full=full,
            row_count=facts.row_count,
            row_count_exact=facts.row_count_exact,
            code=code,
            reason=reason,
            columns=pack_columns(facts.columns) if self._column_stats else None,
        )


def _row(listed: ListedFile, **facts: Any) -> FileRow:
    return FileRow(*listed[:4], storage_class=listed.storage_class, **facts)


def _failed(listed: ListedFile, code: str, reason: str) -> FileRow:
    return _row(listed, failed=True, code=code, reason=reason)


def _not_opened(listed: ListedFile, code: str, reason: str) -> FileRow:
    return _failed(listed._replace(size=_TRY_AGAIN), code, reason)
