"""Requested schema changes: `user_id: STRING -> INT64`, dropped columns, renames, files."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from lumos.errors import MisuseError, did_you_mean
from lumos.impact.context import ImpactContext, analyse_derivation
from lumos.impact.rules.versions import DatasetSchemas
from lumos.model.change import (
    AnySchemaChange,
    FieldAdded,
    FieldRemoved,
    Finding,
    NullabilityChanged,
    TypeChanged,
)
from lumos.model.conversions.sql_type_reader import DIALECT_OF_PLATFORM, GUESSED_DIALECTS, Dialect
from lumos.model.conversions.sql_types import type_from_sql
from lumos.model.paths import child, parent_of
from lumos.model.schema import Field, Schema
from lumos.model.type_path import nested_parts
from lumos.model.types import UNKNOWN, DataType, SchemaSyntaxError, parse_type, quoted_name
from lumos.model.urn import Urn
from lumos.schemas.apply import apply
from lumos.schemas.compatibility import judge
from lumos.schemas.findings import FingerprintedSchema, findings_between
from lumos.schemas.proposals import complete_proposal, unknown_types

if TYPE_CHECKING:
    from lumos.schemas.proposal_reader import ProposalKind, SchemaProposal


_MAX_LISTED: Final = 12
# Strings and quoted names may contain separators.
_QUOTED: Final = re.compile(r"'(?:[^']|'')*'|`(?:[^`]|``)*`")
_NULLS: Final = re.compile(
    r"(?P<type>.*?)\s*\b(?P<nulls>not\s+null|null|required|nullable)\s*\Z",
    re.IGNORECASE | re.DOTALL,
)
_NOT_NULL: Final = re.compile(r"not\s+null|required", re.IGNORECASE)
_PARAMETERS: Final = re.compile(r"[(<].*", re.DOTALL)
_LAST_NAME_STEP: Final = re.compile(r"(?:^|\.)(?:`(?:[^`]|``)*`|\w+)\Z")


class UnknownColumn(MisuseError):
    """A column that a dataset does not have."""

    def __init__(self, dataset: str, name: str, known: Sequence[str]) -> None:
        self.name = name
        self.known = tuple(known)
        tops = [each for each in known if parent_of(each) == ""]
        more = len(tops) - _MAX_LISTED
        listed = ", ".join(tops[:_MAX_LISTED]) + (f" and {more} more" if more > 0 else "")
        super().__init__(
            f"{dataset} has no column '{name}'.{did_you_mean(name, known)} It has {listed}. "
            f"See its types with: lumos show {quote(dataset)}"
        )


class RequestedChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of a schema as given on the command line."""

    change: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    rename: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.change or self.drop or self.rename)


class ChangedSchema(msgspec.Struct, frozen=True, kw_only=True):
    """The schema after the requested changes (None if unknown), and the changes.

    `renamed` maps old paths to new ones.
    """

    schema: Schema | None
    changes: tuple[AnySchemaChange, ...]
    renamed: dict[str, str]
    remarks: tuple[str, ...] = ()


class _Side(NamedTuple):
    """One side of an arrow: type and nullability."""

    text: str
    types: tuple[DataType, ...]
    nullable: bool | None


class ColumnPart(NamedTuple):
    """A column or a nested part of one."""

    type: DataType
    nullable: bool
    native: str | None
    position: int | None


def apply_requested_changes(
    dataset: str,
    platform: str,
    schema: Schema | None,
    requested: RequestedChanges,
    *,
    dialect: Dialect | None,
) -> ChangedSchema:
    """Parse requested changes and apply them to a schema; types may be those of `dialect`."""
    reader = _Reader(dataset, platform, schema, dialect)
    for text in requested.change:
        reader.change(text)
    for text in requested.drop:
        reader.drop(text)
    for text in requested.rename:
        reader.rename(text)
    return ChangedSchema(
        schema=reader.schema,
        changes=tuple(reader.changes),
        renamed=reader.renamed,
        remarks=tuple(reader.remarks),
    )


