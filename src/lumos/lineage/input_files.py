"""Identifies input files: dbt artefacts, OpenLineage events, SQL, YAML, exports and query logs."""

import enum
import gzip
import os
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from lumos.errors import MisuseError, did_you_mean
from lumos.lineage import superset
from lumos.lineage.dbt.project import MANIFEST
from lumos.lineage.reported_lineage import LineageProblem
from lumos.lineage.sql_files import EXTENSIONS
from lumos.storage.file_names import FileNames, is_inside
from lumos.usage.query_log.files import LogFile, UnreadableLog, recognise_log

_HEAD_BYTES: Final = 4 * 1024 * 1024
_DBT_PROJECT_FILE: Final = "dbt_project.yml"
_DBT_TARGET_FOLDER: Final = "target"
# Folders of generated and installed files.
_IGNORED_FOLDERS: Final = frozenset(
    ("node_modules", "__pycache__", "venv", "dbt_packages", "dbt_modules", "site-packages")
)
_DBT_OUTPUT_FOLDERS: Final = frozenset(("compiled", "run"))
_LINEAGE_KEY: Final = re.compile(rb"^(?:lineage|\"lineage\")\s*:|^\s*\{\s*\"?lineage\"?\s*:", re.M)
_EXPOSURES_KEY: Final = re.compile(rb"^exposures\s*:", re.M)
# Files of Metabase, serialized or from its API.
_METABASE_KEY: Final = re.compile(rb"^serdes/meta\s*:", re.M)
_METABASE_JSON: Final = (b'"dataset_query"', b'"dashcards"', b'"ordered_cards"')
_ZIP_EXTENSION: Final = ".zip"
_YAML_EXTENSIONS: Final = (".yaml", ".yml")
_DBT_ARTEFACT: Final = re.compile(rb"schemas\.getdbt\.com/dbt/([a-z-]+)/v\d+")
_LOG_EXTENSIONS: Final = (".csv", ".tsv", ".log", ".parquet", ".json", ".jsonl", ".ndjson", ".gz")


class InputKind(enum.StrEnum):
    """The kind of an input file."""

    DBT = "dbt"
    OPENLINEAGE = "openlineage"
    DECLARED = "declared"
    EXPOSURES = "dbt exposures"
    METABASE = "metabase"
    SUPERSET = "superset"
    SQL = "sql"
    QUERY_LOG = "query log"


class InputFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file to read; `name` is its name in reports, and `log` is set for a query log."""

    kind: InputKind
    file: Path
    name: str
    log: LogFile | None = None


class InputFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that was searched for files; `complete` if all of it could be read.

    In reports, files in a nested git repository are named after that repository. Such a folder is
    therefore listed separately.
    """

    name: str
    complete: bool


class InputFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The identified input files; `unknown` files are of no supported kind."""

    files: tuple[InputFile, ...]
    unknown: tuple[str, ...] = ()
    folders: tuple[InputFolder, ...] = ()
    problems: tuple[LineageProblem, ...] = ()

    def of_kind(self, kind: InputKind) -> list[InputFile]:
        return [each for each in self.files if each.kind is kind]


def is_ignored_folder(name: str) -> bool:
    """Whether a folder of this name contains generated, installed or hidden files."""
    return name.startswith(".") or name in _IGNORED_FOLDERS


def may_be_input(name: str) -> bool:
    """Whether a file of this name in a folder can be an input, by its extension."""
    lower_name = name.lower()
    is_hidden = name.startswith(".")
    return not is_hidden and lower_name.endswith(
        (*EXTENSIONS, *_YAML_EXTENSIONS, *_LOG_EXTENSIONS, _ZIP_EXTENSION)
    )


def identify_files(paths: Sequence[str | Path], *, names: FileNames) -> InputFiles:
    """Identify the files at the paths and in the folders among them."""
    finder = _FileFinder(names)
    for path in paths:
        finder.add(Path(path))
    return finder.result()


class _FileFinder:
    def __init__(self, names: FileNames) -> None:
        self._name = names.of
        self._files: dict[Path, InputFile] = {}
        self._unknown: dict[str, None] = {}
        self._folders: list[InputFolder] = []
        self._problems: list[LineageProblem] = []

    def result(self) -> InputFiles:
        return InputFiles(
            files=tuple(sorted(self._files.values(), key=lambda each: (each.kind, each.name))),
            unknown=tuple(sorted(self._unknown)),
            folders=tuple(self._folders),
            problems=tuple(self._problems),
        )

    def add(self, path: Path) -> None:
        if "://" in str(path) or re.match(r"\w+:/\w", str(path)):
            raise MisuseError(
                f"{path} is neither a local path nor an Airflow server of the configuration. Copy "
                "files to this machine and give their folder; list servers under 'airflow'."
            )
        if path.is_dir():
            self._add_folder(path)
        elif path.exists():
            self._add_file(path)
        else:
            # Unlike `os.listdir`, `glob` skips folders that cannot be read.
            siblings = (each.name for each in path.parent.glob("*"))
            raise MisuseError(
                f"There is nothing at {path}.{did_you_mean(path.name, siblings)} Give an existing "
                "file or folder: lumos lineage ingest PATH"
            )

    def _add_folder(self, folder: Path) -> None:
        failed: list[OSError] = []
        projects: set[Path] = set()
        names: dict[Path, str] = {}
        for path, folders, files in os.walk(folder, onerror=failed.append):
            current = Path(path)
            names[current] = self._name(current)
            is_target = MANIFEST in files and _artefact_kind(current / MANIFEST) == "manifest"
            folders[:] = sorted(
                name
                for name in self._encodable(current, folders)
                if not is_ignored_folder(name) and not (is_target and name in _DBT_OUTPUT_FOLDERS)
            )
            if _DBT_PROJECT_FILE in files and (current / _DBT_TARGET_FOLDER / MANIFEST).is_file():
                projects.add(current)
            in_project = any(current.is_relative_to(project) for project in projects)
            for name in sorted(self._encodable(current, files)):
                # The manifest contains the project's SQL with its templates rendered.
                is_in_manifest = in_project and name.lower().endswith(EXTENSIONS)
                if not name.startswith(".") and not is_in_manifest:
                    self._add_file(current / name, is_in_folder=True, has_manifest=in_project)
        for problem in failed:
            name = self._name(Path(problem.filename or folder))
            reason = f"The folder cannot be read: {problem.strerror}."
            self._problems.append(LineageProblem(place=name, reason=reason))
        self._folders += (
            InputFolder(name=name, complete=not failed)
            for current, name in names.items()
            if current == folder or not is_inside(name, names[current.parent])
        )

    def _encodable(self, folder: Path, names: Iterable[str]) -> Iterator[str]:
        """The names that are valid UTF-8; the others are reported."""
        for name in names:
            try:
                name.encode()
            except UnicodeEncodeError:
                readable = os.fsencode(name).decode(errors="backslashreplace")
                reason = "The name is not valid UTF-8. Rename the file or folder and try again."
                self._problems.append(
                    LineageProblem(place=self._name(folder / readable), reason=reason)
                )
            else:
                yield name

    def _add_file(
        self, file: Path, *, is_in_folder: bool = False, has_manifest: bool = False
    ) -> None:
        name = self._name(file)
        try:
            inputs = self._identify(file, name, is_in_folder=is_in_folder)
        except OSError as problem:
            reason = f"The file cannot be read: {problem.strerror or problem}."
            self._problems.append(LineageProblem(place=name, reason=reason))
            return
        if inputs is None:
            self._unknown[name] = None
        for each in inputs or ():
            if has_manifest and each.kind is InputKind.EXPOSURES:
                # The manifest contains the exposures of its project.
                continue
            self._files.setdefault(each.file.absolute(), each)

    def _identify(self, file: Path, name: str, *, is_in_folder: bool) -> list[InputFile] | None:
        """The inputs to read for a file; empty if it is read with another file, None if unknown.

        With `is_in_folder`, the user gave the folder of the file. A file that the user gave itself
        may be a log with any extension.
        """
        lower_name = file.name.lower()
        if lower_name.endswith(EXTENSIONS):
            return [InputFile(kind=InputKind.SQL, file=file, name=name)]
        if lower_name.endswith(_ZIP_EXTENSION):
            # The reader reports an archive that is broken, if the user gave the file itself.
            is_broken = not is_in_folder and not zipfile.is_zipfile(file)
            is_export = is_broken or superset.is_export(file)
            return [InputFile(kind=InputKind.SUPERSET, file=file, name=name)] if is_export else None
        head = _head(file)
        artefact = _DBT_ARTEFACT.search(head)
        # dbt's `partial_parse.msgpack` also contains the name of the manifest's schema.
        if file.name == MANIFEST or (artefact is not None and not lower_name.endswith(".msgpack")):
            return self._identify_dbt(file, name, is_in_folder=is_in_folder)
        if lower_name.endswith(_YAML_EXTENSIONS):
            if superset.is_part_of_export(file):
                return []
            kind = _yaml_kind(file, head)
            return None if kind is None else [InputFile(kind=kind, file=file, name=name)]
        if b'"eventTime"' in head and re.search(rb'"(?:job|dataset|run)"\s*:', head):
            return [InputFile(kind=InputKind.OPENLINEAGE, file=file, name=name)]
        if lower_name.endswith(".json") and any(key in head for key in _METABASE_JSON):
            return [InputFile(kind=InputKind.METABASE, file=file, name=name)]
        may_be_log = lower_name.endswith(_LOG_EXTENSIONS) or not is_in_folder
        return self._identify_log(file, name) if may_be_log else None

    def _identify_dbt(self, file: Path, name: str, *, is_in_folder: bool) -> list[InputFile] | None:
        kind = _artefact_kind(file)
        if kind == "manifest":
            return [InputFile(kind=InputKind.DBT, file=file, name=name)]
        manifest = file.parent / MANIFEST
        if kind is None or not manifest.is_file():
            return None
        # Other artefacts are read with their manifest.
        if is_in_folder:
            return []
        return [InputFile(kind=InputKind.DBT, file=manifest, name=self._name(manifest))]

    def _identify_log(self, file: Path, name: str) -> list[InputFile] | None:
        try:
            log = recognise_log(file)
        except UnreadableLog as problem:
            self._problems.append(LineageProblem(place=name, reason=str(problem)))
            return []
        if log is None:
            return None
        return [InputFile(kind=InputKind.QUERY_LOG, file=file, name=name, log=log)]


def _yaml_kind(file: Path, head: bytes) -> InputKind | None:
    if _LINEAGE_KEY.search(head):
        return InputKind.DECLARED
    if _METABASE_KEY.search(head):
        return InputKind.METABASE
    if superset.is_metadata(file):
        return InputKind.SUPERSET
    return InputKind.EXPOSURES if _EXPOSURES_KEY.search(head) else None


def _artefact_kind(file: Path) -> str | None:
    """The kind of a dbt artefact, or None; older manifests are recognised by their keys."""
    head = _head(file)
    match = _DBT_ARTEFACT.search(head)
    if match is not None:
        return match.group(1).decode()
    is_likely = file.name == MANIFEST and re.search(rb'"(?:nodes|metadata)"\s*:', head)
    return "manifest" if is_likely else None


def _head(file: Path) -> bytes:
    """The first bytes of a file, uncompressed."""
    with file.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
    if not head.startswith(b"\x1f\x8b"):
        return head
    try:
        with gzip.open(file) as stream:
            return stream.read(_HEAD_BYTES)
    except (gzip.BadGzipFile, zlib.error, EOFError):
        # The reader for this kind of file reports the problem.
        return b""
