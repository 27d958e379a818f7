"""Changes as people say them: `user_id: STRING -> INT64`, a column to drop, `a -> b`."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from lumos.errors import MisuseError, did_you_mean
from lumos.model.change import (
    AnySchemaChange,
    FieldAdded,
    FieldRemoved,
    NullabilityChanged,
    TypeChanged,
)
from lumos.model.conversions.sql_type_reader import DIALECT_OF_PLATFORM, GUESSED_DIALECTS, Dialect
from lumos.model.conversions.sql_types import type_from_sql
from lumos.model.schema import Field, Schema
from lumos.model.type_path import nested_parts
from lumos.model.types import UNKNOWN, DataType, SchemaSyntaxError, parse_type, quoted_name
from lumos.schemas.apply import apply
from lumos.schemas.paths import child, parent_of
from lumos.schemas.proposals import unknown_types

_MOST_LISTED: Final = 12
# Texts and quoted names hold whatever they want.
_QUOTED: Final = re.compile(r"'(?:[^']|'')*'|`(?:[^`]|``)*`")
_NULLS: Final = re.compile(
    r"(?P<type>.*?)\s*\b(?P<nulls>not\s+null|null|required|nullable)\s*\Z",
    re.IGNORECASE | re.DOTALL,
)
_NOT_NULL: Final = re.compile(r"not\s+null|required", re.IGNORECASE)
_PARAMETERS: Final = re.compile(r"[(<].*", re.DOTALL)
_STEPS_TO_NAMES: Final = re.compile(r"(?:^|\.)(?:`(?:[^`]|``)*`|\w+)\Z")


class UnknownColumn(MisuseError):
    """A column that a dataset does not have."""

    def __init__(self, dataset: str, name: str, known: Sequence[str]) -> None:
        self.name = name
        self.known = tuple(known)
        tops = [each for each in known if parent_of(each) == ""]
        more = len(tops) - _MOST_LISTED
        listed = ", ".join(tops[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
        super().__init__(
            f"{dataset} has no column '{name}'. It has {listed}.{did_you_mean(name, known)}"
        )


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wants to change in a schema, in words."""

    change: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    rename: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.change or self.drop or self.rename)


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """What a wish comes to: the schema after it, or the changes alone where none is known.

    `renamed` are new paths by old ones.
    """

    schema: Schema | None
    changes: tuple[AnySchemaChange, ...]
    renamed: dict[str, str]
    remarks: tuple[str, ...] = ()


class _Side(NamedTuple):
    """What stands on one side of an arrow."""

    text: str
    types: tuple[DataType, ...]
    nullable: bool | None


class Place(NamedTuple):
    """A column or something inside one."""

    type: DataType
    nullable: bool
    native: str | None
    position: int | None


