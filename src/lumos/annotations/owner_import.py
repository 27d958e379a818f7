"""Owners from files that others keep: CODEOWNERS, and the manifest of a dbt project."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from lumos.annotations.codeowners import CodeOwners
from lumos.annotations.directory import Directory
from lumos.annotations.lists import entries
from lumos.annotations.locations import (
    below_source,
    distant_path,
    from_root,
    in_repository,
    lasting_name,
    local_path,
    with_files,
)
from lumos.annotations.owner_names import owner_of, owners_of, people_in
from lumos.annotations.reporters import apply_report
from lumos.annotations.reports import OwnerImportReport, WordsReport
from lumos.annotations.rules import owner_name
from lumos.annotations.writer import AnnotationWriter
from lumos.config import Settings
from lumos.errors import MisuseError
from lumos.model.dataset import Owner
from lumos.model.json_codec import decode_json
from lumos.model.urn import Urn
from lumos.model.words import Key
from lumos.store import DatasetFilter, Store
from lumos.store.entries import StoredEntry

_MOST_BYTES: Final = 512 * 1024 * 1024
_MOST_REMARKS: Final = 20
# How reporters of lineage are called that are files of SQL.
_SQL: Final = "sql:"
# Where a repository keeps the file, besides its root.
_FOLDERS: Final = (".github", ".gitlab", "docs")
_MODELS: Final = ("model", "seed", "snapshot", "source")


def import_owners(
    settings: Settings,
    scribe: AnnotationWriter,
    file: Path,
    *,
    root: Path | None,
    name: str | None,
    type: str,
    dry_run: bool,
) -> OwnerImportReport:
    """Takes the owners of datasets over from a file, in place of what it said before."""
    if not file.is_file():
        raise MisuseError(f"There is no file {file}. Give a CODEOWNERS file or a dbt manifest.json")
    if file.stat().st_size > _MOST_BYTES:
        raise MisuseError(f"{file} is larger than {_MOST_BYTES // 1024 // 1024} MB.")
    if root is not None and not root.is_dir():
        raise MisuseError(f"There is no folder {root}.")
    content = file.read_bytes()
    reporter = f"owners:{(name or '').strip() or lasting_name(settings, file)}"
    if content.lstrip()[:1] == b"{":
        return _from_dbt(scribe, content, file, reporter, type=type, dry_run=dry_run)
    try:
        rules = CodeOwners(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise MisuseError(f"{file} is neither a CODEOWNERS file nor JSON.") from None
    is_emptied = not rules.problems and bool(scribe.store.remarks.urns(reporter))
    if not rules.rules and not is_emptied:
        raise MisuseError(f"{file} holds no rule such as: /models/sales/ @org/sales-team")
    people = Directory(scribe).meant(
        owner_of(each, type=type) for rule in rules.rules for each in rule.owners
    )
    base = root or _repository_of(file)
    files = _files_behind(settings, scribe.store, base)
    owned, unused = _by_rules(scribe.store, rules, people, files, root=base, type=type)
    written = apply_report(scribe, reporter, owned, dry_run=dry_run, action="owner import")
    remarks = [f"{file}:{each.line}: {each.reason}" for each in rules.problems]
    remarks += [f"{file}:{line}: no dataset is decided by {pattern}" for line, pattern in unused]
    return _report(written, "codeowners", rules=len(rules.rules), remarks=remarks)


def _repository_of(file: Path) -> Path:
    folder = file.absolute().parent
    return folder.parent if folder.name in _FOLDERS else folder


def _by_rules(
    store: Store,
    rules: CodeOwners,
    people: Mapping[Owner, Owner],
    files: Mapping[str, Iterable[str]],
    *,
    root: Path,
    type: str,
) -> tuple[dict[str, dict[Key, str]], list[tuple[int, str]]]:
    owned: dict[str, dict[Key, str]] = {}
    unused = {rule.line: rule.pattern for rule in rules.rules}
    for stored in entries(store, None):
        own = files.get(stored.known.urn, ())
        rule = rules.rule_for(_paths(stored, own, root))
        if rule is None:
            continue
        unused.pop(rule.line, None)
        owners = (people[owner_of(each, type=type)] for each in rule.owners)
        owned[stored.known.urn] = {Key("", "owner", owner_name(owner)): "" for owner in owners}
    return owned, sorted(unused.items())


def _paths(stored: StoredEntry, files: Iterable[str], root: Path) -> Iterator[str]:
    """How a repository may call a dataset: by where its data lies, or the files that make it."""
    for path in _places(stored, root):
        yield from with_files(path, stored.dataset)
    yield from files


def _places(stored: StoredEntry, root: Path) -> Iterator[str]:
    """Where data lies: in the repository, else below what was scanned, else by its URN."""
    dataset = stored.dataset
    local = local_path(dataset)
    if local is not None and (inside := from_root(local, root)) is not None:
        yield inside
    elif (below := below_source(stored.known, dataset)) is not None:
        yield below
        yield below.partition("/")[2]
    else:
        yield "/".join(Urn.parse(dataset.urn).path)
        if (path := distant_path(dataset)) is not None:
            yield path


def _files_behind(settings: Settings, store: Store, root: Path) -> dict[str, set[str]]:
    """The repository's files of SQL that make each dataset, as far as lineage tells of them."""
    files: dict[str, set[str]] = {}
    for edge in store.lineage.all():
        named = {each.file for each in edge.columns if each.file}
        named |= {each.file for each in edge.uses if each.file}
        if edge.origin.startswith(_SQL):
            named.add(edge.origin.removeprefix(_SQL))
        for file in named:
            if (path := in_repository(settings, file, root)) is not None:
                files.setdefault(edge.downstream, set()).add(path)
    return files


