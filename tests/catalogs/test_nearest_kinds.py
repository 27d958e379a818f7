"""Entities of kinds that a catalog does not have are stored as the nearest kind, without loss.

`datahub`, `openmetadata` and `atlas` are stubs of the project's own here.
"""

from pathlib import Path

import pytest

from lumos.catalogs.amundsen.items import item_node
from lumos.catalogs.datahub.entities import canonical_urn, native_entity
from lumos.catalogs.nearest_kinds import NEAREST_KINDS, nearest_urn, original_urn, shared_kind
from lumos.catalogs.openmetadata.kinds import KINDS, locate, urn_of
from lumos.model.catalog import CatalogEntity, entity_urn
from lumos.model.dataset import Owner

from .contract_catalogs import CATALOGS, called

SHARED = (
    "chart", "dashboard", "data_product", "domain", "ml_model", "pipeline", "query", "tag", "task",
    "term_group",
)  # fmt: skip
# The types of entities in DataHub and OpenMetadata that belong to one of them only.
DATAHUB_TYPES = (
    "application", "assertion", "businessAttribute", "chart", "container", "dashboard", "dataFlow",
    "dataJob", "dataPlatformInstance", "dataProcess", "dataProcessInstance", "dataProduct",
    "glossaryNode", "mlFeature", "mlFeatureTable", "mlModel", "mlModelDeployment", "mlModelGroup",
    "mlPrimaryKey", "notebook", "ownershipType", "structuredProperty",
)  # fmt: skip
OPENMETADATA_TYPES = tuple(type for type in KINDS if type not in ("user", "team", "glossaryTerm"))
FOREIGN = (
    *(f"urn:li:{type}:(tool,a/b%2F:c,ODD)" for type in DATAHUB_TYPES),
    *(f'openmetadata:{type}:svc.db."a.b"."c/d: e"' for type in OPENMETADATA_TYPES),
    "amundsen:dashboard:mode_dashboard://gold.group/x",
)


def entity(urn: str) -> CatalogEntity:
    return CatalogEntity(
        urn=urn,
        kind=shared_kind(urn),
        display_name="The title",
        description="What it is.",
        owners=(Owner(name="ada"),),
        tags=("pii",),
        references={"others": ("lumos:tag:x",)},
        properties={"key": "value"},
        raw={"elsewhere": {"field": [1, {"nested": None}]}},
    )


@pytest.mark.parametrize("kind", sorted(NEAREST_KINDS))
def test_the_nearest_kind_is_one_that_catalogs_share(kind: str) -> None:
    assert NEAREST_KINDS[kind] in SHARED
    assert NEAREST_KINDS[kind] != kind


@pytest.mark.parametrize("urn", FOREIGN)
@pytest.mark.parametrize("target", SHARED)
def test_a_urn_of_the_nearest_kind_leads_back_to_its_own(urn: str, target: str) -> None:
    stored = nearest_urn(urn, (target,))
    is_near = target in (shared_kind(urn), NEAREST_KINDS.get(shared_kind(urn)))
    assert (stored is not None) == is_near
    if stored is not None:
        assert shared_kind(stored) == target
        assert original_urn(stored) == urn


@pytest.mark.parametrize("urn", [entity_urn(kind, "tool", "a/b", "c:d") for kind in SHARED])
def test_an_entity_of_a_shared_kind_is_its_own(urn: str) -> None:
    assert original_urn(urn) is None


@pytest.mark.parametrize("urn", FOREIGN)
def test_every_entity_has_one_name_in_every_catalog(urn: str) -> None:
    native = native_entity(urn)
    assert native is None or canonical_urn(native.urn) == canonical_urn(urn)
    location = locate(urn)
    if not urn.startswith("urn:li:"):
        assert canonical_urn(urn) == urn
        assert (native is None) == (nearest_urn(urn, set(SHARED) - {"tag", "task"}) is None)
    if not urn.startswith("openmetadata:"):
        can_be_stored = nearest_urn(urn, set(SHARED) - {"tag", "task", "query"}) is not None
        assert (location is not None) == can_be_stored
        assert location is None or urn_of(*location) == urn


@pytest.mark.parametrize(
    ("urn", "datahub", "openmetadata", "amundsen"),
    [
        pytest.param("urn:li:notebook:(querybook,1)", "notebook", "dashboard", "Dashboard"),
        pytest.param("urn:li:mlModelGroup:(x,1,PROD)", "mlModelGroup", "mlmodel", "LumosItem"),
        pytest.param("urn:li:container:1", "container", None, "LumosItem"),
        pytest.param("openmetadata:storedProcedure:a.b.c.d", "dataFlow", "storedProcedure",
                     "LumosItem"),
        pytest.param("openmetadata:classification:PII", "glossaryNode", "classification",
                     "LumosItem"),
        pytest.param("openmetadata:dashboardDataModel:a.b", "dashboard", "dashboardDataModel",
                     "Dashboard"),
        pytest.param("openmetadata:database:a.b", None, "database", "LumosItem"),
        pytest.param("lumos:chart:superset/1", "chart", "chart", "Dashboard"),
        pytest.param("lumos:pipeline:airflow/x", "dataFlow", "pipeline", "LumosItem"),
    ],
)  # fmt: skip
def test_each_catalog_has_the_nearest_of_its_own_kinds(
    urn: str, datahub: str | None, openmetadata: str | None, amundsen: str
) -> None:
    native, location = native_entity(urn), locate(urn)
    assert (native and native.type) == datahub
    assert (location and location[0]) == openmetadata
    assert item_node(CatalogEntity, urn).label == amundsen


@pytest.mark.parametrize("name", CATALOGS, ids=called)
def test_entities_of_every_catalog_are_stored_in_every_catalog(name: str, tmp_path: Path) -> None:
    catalog = CATALOGS[name](tmp_path)
    # Own types of a catalog have rules of their own.
    own = {"datahub": "urn:li:", "datahub-file": "urn:li:", "openmetadata": "openmetadata:"}
    things = [entity(urn) for urn in FOREIGN if not urn.startswith(own.get(name, "-"))]
    assert list(catalog.put_items(things)) == []
    opened = CATALOGS[name](tmp_path)
    stored = {thing.urn: opened.item_as_stored(thing) for thing in things}
    if name != "json-folder":
        # The example adapter stores few fields and no kinds.
        assert stored == {thing.urn: thing for thing in things}
    assert opened.get_items(CatalogEntity, list(stored)) == stored
    listed = [item for item in opened.items() if isinstance(item, CatalogEntity)]
    assert {item.urn: item for item in listed if item.urn in stored} == stored
    for thing in things:
        opened.erase_item(thing)
    assert opened.get_items(CatalogEntity, list(stored)) == {}
