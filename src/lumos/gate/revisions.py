"""The files of both revisions of a change, and the schemas and models that they declare."""

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from lumos.gate.inputs import (
    SQL_SUFFIX,
    SUFFIXES,
    RevisionDeclarations,
    SqlModel,
    align_names,
    migration_paths,
    pair_declarations,
    read_declarations,
    type_dialect,
)
from lumos.gate.relevance import SqlRelevance
from lumos.gate.schema_files import PROTO_SUFFIX, imported_file
from lumos.lineage.sql.templates import Macros, read_macros
from lumos.lineage.sql_files import is_macro_file
from lumos.model.urn import name_in
from lumos.names import find_urn
from lumos.schemas.diff import diff_datasets
from lumos.schemas.files import SCHEMA_SUFFIX, name_of_file, read_urn
from lumos.schemas.git_revisions import GitRepository
from lumos.store import Store
from lumos.store.errors import AmbiguousName, UnknownDataset

# Larger files are data or generated.
MAX_BYTES: Final = 8 * 1024 * 1024
_IMPORT: Final = re.compile(rb"^\s*import\s+(?:public\s+|weak\s+)?[\"']([^\"']+)", re.MULTILINE)
# Unchanged files with these endings are read too: they may declare tables that queries read.
_READ_UNCHANGED: Final = (".schema", ".avsc", ".schema.json", ".yml", ".yaml", SQL_SUFFIX)


class Revisions(NamedTuple):
    """The files of both revisions with their blob ids, and the declarations in them.

    `before` and `after` are the declarations in changed files, `unchanged` those in other files.
    `sql` are the files that the change can affect; lineage is read from these.
    """

    files: tuple[dict[str, str], dict[str, str]]
    before: RevisionDeclarations
    after: RevisionDeclarations
    unchanged: RevisionDeclarations
    sql: frozenset[str]


def read_revisions(
    repository: GitRepository, old: str, new: str, sql_dialect: str | None, *, reads_all: bool
) -> Revisions:
    """Read the declarations of both revisions.

    Unless `reads_all` is set, files that the change cannot affect by the names in them are skipped.
    """
    before_files, after_files = (
        {
            path: blob
            for path, blob in repository.files(commit, SUFFIXES, max_bytes=MAX_BYTES).items()
            if is_text(path)
        }
        for commit in (old, new)
    )
    changed = {
        path
        for path in {**before_files, **after_files}
        if before_files.get(path) != after_files.get(path)
    }

    def read(files: Mapping[str, str], paths: Iterable[str]) -> dict[str, bytes]:
        return dict(repository.read({path: files[path] for path in paths if path in files}))

    before, after = read(before_files, changed), read(after_files, changed)
    folders = {*migration_paths(before.items()).values(), *migration_paths(after.items()).values()}
    # The result of a migration depends on the unchanged migrations before it.
    candidates = {
        path
        for path in after_files
        if path not in changed
        and path.lower().endswith(SQL_SUFFIX)
        and any(folder == "." or path.startswith(f"{folder}/") for folder in folders)
    }
    unchanged_sql = read(after_files, candidates)
    migrations = {
        path: unchanged_sql[path]
        for path, folder in migration_paths(unchanged_sql.items()).items()
        if folder in folders
    }
    before |= migrations
    after |= migrations
    protos = tuple(
        read(files, [path for path in files if path.lower().endswith(PROTO_SUFFIX)])
        if any(path.lower().endswith(PROTO_SUFFIX) for path in changed)
        else {}
        for files in (before_files, after_files)
    )
    # A message also changes if a message that it contains changes.
    for importing in _importing_files({**protos[0], **protos[1]}, changed):
        before[importing], after[importing] = protos[0][importing], protos[1][importing]
    dialect = type_dialect(sql_dialect, before.items(), after.items())
    declared_before, declared_after = (
        read_declarations(
            sorted(contents.items()),
            sql_dialect=sql_dialect,
            dialect=dialect,
            protos=imports,
            macros=_macros(repository, files)
            if any(b"{{" in data for data in contents.values())
            else None,
        )
        for contents, files, imports in zip(
            (before, after), (before_files, after_files), protos, strict=True
        )
    )
    relevance = None
    sql = {path for path in {**before_files, **after_files} if path.lower().endswith(SQL_SUFFIX)}
    if not reads_all:
        at_base = {path: blob for path, blob in before_files.items() if path in sql}
        at_head = {path: data for path, data in after.items() if path in sql}
        names = changed_names(declared_before, declared_after)
        relevance = SqlRelevance(
            chain(repository.read(at_base), at_head.items()), names, changed_files=changed
        )
        sql &= relevance.files
    unchanged_files = {
        path: blob
        for path, blob in after_files.items()
        if path not in changed
        and path not in migrations
        and path.lower().endswith(_READ_UNCHANGED)
        and (path in sql or not path.lower().endswith(SQL_SUFFIX))
    }
    unchanged_declarations = read_declarations(
        (
            (path, data)
            for path, data in repository.read(unchanged_files)
            if relevance is None or _is_relevant(path, data, relevance)
        ),
        sql_dialect=sql_dialect, dialect=dialect, models=False, unchanged=True,
    )  # fmt: skip
    files = before_files, after_files
    return Revisions(files, declared_before, declared_after, unchanged_declarations, frozenset(sql))


