"""Which columns of a schema are measured, and as what."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from lumos.model.dataset import (
    Dataset,
)
from lumos.model.privacy import private_paths
from lumos.model.schema import Schema
from lumos.model.type_path import leaf_fields
from lumos.model.types import (
    BOOLEAN,
    DATE,
    FLOATS,
    JSON,
    SIGNED,
    UINT64,
    UNSIGNED,
    UUID,
    Array,
    Binary,
    DataType,
    Decimal,
    Duration,
    Enum,
    Map,
    Member,
    String,
    Struct,
    Time,
    Timestamp,
)

Kind: TypeAlias = Literal[
    "boolean", "integer", "unsigned", "float", "decimal", "date", "time", "timestamp", "duration",
    "text", "bytes", "list", "map", "opaque",
]  # fmt: skip
# Kinds whose values are numbers, or count days or parts of seconds.
WHOLE: Final = frozenset({"integer", "date", "time", "timestamp", "duration"})
ORDERED: Final = WHOLE | {"unsigned", "float", "decimal"}
SIZED: Final = frozenset({"text", "bytes", "list", "map"})


class Leaf(NamedTuple):
    """A column, or a member of a struct, that holds values of its own.

    `names` lead to it from the top. Nothing but counts is measured of it unless `values`; its most
    frequent values only if `top`.
    """

    path: str
    names: tuple[str, ...]
    type: DataType
    values: bool = False
    top: bool = False

    @property
    def kind(self) -> Kind:
        """What its values are measured as."""
        return kind_of_values(self.type)


def leaves_of(schema: Schema) -> list[Leaf]:
    """The leaves of a schema; what is inside of lists and maps belongs to these."""
    return [Leaf(path, names, type) for path, names, type in leaf_fields(schema)]


def types_of(leaves: Iterable[Leaf]) -> dict[str, DataType]:
    """The columns that leaves belong to, with no more in them than these."""
    by_name: dict[str, list[Leaf]] = {}
    for leaf in leaves:
        by_name.setdefault(leaf.names[0], []).append(leaf._replace(names=leaf.names[1:]))
    return {
        name: found[0].type
        if not found[0].names
        else Struct(Member(inside, type) for inside, type in types_of(found).items())
        for name, found in by_name.items()
    }


def kind_of_values(type: DataType) -> Kind:
    """What values of a type are measured as."""
    match type:
        case Decimal():
            return "decimal"
        case Timestamp():
            return "timestamp"
        case Time():
            return "time"
        case Duration():
            return "duration"
        case String() | Enum():
            return "text"
        case Binary():
            return "bytes"
        case Array():
            return "list"
        case Map():
            return "map"
        case _ if type in SIGNED or (type in UNSIGNED and type != UINT64):
            return "integer"
        case _ if type in FLOATS:
            return "float"
        case _ if type == JSON:
            return "text"
        case _ if type == UUID:
            return "bytes"
        case _ if type == UINT64:
            return "unsigned"
        case _ if type == DATE:
            return "date"
        case _:
            return "boolean" if type == BOOLEAN else "opaque"


def measurable(
    leaves: Sequence[Leaf], dataset: Dataset, *, named: Collection[str] = ()
) -> list[Leaf]:
    """The leaves, each with what of its values may be measured; `named` texts may be told."""
    private = private_paths(dataset.schema, [leaf.path for leaf in leaves], dataset.governance)
    allowed = []
    for leaf in leaves:
        is_text, is_open = leaf.kind == "text", leaf.kind not in ("bytes", "list", "map", "opaque")
        may = is_open and leaf.path not in private
        top = may and (not is_text or leaf.path in named)
        allowed.append(leaf._replace(values=may and not is_text, top=top))
    return allowed