class _Reader:
    def __init__(
        self, dataset: str, platform: str, schema: Schema | None, dialect: Dialect | None
    ) -> None:
        self.schema = schema
        self.changes: list[AnySchemaChange] = []
        self.renamed: dict[str, str] = {}
        self.remarks: list[str] = []
        self._dataset = dataset
        self._given_dialect = dialect
        self._dialect = dialect or DIALECT_OF_PLATFORM.get(platform)
        own = () if self._dialect is None else (self._dialect,)
        self._dialects = own if dialect is not None else (*own, *GUESSED_DIALECTS)
        self._original = column_parts(schema)
        self._seen: set[str] = set()

    def change(self, text: str) -> None:
        """Apply `path: before -> after` or `path: after`."""
        path, sides = self._path_and_sides(text)
        self._check_unique(path)
        part = self._original.get(path)
        old = self._side(sides[0], text) if len(sides) == 2 else None
        new = self._side(sides[-1], text)
        if part is None:
            part = self._part_from_text(path, old, text)
        elif old is not None:
            self._check_before(path, old, part)
        after = new.types[0] if new.types else part.type
        nullable = part.nullable if new.nullable is None else new.nullable
        changes: list[AnySchemaChange] = []
        if after != part.type:
            changes.append(TypeChanged(path=path, before=part.type, after=after))
        if nullable != part.nullable:
            changes.append(NullabilityChanged(path=path, before=part.nullable, after=nullable))
        if not changes:
            shown = part.type.text + ("" if part.nullable else " NOT NULL")
            raise MisuseError(f"'{text}' changes nothing: {path} is {shown}.")
        self._apply(changes)
        if self._given_dialect is None and len(set(new.types)) > 1:
            self.remarks.append(
                f"{new.text} is read as the Lumos type {new.types[0].text}; for "
                f"{new.types[1].text} as in {self._dialect}, add --dialect {self._dialect}"
            )

    def drop(self, text: str) -> None:
        """Drop a column or a named part of one."""
        path = self._require_path(text)
        self._check_unique(path)
        self._apply([self._removal_of(path)])

    def rename(self, text: str) -> None:
        """Apply `path -> name`."""
        sides = _split(text, "->")
        if len(sides) != 2 or not all(sides):
            raise MisuseError(f"Invalid rename '{text}'. Use --rename 'old -> new'.")
        path = self._require_path(sides[0])
        parent = parent_of(path)
        name = _unquote(sides[1].removeprefix(f"{parent}.") if parent else sides[1])
        to = child(parent, name)
        self._check_unique(path)
        if to == path:
            raise MisuseError(f"'{text}' changes nothing: both names are the same.")
        if to in column_parts(self.schema):
            raise MisuseError(f"{self._dataset} already has a column '{to}'. Choose another name.")
        removed = self._removal_of(path)
        field = msgspec.structs.replace(removed.before, name=name)
        # Annotations of nested parts would keep the old path.
        field = msgspec.structs.replace(field, nested=())
        self._apply([removed, FieldAdded(path=to, after=field, position=removed.position or 0)])
        self.renamed[path] = to

    def _apply(self, changes: Sequence[AnySchemaChange]) -> None:
        self.changes += changes
        if self.schema is not None:
            self.schema = apply(changes, self.schema)

    def _check_unique(self, path: str) -> None:
        if path in self._seen:
            raise MisuseError(f"'{path}' is changed more than once. Use a single --change.")
        self._seen.add(path)

    def _removal_of(self, path: str) -> FieldRemoved:
        if self.schema is None:
            return FieldRemoved(path=path, before=Field(name=last_name(path), type=UNKNOWN))
        part = column_parts(self.schema)[path]
        if part.position is None:
            raise MisuseError(
                f"'{path}' has no name and cannot be dropped. Change its type with --change."
            )
        column = next((each for each in self.schema.fields if quoted_name(each.name) == path), None)
        field = column or Field(name=last_name(path), type=part.type, nullable=part.nullable)
        return FieldRemoved(path=path, before=field, position=part.position)

    def _path_and_sides(self, text: str) -> tuple[str, list[str]]:
        """Split off column and sides; names may contain colons, so the longest match counts."""
        marks = list(_outside_quotes(text, ":"))
        if not marks:
            raise MisuseError(f"Invalid change '{text}'. Use --change 'user_id: STRING -> INT64'.")
        chosen = next((at for at in reversed(marks) if self._find_path(text[:at])), marks[0])
        sides = _split(text[chosen + 1 :], "->")
        if len(sides) > 2 or not all(sides):
            raise MisuseError(
                f"Invalid change '{text}'. Give the new type after the colon, as in "
                "'user_id: INT64' or 'user_id: STRING -> INT64'."
            )
        return self._require_path(text[:chosen]), sides

    def _require_path(self, text: str) -> str:
        path = self._find_path(text)
        if path is None:
            raise UnknownColumn(self._dataset, text.strip(), list(self._original))
        return path

    def _find_path(self, text: str) -> str | None:
        """The matching path, exact or ignoring case; names need no quotes."""
        text = text.strip()
        if not text:
            return None
        if self.schema is None:
            return text if text.startswith("`") or "." in text else quoted_name(_unquote(text))
        known = self._original
        for candidate in (text, quoted_name(_unquote(text))):
            if candidate in known:
                return candidate
            folded = [each for each in known if each.casefold() == candidate.casefold()]
            if len(folded) == 1:
                return folded[0]
        return None

    def _side(self, text: str, whole: str) -> _Side:
        match = _NULLS.match(text)
        nullable = None if match is None else not _NOT_NULL.fullmatch(match["nulls"])
        type_text = text if match is None else match["type"]
        types = tuple(self._types(type_text, whole)) if type_text else ()
        return _Side(type_text, types, nullable)

    def _types(self, text: str, whole: str) -> Iterator[DataType]:
        """The possible types of a text, most likely first: the Lumos type, or that of a dialect."""
        readings = {each: type_from_sql(text, each) for each in self._dialects}
        in_sql = [each for each in readings.values() if not _is_unknown(each)]
        try:
            own = parse_type(text)
        except SchemaSyntaxError as problem:
            if not in_sql:
                raise MisuseError(
                    f"Invalid type '{text}' in '{whole}': {problem.problem}"
                ) from None
            yield in_sql[0]
            return
        if self._given_dialect is not None and in_sql:
            yield in_sql[0]
        yield own
        if self._dialect is not None and readings[self._dialect] in in_sql:
            yield readings[self._dialect]

    def _check_before(self, path: str, old: _Side, part: ColumnPart) -> None:
        is_same_type = (
            not old.types
            or part.type in old.types
            or old.text.upper() == _PARAMETERS.sub("", part.type.text)
            or old.text.casefold() == (part.native or "").casefold()
        )
        if not is_same_type or old.nullable not in (None, part.nullable):
            shown = part.type.text + ("" if part.nullable else " NOT NULL")
            nulls = {None: "", True: "nullable", False: "NOT NULL"}[old.nullable]
            raise MisuseError(
                f"{path} of {self._dataset} is {shown}, not {f'{old.text} {nulls}'.strip()}. "
                f"See its schema with: lumos show {self._dataset}"
            )

    def _part_from_text(self, path: str, old: _Side | None, text: str) -> ColumnPart:
        if old is None:
            raise MisuseError(
                f"The schema of {self._dataset} is unknown. Give the current type of {path} in "
                f"'{text}', as in 'user_id: STRING -> INT64'."
            )
        type = old.types[0] if old.types else UNKNOWN
        return ColumnPart(type, old.nullable is not False, None, None)


