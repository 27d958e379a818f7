"""Applies ordered SQL migrations to find the tables that exist after all of them.

| files | order |
|---|---|
| `V2__add_email.sql`, `R__view.sql` (Flyway) | by version; repeatable ones last, by name |
| `0002_add_email.sql`, `20240131120000_add_email.up.sql` (golang-migrate, goose) | by number |
| a file in a folder called `migrations`, also `20240131_init/migration.sql` (Prisma) | by path |
| `--liquibase formatted sql` | by name |
Files and sections that undo a migration are skipped.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from lumos.model.conversions.sql_migration import MigratedTables
from lumos.model.conversions.sql_table import SqlTable
from lumos.model.conversions.sql_types import Dialect
from lumos.model.types import SchemaSyntaxError

_FLYWAY: Final = re.compile(r"(?P<kind>[VBR])(?P<version>[\d._]*)__.*\.sql\Z", re.IGNORECASE)
_NUMBERED: Final = re.compile(r"\d+[._-].*\.sql\Z|\d+\.sql\Z", re.IGNORECASE)
_UNDO: Final = re.compile(r"U[\d._]+__.*\.sql\Z|.*\.(?:down|undo|rollback)\.sql\Z", re.IGNORECASE)
_FOLDER: Final = re.compile(r"migrations?\Z", re.IGNORECASE)
_LIQUIBASE: Final = re.compile(r"\s*--\s*liquibase\s+formatted\s+sql", re.IGNORECASE)
# Goose, sql-migrate and dbmate write both directions into one file.
_DOWN: Final = re.compile(
    r"^--[ \t]*(?:\+goose|\+migrate|migrate:)[ \t]*down\b.*?"
    r"(?=^--[ \t]*(?:\+goose|\+migrate|migrate:)[ \t]*up\b|\Z)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_CHANGES_TABLES: Final = re.compile(
    r"\b(?:create\s+(?:\w+\s+){0,3}?(?:table|view)|alter\s+table|drop\s+(?:table|view))\b",
    re.IGNORECASE,
)
_NUMBER_OR_TEXT: Final = re.compile(r"\d+|\D+")


class MigrationResult(NamedTuple):
    """The tables after all migrations, each with the last file that changed it, and remarks.

    `readers` has the texts from which lineage is read, by path. Of files that run once, it only
    has the views, since the results of their other statements are not kept up to date.
    """

    tables: tuple[tuple[SqlTable, str], ...]
    readers: dict[str, str]
    remarks: tuple[str, ...]


def migration_folder(path: str, text: str) -> str | None:
    """The folder of the migrations to which a file belongs; None if it is not a migration."""
    file = PurePosixPath(path)
    folders = [index for index, name in enumerate(file.parts[:-1]) if _FOLDER.match(name)]
    is_migration = runs_once(path, text) or _NUMBERED.match(file.name) is not None
    if not is_migration or not (_CHANGES_TABLES.search(text) or _UNDO.match(file.name)):
        return None
    if folders:
        return PurePosixPath(*file.parts[: folders[-1] + 1]).as_posix()
    return file.parent.as_posix()


def runs_once(path: str, text: str) -> bool:
    """Whether a migration tool runs a file once; a file that is just numbered may be run daily."""
    file = PurePosixPath(path)
    return (
        any(_FOLDER.match(name) for name in file.parts[:-1])
        or _FLYWAY.match(file.name) is not None
        or _UNDO.match(file.name) is not None
        or _LIQUIBASE.match(text) is not None
    )


def apply_migrations(files: Iterable[tuple[str, str]], *, dialect: Dialect) -> MigrationResult:
    """Apply the migrations of one folder."""
    texts = {path: text for path, text in files if not _UNDO.match(PurePosixPath(path).name)}
    state = MigratedTables(dialect)
    remarks = []
    for path in sorted(texts, key=_order):
        # Sections are blanked and not removed, so that offsets in the file stay valid.
        texts[path] = _DOWN.sub(lambda down: _blank(down.group()), texts[path])
        try:
            state.apply(path, texts[path])
        except SchemaSyntaxError as problem:
            remarks.append(
                f"Not compared: {path}:{problem.line}: {problem.problem}. The tables are compared "
                "without this migration."
            )
    return MigrationResult(
        tuple((table, state.files[key]) for key, table in state.tables.items()),
        dict(_readers(texts, state)),
        tuple(remarks),
    )


def _readers(texts: dict[str, str], state: MigratedTables) -> Iterator[tuple[str, str]]:
    for path, text in texts.items():
        if not runs_once(path, text):
            yield path, text
            continue
        views = sorted((view.start, view.end) for view in state.views.values() if view.file == path)
        position = 0
        parts = []
        for start, end in views:
            parts += [_blank(text[position:start]), text[start:end], ";"]
            position = end + 1
        if views:
            yield path, "".join((*parts, _blank(text[position:])))


def _blank(text: str) -> str:
    """The text with all characters except line ends replaced by spaces."""
    return "".join("\n" if character == "\n" else " " for character in text)


def _order(path: str) -> tuple[int, tuple[tuple[int, int, str], ...], str]:
    name = PurePosixPath(path).name
    flyway = _FLYWAY.match(name)
    if flyway is not None:
        numbers = re.findall(r"\d+", flyway["version"])
        is_repeatable = flyway["kind"].upper() == "R"
        return int(is_repeatable), tuple((0, int(each), "") for each in numbers), name
    return 0, tuple(_natural_order(path)), path


def _natural_order(path: str) -> Iterator[tuple[int, int, str]]:
    """A sort key for a path that orders 2 before 10."""
    for part in _NUMBER_OR_TEXT.findall(path.lower()):
        yield (0, int(part), "") if part.isdecimal() else (1, 0, part)
