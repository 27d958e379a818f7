"""Finds the nearest kind of a catalog for entities that it has no kind for.

Such an entity is stored under a URN of the nearest kind, which contains its own URN: the notebook
`urn:li:notebook:(querybook,1)` is stored as the dashboard `(querybook,1)` of the tool
`urn:li:notebook`, which is `lumos:dashboard:urn:li:notebook/(querybook,1)`.
"""

from collections.abc import Container, Mapping
from types import MappingProxyType
from typing import Final

from lumos.model.catalog import entity_id, entity_urn, kind_in_urn

NEAREST_KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "apiCollection": "data_product",
        "apiEndpoint": "data_product",
        "application": "data_product",
        "chart": "dashboard",
        "classification": "term_group",
        "dashboardDataModel": "dashboard",
        "dataProcess": "pipeline",
        "dataProcessInstance": "pipeline",
        "mlFeature": "ml_model",
        "mlFeatureTable": "ml_model",
        "mlModelDeployment": "ml_model",
        "mlModelGroup": "ml_model",
        "mlPrimaryKey": "ml_model",
        "notebook": "dashboard",
        "storedProcedure": "pipeline",
        "task": "pipeline",
    }
)
"""The nearest kind that several catalogs have; kinds that are not listed have none."""
# By the kind in URNs of one catalog: its name in the URNs that all catalogs share.
_SHARED_KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "dataFlow": "pipeline",
        "dataJob": "task",
        "dataProduct": "data_product",
        "glossary": "term_group",
        "glossaryNode": "term_group",
        "mlModel": "ml_model",
        "mlmodel": "ml_model",
    }
)


def shared_kind(urn: str) -> str:
    """The kind in a URN, by the name that all catalogs share: `pipeline` for a `dataFlow`."""
    kind = kind_in_urn(urn)
    return _SHARED_KINDS.get(kind, kind)


def nearest_urn(urn: str, kinds: Container[str]) -> str | None:
    """The URN under which a catalog with these kinds stores an entity, or None."""
    own_kind = shared_kind(urn)
    kind = own_kind if own_kind in kinds else NEAREST_KINDS.get(own_kind)
    if kind is None or kind not in kinds:
        return None
    id = urn.removeprefix("urn:").split(":", 2)[2]
    return entity_urn(kind, urn[: -len(id) - 1], id) if id else None


def original_urn(urn: str) -> str | None:
    """The URN of the entity that is stored under a URN of `nearest_urn`, or None."""
    tool, _, id = "/".join(entity_id(urn) or ()).partition("/")
    original = f"{tool}:{id}"
    if ":" not in tool or nearest_urn(original, (kind_in_urn(urn),)) is None:
        return None
    return original