def column_parts(schema: Schema | None) -> dict[str, ColumnPart]:
    """All columns and their nested parts, by path."""
    found: dict[str, ColumnPart] = {}
    for position, field in enumerate(schema.fields if schema else ()):
        path = quoted_name(field.name)
        found[path] = ColumnPart(field.type, field.nullable, field.native_type, position)
        counts: dict[str, int] = {}
        for part in nested_parts(field):
            number = None
            if part.name is not None:
                parent = parent_of(part.path)
                number = counts[parent] = counts.get(parent, -1) + 1
            found[part.path] = ColumnPart(part.type, part.nullable, None, number)
    return found


def _outside_quotes(text: str, mark: str) -> Iterator[int]:
    """The positions of a mark outside of strings and quoted names."""
    masked = _QUOTED.sub(lambda match: "\0" * len(match.group()), text)
    start = masked.find(mark)
    while start >= 0:
        yield start
        start = masked.find(mark, start + len(mark))


def _split(text: str, mark: str) -> list[str]:
    pieces, start = [], 0
    for at in _outside_quotes(text, mark):
        pieces.append(text[start:at].strip())
        start = at + len(mark)
    return [*pieces, text[start:].strip()]


def _unquote(text: str) -> str:
    """A name without Lumos or SQL quotes."""
    text = text.strip()
    for mark in ("`", '"'):
        if len(text) > 2 and text.startswith(mark) and text.endswith(mark):
            return text[1:-1].replace(mark * 2, mark)
    return text