def _from_dbt(
    scribe: AnnotationWriter, content: bytes, file: Path, reporter: str, *, type: str, dry_run: bool
) -> OwnerImportReport:
    try:
        manifest = decode_json(content)
    except msgspec.DecodeError as error:
        raise MisuseError(f"{file} is not valid JSON: {error}.") from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("nodes"), dict):
        raise MisuseError(f"{file} is no dbt manifest: it has no 'nodes'.")
    named = {
        key: owners
        for key, node in _nodes(manifest)
        if (owners := tuple(_owners(node, manifest, type)))
    }
    names = _Names(scribe.store)
    people = Directory(scribe).meant(owner for owners in named.values() for owner in owners)
    owned: dict[str, dict[Key, str]] = {}
    lost: list[str] = []
    for key, node in _nodes(manifest):
        if key not in named:
            continue
        urn = names.urn_of(node)
        if urn is None:
            lost.append(str(node.get("unique_id", node.get("name"))))
        else:
            owned.setdefault(urn, {}).update(
                {Key("", "owner", owner_name(people[owner])): "" for owner in named[key]}
            )
    written = apply_report(scribe, reporter, owned, dry_run=dry_run, action="owner import")
    return _report(written, "dbt", rules=len(named), unmatched=lost)


def _report(
    written: WordsReport,
    kind: Any,
    *,
    rules: int,
    remarks: Iterable[str] = (),
    unmatched: Iterable[str] = (),
) -> OwnerImportReport:
    facts = msgspec.structs.asdict(written) | {"remarks": tuple(islice(remarks, _MOST_REMARKS))}
    return OwnerImportReport(**facts, kind=kind, rules=rules, unmatched=tuple(unmatched))


def _nodes(manifest: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for section in ("nodes", "sources"):
        for key, node in _mapping(manifest.get(section)).items():
            if isinstance(node, dict) and node.get("resource_type", "source") in _MODELS:
                yield f"{section} {key}", node


def _owners(node: Mapping[str, Any], manifest: Mapping[str, Any], type: str) -> Iterator[Owner]:
    """The owners in a node's meta, and its group with that group's owner."""
    config = _mapping(node.get("config"))
    for meta in (_mapping(config.get("meta")), _mapping(node.get("meta"))):
        told = (*people_in(meta.get("owner")), *people_in(meta.get("owners")))
        yield from owners_of(told, type=type)
    group = node.get("group") or config.get("group")
    if isinstance(group, str) and group:
        yield Owner(name=group, kind="group", type=type)
        for each in _mapping(manifest.get("groups")).values():
            if _mapping(each).get("name") == group:
                yield from owners_of(people_in(_mapping(each).get("owner")), type=type)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


class _Names:
    """Finds datasets by the names that dbt has for them, whatever their case."""

    def __init__(self, store: Store) -> None:
        self._urns: dict[tuple[str, ...], list[str]] = {}
        for known in store.list(DatasetFilter()):
            path = [part.casefold() for part in Urn.parse(known.urn).path]
            for length in (1, 2, 3):
                if length <= len(path):
                    self._urns.setdefault(tuple(path[-length:]), []).append(known.urn)

    def urn_of(self, node: Mapping[str, Any]) -> str | None:
        """The one dataset of the longest name that any dataset has."""
        name = node.get("alias") or node.get("identifier") or node.get("name")
        parts = [str(part).casefold() for part in (node.get("database"), node.get("schema"), name)]
        for start in range(3):
            found = self._urns.get(tuple(parts[start:]), [])
            if len(found) == 1:
                return found[0]
        return None
