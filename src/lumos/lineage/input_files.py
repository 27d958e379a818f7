"""Identifies input files: dbt artefacts, OpenLineage events, SQL, YAML and query logs."""

import enum
import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from lumos.errors import MisuseError, did_you_mean
from lumos.lineage.dbt.project import MANIFEST
from lumos.lineage.reported_lineage import LineageProblem
from lumos.lineage.sql_files import EXTENSIONS
from lumos.storage.file_names import FileNames, is_inside
from lumos.usage.query_log.files import LogFile, UnreadableLog, recognise_log

_HEAD: Final = 4 * 1024 * 1024
_PROJECT: Final = "dbt_project.yml"
_TARGET: Final = "target"
# Folders of generated and installed files.
_IGNORED_FOLDERS: Final = frozenset(
    ("node_modules", "__pycache__", "venv", "dbt_packages", "dbt_modules", "site-packages")
)
_DBT_OUTPUT_FOLDERS: Final = frozenset(("compiled", "run"))
_LINEAGE_KEY: Final = re.compile(rb"^(?:lineage|\"lineage\")\s*:|^\s*\{\s*\"?lineage\"?\s*:", re.M)
_YAML: Final = (".yaml", ".yml")
_DBT_ARTEFACT: Final = re.compile(rb"schemas\.getdbt\.com/dbt/([a-z-]+)/v\d+")
_LOG_EXTENSIONS: Final = (".csv", ".tsv", ".log", ".parquet", ".json", ".jsonl", ".ndjson", ".gz")


class InputKind(enum.StrEnum):
    """The kind of an input file."""

    DBT = "dbt"
    OPENLINEAGE = "openlineage"
    DECLARED = "declared"
    SQL = "sql"
    QUERY_LOG = "query log"


class InputFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file to read, with its name in reports; `log` if it is a query log."""

    kind: InputKind
    file: Path
    name: str
    log: LogFile | None = None


class InputFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A scanned folder; `complete` if all of it could be read.

    A nested folder with a name of its own, such as a repository, is listed separately.
    """

    name: str
    complete: bool


class InputFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The identified input files; Lumos cannot read `unknown` files."""

    given: tuple[InputFile, ...]
    unknown: tuple[str, ...] = ()
    folders: tuple[InputFolder, ...] = ()
    problems: tuple[LineageProblem, ...] = ()

    def of(self, kind: InputKind) -> list[InputFile]:
        return [each for each in self.given if each.kind is kind]


def is_ignored_folder(name: str) -> bool:
    """Whether folders of this name hold generated, installed or hidden files."""
    return name.startswith(".") or name in _IGNORED_FOLDERS


def identify_files(paths: Sequence[str | Path], *, names: FileNames) -> InputFiles:
    """Identify the files in some paths."""
    finder = _FileFinder(names)
    for path in paths:
        finder.take(Path(path))
    return finder.recognised()


class _FileFinder:
    def __init__(self, names: FileNames) -> None:
        self._name = names.of
        self._given: dict[Path, InputFile] = {}
        self._unknown: dict[str, None] = {}
        self._folders: list[InputFolder] = []
        self._problems: list[LineageProblem] = []

    def recognised(self) -> InputFiles:
        return InputFiles(
            given=tuple(sorted(self._given.values(), key=lambda each: (each.kind, each.name))),
            unknown=tuple(sorted(self._unknown)),
            folders=tuple(self._folders),
            problems=tuple(self._problems),
        )

    def take(self, path: Path) -> None:
        if "://" in str(path) or re.match(r"\w+:/\w", str(path)):
            raise MisuseError(
                f"{path} is not a local path. Copy the files to this machine and give their folder."
            )
        if path.is_dir():
            self._take_folder(path)
        elif path.exists():
            self._take_file(path)
        else:
            # Unlike `os.listdir`, `glob` skips folders that cannot be read.
            siblings = (each.name for each in path.parent.glob("*"))
            raise MisuseError(
                f"There is nothing at {path}.{did_you_mean(path.name, siblings)} Give an existing "
                "file or folder: lumos lineage ingest PATH"
            )

    def _take_folder(self, folder: Path) -> None:
        failed: list[OSError] = []
        projects: set[Path] = set()
        names: dict[Path, str] = {}
        for path, folders, files in os.walk(folder, onerror=failed.append):
            here = Path(path)
            names[here] = self._name(here)
            is_target = MANIFEST in files and _artefact(here / MANIFEST) == "manifest"
            folders[:] = sorted(
                name
                for name in self._encodable(here, folders)
                if not is_ignored_folder(name) and not (is_target and name in _DBT_OUTPUT_FOLDERS)
            )
            if _PROJECT in files and (here / _TARGET / MANIFEST).is_file():
                projects.add(here)
            in_project = any(here.is_relative_to(project) for project in projects)
            self._take_files(here, sorted(self._encodable(here, files)), in_project=in_project)
        for problem in failed:
            name = self._name(Path(problem.filename or folder))
            reason = f"The folder cannot be read: {problem.strerror}."
            self._problems.append(LineageProblem(place=name, reason=reason))
        self._folders += (
            InputFolder(name=name, complete=not failed)
            for here, name in names.items()
            if here.parent not in names or not is_inside(name, names[here.parent])
        )

    def _encodable(self, folder: Path, names: Iterable[str]) -> Iterator[str]:
        """The names that are valid UTF-8; the others are reported."""
        for name in names:
            try:
                name.encode()
            except UnicodeEncodeError:
                shown = os.fsencode(name).decode(errors="backslashreplace")
                reason = "Its name is not valid UTF-8. Rename it, then run this again."
                self._problems.append(
                    LineageProblem(place=self._name(folder / shown), reason=reason)
                )
            else:
                yield name

    def _take_files(self, folder: Path, names: Iterable[str], *, in_project: bool) -> None:
        for name in names:
            # The manifest contains the project's SQL with its templates rendered.
            if name.startswith(".") or (in_project and name.lower().endswith(EXTENSIONS)):
                continue
            self._take_file(folder / name, walking=True)

    def _take_file(self, file: Path, *, walking: bool = False) -> None:
        name = self._name(file)
        try:
            found = self._identify(file, name, walking=walking)
        except OSError as problem:
            reason = f"The file cannot be read: {problem.strerror or problem}."
            self._problems.append(LineageProblem(place=name, reason=reason))
            return
        if found is None:
            self._unknown[name] = None
        for each in found or ():
            self._given.setdefault(each.file.absolute(), each)

    def _identify(self, file: Path, name: str, *, walking: bool) -> list[InputFile] | None:
        """Identify the inputs of a file; empty if another file covers it."""
        ending = file.name.lower()
        if ending.endswith(EXTENSIONS):
            return [InputFile(kind=InputKind.SQL, file=file, name=name)]
        head = _head(file)
        artefact = _DBT_ARTEFACT.search(head)
        if file.name == MANIFEST or artefact is not None:
            return self._dbt(file, name, walking=walking)
        if ending.endswith(_YAML):
            is_declared = _LINEAGE_KEY.search(head) is not None
            return (
                [InputFile(kind=InputKind.DECLARED, file=file, name=name)] if is_declared else None
            )
        if b'"eventTime"' in head and re.search(rb'"(?:job|dataset|run)"\s*:', head):
            return [InputFile(kind=InputKind.OPENLINEAGE, file=file, name=name)]
        return self._log(file, name) if ending.endswith(_LOG_EXTENSIONS) or not walking else None

    def _dbt(self, file: Path, name: str, *, walking: bool) -> list[InputFile] | None:
        kind = _artefact(file)
        if kind == "manifest":
            return [InputFile(kind=InputKind.DBT, file=file, name=name)]
        manifest = file.parent / MANIFEST
        if kind is None or not manifest.is_file():
            return None
        # Other artefacts are read together with their manifest.
        return (
            []
            if walking
            else [InputFile(kind=InputKind.DBT, file=manifest, name=self._name(manifest))]
        )

    def _log(self, file: Path, name: str) -> list[InputFile] | None:
        try:
            log = recognise_log(file)
        except UnreadableLog as problem:
            self._problems.append(LineageProblem(place=name, reason=str(problem)))
            return []
        return (
            None
            if log is None
            else [InputFile(kind=InputKind.QUERY_LOG, file=file, name=name, log=log)]
        )


def _artefact(file: Path) -> str | None:
    """Return the kind of dbt artefact; older manifests do not start with it."""
    head = _head(file)
    found = _DBT_ARTEFACT.search(head)
    if found is not None:
        return found.group(1).decode()
    is_likely = file.name == MANIFEST and re.search(rb'"(?:nodes|metadata)"\s*:', head)
    return "manifest" if is_likely else None


def _head(file: Path) -> bytes:
    with file.open("rb") as stream:
        head = stream.read(_HEAD)
    if not head.startswith(b"\x1f\x8b"):
        return head
    return b"".join(_read_gzip_start(file))


def _read_gzip_start(file: Path) -> Iterator[bytes]:
    try:
        with gzip.open(file) as stream:
            yield stream.read(_HEAD)
    except (gzip.BadGzipFile, zlib.error, EOFError):
        # The reader for this file type reports the problem.
        return
