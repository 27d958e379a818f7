"""The files of both revisions of a change, and what they declare."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from lumos.gate.inputs import (
    SQL_SUFFIX,
    SUFFIXES,
    RevisionDeclarations,
    align_names,
    migration_paths,
    read_declarations,
    type_dialect,
)
from lumos.model.urn import name_in
from lumos.names import find_urn
from lumos.schemas.git_revisions import GitRepository
from lumos.store import Store
from lumos.store.errors import AmbiguousName, UnknownDataset

# Larger files are data or generated.
MAX_BYTES: Final = 8 * 1024 * 1024
# Of unchanged files, only those are read that may declare tables which queries read.
_READ_UNCHANGED: Final = (".schema", ".avsc", ".schema.json", ".yml", ".yaml", SQL_SUFFIX)


class Revisions(NamedTuple):
    """The files of both sides with their blob ids, and what the changed ones declare."""

    files: tuple[dict[str, str], dict[str, str]]
    before: RevisionDeclarations
    after: RevisionDeclarations
    same: RevisionDeclarations


def read_revisions(
    repository: GitRepository, old: str, new: str, sql_dialect: str | None
) -> Revisions:
    """Read what the changed files declare on both sides, and what the others declare."""
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
    dialect = type_dialect(sql_dialect, before.items(), after.items())
    unchanged = {
        path: blob
        for path, blob in after_files.items()
        if path not in changed and path not in migrations and path.lower().endswith(_READ_UNCHANGED)
    }
    declared_before, declared_after = (
        read_declarations(sorted(side.items()), sql_dialect=sql_dialect, dialect=dialect)
        for side in (before, after)
    )
    same = read_declarations(
        repository.read(unchanged), sql_dialect=sql_dialect, dialect=dialect,
        models=False, unchanged=True,
    )  # fmt: skip
    return Revisions((before_files, after_files), declared_before, declared_after, same)


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
    return Revisions(revisions.files, before, after, same)


def folded_name(urn: str) -> str:
    """The name of a dataset, as SQL compares names."""
    return name_in(urn).lower()
