"""What the files and folders are that somebody names: dbt, OpenLineage, SQL, YAML, query logs."""

import enum
import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from lumos.errors import MisuseError
from lumos.lineage.dbt.artefacts import MANIFEST
from lumos.lineage.reported import Problem
from lumos.lineage.sql_files import ENDINGS
from lumos.storage.file_names import FileNames, is_inside
from lumos.usage.query_log import Log, UnreadableLog, look

_HEAD: Final = 4 * 1024 * 1024
_PROJECT: Final = "dbt_project.yml"
_TARGET: Final = "target"
# What dbt and others write beside what they are given, and what nobody wrote.
_LEFT_OUT: Final = frozenset(
    ("node_modules", "__pycache__", "venv", "dbt_packages", "dbt_modules", "site-packages")
)
_BESIDE_MANIFEST: Final = frozenset(("compiled", "run"))
_LINEAGE_KEY: Final = re.compile(rb"^(?:lineage|\"lineage\")\s*:|^\s*\{\s*\"?lineage\"?\s*:", re.M)
_YAML: Final = (".yaml", ".yml")
_DBT_ARTEFACT: Final = re.compile(rb"schemas\.getdbt\.com/dbt/([a-z-]+)/v\d+")
_LOG_ENDINGS: Final = (".csv", ".tsv", ".log", ".parquet", ".json", ".jsonl", ".ndjson", ".gz")


