"""What aspects must look like to be read: as much of DataHub's model as Lumos looks at.

Anything else in an aspect is carried, whatever it is.
"""

import re
from collections.abc import Iterable
from typing import Any, Final, NotRequired, TypedDict

import msgspec

from lumos.catalogs.datahub_model.statements import AspectStatement, Holder
from lumos.errors import LumosError

_AT: Final = re.compile(r" - at `(?:key in )?\$(?P<path>.*)`\Z", re.DOTALL)


class OddAspect(LumosError):
    """An aspect that is not as DataHub writes it; `place` leads to what is wrong in it."""

    def __init__(self, place: str, problem: str) -> None:
        self.place = place
        self.problem = problem
        super().__init__(f"{place}: {problem}")


class _Stamp(TypedDict):
    time: NotRequired[int]


class _Tag(TypedDict):
    tag: str


class _Tags(TypedDict):
    tags: NotRequired[list[_Tag] | None]


class _Term(TypedDict):
    urn: str


class _Terms(TypedDict):
    terms: NotRequired[list[_Term] | None]


class _Owner(TypedDict):
    owner: str
    type: NotRequired[str]
    typeUrn: NotRequired[str | None]


class _Ownership(TypedDict):
    owners: NotRequired[list[_Owner] | None]


class _Row(TypedDict):
    fieldPath: str
    nativeDataType: NotRequired[str | None]
    nullable: NotRequired[bool | None]
    description: NotRequired[str | None]
    globalTags: NotRequired[_Tags | None]
    glossaryTerms: NotRequired[_Terms | None]
    isPartOfKey: NotRequired[bool | None]
    isPartitioningKey: NotRequired[bool | None]
    jsonProps: NotRequired[str | None]


class _Schema(TypedDict):
    fields: NotRequired[list[_Row] | None]


class _Edit(TypedDict):
    fieldPath: str
    description: NotRequired[str | None]
    globalTags: NotRequired[_Tags | None]
    glossaryTerms: NotRequired[_Terms | None]


class _Edits(TypedDict):
    editableSchemaFieldInfo: NotRequired[list[_Edit] | None]


class _Upstream(TypedDict):
    dataset: str
    type: NotRequired[str]
    properties: NotRequired[dict[str, str] | None]


class _Fields(TypedDict):
    upstreamType: NotRequired[str]
    upstreams: NotRequired[list[str] | None]
    downstreams: NotRequired[list[str] | None]
    transformOperation: NotRequired[str | None]


class _Lineage(TypedDict):
    upstreams: NotRequired[list[_Upstream] | None]
    fineGrainedLineages: NotRequired[list[_Fields] | None]


class _Properties(TypedDict):
    customProperties: NotRequired[dict[str, str] | None]
    name: NotRequired[str | None]
    description: NotRequired[str | None]
    created: NotRequired[_Stamp | None]
    lastModified: NotRequired[_Stamp | None]


class _Description(TypedDict):
    description: NotRequired[str | None]


class _Assignment(TypedDict):
    propertyUrn: str
    values: NotRequired[list[Any] | None]


class _Structured(TypedDict):
    properties: NotRequired[list[_Assignment] | None]


class _Domains(TypedDict):
    domains: NotRequired[list[str] | None]


class _View(TypedDict):
    viewLogic: NotRequired[str]
    viewLanguage: NotRequired[str]


class _Status(TypedDict):
    removed: NotRequired[bool | None]


class _Instance(TypedDict):
    instance: NotRequired[str | None]


class _User(TypedDict):
    active: NotRequired[bool]
    displayName: NotRequired[str | None]
    email: NotRequired[str | None]
    title: NotRequired[str | None]
    customProperties: NotRequired[dict[str, str] | None]


class _Membership(TypedDict):
    groups: NotRequired[list[str] | None]


class _Group(TypedDict):
    displayName: NotRequired[str | None]
    description: NotRequired[str | None]
    email: NotRequired[str | None]
    members: NotRequired[list[str] | None]


class _TermInfo(TypedDict):
    name: NotRequired[str | None]
    definition: NotRequired[str | None]
    parentNode: NotRequired[str | None]
    customProperties: NotRequired[dict[str, str] | None]


class _EntityProperties(TypedDict):
    name: NotRequired[str | None]
    title: NotRequired[str | None]
    description: NotRequired[str | None]
    definition: NotRequired[str | None]
    parentDomain: NotRequired[str | None]
    parentNode: NotRequired[str | None]
    parentDataProduct: NotRequired[str | None]
    customProperties: NotRequired[dict[str, str] | None]


class _Related(TypedDict):
    relatedTerms: NotRequired[list[str] | None]


class _Resource(TypedDict):
    resourceType: NotRequired[str]


_SHAPES: Final[dict[str, Any]] = {
    **dict.fromkeys(
        ("chartInfo", "dashboardInfo", "dataFlowInfo", "dataJobInfo", "dataProductProperties",
         "domainProperties", "glossaryNodeInfo", "mlModelProperties", "queryProperties",
         "tagProperties"),
        _EntityProperties,
    ),
    **dict.fromkeys(
        ("editableChartProperties", "editableDashboardProperties", "editableDataFlowProperties",
         "editableDataJobProperties", "editableMlModelProperties"),
        _Description,
    ),
    "corpGroupInfo": _Group,
    "corpUserInfo": _User,
    "dataPlatformInstance": _Instance,
    "datasetProperties": _Properties,
    "domains": _Domains,
    "editableDatasetProperties": _Description,
    "editableSchemaMetadata": _Edits,
    "globalTags": _Tags,
    "glossaryRelatedTerms": _Related,
    "glossaryTermInfo": _TermInfo,
    "glossaryTerms": _Terms,
    "groupMembership": _Membership,
    "ownership": _Ownership,
    "platformResourceInfo": _Resource,
    "schemaMetadata": _Schema,
    "status": _Status,
    "structuredProperties": _Structured,
    "upstreamLineage": _Lineage,
    "viewProperties": _View,
}  # fmt: skip


def statements_of(holder: Holder, urn: str, aspect: str | None = None) -> list[AspectStatement]:
    """What is said of an entity, as it can be read."""
    try:
        return checked(holder.statements(urn, aspect))
    except OddAspect as odd:
        raise holder.complaint(f"{urn} {odd.place}", odd.problem) from None


def checked(statements: Iterable[AspectStatement]) -> list[AspectStatement]:
    """The statements, none of which will surprise whoever reads them."""
    found = []
    for statement in statements:
        shape = _SHAPES.get(statement.aspect)
        if shape is not None and statement.replaces:
            try:
                msgspec.convert(statement.body, shape)
            except msgspec.ValidationError as problem:
                raise _odd(statement.aspect, str(problem)) from None
        found.append(statement)
    return found


def is_readable(aspect: str, body: Any) -> bool:
    """Whether an aspect looks as it must to be read."""
    try:
        msgspec.convert(body, _SHAPES.get(aspect, Any))
    except msgspec.ValidationError:
        return False
    return True


def _odd(aspect: str, text: str) -> OddAspect:
    at = _AT.search(text)
    return OddAspect(f"{aspect}{at['path'] if at else ''}", text[: at.start()] if at else text)
