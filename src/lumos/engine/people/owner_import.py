"""Owners from files that others keep: CODEOWNERS, and the manifest of a dbt project."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import unquote, urlsplit

import msgspec

from lumos.analysis.words import owner_name
from lumos.config import Settings
from lumos.engine.people.codeowners import CodeOwners, owner_of
from lumos.engine.people.items import Items
from lumos.engine.people.listing import entries
from lumos.engine.people.reporting import apply_report
from lumos.engine.people.reports import OwnerImportReport, WordsReport
from lumos.engine.people.scribe import Scribe
from lumos.errors import MisuseError
from lumos.model.catalog import Group, User
from lumos.model.dataset import Dataset, Owner
from lumos.model.urn import Urn
from lumos.model.words import Key
from lumos.store import DatasetFilter, Store

_MOST_BYTES: Final = 512 * 1024 * 1024
_MOST_REMARKS: Final = 20
# How reporters of lineage are called that are files of SQL.
_SQL: Final = "sql:"
# Where a repository keeps the file, besides its root.
_FOLDERS: Final = (".github", ".gitlab", "docs")
_MODELS: Final = ("model", "seed", "snapshot", "source")


def import_owners(
    settings: Settings,
    scribe: Scribe,
    file: Path,
    *,
    root: Path | None,
    type: str,
    dry_run: bool,
) -> OwnerImportReport:
    """Takes the owners of datasets over from a file, in place of what it said before."""
    if not file.is_file():
        raise MisuseError(f"There is no file {file}. Give a CODEOWNERS file or a dbt manifest.json")
    if file.stat().st_size > _MOST_BYTES:
        raise MisuseError(f"{file} is larger than {_MOST_BYTES // 1024 // 1024} MB.")
    content = file.read_bytes()
    reporter = f"owners:{shown_path(settings, file)}"
    if content.lstrip()[:1] == b"{":
        return _from_dbt(scribe, content, file, reporter, type=type, dry_run=dry_run)
    try:
        rules = CodeOwners(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise MisuseError(f"{file} is neither a CODEOWNERS file nor JSON.") from None
    if not rules.rules:
        raise MisuseError(f"{file} holds no rule such as: /models/sales/ @org/sales-team")
    base = root or _repository_of(file)
    known = _ByEmail(scribe)
    owned, unused = _by_rules(scribe.store, rules, known, base.absolute(), type)
    written = apply_report(scribe, reporter, owned, dry_run=dry_run, action="owner import")
    remarks = [f"{file}:{each.line}: {each.reason}" for each in rules.problems]
    remarks += [f"{file}:{line}: no dataset is decided by {pattern}" for line, pattern in unused]
    return _report(written, "codeowners", rules=len(rules.rules), remarks=remarks)


def shown_path(settings: Settings, file: Path) -> str:
    """A file as it is called wherever the project lies: from the folder of the configuration."""
    home = Path(settings.origin.folder or Path.cwd())
    absolute = file.absolute()
    is_inside = absolute.is_relative_to(home)
    return (absolute.relative_to(home) if is_inside else absolute).as_posix()


def _repository_of(file: Path) -> Path:
    folder = file.absolute().parent
    return folder.parent if folder.name in _FOLDERS else folder


def _by_rules(
    store: Store, rules: CodeOwners, known: "_ByEmail", root: Path, type: str
) -> tuple[dict[str, dict[Key, str]], list[tuple[int, str]]]:
    owned: dict[str, dict[Key, str]] = {}
    unused = {rule.line: rule.pattern for rule in rules.rules}
    files = _files_behind(store)
    for stored in entries(store, None):
        own = files.get(stored.known.urn, ())
        rule = rules.rule_for(_paths(stored.dataset, own, root))
        if rule is None:
            continue
        unused.pop(rule.line, None)
        owners = (known.owner(owner_of(each, type)) for each in rule.owners)
        owned[stored.known.urn] = {Key("", "owner", owner_name(owner)): "" for owner in owners}
    return owned, sorted(unused.items())


def _paths(dataset: Dataset, files: Iterable[str], root: Path) -> Iterator[str]:
    """How a repository may call a dataset: by where its data lies, or the files that make it."""
    urn = Urn.parse(dataset.urn)
    yield "/".join(urn.path)
    if dataset.location is not None:
        split = urlsplit(dataset.location.uri)
        place = unquote(split.path) if split.scheme else dataset.location.uri
        if split.scheme in ("", "file") and Path(place).is_relative_to(root):
            yield Path(place).relative_to(root).as_posix()
        elif split.scheme not in ("", "file"):
            yield place
    for file in files:
        yield _from_root(file, root)


def _files_behind(store: Store) -> dict[str, set[str]]:
    """The SQL files that make each dataset, as far as lineage tells of them."""
    files: dict[str, set[str]] = {}
    for edge in store.lineage.all():
        named = {each.file for each in edge.columns if each.file}
        named |= {each.file for each in edge.uses if each.file}
        if edge.origin.startswith(_SQL):
            named.add(edge.origin.removeprefix(_SQL))
        if named:
            files.setdefault(edge.downstream, set()).update(named)
    return files


def _from_root(file: str, root: Path) -> str:
    path = Path(file)
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def _from_dbt(
    scribe: Scribe, content: bytes, file: Path, reporter: str, *, type: str, dry_run: bool
) -> OwnerImportReport:
    try:
        manifest = msgspec.json.decode(content)
    except msgspec.DecodeError as error:
        raise MisuseError(f"{file} is not valid JSON: {error}.") from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("nodes"), dict):
        raise MisuseError(f"{file} is no dbt manifest: it has no 'nodes'.")
    names, known = _Names(scribe.store), _ByEmail(scribe)
    owned: dict[str, dict[Key, str]] = {}
    lost: list[str] = []
    count = 0
    for node in _nodes(manifest):
        owners = [known.owner(each) for each in _owners(node, manifest, type)]
        if not owners:
            continue
        count += 1
        urn = names.urn_of(node)
        if urn is None:
            lost.append(str(node.get("unique_id", node.get("name"))))
        else:
            owned.setdefault(urn, {}).update(
                {Key("", "owner", owner_name(owner)): "" for owner in owners}
            )
    written = apply_report(scribe, reporter, owned, dry_run=dry_run, action="owner import")
    return _report(written, "dbt", rules=count, unmatched=lost)


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


def _nodes(manifest: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for section in ("nodes", "sources"):
        for node in _mapping(manifest.get(section)).values():
            if isinstance(node, dict) and node.get("resource_type", "source") in _MODELS:
                yield node


def _owners(node: Mapping[str, Any], manifest: Mapping[str, Any], type: str) -> Iterator[Owner]:
    """The owners in a node's meta, and that of its group."""
    config = _mapping(node.get("config"))
    for meta in (_mapping(config.get("meta")), _mapping(node.get("meta"))):
        for key in ("owner", "owners"):
            told = meta.get(key)
            for each in told if isinstance(told, list) else [told]:
                if (name := _name_of(each)) is not None:
                    yield _owner(name, type)
    group = node.get("group") or config.get("group")
    if isinstance(group, str) and group:
        yield Owner(name=group, kind="group", type=type)
        for each in _mapping(manifest.get("groups")).values():
            owner = _mapping(_mapping(each).get("owner"))
            if _mapping(each).get("name") == group and (name := _name_of(owner)) is not None:
                yield _owner(name, type)


def _owner(name: str, type: str) -> Owner:
    if name.startswith("@"):
        return owner_of(name, type)
    is_team = "@" not in name and name.rpartition("-")[2].rpartition("_")[2].lower() == "team"
    return Owner(name=name, kind="group" if is_team else "user", type=type)


def _name_of(told: Any) -> str | None:
    if isinstance(told, dict):
        told = told.get("name") or told.get("email")
    return told.strip() if isinstance(told, str) and told.strip() else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


class _ByEmail:
    """Knows users and groups by their e-mail addresses."""

    def __init__(self, scribe: Scribe) -> None:
        items = Items(scribe)
        people: list[tuple[Literal["user", "group"], User | Group]] = [
            *(("group", group) for group in items.all(Group).values()),
            *(("user", user) for user in items.all(User).values()),
        ]
        self._owners = {
            item.email.casefold(): (kind, item.name) for kind, item in people if item.email
        }

    def owner(self, owner: Owner) -> Owner:
        """The owner under the name that they were added with."""
        kind, name = self._owners.get(owner.name.casefold(), (owner.kind, owner.name))
        return Owner(name=name, kind=kind, type=owner.type)


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
