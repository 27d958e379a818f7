"""The records of DataHub's model: which fields they have, and what a field is if nobody says.

Where a field is one of several types, a server writes the name of a plain type around the value,
and DataHub's older files do not.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

# Records and the fields beyond the model that a server was seen to know.
Seen: TypeAlias = set[tuple[str, str]]

_AVRO: Final = "com.linkedin.pegasus2avro."
_SENT: Final = "com.linkedin."
_NAMES_OF: Final[dict[type, tuple[str, ...]]] = {
    bool: ("boolean",),
    int: ("long", "int", "double", "float"),
    float: ("double", "float"),
    str: ("string", "bytes"),
}


class Shape:
    """What values of a type look like; this one leaves all of them as they are."""

    def kept(self, value: Any, seen: Seen) -> Any:  # noqa: ARG002
        """A value without what goes without saying; takes note of fields that it did not know."""
        return value

    def sent(self, value: Any, seen: Seen) -> Any:  # noqa: ARG002
        """A value as a server understands it, without fields that it was never seen to know."""
        return value


NO_SHAPE: Final = Shape()


def shape_of(schema: Any) -> Shape:
    """The shape that a schema of the package describes."""
    return _Schemas().shape(schema)


class _Field(NamedTuple):
    """A field of a record; one that may be missing may be empty as well, if it holds many."""

    shape: Shape
    has_default: bool
    default: Any
    may_be_empty: bool


class _Record(Shape):
    def __init__(self, name: str) -> None:
        self.name = name
        self.fields: dict[str, _Field] = {}

    def kept(self, value: Any, seen: Seen) -> Any:
        if not isinstance(value, dict):
            return value
        found = {}
        for name, each in value.items():
            if (field := self.fields.get(name)) is None:
                seen.add((self.name, name))
                found[name] = each
                continue
            shape = field.shape
            kept = each if shape is NO_SHAPE or each is None else shape.kept(each, seen)
            is_said = kept != field.default and (kept or not field.may_be_empty)
            if is_said or not field.has_default:
                found[name] = kept
        return found

    def sent(self, value: Any, seen: Seen) -> Any:
        if not isinstance(value, dict):
            return value
        return {
            name: each if each is None or name not in self.fields
            else self.fields[name].shape.sent(each, seen)
            for name, each in value.items()
            if name in self.fields or (self.name, name) in seen
        }  # fmt: skip


class _List(Shape):
    def __init__(self, inner: Shape) -> None:
        self._inner = inner

    def kept(self, value: Any, seen: Seen) -> Any:
        return [self._inner.kept(each, seen) for each in value] if type(value) is list else value

    def sent(self, value: Any, seen: Seen) -> Any:
        return [self._inner.sent(each, seen) for each in value] if type(value) is list else value


class _Map(Shape):
    def __init__(self, inner: Shape) -> None:
        self._inner = inner

    def kept(self, value: Any, seen: Seen) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: self._inner.kept(each, seen) for name, each in value.items()}

    def sent(self, value: Any, seen: Seen) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: self._inner.sent(each, seen) for name, each in value.items()}


class _Choice(Shape):
    """One of several types, whose name stands around the value."""

    def __init__(self, named: Mapping[str, Shape]) -> None:
        self._named = named

    def kept(self, value: Any, seen: Seen) -> Any:
        if isinstance(value, dict) and len(value) == 1:
            ((name, inside),) = value.items()
            return {name: self._named[name].kept(inside, seen)} if name in self._named else value
        return self._tagged(value)

    def sent(self, value: Any, seen: Seen) -> Any:
        if isinstance(value, dict) and len(value) == 1:
            ((name, inside),) = value.items()
            return {name: self._named[name].sent(inside, seen)} if name in self._named else value
        return self._tagged(value)

    def _tagged(self, value: Any) -> Any:
        """A plain value with the name of its type around it, as servers and newer files have it."""
        name = next((name for name in _NAMES_OF.get(type(value), ()) if name in self._named), None)
        return value if name is None else {name: value}


class _Schemas:
    """Makes shapes of schemas, of each record once, since records may hold themselves."""

    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}

    def shape(self, schema: Any) -> Shape:
        match schema.type:
            case "record" | "error":
                return self._record(schema)
            case "array":
                inner = self.shape(schema.items)
                return inner if inner is NO_SHAPE else _List(inner)
            case "map":
                inner = self.shape(schema.values)
                return inner if inner is NO_SHAPE else _Map(inner)
            case "union":
                return self._union(schema)
        return NO_SHAPE

    def _record(self, schema: Any) -> _Record:
        if (known := self._records.get(schema.fullname)) is not None:
            return known
        record = self._records[schema.fullname] = _Record(schema.fullname)
        for field in schema.fields:
            shape = self.shape(field.type)
            default = field.default if field.has_default else None
            if default is not None:
                default = shape.kept(default, set())
            may_be_empty = default is None and _holds_many(field.type)
            record.fields[field.name] = _Field(shape, field.has_default, default, may_be_empty)
        return record

    def _union(self, schema: Any) -> Shape:
        branches = [each for each in schema.schemas if each.type != "null"]
        if len(branches) == 1 and len(schema.schemas) > 1:
            # Only something that may be missing.
            return self.shape(branches[0])
        return _Choice({_name_of(each): self.shape(each) for each in branches})


def _name_of(schema: Any) -> str:
    name = str(getattr(schema, "fullname", schema.type))
    return f"{_SENT}{name[len(_AVRO) :]}" if name.startswith(_AVRO) else name


def _holds_many(schema: Any) -> bool:
    branches = schema.schemas if schema.type == "union" else [schema]
    return all(each.type in ("array", "map", "null") for each in branches)
