"""The files of both revisions of a change, and what they declare."""

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from lumos.gate.inputs import (
    SQL_SUFFIX,
    SUFFIXES,
    RevisionDeclarations,
    align_names,
    migration_paths,
    pair_declarations,
    read_declarations,
    type_dialect,
)
from lumos.gate.relevance import SqlRelevance
from lumos.gate.schema_files import PROTO_SUFFIX, imported_file
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
# Of unchanged files, only those are read that may declare tables which queries read.
_READ_UNCHANGED: Final = (".schema", ".avsc", ".schema.json", ".yml", ".yaml", SQL_SUFFIX)


class Revisions(NamedTuple):
    """The files of both sides with their blob ids, and what the changed ones declare.

    `same` is what the others declare, and `sql` are the files that lineage is read from, as far as
    the change can concern them.
    """

    files: tuple[dict[str, str], dict[str, str]]
    before: RevisionDeclarations
    after: RevisionDeclarations
    same: RevisionDeclarations
    sql: frozenset[str]


def read_revisions(
    repository: GitRepository, old: str, new: str, sql_dialect: str | None, *, reads_all: bool
) -> Revisions:
    """Read what the changed files declare on both sides, and what the others declare.

    With `reads_all`, also the files that the change cannot concern by the names in them.
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
    groups = {*migration_paths(before.items()).values(), *migration_paths(after.items()).values()}
    # The result of a migration depends on those before it.
    beside = {
        path
        for path in after_files
        if path not in changed
        and path.lower().endswith(SQL_SUFFIX)
        and any(group == "." or path.startswith(f"{group}/") for group in groups)
    }
    both = read(after_files, beside)
    migrations = {path: both[path] for path, group in migration_paths(both.items()).items()
                  if group in groups}  # fmt: skip
    before |= migrations
    after |= migrations
    protos = tuple(
        read(files, [path for path in files if path.lower().endswith(PROTO_SUFFIX)])
        if any(path.lower().endswith(PROTO_SUFFIX) for path in changed)
        else {}
        for files in (before_files, after_files)
    )
    # A message also changes with those that it contains.
    for importing in _importing({**protos[0], **protos[1]}, changed):
        before[importing], after[importing] = protos[0][importing], protos[1][importing]
    dialect = type_dialect(sql_dialect, before.items(), after.items())
    declared_before, declared_after = (
        read_declarations(
            sorted(side.items()), sql_dialect=sql_dialect, dialect=dialect, protos=files
        )
        for side, files in zip((before, after), protos, strict=True)
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
    unchanged = {
        path: blob
        for path, blob in after_files.items()
        if path not in changed
        and path not in migrations
        and path.lower().endswith(_READ_UNCHANGED)
        and (path in sql or not path.lower().endswith(SQL_SUFFIX))
    }
    same = read_declarations(
        (
            (path, data)
            for path, data in repository.read(unchanged)
            if relevance is None or _is_relevant(path, data, relevance)
        ),
        sql_dialect=sql_dialect, dialect=dialect, models=False, unchanged=True,
    )  # fmt: skip
    files = before_files, after_files
    return Revisions(files, declared_before, declared_after, same, frozenset(sql))


def _importing(protos: Mapping[str, bytes], changed: Collection[str]) -> set[str]:
    """The unchanged .proto files that import changed ones, directly or through others."""
    imports = {
        path: {imported_file(name.decode("utf-8", "replace"), protos) for name in names}
        for path, data in protos.items()
        if (names := _IMPORT.findall(data))
    }
    found: set[str] = set()
    reached = {*changed}
    while new := {path for path, names in imports.items() if names & reached} - reached:
        found |= new
        reached |= new
    return found


def _is_relevant(path: str, data: bytes, relevance: SqlRelevance) -> bool:
    """Whether the relevant SQL names the dataset of a schema file; other files are not checked."""
    if not path.lower().endswith(SCHEMA_SUFFIX):
        return True
    urn = read_urn(data, called=name_of_file(PurePosixPath(path)))
    return relevance.includes(name_in(urn) if "://" in urn else urn.rpartition("/")[2])


def changed_names(before: RevisionDeclarations, after: RevisionDeclarations) -> set[str]:
    """The names of the datasets whose schemas or columns differ."""
    names = {
        folded_name(diff.urn)
        for pair in pair_declarations(before.schemas, after.schemas)
        for diff in diff_datasets(pair.before, pair.after).datasets
    }
    columns: dict[str, list[tuple[str, ...] | None]] = {}
    for side in (before, after):
        for model in side.models:
            columns.setdefault(model.name.lower(), []).append(model.columns)
    return names | {
        name for name, versions in columns.items() if len(versions) != 2 or len({*versions}) != 1
    }


def is_text(path: str) -> bool:
    """Whether the name of a file is valid UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def align_revisions(revisions: Revisions, store: Store | None = None) -> Revisions:
    """The same declarations, those of one table under one URN, which the store may know."""

    def known(path: tuple[str, ...]) -> str | None:
        try:
            return None if store is None else find_urn(store, "/".join(path), with_lineage=True)
        except (UnknownDataset, AmbiguousName):
            return None

    sides = revisions.before, revisions.after, revisions.same
    schemas = align_names(*(side.schemas for side in sides), known=known)
    before, after, same = (
        side._replace(schemas=found) for side, found in zip(sides, schemas, strict=True)
    )
    return revisions._replace(before=before, after=after, same=same)


def folded_name(urn: str) -> str:
    """The name of a dataset, as SQL compares names."""
    return name_in(urn).lower()
