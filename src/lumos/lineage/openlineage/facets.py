"""The facets that tell of lineage, columns, people and sizes; all others are passed over."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from lumos.model.json_codec import decode_json

Facet = TypeVar("Facet", bound=msgspec.Struct)


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of a facet, whose other keys do not matter."""


class Transformation(_Part, frozen=True, kw_only=True):
    type: str | None = None
    subtype: str | None = None
    description: str | None = None
    masking: bool | None = None


class InputField(_Part, frozen=True, kw_only=True):
    namespace: str
    name: str
    field: str
    transformations: list[Transformation] | None = None


class FieldLineage(_Part, frozen=True, kw_only=True):
    """What a column is made from; the two texts are how older events say by what."""

    input_fields: list[InputField] | None = None
    transformation_type: str | None = None
    transformation_description: str | None = None


class ColumnLineage(_Part, frozen=True, kw_only=True):
    fields: dict[str, FieldLineage] = {}
    dataset: list[InputField] | None = None


class SchemaField(_Part, frozen=True, kw_only=True):
    name: str
    type: str | None = None
    description: str | None = None


class SchemaFacet(_Part, frozen=True, kw_only=True):
    fields: list[SchemaField] | None = None


class Documentation(_Part, frozen=True, kw_only=True):
    description: str | None = None


class FacetOwner(_Part, frozen=True, kw_only=True):
    name: str
    type: str | None = None


class Ownership(_Part, frozen=True, kw_only=True):
    owners: list[FacetOwner] | None = None


class Identifier(_Part, frozen=True, kw_only=True):
    namespace: str
    name: str
    type: str | None = None


class Symlinks(_Part, frozen=True, kw_only=True):
    identifiers: list[Identifier] | None = None


class Tag(_Part, frozen=True, kw_only=True):
    key: str
    value: Any = None
    field: str | None = None


class Tags(_Part, frozen=True, kw_only=True):
    tags: list[Tag] | None = None


class Lifecycle(_Part, frozen=True, kw_only=True):
    lifecycle_state_change: str | None = None


class Sizes(_Part, frozen=True, kw_only=True):
    """How much was read; one facet says `size`, another `bytes`."""

    row_count: int | None = None
    size: int | None = None
    bytes: int | None = None


class JobType(_Part, frozen=True, kw_only=True):
    processing_type: str | None = None
    integration: str | None = None
    job_type: str | None = None


class _Named(_Part, frozen=True, kw_only=True):
    namespace: str
    name: str


class Parent(_Part, frozen=True, kw_only=True):
    job: _Named


class SourceCode(_Part, frozen=True, kw_only=True):
    url: str | None = None


NAMES: Final[dict[type[msgspec.Struct], str]] = {
    ColumnLineage: "columnLineage",
    SchemaFacet: "schema",
    Documentation: "documentation",
    Ownership: "ownership",
    Symlinks: "symlinks",
    Tags: "tags",
    Lifecycle: "lifecycleStateChange",
    JobType: "jobType",
    Parent: "parent",
    SourceCode: "sourceCodeLocation",
}

SIZES: Final = ("inputStatistics", "dataQualityMetrics")
# All that is ever read.
READ: Final = frozenset((*NAMES.values(), *SIZES))


def facet(facets: Mapping[str, msgspec.Raw] | None, kind: type[Facet]) -> Facet | None:
    """The facet of a kind; raises `msgspec.MsgspecError` where it is not as it should be."""
    return named(facets, NAMES[kind], kind)


def named(facets: Mapping[str, msgspec.Raw] | None, name: str, kind: type[Facet]) -> Facet | None:
    """The facet of a name, read as a kind."""
    found = (facets or {}).get(name)
    if found is None or bytes(found).strip() == b"null":
        return None
    return decode_json(found, kind)