class Kind(enum.StrEnum):
    """What a file is."""

    DBT = "dbt"
    OPENLINEAGE = "openlineage"
    DECLARED = "declared"
    SQL = "sql"
    QUERY_LOG = "query log"


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """A file to read, with its name in reports; `log` where it is a query log."""

    kind: Kind
    file: Path
    name: str
    log: Log | None = None


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that was looked through, as far as that was possible.

    One in it that is called otherwise, such as a repository, stands beside it.
    """

    name: str
    complete: bool


class Recognised(msgspec.Struct, frozen=True, kw_only=True):
    """All that was named, by what it is; `unknown` files are nothing that Lumos reads."""

    given: tuple[Given, ...]
    unknown: tuple[str, ...] = ()
    folders: tuple[Folder, ...] = ()
    problems: tuple[Problem, ...] = ()

    def of(self, kind: Kind) -> list[Given]:
        return [each for each in self.given if each.kind is kind]


def recognise(paths: Sequence[str | Path], *, names: FileNames) -> Recognised:
    """What the paths are."""
    looking = _Looking(names)
    for path in paths:
        looking.take(Path(path))
    return looking.recognised()


class _Looking:
    def __init__(self, names: FileNames) -> None:
        self._name = names.of
        self._given: dict[Path, Given] = {}
        self._unknown: dict[str, None] = {}
        self._folders: list[Folder] = []
        self._problems: list[Problem] = []

    def recognised(self) -> Recognised:
        return Recognised(
            given=tuple(sorted(self._given.values(), key=lambda each: (each.kind, each.name))),
            unknown=tuple(sorted(self._unknown)),
            folders=tuple(self._folders),
            problems=tuple(self._problems),
        )

    def take(self, path: Path) -> None:
        if "://" in str(path) or re.match(r"\w+:/\w", str(path)):
            raise MisuseError(
                f"{path} is no place on this machine. Copy the files here and name their folder."
            )
        if path.is_dir():
            self._take_folder(path)
        elif path.exists():
            self._take_file(path)
        else:
            raise MisuseError(
                f"There is nothing at {path}. Name a file or a folder that exists: "
                "lumos lineage ingest PATH"
            )

    def _take_folder(self, folder: Path) -> None:
        failed: list[OSError] = []
        projects: set[Path] = set()
        names: dict[Path, str] = {}
        for place, folders, files in os.walk(folder, onerror=failed.append):
            here = Path(place)
            names[here] = self._name(here)
            is_target = MANIFEST in files and _artefact(here / MANIFEST) == "manifest"
            folders[:] = sorted(
                name
                for name in self._encodable(here, folders)
                if not name.startswith(".")
                and name not in _LEFT_OUT
                and not (is_target and name in _BESIDE_MANIFEST)
            )
            if _PROJECT in files and (here / _TARGET / MANIFEST).is_file():
                projects.add(here)
            in_project = any(here.is_relative_to(project) for project in projects)
            self._take_files(here, sorted(self._encodable(here, files)), in_project=in_project)
        for problem in failed:
            place = self._name(Path(problem.filename or folder))
            reason = f"The folder cannot be read: {problem.strerror}."
            self._problems.append(Problem(place=place, reason=reason))
        self._folders += (
            Folder(name=name, complete=not failed)
            for here, name in names.items()
            if here.parent not in names or not is_inside(name, names[here.parent])
        )

    def _encodable(self, folder: Path, names: Iterable[str]) -> Iterator[str]:
        """The names that a store can hold; the others are problems."""
        for name in names:
            try:
                name.encode()
            except UnicodeEncodeError:
                shown = os.fsencode(name).decode(errors="backslashreplace")
                reason = "Its name is not valid UTF-8. Rename it, then run this again."
                self._problems.append(Problem(place=self._name(folder / shown), reason=reason))
            else:
                yield name

    def _take_files(self, folder: Path, names: Iterable[str], *, in_project: bool) -> None:
        for name in names:
            # The manifest tells of a project's own SQL, with what its templates stand for.
            if name.startswith(".") or (in_project and name.lower().endswith(ENDINGS)):
                continue
            self._take_file(folder / name, walking=True)

    def _take_file(self, file: Path, *, walking: bool = False) -> None:
        name = self._name(file)
        try:
            found = self._look(file, name, walking=walking)
        except OSError as problem:
            reason = f"The file cannot be read: {problem.strerror or problem}."
            self._problems.append(Problem(place=name, reason=reason))
            return
        if found is None:
            self._unknown[name] = None
        for each in found or ():
            self._given.setdefault(each.file.absolute(), each)

    def _look(self, file: Path, name: str, *, walking: bool) -> list[Given] | None:
        """What a file is; an empty list where another file stands for it."""
        ending = file.name.lower()
        if ending.endswith(ENDINGS):
            return [Given(kind=Kind.SQL, file=file, name=name)]
        head = _head(file)
        artefact = _DBT_ARTEFACT.search(head)
        if file.name == MANIFEST or artefact is not None:
            return self._dbt(file, name, walking=walking)
        if ending.endswith(_YAML):
            is_declared = _LINEAGE_KEY.search(head) is not None
            return [Given(kind=Kind.DECLARED, file=file, name=name)] if is_declared else None
        if b'"eventTime"' in head and re.search(rb'"(?:job|dataset|run)"\s*:', head):
            return [Given(kind=Kind.OPENLINEAGE, file=file, name=name)]
        return self._log(file, name) if ending.endswith(_LOG_ENDINGS) or not walking else None

    def _dbt(self, file: Path, name: str, *, walking: bool) -> list[Given] | None:
        kind = _artefact(file)
        if kind == "manifest":
            return [Given(kind=Kind.DBT, file=file, name=name)]
        beside = file.parent / MANIFEST
        if kind is None or not beside.is_file():
            return None
        # What lies beside a manifest is read with it.
        return [] if walking else [Given(kind=Kind.DBT, file=beside, name=self._name(beside))]

    def _log(self, file: Path, name: str) -> list[Given] | None:
        try:
            log = look(file)
        except UnreadableLog as problem:
            self._problems.append(Problem(place=name, reason=str(problem)))
            return []
        return None if log is None else [Given(kind=Kind.QUERY_LOG, file=file, name=name, log=log)]


def _artefact(file: Path) -> str | None:
    """Which of dbt's artefacts a file is; older ones do not say it at their beginning."""
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
    return b"".join(_unpacked(file))


def _unpacked(file: Path) -> Iterator[bytes]:
    try:
        with gzip.open(file) as stream:
            yield stream.read(_HEAD)
    except (gzip.BadGzipFile, zlib.error, EOFError):
        # Whoever reads it as what it is called will say what is wrong with it.
        return
