"""`lumos owner import`: owners from CODEOWNERS files and from dbt manifests."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from lumos.annotations.items import OwnerDirectory
from lumos.annotations.lists import stored_entries
from lumos.annotations.locations import (
    local_path,
    path_below_source,
    path_from_root,
    path_in_repository,
    possible_paths,
    remote_path,
    stable_file_name,
)
from lumos.annotations.owner_names import owner_texts, parse_owner, parse_owners
from lumos.annotations.reporters import apply_report
from lumos.annotations.reports import AnnotationReport, OwnerImportReport
from lumos.annotations.rules import owner_key
from lumos.annotations.writer import AnnotationWriter
from lumos.config import Settings
from lumos.errors import MisuseError
from lumos.model.annotation import AnnotationKey
from lumos.model.dataset import Owner
from lumos.model.json_codec import decode_json
from lumos.model.urn import Urn
from lumos.store import DatasetFilter, Store
from lumos.store.entries import StoredEntry

_MAX_BYTES: Final = 512 * 1024 * 1024
_MAX_REMARKS: Final = 20
# The prefix of lineage reporters that are SQL files.
_SQL_PREFIX: Final = "sql:"
# Folders in which a repository may keep the file, besides its root.
_CODEOWNERS_FOLDERS: Final = (".github", ".gitlab", "docs")
_DBT_TYPES: Final = ("model", "seed", "snapshot", "source")
_TOKENS: Final = re.compile(r"(?:\\.|[^\s\\])+")
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+\Z")


class CodeOwnersRule:
    """One line: a pattern of paths from the root of the repository, and their owners."""

    def __init__(self, pattern: str, owners: tuple[str, ...], line: int) -> None:
        self.pattern = pattern
        self.owners = owners
        self.line = line

    def matches(self, path: str) -> bool:
        """Whether the pattern matches a path or a folder that contains it."""
        return self._expression.match(path.strip("/")) is not None

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        return re.compile(_regular_expression(self.pattern), re.DOTALL)


class CodeOwnersProblem(NamedTuple):
    """A line that could not be parsed."""

    line: int
    reason: str


class CodeOwners:
    """The rules of one CODEOWNERS file; the last matching rule wins."""

    def __init__(self, text: str) -> None:
        self.rules: list[CodeOwnersRule] = []
        self.problems: list[CodeOwnersProblem] = []
        for number, line in enumerate(text.splitlines(), start=1):
            self._read(number, line)

    def rule_for(self, paths: Iterable[str]) -> CodeOwnersRule | None:
        """The last rule that matches any of the possible paths of a dataset."""
        candidates = [path.strip("/") for path in paths if path.strip("/")]
        for rule in reversed(self.rules):
            if any(rule.matches(path) for path in candidates):
                return rule
        return None

    def _read(self, number: int, line: str) -> None:
        tokens = list(takewhile(lambda each: not each.startswith("#"), _TOKENS.findall(line)))
        if not tokens:
            return
        pattern, *owners = tokens
        if pattern.startswith(("[", "^[")):
            self.problems.append(CodeOwnersProblem(number, "sections are not supported; skipped"))
            return
        if pattern.startswith("!"):
            self.problems.append(CodeOwnersProblem(number, "negation with ! is not supported"))
            return
        invalid = [each for each in owners if not _is_owner(each)]
        for each in invalid:
            reason = f"'{each}' is not an owner; use @user, @org/team or name@example.com"
            self.problems.append(CodeOwnersProblem(number, reason))
        valid = tuple(each for each in owners if _is_owner(each))
        # A rule without any owner removes the owners of earlier rules.
        if valid or not invalid:
            unescaped = pattern.replace("\\ ", " ").replace("\\#", "#")
            self.rules.append(CodeOwnersRule(unescaped, valid, number))


def _is_owner(text: str) -> bool:
    return (text.startswith("@") and len(text) > 1) or _EMAIL.match(text) is not None


def _regular_expression(pattern: str) -> str:
    """The pattern as a regular expression for a whole path without leading or trailing slash."""
    is_folder = pattern.endswith("/")
    is_anchored = "/" in pattern.rstrip("/")
    *folders, last = pattern.strip("/").split("/")
    # `docs/*` matches files directly in docs, but none in its subfolders.
    is_flat = is_anchored and last == "*" and not is_folder
    start = "".join("(?:.*/)?" if each == "**" else f"{_glob(each)}/" for each in folders)
    end = ".*" if last == "**" else _glob(last)
    anything_below = "" if is_flat else "(?:/.*)?"
    return f"{'' if is_anchored else '(?:.*/)?'}{start}{end}{anything_below}\\Z"


def _glob(name: str) -> str:
    """The regular expression for one name of a path; * and ? match anything except a slash."""
    wildcards = {"*": "[^/]*", "?": "[^/]"}
    return "".join(wildcards.get(sign, re.escape(sign)) for sign in name)


def import_owners(
    settings: Settings,
    writer: AnnotationWriter,
    file: Path,
    *,
    root: Path | None,
    name: str | None,
    type: str,
    dry_run: bool,
) -> OwnerImportReport:
    """Import owners of datasets from a file, and replace its earlier owners."""
    if not file.is_file():
        raise MisuseError(f"There is no file {file}. Give a CODEOWNERS file or a dbt manifest.json")
    if file.stat().st_size > _MAX_BYTES:
        raise MisuseError(f"{file} is larger than {_MAX_BYTES // 1024 // 1024} MB.")
    if root is not None and not root.is_dir():
        raise MisuseError(f"There is no folder {root}.")
    content = file.read_bytes()
    reporter = f"owners:{(name or '').strip() or stable_file_name(settings, file)}"
    if content.lstrip()[:1] == b"{":
        return _import_from_dbt(writer, content, file, reporter, type=type, dry_run=dry_run)
    try:
        rules = CodeOwners(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise MisuseError(f"{file} is neither a CODEOWNERS file nor JSON.") from None
    was_emptied = not rules.problems and bool(writer.store.annotations.urns(reporter))
    if not rules.rules and not was_emptied:
        raise MisuseError(f"{file} contains no rule such as: /models/sales/ @org/sales-team")
    resolved = OwnerDirectory(writer).resolve(
        parse_owner(each, type=type) for rule in rules.rules for each in rule.owners
    )
    base = root or _repository_of(file)
    sql_files = _sql_files_of_datasets(settings, writer.store, base)
    annotations: dict[str, dict[AnnotationKey, str]] = {}
    unused = {rule.line: rule.pattern for rule in rules.rules}
    for stored in stored_entries(writer.store, None):
        paths = _paths_in_repository(stored, sql_files.get(stored.known.urn, ()), base)
        if (rule := rules.rule_for(paths)) is not None:
            unused.pop(rule.line, None)
            owners = (resolved[parse_owner(each, type=type)] for each in rule.owners)
            annotations[stored.known.urn] = _owner_annotations(owners)
    written = apply_report(writer, reporter, annotations, dry_run=dry_run, action="owner import")
    remarks = [f"{file}:{each.line}: {each.reason}" for each in rules.problems]
    remarks += [
        f"{file}:{line}: {pattern} applies to no dataset"
        for line, pattern in sorted(unused.items())
    ]
    return _report(written, "codeowners", rules=len(rules.rules), remarks=remarks)


def _repository_of(file: Path) -> Path:
    folder = file.absolute().parent
    return folder.parent if folder.name in _CODEOWNERS_FOLDERS else folder


def _owner_annotations(owners: Iterable[Owner]) -> dict[AnnotationKey, str]:
    return {AnnotationKey("", "owner", owner_key(owner)): "" for owner in owners}


def _paths_in_repository(
    stored: StoredEntry, sql_files: Iterable[str], root: Path
) -> Iterator[str]:
    """Return the possible paths of a dataset in a repository: its data files or its SQL files."""
    for path in _data_paths(stored, root):
        yield from possible_paths(path, stored.dataset)
    yield from sql_files


def _data_paths(stored: StoredEntry, root: Path) -> Iterator[str]:
    """Paths of the data: in the repository, below the scanned folder, or from the URN."""
    dataset = stored.dataset
    local = local_path(dataset)
    if local is not None and (relative := path_from_root(local, root)) is not None:
        yield relative
    elif (path := path_below_source(stored.known, dataset)) is not None:
        yield path
        yield path.partition("/")[2]
    else:
        yield "/".join(Urn.parse(dataset.urn).path)
        if (path := remote_path(dataset)) is not None:
            yield path


def _sql_files_of_datasets(settings: Settings, store: Store, root: Path) -> dict[str, set[str]]:
    """Return the SQL files of the repository that create each dataset, according to lineage."""
    files: dict[str, set[str]] = {}
    for edge in store.lineage.all():
        names = {each.file for each in edge.columns if each.file}
        names |= {each.file for each in edge.uses if each.file}
        if edge.origin.startswith(_SQL_PREFIX):
            names.add(edge.origin.removeprefix(_SQL_PREFIX))
        for name in names:
            if (path := path_in_repository(settings, name, root)) is not None:
                files.setdefault(edge.downstream, set()).add(path)
    return files


def _import_from_dbt(
    writer: AnnotationWriter,
    content: bytes,
    file: Path,
    reporter: str,
    *,
    type: str,
    dry_run: bool,
) -> OwnerImportReport:
    try:
        manifest = decode_json(content)
    except msgspec.DecodeError as error:
        raise MisuseError(f"{file} is not valid JSON: {error}.") from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("nodes"), dict):
        raise MisuseError(f"{file} is not a dbt manifest: it has no 'nodes'.")
    nodes = [
        (node, owners)
        for node in _dbt_nodes(manifest)
        if (owners := tuple(_dbt_owners(node, manifest, type)))
    ]
    urns = _DatasetsByTableName(writer.store)
    resolved = OwnerDirectory(writer).resolve(owner for _, owners in nodes for owner in owners)
    annotations: dict[str, dict[AnnotationKey, str]] = {}
    unmatched: list[str] = []
    for node, owners in nodes:
        urn = urns.urn_of(node)
        if urn is None:
            unmatched.append(str(node.get("unique_id", node.get("name"))))
        else:
            owner_annotations = _owner_annotations(resolved[owner] for owner in owners)
            annotations.setdefault(urn, {}).update(owner_annotations)
    written = apply_report(writer, reporter, annotations, dry_run=dry_run, action="owner import")
    return _report(written, "dbt", rules=len(nodes), unmatched=unmatched)


def _report(
    written: AnnotationReport,
    kind: Literal["codeowners", "dbt"],
    *,
    rules: int,
    remarks: Iterable[str] = (),
    unmatched: Iterable[str] = (),
) -> OwnerImportReport:
    fields = msgspec.structs.asdict(written) | {"remarks": tuple(islice(remarks, _MAX_REMARKS))}
    return OwnerImportReport(**fields, kind=kind, rules=rules, unmatched=tuple(unmatched))


def _dbt_nodes(manifest: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for section in ("nodes", "sources"):
        for node in _mapping(manifest.get(section)).values():
            if isinstance(node, dict) and node.get("resource_type", "source") in _DBT_TYPES:
                yield node


def _dbt_owners(node: Mapping[str, Any], manifest: Mapping[str, Any], type: str) -> Iterator[Owner]:
    """The owners in the `meta` of a node, its group, and the owner of that group."""
    config = _mapping(node.get("config"))
    for meta in (_mapping(config.get("meta")), _mapping(node.get("meta"))):
        texts = (*owner_texts(meta.get("owner")), *owner_texts(meta.get("owners")))
        yield from parse_owners(texts, type=type)
    group = node.get("group") or config.get("group")
    if isinstance(group, str) and group:
        yield Owner(name=group, kind="group", type=type)
        for each in _mapping(manifest.get("groups")).values():
            if _mapping(each).get("name") == group:
                yield from parse_owners(owner_texts(_mapping(each).get("owner")), type=type)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


class _DatasetsByTableName:
    """Finds datasets by database, schema and table name, ignoring case."""

    def __init__(self, store: Store) -> None:
        self._urns: dict[tuple[str, ...], list[str]] = {}
        for known in store.list(DatasetFilter()):
            path = [part.casefold() for part in Urn.parse(known.urn).path]
            for length in (1, 2, 3):
                if length <= len(path):
                    self._urns.setdefault(tuple(path[-length:]), []).append(known.urn)

    def urn_of(self, node: Mapping[str, Any]) -> str | None:
        """The only dataset that matches the longest possible name of a dbt node, or None."""
        name = node.get("alias") or node.get("identifier") or node.get("name")
        parts = [str(part).casefold() for part in (node.get("database"), node.get("schema"), name)]
        for start in range(3):
            matching = self._urns.get(tuple(parts[start:]), [])
            if len(matching) == 1:
                return matching[0]
        return None
