"""Schema files: reads and writes their text, and determines their names in a folder."""

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import quote

import msgspec

from lumos.errors import MisuseError, UnknownName
from lumos.model.schema import Field, Schema, comments_in, parse_schema
from lumos.model.types import (
    Array,
    DataType,
    Map,
    Member,
    SchemaSyntaxError,
    Struct,
    Union,
)
from lumos.model.urn import DEFAULT_ENVIRONMENT, Urn
from lumos.model.version import SchemaVersion


class UnreadableSchema(MisuseError):
    """A schema file cannot be read; the message contains the position of the problem."""

    def __init__(
        self,
        file: str,
        problem: str,
        *,
        line: int | None = None,
        column: int | None = None,
        next: str = "",
    ) -> None:
        self.file = file
        self.line = line
        self.column = column
        position = ":".join(str(part) for part in (file, line, column) if part is not None)
        end = "" if problem.endswith((".", "?")) else "."
        super().__init__(f"{position}: {problem}{end}{f' {next}' if next else ''}")


_MAX_BYTES: Final = 50 * 1024 * 1024


def read_text(file: Path) -> str:
    """The text of a file; raises UnreadableSchema, for example if it is not UTF-8."""
    with file.open("rb") as stream:
        data = stream.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise UnreadableSchema(str(file), f"it is larger than {_MAX_BYTES // 1024**2} MB")
    return decode_text(str(file), data)


def decode_text(file: str, data: bytes) -> str:
    """The content of a file as text; raises UnreadableSchema."""
    try:
        # `lumos schema export` writes names with lone surrogates unchanged.
        return data.decode("utf-8", "surrogatepass").removeprefix("\ufeff")
    except UnicodeDecodeError as problem:
        valid_data = data[: problem.start]
        raise UnreadableSchema(
            file,
            "this is not UTF-8 text",
            line=valid_data.count(b"\n") + 1,
            column=problem.start - valid_data.rfind(b"\n"),
        ) from None


def parse_schema_text(file: str, text: str) -> Schema:
    """The schema in a text in Lumos' text format; raises UnreadableSchema."""
    try:
        schema = parse_schema(text, strict=True)
    except SchemaSyntaxError as problem:
        raise UnreadableSchema(
            file, problem.problem, line=problem.line, column=problem.column
        ) from None
    check_unique_fields(file, schema)
    return schema


def check_unique_fields(file: str, schema: Schema) -> None:
    """Raise an error if a schema defines a field twice."""
    repeated = find_repeated_field(schema)
    if repeated is not None:
        raise UnreadableSchema(file, f"the field '{repeated}' is defined twice")


def _find_in_type(type: DataType, path: str) -> str | None:
    match type:
        case Struct(members):
            return _find_in_siblings(members, path)
        case Array(element):
            return _find_in_type(element, f"{path}[]")
        case Map(key, value):
            return _find_in_type(key, f"{path}{{key}}") or _find_in_type(value, f"{path}{{}}")
        case Union(options):
            repeated = (_find_in_type(each, f"{path}<{n}>") for n, each in enumerate(options))
            return next((inner for inner in repeated if inner is not None), None)
        case _:
            return None


def _find_in_siblings(siblings: Iterable[Field | Member], parent: str) -> str | None:
    names: set[str] = set()
    for each in siblings:
        path = f"{parent}.{each.name}" if parent else each.name
        if each.name in names:
            return path
        names.add(each.name)
        inner = _find_in_type(each.type, path)
        if inner is not None:
            return inner
    return None


def find_repeated_field(schema: Schema) -> str | None:
    """The path of the first field that has the same name as a sibling, at any depth."""
    return _find_in_siblings(schema.fields, "")


