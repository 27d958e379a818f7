"""Requested schema changes: `user_id: STRING -> INT64`, dropped columns, renames, files."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from lumos.errors import MisuseError, did_you_mean
from lumos.impact.context import ImpactContext, analyse_derivation
from lumos.impact.rules.versions import CurrentSchemas
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
from lumos.schemas.compatibility import classify
from lumos.schemas.findings import FingerprintedSchema, findings_between
from lumos.schemas.proposals import complete_proposal, unknown_types

if TYPE_CHECKING:
    from lumos.schemas.proposal_reader import ProposalKind, SchemaProposal


_MAX_LISTED: Final = 12
# Strings and quoted names may contain separators.
_QUOTED: Final = re.compile(r"'(?:[^']|'')*'|`(?:[^`]|``)*`")
_NULLABILITY: Final = re.compile(
    r"(?P<type>.*?)\s*\b(?P<nulls>not\s+null|null|required|nullable)\s*\Z",
    re.IGNORECASE | re.DOTALL,
)
_NOT_NULL: Final = re.compile(r"not\s+null|required", re.IGNORECASE)
_TYPE_PARAMETERS: Final = re.compile(r"[(<].*", re.DOTALL)
_LAST_NAME_STEP: Final = re.compile(r"(?:^|\.)(?:`(?:[^`]|``)*`|\w+)\Z")


class UnknownColumn(MisuseError):
    """A column that a dataset does not have."""

    def __init__(self, dataset: str, name: str, known: Sequence[str]) -> None:
        self.name = name
        self.known = tuple(known)
        columns = [each for each in known if parent_of(each) == ""]
        more = len(columns) - _MAX_LISTED
        listed = ", ".join(columns[:_MAX_LISTED]) + (f" and {more} more" if more > 0 else "")
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


class _TypeAndNulls(NamedTuple):
    """The part before or after the arrow of a change: its possible types and nullability."""

    text: str
    types: tuple[DataType, ...]
    nullable: bool | None


class ColumnPart(NamedTuple):
    """A column or a nested part of a column; only parts with a name have a position."""

    type: DataType
    nullable: bool
    native_type: str | None
    position: int | None

    @property
    def text(self) -> str:
        return self.type.text if self.nullable else f"{self.type.text} NOT NULL"


def apply_requested_changes(
    dataset: str,
    platform: str,
    schema: Schema | None,
    requested: RequestedChanges,
    *,
    dialect: Dialect | None,
) -> ChangedSchema:
    """Parse requested changes and apply them to a schema; types may be SQL types of `dialect`."""
    parser = _ChangeParser(dataset, platform, schema, dialect)
    for text in requested.change:
        parser.change(text)
    for text in requested.drop:
        parser.drop(text)
    for text in requested.rename:
        parser.rename(text)
    return ChangedSchema(
        schema=parser.schema,
        changes=tuple(parser.changes),
        renamed=parser.renamed,
        remarks=tuple(parser.remarks),
    )


class _ChangeParser:
    def __init__(
        self, dataset: str, platform: str, schema: Schema | None, dialect: Dialect | None
    ) -> None:
        self.schema = schema
        self.changes: list[AnySchemaChange] = []
        self.renamed: dict[str, str] = {}
        self.remarks: list[str] = []
        self._dataset = dataset
        self._requested_dialect = dialect
        self._dialect = dialect or DIALECT_OF_PLATFORM.get(platform)
        preferred = () if self._dialect is None else (self._dialect,)
        self._type_dialects = preferred if dialect is not None else (*preferred, *GUESSED_DIALECTS)
        self._original = column_parts(schema)
        self._changed_paths: set[str] = set()

    def change(self, text: str) -> None:
        """Apply `path: before -> after` or `path: after`."""
        path, sides = self._split_change(text)
        self._check_unique(path)
        part = self._original.get(path)
        old = self._parse_side(sides[0], text) if len(sides) == 2 else None
        new = self._parse_side(sides[-1], text)
        if part is None:
            part = self._part_of_unknown_schema(path, old, text)
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
            raise MisuseError(f"'{text}' changes nothing: {path} is {part.text}.")
        self._apply(changes)
        if self._requested_dialect is None and len(set(new.types)) > 1:
            self.remarks.append(
                f"{new.text} is read as the Lumos type {new.types[0].text}; for "
                f"{new.types[1].text} as in {self._dialect}, add --dialect {self._dialect}"
            )

    def drop(self, text: str) -> None:
        """Drop a column or a named part of a column."""
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
        new_path = child(parent, name)
        self._check_unique(path)
        if new_path == path:
            raise MisuseError(f"'{text}' changes nothing: both names are the same.")
        if new_path in column_parts(self.schema):
            raise MisuseError(
                f"{self._dataset} already has a column '{new_path}'. Choose another name."
            )
        removed = self._removal_of(path)
        # Annotations of nested fields refer to the old path.
        field = msgspec.structs.replace(removed.before, name=name, nested=())
        self._apply(
            [removed, FieldAdded(path=new_path, after=field, position=removed.position or 0)]
        )
        self.renamed[path] = new_path

    def _apply(self, changes: Sequence[AnySchemaChange]) -> None:
        self.changes += changes
        if self.schema is not None:
            self.schema = apply(changes, self.schema)

    def _check_unique(self, path: str) -> None:
        if path in self._changed_paths:
            raise MisuseError(f"'{path}' is changed more than once. Use a single --change.")
        self._changed_paths.add(path)

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

    def _split_change(self, text: str) -> tuple[str, list[str]]:
        """Split `path: before -> after`; names may contain colons, so the longest path is used."""
        separators = list(_outside_quotes(text, ":"))
        if not separators:
            column, _, type = text.partition("=")
            right = f"{column.strip()}: {type.strip()}" if type else "user_id: STRING -> INT64"
            raise MisuseError(f"Invalid change '{text}'. Use --change '{right}'.")
        colon = next(
            (position for position in reversed(separators) if self._find_path(text[:position])),
            separators[0],
        )
        sides = _split(text[colon + 1 :], "->")
        if len(sides) > 2 or not all(sides):
            raise MisuseError(
                f"Invalid change '{text}'. Give the new type after the colon, as in "
                "'user_id: INT64' or 'user_id: STRING -> INT64'."
            )
        return self._require_path(text[:colon]), sides

    def _require_path(self, text: str) -> str:
        path = self._find_path(text)
        if path is None:
            raise UnknownColumn(self._dataset, text.strip(), list(self._original))
        return path

    def _find_path(self, text: str) -> str | None:
        """The path of a column given with or without quotes, ignoring case if necessary."""
        text = text.strip()
        if not text:
            return None
        if self.schema is None:
            return text if text.startswith("`") or "." in text else quoted_name(_unquote(text))
        paths = self._original
        for candidate in (text, quoted_name(_unquote(text))):
            if candidate in paths:
                return candidate
            matches = [each for each in paths if each.casefold() == candidate.casefold()]
            if len(matches) == 1:
                return matches[0]
        return None

    def _parse_side(self, text: str, change_text: str) -> _TypeAndNulls:
        match = _NULLABILITY.match(text)
        nullable = None if match is None else not _NOT_NULL.fullmatch(match["nulls"])
        type_text = text if match is None else match["type"]
        types = tuple(self._possible_types(type_text, change_text)) if type_text else ()
        return _TypeAndNulls(type_text, types, nullable)

    def _possible_types(self, text: str, change_text: str) -> Iterator[DataType]:
        """The types that a text may mean, in Lumos or in a dialect, most likely first."""
        sql_types = {each: type_from_sql(text, each) for each in self._type_dialects}
        known_sql_types = [each for each in sql_types.values() if not _is_unknown(each)]
        try:
            lumos_type = parse_type(text)
        except SchemaSyntaxError as problem:
            if not known_sql_types:
                reason = problem.problem
                end = "" if reason.endswith((".", "?")) else "."
                raise MisuseError(
                    f"Invalid type '{text}' in '{change_text}': {reason}{end} Write it as "
                    "INT64, STRING or DECIMAL(10,2). See the types of a dataset with: "
                    "lumos show DATASET"
                ) from None
            yield known_sql_types[0]
            return
        if self._requested_dialect is not None and known_sql_types:
            yield known_sql_types[0]
        yield lumos_type
        if self._dialect is not None and sql_types[self._dialect] in known_sql_types:
            yield sql_types[self._dialect]

    def _check_before(self, path: str, old: _TypeAndNulls, part: ColumnPart) -> None:
        is_same_type = (
            not old.types
            or part.type in old.types
            or old.text.upper() == _TYPE_PARAMETERS.sub("", part.type.text)
            or old.text.casefold() == (part.native_type or "").casefold()
        )
        if not is_same_type or old.nullable not in (None, part.nullable):
            nulls = {None: "", True: "nullable", False: "NOT NULL"}[old.nullable]
            raise MisuseError(
                f"{path} of {self._dataset} is {part.text}, not {f'{old.text} {nulls}'.strip()}. "
                f"See its schema with: lumos show {self._dataset}"
            )

    def _part_of_unknown_schema(
        self, path: str, old: _TypeAndNulls | None, text: str
    ) -> ColumnPart:
        if old is None:
            raise MisuseError(
                f"The schema of {self._dataset} is unknown. Give the current type of {path} in "
                f"'{text}', as in 'user_id: STRING -> INT64'."
            )
        type = old.types[0] if old.types else UNKNOWN
        return ColumnPart(type, old.nullable is not False, None, None)


def column_parts(schema: Schema | None) -> dict[str, ColumnPart]:
    """All columns and their nested parts, by path."""
    parts: dict[str, ColumnPart] = {}
    for position, field in enumerate(schema.fields if schema else ()):
        path = quoted_name(field.name)
        parts[path] = ColumnPart(field.type, field.nullable, field.native_type, position)
        last_positions: dict[str, int] = {}
        for part in nested_parts(field):
            nested_position = None
            if part.name is not None:
                parent = parent_of(part.path)
                nested_position = last_positions.get(parent, -1) + 1
                last_positions[parent] = nested_position
            parts[part.path] = ColumnPart(part.type, part.nullable, None, nested_position)
    return parts


def _outside_quotes(text: str, separator: str) -> Iterator[int]:
    """The positions of a separator outside of strings and quoted names."""
    masked = _QUOTED.sub(lambda match: "\0" * len(match.group()), text)
    start = masked.find(separator)
    while start >= 0:
        yield start
        start = masked.find(separator, start + len(separator))


def _split(text: str, separator: str) -> list[str]:
    parts, start = [], 0
    for position in _outside_quotes(text, separator):
        parts.append(text[start:position].strip())
        start = position + len(separator)
    return [*parts, text[start:].strip()]


def _unquote(text: str) -> str:
    """Remove Lumos or SQL quotes from a name."""
    text = text.strip()
    for quote_mark in ("`", '"'):
        if len(text) > 2 and text.startswith(quote_mark) and text.endswith(quote_mark):
            return text[1:-1].replace(quote_mark * 2, quote_mark)
    return text


def last_name(path: str) -> str:
    """The last name of a path, without quotes."""
    match = _LAST_NAME_STEP.search(path)
    return _unquote(match.group().removeprefix(".")) if match else path


def _is_unknown(type: DataType) -> bool:
    return any(unknown_types(Schema(fields=(Field(name="any", type=type),))))


_INFERRED: Final = "{} was never scanned; its schema is inferred from the SQL that writes it"


class ImpactCase(NamedTuple):
    """Changes of a dataset with their verdicts, and its schemas before and after if known.

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
    present = CurrentSchemas(context, analyse_derivation).stored_or_inferred(urn)
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
        rendered = proposal.render(present)
        base = complete_proposal(present, rendered, proposal.schema, proposal.format)
        remarks += proposal.remarks
    after = apply_requested_changes(urn, platform, base, requested, dialect=dialect)
    findings = classify_changes(context, present, after.schema, after.changes)
    if not findings:
        raise MisuseError(f"Nothing changes: {urn} already has this schema.")
    return ImpactCase(findings, present, after.schema, after.renamed, (*remarks, *after.remarks))


def classify_changes(
    context: ImpactContext,
    present: Schema | None,
    proposed: Schema | None,
    changes: Sequence[AnySchemaChange],
) -> tuple[Finding, ...]:
    """The findings for the changes between two schemas, or for `changes` if a schema is unknown."""
    entry = context.store.entries.get(context.urn)
    format = None if entry is None else entry.known.format
    if present is None or proposed is None:
        return classify(changes, format=format)
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
