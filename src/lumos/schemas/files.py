"""Schemas as text files: what stands in one, and what it is called in a folder."""

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
from lumos.model.schema import Schema, comments_in
from lumos.model.urn import DEFAULT_ENVIRONMENT, Urn
from lumos.model.version import SchemaVersion
from lumos.schemas.errors import UnreadableSchema
from lumos.schemas.texts import decoded, parsed_text

ENDING: Final = ".schema"
WRITER: Final = "lumos schema export"
# Files that carry no URN are datasets of this platform, called after their path.
UNNAMED: Final = "schema"
_HEADER: Final = re.compile(r"#[ \t]*(urn|version|format|written by):[ \t]*(.*?)[ \t\r]*\Z")
_SAFE: Final = "-_~=@+,."
_LONGEST_NAME: Final = 200
_GLANCE: Final = 10_000
_URN_LINE: Final = re.compile(r"^[ \t]*#[ \t]*urn:", re.MULTILINE)
FORMATS: Final = (
    "parquet", "avro", "orc", "csv", "json", "iceberg", "delta",
    "table", "view", "materialized_view", "foreign_table",
)  # fmt: skip


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset's schema at one time, as far as it is known from where it was taken."""

    urn: str
    schema: Schema
    version: str | None = None
    format: str | None = None


def written(described: Described) -> str:
    """The text of a dataset's file."""
    lines = [f"# urn: {described.urn}"]
    if described.version is not None:
        lines.append(f"# version: {described.version}")
    # Other tools have formats of which no rule speaks.
    if described.format in FORMATS:
        lines.append(f"# format: {described.format}")
    lines.append(f"# written by: {WRITER}")
    return "\n".join([*lines, *map(str, described.schema.fields)]) + "\n"


def read(file: str, data: bytes, *, called: str) -> Described:
    """What a file's bytes describe; `called` names it where it carries no URN."""
    text = decoded(file, data)
    told = dict[str, str]()
    for line, key, value in _told(text):
        if key in told:
            raise UnreadableSchema(file, f"'# {key}:' stands a second time", line=line)
        try:
            told[key] = _CHECKED.get(key, str)(value)
        except MisuseError as problem:
            raise UnreadableSchema(file, str(problem), line=line) from None
    _refuse_late_urn(file, text)
    return Described(
        urn=told.get("urn") or _urn_without_header(called),
        schema=parsed_text(file, text),
        version=told.get("version"),
        format=told.get("format"),
    )


