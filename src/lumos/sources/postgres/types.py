"""Types of a database in the algebra: also those that people made from others."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lumos.model.conversions.sql_types import type_from_sql
from lumos.model.type_path import LONGEST_EXPANSION, TOO_DEEP, TOO_LARGE
from lumos.model.types import MAX_DEPTH, Array, DataType, Enum, Member, Struct, Unknown


class Use(NamedTuple):
    """A type as a column uses it: `text` is numeric(10,2) where the modifier says 10 and 2."""

    oid: int
    modifier: int
    text: str


class NativeType(NamedTuple):
    """A row of the catalog; a domain has a base, an array an element, a composite members."""

    oid: int
    kind: str
    name: str
    prefix: str
    element: int
    base: int
    base_modifier: int
    base_text: str | None
    required: bool
    default: str | None
    labels: list[str]
    members: list[tuple[str, int, int, str]]

    @property
    def parts(self) -> list[tuple[str, Use]]:
        """The members by name."""
        return [(name, Use(oid, modifier, text)) for name, oid, modifier, text in self.members]


class Types:
    """The types that a database's columns have."""

    def __init__(self, types: Iterable[NativeType]) -> None:
        self._types = {each.oid: each for each in types}
        self._made: dict[tuple[int, int], DataType] = {}

    def type(self, use: Use) -> DataType:
        """The type in the algebra; what that lacks is UNKNOWN with the name it has here."""
        # Without recursion: nothing keeps people from nesting types a thousand levels deep.
        waiting = [use]
        begun: set[tuple[int, int]] = set()
        while waiting:
            inner = waiting[-1]
            key = inner[:2]
            if key in self._made:
                waiting.pop()
                continue
            missing = [part for part in self._parts(inner) if part[:2] not in self._made]
            if missing and key not in begun:
                begun.add(key)
                waiting.extend(missing)
            else:
                self._made[key] = self._written(inner)
                waiting.pop()
        return self._made[use[:2]]

    def is_required(self, oid: int) -> bool:
        """Whether a domain refuses nulls."""
        return any(domain.required for domain in self._domains(oid))

    def default(self, oid: int) -> str | None:
        """What a domain puts where nothing is given."""
        return next((each.default for each in self._domains(oid) if each.default is not None), None)

    def _domains(self, oid: int) -> Iterator[NativeType]:
        while (found := self._types.get(oid)) is not None and found.kind == "d":
            yield found
            oid = found.base

    def _parts(self, use: Use) -> list[Use]:
        native = self._types.get(use.oid)
        if native is None:
            return []
        if _is_array(native, use):
            return [_element(native, use)]
        if native.kind == "d":
            return [_base(native)]
        return [part for _, part in native.parts]

    def _written(self, use: Use) -> DataType:
        native = self._types.get(use.oid)
        if native is None:
            return Unknown(use.text)
        if _is_array(native, use):
            return _within_limits(Array(self._part(_element(native, use))))
        match native.kind:
            case "d":
                return self._made[_base(native)[:2]]
            case "e":
                return Enum(native.labels)
            case "c":
                members = [Member(name, self._part(part)) for name, part in native.parts]
                return _within_limits(Struct(members))
            case "b" if _is_zoned_time(use.text):
                # The algebra has no times of day with a zone, and no reader takes them for others.
                return Unknown(use.text)
            case "b":
                return type_from_sql(use.text.removeprefix(native.prefix), "postgres")
            case _:
                return Unknown(use.text.removeprefix(native.prefix))

    def _part(self, use: Use) -> DataType:
        part = self._made.get(use[:2], Unknown(f"recursive:{use.text}"))
        return TOO_DEEP if part.depth >= MAX_DEPTH else part


def _is_zoned_time(text: str) -> bool:
    return text.startswith("time") and not text.startswith("timestamp") and "with time zone" in text


def _is_array(native: NativeType, use: Use) -> bool:
    # Some scalars, such as points, have elements too.
    return bool(native.element) and use.text.endswith("[]")


def _element(native: NativeType, use: Use) -> Use:
    return Use(native.element, use.modifier, use.text.removesuffix("[]"))


def _base(native: NativeType) -> Use:
    return Use(native.base, native.base_modifier, native.base_text or "")


def _within_limits(type: DataType) -> DataType:
    return TOO_LARGE if len(type.text) > LONGEST_EXPANSION else type