SCHEMA_SUFFIX: Final = ".schema"
WRITER: Final = "lumos schema export"
# The platform in the URN of a dataset whose file contains no URN; its name is that of the file.
UNNAMED_PLATFORM: Final = "schema"
_HEADER: Final = re.compile(r"#[ \t]*(urn|version|format|written by):[ \t]*(.*?)[ \t\r]*\Z")
_SAFE_CHARACTERS: Final = "-_~=@+,."
_MAX_FILE_NAME_LENGTH: Final = 200
_MAX_CHECKED_FILES: Final = 10_000
_URN_LINE: Final = re.compile(r"^[ \t]*#[ \t]*urn:", re.MULTILINE)
FORMATS: Final = (
    "parquet", "avro", "orc", "csv", "json", "iceberg", "delta",
    "table", "view", "materialized_view", "foreign_table",
)  # fmt: skip


class DatasetSchema(msgspec.Struct, frozen=True, kw_only=True):
    """A schema of a dataset, with the version and format if they are known."""

    urn: str
    schema: Schema
    version: str | None = None
    format: str | None = None


def schema_file_text(dataset: DatasetSchema) -> str:
    """The text of the schema file of a dataset."""
    lines = [f"# urn: {dataset.urn}"]
    if dataset.version is not None:
        lines.append(f"# version: {dataset.version}")
    # Other formats are not written, because they do not matter for compatibility.
    if dataset.format in FORMATS:
        lines.append(f"# format: {dataset.format}")
    lines.append(f"# written by: {WRITER}")
    return "\n".join([*lines, *map(str, dataset.schema.fields)]) + "\n"


def read_schema(file: str, data: bytes, *, default_name: str) -> DatasetSchema:
    """The schema in the content of a file; `default_name` is used if the file has no URN."""
    text = decode_text(file, data)
    header = dict[str, str]()
    for line, key, value in _header_lines(text):
        if key in header:
            raise UnreadableSchema(file, f"'# {key}:' is defined twice", line=line)
        try:
            header[key] = _HEADER_PARSERS.get(key, str)(value)
        except MisuseError as problem:
            raise UnreadableSchema(file, str(problem), line=line) from None
    _check_urn_position(file, text)
    return DatasetSchema(
        urn=header.get("urn") or _urn_without_header(default_name),
        schema=parse_schema_text(file, text),
        version=header.get("version"),
        format=header.get("format"),
    )