def urn_in(data: bytes, *, called: str) -> str:
    """The URN of a file that need not be read any further."""
    told = header(data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")).get("urn")
    try:
        return str(Urn.parse(told)) if told else _urn_without_header(called)
    except MisuseError:
        # Whoever reads the file in full will say what is wrong with it.
        return told or ""


def _urn_without_header(called: str) -> str:
    return str(Urn.of(UNNAMED, called.split("/")))


def _format(text: str) -> str:
    if text.lower() not in FORMATS:
        raise UnknownName("format", text, FORMATS)
    return text.lower()


_CHECKED: Final[dict[str, Callable[[str], str]]] = {
    "urn": lambda text: str(Urn.parse(text)),
    "version": lambda text: str(SchemaVersion.parse(text)),
    "format": _format,
}


def header(text: str) -> dict[str, str]:
    """What the comments at the beginning of a file say."""
    return {key: value for _, key, value in _told(text)}


def _told(text: str) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip() and not line.startswith("#"):
            return
        match = _HEADER.match(line)
        if match is not None:
            yield number, match.group(1), match.group(2)


def _refuse_late_urn(file: str, text: str) -> None:
    """Refuses a URN that stands behind the first field, where nobody would look for it."""
    head = {line for line, key, _ in _told(text) if key == "urn"}
    if len(_URN_LINE.findall(text)) == len(head):
        # Reading every comment takes as long as reading the schema.
        return
    for line, comment in comments_in(text):
        match = _HEADER.match(comment)
        if match is not None and match.group(1) == "urn" and line not in head:
            problem = "'# urn:' stands behind the first field; it belongs to the top of the file"
            raise UnreadableSchema(file, problem, line=line)


def read_file(file: Path) -> Described:
    """What one file describes."""
    return read(str(file), file.read_bytes(), called=called(Path(file.name)))


def read_folders(before: Path, after: Path) -> tuple[dict[str, Described], dict[str, Described]]:
    """What the files of two folders describe, by URN; files that are the same are not parsed."""
    old, new = _contents(before), _contents(after)
    alike = {place for place, data in old.items() if new.get(place) == data}
    return _described(before, old, alike), _described(after, new, alike)


def _contents(folder: Path) -> dict[Path, bytes]:
    return {file.relative_to(folder): file.read_bytes() for file in files_in(folder)}


def _described(
    folder: Path, contents: dict[Path, bytes], alike: Collection[Path]
) -> dict[str, Described]:
    return by_urn(
        (
            (str(folder / place), read(str(folder / place), data, called=called(place)))
            for place, data in sorted(contents.items())
            if place not in alike
        ),
        beside={
            urn_in(contents[place], called=called(place)): str(folder / place) for place in alike
        },
    )


def files_in(folder: Path) -> Iterator[Path]:
    """The schema files of a folder and of those below it, in order."""
    return iter(sorted(path for path in folder.rglob(f"*{ENDING}") if path.is_file()))


def has_files(folder: Path) -> bool:
    """Whether a folder holds schema files, as far as a glance tells."""
    # A folder that is called like its dataset may be a lake of millions of files.
    glance = islice((name for _, _, names in os.walk(folder) for name in names), _GLANCE)
    return any(name.endswith(ENDING) for name in glance)


def called(place: PurePosixPath | Path) -> str:
    """What a file of a folder is called without its ending, if anything is left then."""
    path = place.as_posix()
    return path if place.name == ENDING else path.removesuffix(ENDING)


def by_urn(
    found: Iterable[tuple[str, Described]], *, beside: Mapping[str, str]
) -> dict[str, Described]:
    """The datasets of several files; two that describe the same one are refused.

    `beside` are the URNs in further files of the same folder.
    """
    files = dict(beside)
    datasets: dict[str, Described] = {}
    for file, described in found:
        if described.urn in files:
            raise UnreadableSchema(file, f"{described.urn} stands in {files[described.urn]} too")
        files[described.urn] = file
        datasets[described.urn] = described
    return datasets


def place_of(urn: Urn) -> PurePosixPath:
    """Where a dataset's file lies in a folder: `s3@eu/lake/raw/orders.schema`.

    Other environments than the default one are folders above. Different URNs have different
    places, and no place leads out of the folder, whatever stands in a name.
    """
    instance = f"@{_named(urn.instance)}" if urn.instance else ""
    above = [] if urn.environment == DEFAULT_ENVIRONMENT else [urn.environment]
    *folders, last = map(_named, urn.path)
    # A folder must not take the name of another dataset's file.
    folders = [
        f"{name.removesuffix(ENDING)}%2E{ENDING[1:]}" if name.endswith(ENDING) else name
        for name in folders
    ]
    return PurePosixPath(*above, f"{urn.platform}{instance}", *folders, f"{last}{ENDING}")


def _named(segment: str) -> str:
    """A segment as a file's name: never empty, hidden, `.`, `..` or too long."""
    name = quote(segment, safe=_SAFE, errors="surrogatepass")
    if name.startswith("."):
        name = f"%2E{name[1:]}"
    if len(name) > _LONGEST_NAME:
        digest = hashlib.blake2b(segment.encode("utf-8", "surrogatepass"), digest_size=8)
        name = f"{name[: _LONGEST_NAME - 18]}%~{digest.hexdigest()}"
    return name or "%"