def _macros(repository: GitRepository, files: Mapping[str, str]) -> Macros:
    """The macros of dbt projects in the files."""
    macro_files = {path: blob for path, blob in files.items() if is_macro_file(path)}
    return read_macros(data.decode("utf-8", "replace") for _, data in repository.read(macro_files))


def _importing_files(protos: Mapping[str, bytes], changed: Collection[str]) -> set[str]:
    """The unchanged .proto files that import changed ones, directly or through others."""
    imports = {
        path: {imported_file(name.decode("utf-8", "replace"), protos) for name in names}
        for path, data in protos.items()
        if (names := _IMPORT.findall(data))
    }
    importing: set[str] = set()
    reached = {*changed}
    while new := {path for path, names in imports.items() if names & reached} - reached:
        importing |= new
        reached |= new
    return importing


def _is_relevant(path: str, data: bytes, relevance: SqlRelevance) -> bool:
    """Whether relevant SQL names the dataset of a .schema file; True for other files."""
    if not path.lower().endswith(SCHEMA_SUFFIX):
        return True
    urn = read_urn(data, default_name=name_of_file(PurePosixPath(path)))
    return relevance.includes(name_in(urn) if "://" in urn else urn.rpartition("/")[2])


def changed_names(before: RevisionDeclarations, after: RevisionDeclarations) -> set[str]:
    """The names of changed datasets, without new models, which nothing reads yet."""
    names = {
        folded_name(diff.urn)
        for pair in pair_declarations(before.schemas, after.schemas)
        for diff in diff_datasets(pair.before, pair.after).datasets
    }
    old, new = (_columns_by_name(side.models) for side in (before, after))
    return names | {
        name for name, versions in old.items() if len(versions) != 1 or versions != new.get(name)
    }


def _columns_by_name(models: Iterable[SqlModel]) -> dict[str, list[tuple[str, ...] | None]]:
    columns: dict[str, list[tuple[str, ...] | None]] = {}
    for model in models:
        columns.setdefault(model.name.lower(), []).append(model.columns)
    return columns


def is_text(path: str) -> bool:
    """Whether the name of a file is valid UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def align_revisions(revisions: Revisions, store: Store | None = None) -> Revisions:
    """Give all declarations of a table the same URN, preferably the URN of a stored dataset."""

    def known_urn(path: tuple[str, ...]) -> str | None:
        try:
            return None if store is None else find_urn(store, "/".join(path), with_lineage=True)
        except (UnknownDataset, AmbiguousName):
            return None

    sides = revisions.before, revisions.after, revisions.unchanged
    schemas = align_names(*(side.schemas for side in sides), find_known=known_urn)
    before, after, unchanged = (
        side._replace(schemas=aligned) for side, aligned in zip(sides, schemas, strict=True)
    )
    return revisions._replace(before=before, after=after, unchanged=unchanged)


def folded_name(urn: str) -> str:
    """The name of a dataset in lower case, since SQL ignores case."""
    return name_in(urn).lower()