def read_urn(data: bytes, *, default_name: str) -> str:
    """The URN in a file, without parsing its schema."""
    urn = read_header(data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")).get("urn")
    try:
        return str(Urn.parse(urn)) if urn else _urn_without_header(default_name)
    except MisuseError:
        # The problem is reported when the schema in the file is read.
        return urn or ""


def _urn_without_header(default_name: str) -> str:
    return str(Urn.of(UNNAMED_PLATFORM, default_name.split("/")))


def _parse_format(text: str) -> str:
    if text.lower() not in FORMATS:
        raise UnknownName("format", text, FORMATS)
    return text.lower()


_HEADER_PARSERS: Final[dict[str, Callable[[str], str]]] = {
    "urn": lambda text: str(Urn.parse(text)),
    "version": lambda text: str(SchemaVersion.parse(text)),
    "format": _parse_format,
}


def read_header(text: str) -> dict[str, str]:
    """The keys and values in the comments at the beginning of a file."""
    return {key: value for _, key, value in _header_lines(text)}


def _header_lines(text: str) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip() and not line.startswith("#"):
            return
        match = _HEADER.match(line)
        if match is not None:
            yield number, match.group(1), match.group(2)


def _check_urn_position(file: str, text: str) -> None:
    """Raise an error for a URN after the first field, which would be ignored."""
    header_lines = {line for line, key, _ in _header_lines(text) if key == "urn"}
    if len(_URN_LINE.findall(text)) == len(header_lines):
        # Skip the exact check below, which takes as long as parsing the schema.
        return
    for line, comment in comments_in(text):
        match = _HEADER.match(comment)
        if match is not None and match.group(1) == "urn" and line not in header_lines:
            problem = "'# urn:' must be at the top of the file, before the first field"
            raise UnreadableSchema(file, problem, line=line)


def read_file(file: Path) -> DatasetSchema:
    """The schema in one file."""
    return read_schema(str(file), file.read_bytes(), default_name=name_of_file(Path(file.name)))


def read_folders(
    before: Path, after: Path
) -> tuple[dict[str, DatasetSchema], dict[str, DatasetSchema]]:
    """The schemas in two folders, by URN; files that are the same in both are not parsed."""
    old, new = (
        {file.relative_to(folder): file.read_bytes() for file in schema_files_in(folder)}
        for folder in (before, after)
    )
    unchanged = {path for path, data in old.items() if new.get(path) == data}
    return _read_changed_files(before, old, unchanged), _read_changed_files(after, new, unchanged)


def _read_changed_files(
    folder: Path, contents: dict[Path, bytes], unchanged: Collection[Path]
) -> dict[str, DatasetSchema]:
    return index_by_urn(
        (
            (
                str(folder / path),
                read_schema(str(folder / path), data, default_name=name_of_file(path)),
            )
            for path, data in sorted(contents.items())
            if path not in unchanged
        ),
        others={
            read_urn(contents[path], default_name=name_of_file(path)): str(folder / path)
            for path in unchanged
        },
    )


def schema_files_in(folder: Path) -> Iterator[Path]:
    """The schema files of a folder and its subfolders, in order."""
    return iter(sorted(path for path in folder.rglob(f"*{SCHEMA_SUFFIX}") if path.is_file()))


def has_schema_files(folder: Path) -> bool:
    """Whether there is a schema file among the first 10,000 files of a folder."""
    # Do not search all files: the folder may be a data lake with millions of files.
    names = islice((name for _, _, names in os.walk(folder) for name in names), _MAX_CHECKED_FILES)
    return any(name.endswith(SCHEMA_SUFFIX) for name in names)


def name_of_file(path: PurePosixPath | Path) -> str:
    """The path of a file without its suffix; the name `.schema` is not changed."""
    text = path.as_posix()
    return text if path.name == SCHEMA_SUFFIX else text.removesuffix(SCHEMA_SUFFIX)


def index_by_urn(
    schemas: Iterable[tuple[str, DatasetSchema]], *, others: Mapping[str, str]
) -> dict[str, DatasetSchema]:
    """The schemas of several files by URN; raises UnreadableSchema if two files have the same URN.

    `others` are the other files in the folder, by URN.
    """
    files = dict(others)
    datasets: dict[str, DatasetSchema] = {}
    for file, dataset in schemas:
        if dataset.urn in files:
            raise UnreadableSchema(file, f"{dataset.urn} is also in {files[dataset.urn]}")
        files[dataset.urn] = file
        datasets[dataset.urn] = dataset
    return datasets


def file_path_of(urn: Urn) -> PurePosixPath:
    """The path of a dataset's file in a folder, such as `s3@eu/lake/raw/orders.schema`.

    If the environment is not the default one, it is the first folder of the path. Different URNs
    have different paths, and no path leads out of the folder, even if a name contains `..`.
    """
    instance = f"@{_file_name(urn.instance)}" if urn.instance else ""
    environment_folder = [] if urn.environment == DEFAULT_ENVIRONMENT else [urn.environment]
    *folders, file_name = map(_file_name, urn.path)
    # A folder must not have the same name as the file of another dataset.
    folders = [
        f"{name.removesuffix(SCHEMA_SUFFIX)}%2E{SCHEMA_SUFFIX[1:]}"
        if name.endswith(SCHEMA_SUFFIX)
        else name
        for name in folders
    ]
    return PurePosixPath(
        *environment_folder, f"{urn.platform}{instance}", *folders, f"{file_name}{SCHEMA_SUFFIX}"
    )


def _file_name(segment: str) -> str:
    """Convert a segment to a valid file name, which is not empty, hidden or too long."""
    name = quote(segment, safe=_SAFE_CHARACTERS, errors="surrogatepass")
    if name.startswith("."):
        name = f"%2E{name[1:]}"
    if len(name) > _MAX_FILE_NAME_LENGTH:
        digest = hashlib.blake2b(segment.encode("utf-8", "surrogatepass"), digest_size=8)
        name = f"{name[: _MAX_FILE_NAME_LENGTH - 18]}%~{digest.hexdigest()}"
    return name or "%"