def changed(
    dataset: str, platform: str, schema: Schema | None, wish: Wish, *, dialect: Dialect | None
) -> Changed:
    """Reads a wish and grants it; `dialect` says whose types are meant where not Lumos's own."""
    reader = _Reader(dataset, platform, schema, dialect)
    for text in wish.change:
        reader.change(text)
    for text in wish.drop:
        reader.drop(text)
    for text in wish.rename:
        reader.rename(text)
    return Changed(
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
        self._told = dialect
        self._dialect = dialect or DIALECT_OF_PLATFORM.get(platform)
        own = () if self._dialect is None else (self._dialect,)
        self._dialects = own if dialect is not None else (*own, *GUESSED_DIALECTS)
        self._original = places_of(schema)
        self._seen: set[str] = set()

    def change(self, text: str) -> None:
        """Takes `path: before -> after`, or `path: after`."""
        path, sides = self._path_and_sides(text)
        self._once(path)
        place = self._original.get(path)
        old = self._side(sides[0], text) if len(sides) == 2 else None
        new = self._side(sides[-1], text)
        if place is None:
            place = self._from_words(path, old, text)
        elif old is not None:
            self._check_before(path, old, place)
        after = new.types[0] if new.types else place.type
        nullable = place.nullable if new.nullable is None else new.nullable
        made: list[AnySchemaChange] = []
        if after != place.type:
            made.append(TypeChanged(path=path, before=place.type, after=after))
        if nullable != place.nullable:
            made.append(NullabilityChanged(path=path, before=place.nullable, after=nullable))
        if not made:
            shown = place.type.text + ("" if place.nullable else " NOT NULL")
            raise MisuseError(f"'{text}' changes nothing: {path} is {shown}.")
        self._make(made)
        if self._told is None and len(set(new.types)) > 1:
            self.remarks.append(
                f"{new.text} is understood as Lumos writes types, {new.types[0].text}; for what "
                f"{self._dialect} means by it, {new.types[1].text}, add --dialect {self._dialect}"
            )

    def drop(self, text: str) -> None:
        """Takes the path of a column, or of a named part of one."""
        path = self._known(text)
        self._once(path)
        self._make([self._removed(path)])

    def rename(self, text: str) -> None:
        """Takes `path -> name`."""
        sides = _split(text, "->")
        if len(sides) != 2 or not all(sides):
            raise MisuseError(f"'{text}' is no renaming. Say it as in --rename 'old -> new'.")
        path = self._known(sides[0])
        parent = parent_of(path)
        name = _unquoted(sides[1].removeprefix(f"{parent}.") if parent else sides[1])
        to = child(parent, name)
        self._once(path)
        if to == path:
            raise MisuseError(f"'{text}' changes nothing: both names are the same.")
        if to in places_of(self.schema):
            raise MisuseError(f"{self._dataset} has a column '{to}' already. Choose another name.")
        removed = self._removed(path)
        field = msgspec.structs.replace(removed.before, name=name)
        # Words on parts inside would stand under the old name.
        field = msgspec.structs.replace(field, nested=())
        self._make([removed, FieldAdded(path=to, after=field, position=removed.position or 0)])
        self.renamed[path] = to

    def _make(self, changes: Sequence[AnySchemaChange]) -> None:
        self.changes += changes
        if self.schema is not None:
            self.schema = apply(changes, self.schema)

    def _once(self, path: str) -> None:
        if path in self._seen:
            raise MisuseError(f"'{path}' is changed more than once. Say all of it in one --change.")
        self._seen.add(path)

    def _removed(self, path: str) -> FieldRemoved:
        if self.schema is None:
            return FieldRemoved(path=path, before=Field(name=last_name(path), type=UNKNOWN))
        place = places_of(self.schema)[path]
        if place.position is None:
            raise MisuseError(
                f"'{path}' has no name of its own that could go. Change its type with --change."
            )
        column = next((each for each in self.schema.fields if quoted_name(each.name) == path), None)
        field = column or Field(name=last_name(path), type=place.type, nullable=place.nullable)
        return FieldRemoved(path=path, before=field, position=place.position)

    def _path_and_sides(self, text: str) -> tuple[str, list[str]]:
        """The longest beginning before a colon that is a column; names may hold colons, too."""
        marks = list(_outside_quotes(text, ":"))
        if not marks:
            raise MisuseError(
                f"'{text}' is no change. Say it as in --change 'user_id: STRING -> INT64'."
            )
        chosen = next((at for at in reversed(marks) if self._found(text[:at])), marks[0])
        sides = _split(text[chosen + 1 :], "->")
        if len(sides) > 2 or not all(sides):
            raise MisuseError(
                f"'{text}' is no change: say after the colon what it becomes, as in "
                "'user_id: INT64' or 'user_id: STRING -> INT64'."
            )
        return self._known(text[:chosen]), sides

    def _known(self, text: str) -> str:
        path = self._found(text)
        if path is None:
            raise UnknownColumn(self._dataset, text.strip(), list(self._original))
        return path

    def _found(self, text: str) -> str | None:
        """The path that is meant: spelled so, or in another case; names need no quotes."""
        text = text.strip()
        if not text:
            return None
        if self.schema is None:
            return text if text.startswith("`") or "." in text else quoted_name(_unquoted(text))
        known = self._original
        for candidate in (text, quoted_name(_unquoted(text))):
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
        """What a text may mean, the most likely first: Lumos's own type, or a dialect's."""
        readings = {each: type_from_sql(text, each) for each in self._dialects}
        in_sql = [each for each in readings.values() if not _is_unknown(each)]
        try:
            own = parse_type(text)
        except SchemaSyntaxError as problem:
            if not in_sql:
                raise MisuseError(f"'{text}' in '{whole}' is no type: {problem.problem}") from None
            yield in_sql[0]
            return
        if self._told is not None and in_sql:
            yield in_sql[0]
        yield own
        if self._dialect is not None and readings[self._dialect] in in_sql:
            yield readings[self._dialect]

    def _check_before(self, path: str, old: _Side, place: Place) -> None:
        is_same_type = (
            not old.types
            or place.type in old.types
            or old.text.upper() == _PARAMETERS.sub("", place.type.text)
            or old.text.casefold() == (place.native or "").casefold()
        )
        if not is_same_type or old.nullable not in (None, place.nullable):
            shown = place.type.text + ("" if place.nullable else " NOT NULL")
            nulls = {None: "", True: "nullable", False: "NOT NULL"}[old.nullable]
            raise MisuseError(
                f"{path} of {self._dataset} is {shown}, not {f'{old.text} {nulls}'.strip()}. "
                f"Say 'lumos show {self._dataset}' to see its schema."
            )

    def _from_words(self, path: str, old: _Side | None, text: str) -> Place:
        if old is None:
            raise MisuseError(
                f"No schema of {self._dataset} is known. Say in '{text}' what {path} is today, as "
                "in 'user_id: STRING -> INT64'."
            )
        type = old.types[0] if old.types else UNKNOWN
        return Place(type, old.nullable is not False, None, None)


def places_of(schema: Schema | None) -> dict[str, Place]:
    """All columns and what is inside them, by path."""
    found: dict[str, Place] = {}
    for position, field in enumerate(schema.fields if schema else ()):
        path = quoted_name(field.name)
        found[path] = Place(field.type, field.nullable, field.native_type, position)
        counts: dict[str, int] = {}
        for part in nested_parts(field):
            number = None
            if part.name is not None:
                parent = parent_of(part.path)
                number = counts[parent] = counts.get(parent, -1) + 1
            found[part.path] = Place(part.type, part.nullable, None, number)
    return found


def _outside_quotes(text: str, mark: str) -> Iterator[int]:
    """Where a mark stands that is in no text and in no quoted name."""
    plain = _QUOTED.sub(lambda match: "\0" * len(match.group()), text)
    start = plain.find(mark)
    while start >= 0:
        yield start
        start = plain.find(mark, start + len(mark))


def _split(text: str, mark: str) -> list[str]:
    pieces, start = [], 0
    for at in _outside_quotes(text, mark):
        pieces.append(text[start:at].strip())
        start = at + len(mark)
    return [*pieces, text[start:].strip()]


def _unquoted(text: str) -> str:
    """A name without the quotes of Lumos or of SQL."""
    text = text.strip()
    for quote in ("`", '"'):
        if len(text) > 2 and text.startswith(quote) and text.endswith(quote):
            return text[1:-1].replace(quote * 2, quote)
    return text


def last_name(path: str) -> str:
    """The name of what a path leads to, without quotes."""
    match = _STEPS_TO_NAMES.search(path)
    return _unquoted(match.group().removeprefix(".")) if match else path


def _is_unknown(type: DataType) -> bool:
    return any(unknown_types(Schema(fields=(Field(name="any", type=type),))))