def last_name(path: str) -> str:
    """The last name of a path, without quotes."""
    match = _LAST_NAME_STEP.search(path)
    return _unquote(match.group().removeprefix(".")) if match else path


def _is_unknown(type: DataType) -> bool:
    return any(unknown_types(Schema(fields=(Field(name="any", type=type),))))


_INFERRED: Final = "{} was never scanned; its schema is inferred from the SQL that writes it"


class ImpactCase(NamedTuple):
    """Judged changes of a dataset, with its schemas before and after if known.

    `renamed` maps old paths to new ones.
    """

    findings: tuple[Finding, ...]
    present: Schema | None
    proposed: Schema | None
    renamed: dict[str, str]
    remarks: tuple[str, ...]


class ProposedFile(NamedTuple):
    """A file with a proposed schema, as for `lumos schema predict`."""

    file: str | Path
    kind: "ProposalKind | None"
    model: str | None


def case_from_options(
    context: ImpactContext,
    requested: RequestedChanges,
    file: ProposedFile | None,
    *,
    dialect: Dialect | None,
) -> ImpactCase:
    """The case of requested changes, a proposed file, or both."""
    urn = context.urn
    platform = Urn.parse(urn).platform
    present = DatasetSchemas(context, analyse_derivation).known(urn)
    remarks: list[str] = []
    if present is not None and context.schema(urn) is None:
        remarks.append(_INFERRED.format(urn))
    base = present
    if file is not None:
        proposal = _proposal(context, file, dialect)
        if present is None:
            raise MisuseError(
                f"The schema of {urn} is unknown, so the proposed one cannot be compared. Scan the "
                "dataset first (lumos ingest), or use --change."
            )
        shown = proposal.rendered(present)
        base = complete_proposal(present, shown, proposal.schema, proposal.form)
        remarks += proposal.remarks
    after = apply_requested_changes(urn, platform, base, requested, dialect=dialect)
    findings = judge_changes(context, present, after.schema, after.changes)
    if not findings:
        raise MisuseError(f"Nothing changes: {urn} already has this schema.")
    return ImpactCase(findings, present, after.schema, after.renamed, (*remarks, *after.remarks))


def judge_changes(
    context: ImpactContext,
    present: Schema | None,
    proposed: Schema | None,
    changes: Sequence[AnySchemaChange],
) -> tuple[Finding, ...]:
    """Findings between two schemas, or on the given changes if a schema is unknown."""
    entry = context.store.entries.get(context.urn)
    format = None if entry is None else entry.known.format
    if present is None or proposed is None:
        return judge(changes, format=format)
    return findings_between(
        FingerprintedSchema.of(present), FingerprintedSchema.of(proposed, format)
    )


def _proposal(
    context: ImpactContext, file: ProposedFile, dialect: Dialect | None
) -> "SchemaProposal":
    # Imported late: only needed for proposed files.
    from lumos.schemas.output import require_text
    from lumos.schemas.proposal_reader import ProposalTarget, read_proposal

    require_text(str(file.file), "file of the proposed schema")
    urn = Urn.parse(context.urn)
    entry = context.store.entries.get(context.urn)
    target = ProposalTarget(
        name=urn.name if entry is None else entry.known.name,
        platform=urn.platform,
        model=file.model,
        dialect=dialect,
    )
    return read_proposal(Path(file.file), kind=file.kind, target=target)
