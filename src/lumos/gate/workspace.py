"""The temporary store in which the impact of a change is computed.

First, the schemas and the lineage of the merge base are loaded. Then the changed files are read
again at the head. So models that the change adapts have their new lineage, and all other models the
lineage of the merge base. No code of the repository is executed.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec

from lumos.gate.base_cache import BaseStoreCache
from lumos.gate.inputs import SQL_SUFFIX, RevisionDeclarations, SqlModel, shadowed_names
from lumos.gate.lineage_source import LineageSource, LineageWorkspace, remove_outside_lineage
from lumos.gate.revisions import Revisions, folded_name
from lumos.gate.schema_files import DeclaredSchema
from lumos.impact.service import ImpactService
from lumos.lineage.input_files import is_ignored_folder
from lumos.lineage.sql_files import is_macro_file
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Documentation, Governance, Owner, Ownership
from lumos.model.schema import Schema
from lumos.model.urn import Urn
from lumos.schemas.git_revisions import GitRepository
from lumos.snapshots.store_entries import entry_of, put_entry
from lumos.store import Store, Transaction

if TYPE_CHECKING:
    from lumos.cost.service import Costs


_BATCH_SIZE: Final = 20


class Workspace(LineageWorkspace, Protocol):
    """The features of Lumos on a temporary store."""

    @property
    def impact(self) -> ImpactService: ...
    @property
    def cost(self) -> "Costs": ...


class ModelUrns(NamedTuple):
    """URNs of models by file and name, and of all datasets in lineage by name."""

    by_model: dict[tuple[str, str], str]
    by_name: dict[str, str]

    @classmethod
    def of(cls, store: Store, models: Iterable[SqlModel]) -> "ModelUrns":
        urns: dict[tuple[str, str], str] = {}
        for model in models:
            for edge in store.lineage.edges_by(f"sql:{model.file}"):
                if folded_name(edge.downstream) == model.name.lower():
                    urns[model.file, model.name] = edge.downstream
        return cls(urns, _urns_by_name(store))

    def urn(self, model: SqlModel) -> str | None:
        return self.by_model.get((model.file, model.name)) or self.by_name.get(model.name.lower())


@contextmanager
def model_at_base(
    workspace: Workspace,
    repository: GitRepository,
    path: str,
    blobs: Sequence[str | None],
    dialect: str | None,
) -> Iterator[None]:
    """Use the lineage that a model had at the merge base while the block runs.

    Readers of the model then resolve the columns that it had before the change.
    """
    before, after = blobs
    if before is None or after is None:
        yield
        return
    tree = _folder_of(workspace)

    def ingest(blob: str) -> None:
        written = _write_files(tree, repository.read({path: blob}))
        workspace.lineage.ingest(*written, dialect=dialect)

    ingest(before)
    try:
        yield
    finally:
        ingest(after)


@contextmanager
def open_workspace(
    open_features: Callable[[Path], Workspace],
    source: LineageSource | None,
    cache: BaseStoreCache | None,
    *,
    dialect: str | None,
) -> Iterator[Workspace]:
    """A temporary store with lineage from outside of the repository, or a cached merge base."""
    with TemporaryDirectory(prefix="lumos-gate-") as name:
        tree = Path(name).resolve()
        # File names in lineage are relative to the folder of the store.
        file = tree / "lumos.db"
        if source is not None:
            source.copy_store(file)
        if cache is not None:
            cache.restore(file)
        workspace = open_features(file)
        workspace.create_store()
        if source is not None:
            source.load(workspace, tree, dialect=dialect)
        yield workspace


def load_change(
    workspace: Workspace,
    repository: GitRepository,
    revisions: Revisions,
    dialect: str | None,
    cache: BaseStoreCache | None,
    *,
    source: LineageSource | None,
    at: datetime,
) -> ModelUrns:
    """Load the schemas and the lineage of a change into the store; return the URNs of models."""
    store = workspace.create_store()
    has_base = cache is not None and cache.is_restored
    if not has_base:
        _put_schemas(store, revisions._replace(after=RevisionDeclarations()), at=at)
    if source is not None:
        source.resolve_names(workspace, dialect=dialect)
    # In a restored store, all reporters are files of the repository.
    outside = [] if cache is not None else [each.name for each in store.lineage.reporters()]
    tree = _folder_of(workspace)
    old, new = (
        _lineage_files(files, revisions.sql, declared.readers, revisions.unchanged.readers)
        for files, declared in zip(
            revisions.files, (revisions.before, revisions.after), strict=True
        )
    )
    macros_before, macros_after = (
        {path: blob for path, blob in files.items() if is_macro_file(path)}
        for files in revisions.files
    )
    _write_files(tree, repository.read(macros_before))
    # Files are named, since ingesting the folder would delete lineage of other files.
    if not has_base and (files := _write_files(tree, _contents(repository, old))):
        workspace.lineage.ingest(*files, dialect=dialect)
    if cache is not None and not has_base:
        cache.save(Path(workspace.database.location))
    _put_schemas(store, revisions, at=at, changed_only=True)
    urns = ModelUrns.of(store, revisions.before.models)
    written_urns = {*_written_datasets(store, outside)} if outside else set()
    _write_files(tree, repository.read(macros_after))
    changed = {path: text for path, text in new.items() if old.get(path) != text}
    if files := _write_files(tree, _contents(repository, changed)):
        workspace.lineage.ingest(*files, dialect=dialect)
    unparsed = store.lineage.unparsed()
    with store.transaction() as transaction:
        for path in sorted(old.keys() - new.keys()):
            transaction.lineage.report(f"sql:{path}", [], at=at)
        # The earlier lineage of a model does not apply to a new text that could not be parsed.
        for model in revisions.after.models:
            reporter = f"sql:{model.file}"
            if model.problem is not None and model.file in changed:
                statements = [each for name, each in unparsed if name == reporter]
                transaction.lineage.report(reporter, [], unparsed=statements, at=at)
    if outside:
        written_urns.update(_written_datasets(store, outside))
        remove_outside_lineage(store, outside, written_urns, at=at)
    return urns


def has_lineage(
    workspace: Workspace, repository: GitRepository, revisions: Revisions, dialect: str | None
) -> bool:
    """Whether any lineage is known, including lineage of SQL that the change does not affect."""
    store = workspace.create_store()
    files = revisions.files[0]
    other_sql = {path for path in files if path.lower().endswith(SQL_SUFFIX)} - revisions.sql
    pending = list(_lineage_files(files, other_sql, revisions.before.readers).items())
    while pending and not store.lineage.count():
        batch, pending = pending[:_BATCH_SIZE], pending[_BATCH_SIZE:]
        written = _write_files(_folder_of(workspace), _contents(repository, dict(batch)))
        workspace.lineage.ingest(*written, dialect=dialect)
    return bool(store.lineage.count())


class _Blob(NamedTuple):
    """The id of a blob with the content of a file."""

    id: str


def _put_schemas(
    store: Store, revisions: Revisions, *, at: datetime, changed_only: bool = False
) -> None:
    """Record datasets with complete declarations, except messages that have the name of a table.

    With `changed_only`, only record datasets that are declared in changed files of the head.
    """
    before = {each.urn: each for each in (*revisions.unchanged.schemas, *revisions.before.schemas)
              if each.complete}  # fmt: skip
    after = {each.urn: each for each in revisions.after.schemas if each.complete}
    shadowed = shadowed_names((*before.values(), *after.values()))
    wanted = {
        urn: declared
        for urn, declared in {**after, **before}.items()
        if urn not in shadowed and (urn in after or not changed_only)
    }

    def write(transaction: Transaction) -> None:
        # One query for all datasets, most of which are new.
        stored = transaction.entries.get(list(wanted))
        for urn, declared in wanted.items():
            stored_entry = entry_of(stored[urn]) if urn in stored else None
            entry = _entry(urn, declared, after.get(urn), stored_entry)
            if entry != stored_entry:
                put_entry(transaction, entry, before=stored.get(urn), at=at)

    store.transact(write)


def _entry(
    urn: str, declared: DeclaredSchema, after: DeclaredSchema | None, stored: CatalogEntry | None
) -> CatalogEntry:
    """The entry of a declared dataset; annotations in the store take precedence."""
    parsed = Urn.parse(urn)
    entry = stored or CatalogEntry(urn=urn, name=parsed.name, platform=parsed.platform)
    newest = (after or declared).annotations
    owners = tuple(Owner(name=each) for each in newest.owners)
    return msgspec.structs.replace(
        entry,
        schema=_all_columns(declared.schema, after),
        format=entry.format or declared.format,
        governance=entry.governance or (Governance(tags=newest.tags) if newest.tags else None),
        documentation=entry.documentation
        or (Documentation(domain=newest.domain) if newest.domain else None),
        ownership=entry.ownership or (Ownership(owners=owners) if owners else None),
    )


def _all_columns(schema: Schema, after: DeclaredSchema | None) -> Schema:
    """The columns of a dataset and those that the change adds, which changed models may read."""
    if after is None:
        return schema
    existing = {field.name for field in schema.fields}
    added = tuple(field for field in after.schema.fields if field.name not in existing)
    return Schema(fields=(*schema.fields, *added))


def _lineage_files(
    files: Mapping[str, str], sql: Collection[str], *readers: Mapping[str, str]
) -> dict[str, "_Blob | str"]:
    """The SQL files to read lineage from, as blobs or as replaced texts (views of migrations)."""
    replaced = {path: text for each in readers for path, text in each.items()}
    return {
        path: replaced.get(path, _Blob(blob))
        for path, blob in files.items()
        if path in sql
        and replaced.get(path) != ""
        and not any(map(is_ignored_folder, PurePosixPath(path).parts[:-1]))
    }


def _contents(
    repository: GitRepository, files: Mapping[str, "_Blob | str"]
) -> Iterator[tuple[str, bytes]]:
    yield from repository.read(
        {path: each.id for path, each in files.items() if isinstance(each, _Blob)}
    )
    yield from ((path, each.encode("utf-8", "surrogatepass")) for path, each in files.items()
                if isinstance(each, str))  # fmt: skip


def _folder_of(workspace: Workspace) -> Path:
    return Path(workspace.database.location).parent


def _write_files(tree: Path, files: Iterable[tuple[str, bytes]]) -> list[Path]:
    """Write files into a folder; paths that lead out of it are skipped."""
    written = []
    for path, data in files:
        file = (tree / path).resolve()
        if tree in file.parents:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            written.append(file)
    return written


def _written_datasets(store: Store, outside: Sequence[str]) -> Iterator[str]:
    """The datasets that the repository's own SQL writes."""
    own = {each.name for each in store.lineage.reporters()} - set(outside)
    return (edge.downstream for name in own for edge in store.lineage.edges_by(name))


def _urns_by_name(store: Store) -> dict[str, str]:
    """The URNs of datasets in lineage by name, except for names that several datasets have."""
    urns_by_name: dict[str, set[str]] = {}
    for urn in store.lineage.ends():
        urns_by_name.setdefault(folded_name(urn), set()).add(urn)
    return {name: next(iter(urns)) for name, urns in urns_by_name.items() if len(urns) == 1}
