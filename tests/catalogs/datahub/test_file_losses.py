"""What DataHub's own files hold and a migration used to lose."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from catalogs.datahub_samples import CUSTOMERS, EVENTS, proposal, row
from lumos import Lumos
from lumos.catalogs.datahub.aspects import apply_patch
from lumos.catalogs.datahub.file_platform import DatahubFile
from lumos.catalogs.migration.reports import AspectCount
from lumos.errors import LumosError
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Documentation
from lumos.model.schema import Schema
from lumos.model.types import STRING

EVENTS_URN = "lumos://kafka/shop.events?env=DEV"
CUSTOMERS_URN = "lumos://snowflake@eu/FINANCE/customers"
UNREADABLE = "urn:li:dataset:(urn:li:dataPlatform:kafka,broken,PROD)"
UNREADABLE_URN = "lumos://kafka/broken"
INSTANCE = {
    "platform": "urn:li:dataPlatform:snowflake",
    "instance": "urn:li:dataPlatformInstance:(urn:li:dataPlatform:snowflake,eu)",
}
PATCH = [
    {"op": "add", "path": "/name", "value": "CUSTOMERS"},
    {"op": "add", "path": "/description", "value": "Who buys"},
    {"op": "add", "path": "/customProperties/retention", "value": "7 years"},
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "estate.json"


def opened(path: Path, changes: Any) -> DatahubFile:
    path.write_text(json.dumps(changes), encoding="utf-8")
    return DatahubFile.at(str(path))


def entry(file: DatahubFile, urn: str) -> CatalogEntry:
    found = file.get(urn)
    assert found is not None
    return found


def migrated(workplace: Path, changes: list[Any]) -> list[Any]:
    """The changes in the file that some changes were migrated to."""
    opened(workplace / "here.json", changes)
    report = Lumos().migration.migrate("datahub-file:here.json", "datahub-file:there.json")
    assert report.is_whole
    there: list[Any] = json.loads((workplace / "there.json").read_text(encoding="utf-8"))
    return there


def in_order(changes: list[Any]) -> list[Any]:
    return sorted(changes, key=lambda change: (change["entityUrn"], change["aspectName"]))


def test_a_key_and_a_value_with_the_same_columns_are_kept_apart(path: Path) -> None:
    key, value = "[version=2.0].[key=True].[type=struct]", "[version=2.0].[type=struct]"
    rows = [
        row(f"{key}.[type=long].id", "NumberType", "long"),
        row(f"{key}.[type=struct].at", "RecordType", "struct"),
        row(f"{key}.[type=struct].at.[type=string].city", "StringType", "string"),
        row(f"{value}.[type=long].id", "NumberType", "long"),
        row(f"{value}.[type=struct].at", "RecordType", "struct"),
        row(f"{value}.[type=struct].at.[type=int].zone", "NumberType", "int"),
    ]
    edits = [
        {"fieldPath": f"{key}.[type=long].id", "description": "Of the key"},
        {"fieldPath": f"{value}.[type=long].id", "description": "Of the value"},
    ]
    changes = [
        proposal(EVENTS, "schemaMetadata", {"fields": rows}),
        proposal(EVENTS, "editableSchemaMetadata", {"editableSchemaFieldInfo": edits}),
    ]
    file = opened(path, changes)
    found = entry(file, EVENTS_URN)
    assert str(found.schema) == (
        "`[key=True].id` INT64 KEY COMMENT 'Of the key'\n"
        "`[key=True].at` STRUCT<city: STRING> KEY\n"
        "id INT64 COMMENT 'Of the value'\n"
        "at STRUCT<zone: INT32>"
    )
    file.put(found)
    assert json.loads(path.read_text()) == changes
    assert found.schema is not None
    first, *others = found.schema.fields
    wider = msgspec.structs.replace(first, type=STRING, native_type=None)
    file.put(msgspec.structs.replace(found, schema=Schema(fields=(wider, *others))))
    again = DatahubFile.at(str(path))
    assert entry(again, EVENTS_URN).schema == Schema(fields=(wider, *others))
    now = json.loads(path.read_text())[0]["aspect"]["json"]["fields"]
    assert [each["fieldPath"] for each in now] == [
        f"{key}.[type=string].id",
        *(each["fieldPath"] for each in rows[1:]),
    ]


def test_a_column_that_is_listed_twice_gets_two_names(path: Path) -> None:
    rows = [row("id", "NumberType", "long"), row("id", "StringType", "string")]
    file = opened(path, [proposal(EVENTS, "schemaMetadata", {"fields": rows})])
    assert str(entry(file, EVENTS_URN).schema) == "id INT64\n`id (2)` STRING"


def test_a_topic_with_the_same_columns_in_key_and_value_is_migrated(workplace: Path) -> None:
    rows = [
        row("[version=2.0].[key=True].[type=struct].[type=long].id", "NumberType", "long"),
        row("[version=2.0].[type=struct].[type=long].id", "NumberType", "long"),
    ]
    changes = [proposal(EVENTS, "schemaMetadata", {"fields": rows})]
    assert migrated(workplace, changes) == changes


def test_a_patch_is_read(path: Path) -> None:
    changes = [
        proposal(CUSTOMERS, "datasetProperties", PATCH, changeType="PATCH"),
        proposal(CUSTOMERS, "dataPlatformInstance", INSTANCE),
    ]
    found = entry(opened(path, changes), CUSTOMERS_URN)
    assert found.name == "CUSTOMERS"
    assert found.documentation == Documentation(description="Who buys")
    assert found.properties == {"retention": "7 years"}


def test_nothing_is_written_that_undoes_a_patch(workplace: Path) -> None:
    upstream = CUSTOMERS.replace("customers", "accounts")
    edge = {"dataset": upstream, "type": "COPY", "auditStamp": {"time": 0, "actor": "urn:li:a:b"}}
    changes = [
        proposal(CUSTOMERS, "dataPlatformInstance", INSTANCE),
        proposal(CUSTOMERS, "datasetProperties", PATCH, changeType="PATCH"),
        proposal(CUSTOMERS, "upstreamLineage", {"upstreams": [edge]}),
        proposal(upstream, "dataPlatformInstance", INSTANCE),
        proposal(upstream, "datasetProperties", [{"op": "test", "path": "/x"}], changeType="PATCH"),
    ]
    assert in_order(migrated(workplace, changes)) == in_order(changes)


def test_an_edit_of_what_was_patched_comes_after_the_patch(path: Path) -> None:
    first = proposal(CUSTOMERS, "datasetProperties", {"customProperties": {"a": "b"}})
    second = proposal(CUSTOMERS, "datasetProperties", PATCH, changeType="PATCH")
    urn = "lumos://snowflake/eu/FINANCE/customers"
    file = opened(path, [first, second])
    found = entry(file, urn)
    words = Documentation(description="Who bought")
    file.put(msgspec.structs.replace(found, documentation=words))
    *before, last = json.loads(path.read_text())
    assert before == [first, second]
    assert last["aspect"]["json"] == {
        "name": "CUSTOMERS",
        "description": "Who bought",
        "customProperties": {"a": "b", "retention": "7 years"},
    }
    assert entry(DatahubFile.at(str(path)), urn).documentation == words


@pytest.mark.parametrize(
    ("aspect", "before", "patch", "after"),
    [
        pytest.param(
            "globalTags",
            {"tags": [{"tag": "urn:li:tag:a"}]},
            [{"op": "add", "path": "/tags/urn:li:tag:b", "value": {"tag": "urn:li:tag:b"}}],
            {"tags": [{"tag": "urn:li:tag:a"}, {"tag": "urn:li:tag:b"}]},
            id="a list by the key of its members",
        ),
        pytest.param(
            "ownership",
            {"owners": [{"owner": "urn:li:corpuser:a", "type": "NONE"}]},
            [{"op": "remove", "path": "/owners/urn:li:corpuser:a/NONE/"}],
            {"owners": []},
            id="a list by several keys",
        ),
        pytest.param(
            "upstreamLineage",
            None,
            {
                "arrayPrimaryKeys": {"upstreams": ["dataset"]},
                "patch": [{"op": "add", "path": "/upstreams/x", "value": {"type": "COPY"}}],
            },
            {"upstreams": [{"type": "COPY", "dataset": "x"}]},
            id="keys that the patch names",
        ),
        pytest.param(
            "schemaMetadata",
            {"fields": [{"fieldPath": "id"}]},
            [{"op": "add", "path": "/fields/id/nullable", "value": True}],
            {"fields": [{"fieldPath": "id"}]},
            id="a list whose keys are unknown",
        ),
        pytest.param(
            "datasetProperties",
            {"name": "a"},
            [{"op": "move", "path": "/name"}],
            {"name": "a"},
            id="an unknown operation",
        ),
        pytest.param(
            "datasetProperties",
            None,
            [{"op": "add", "path": "/customProperties/a~1b", "value": "c"}],
            {"customProperties": {"a/b": "c"}},
            id="an escaped key",
        ),
    ],
)
def test_patches_are_applied_as_servers_do(
    aspect: str, before: Any, patch: Any, after: Any
) -> None:
    assert apply_patch(aspect, before, patch) == after


def test_a_dataset_that_is_only_removed_is_migrated(workplace: Path) -> None:
    changes = [proposal(CUSTOMERS, "status", {"removed": True})]
    assert migrated(workplace, changes) == changes


def test_structured_properties_keep_their_order(workplace: Path) -> None:
    assigned = [
        {"propertyUrn": f"urn:li:structuredProperty:{name}", "values": [{"string": "x"}]}
        for name in ("b", "a")
    ]
    changes = [proposal(CUSTOMERS, "structuredProperties", {"properties": assigned})]
    assert migrated(workplace, changes) == changes


def test_lineage_to_datasets_that_a_catalog_does_not_hold_is_valid(workplace: Path) -> None:
    edge = {"dataset": EVENTS, "type": "COPY", "auditStamp": {"time": 0, "actor": "urn:li:a:b"}}
    opened(workplace / "here.json", [proposal(CUSTOMERS, "upstreamLineage", {"upstreams": [edge]})])
    lumos = Lumos()
    lumos.snapshot.export("here.jsonl", platform="datahub-file:here.json")
    found = lumos.snapshot.validate("here.jsonl")
    assert (found.valid, [each.severity for each in found.problems]) == (True, ["warning"])
    report = lumos.migration.migrate("datahub-file:here.json", "datahub-file:there.json")
    assert report.remarks == (
        f"1 reference leads to datasets that datahub-file:{workplace}/here.json does not contain; "
        f"migrated anyway. There is no dataset or job '{EVENTS_URN}' in the snapshot.",
    )


def test_a_term_in_a_group_of_terms_is_valid(workplace: Path) -> None:
    node = "urn:li:glossaryNode:finance"
    info = {"definition": "", "termSource": "INTERNAL", "parentNode": node}
    opened(
        workplace / "here.json",
        [
            proposal(node, "glossaryNodeInfo", {"definition": "", "name": "Finance"}),
            proposal("urn:li:glossaryTerm:revenue", "glossaryTermInfo", info),
        ],
    )
    lumos = Lumos()
    lumos.snapshot.export("here.jsonl", platform="datahub-file:here.json")
    assert lumos.snapshot.validate("here.jsonl").problems == ()


def one_of_two_is_unreadable(workplace: Path) -> None:
    changes = [
        proposal(EVENTS, "datasetProperties", {"name": "events"}),
        proposal(UNREADABLE, "globalTags", {"tags": ["not an object"]}),
    ]
    opened(workplace / "here.json", changes)


def test_a_dataset_that_cannot_be_migrated_stops_the_migration(workplace: Path) -> None:
    one_of_two_is_unreadable(workplace)
    with pytest.raises(LumosError) as stopped:
        Lumos().migration.migrate("datahub-file:here.json", "datahub-file:there.json")
    assert str(stopped.value).startswith(f"The dataset {UNREADABLE_URN} cannot be migrated: ")
    assert "globalTags.tags[0]: Expected `object`, got `str`" in str(stopped.value)
    assert str(stopped.value).endswith(
        "Nothing was written. Skip such datasets with: --on-error skip"
    )
    assert not (workplace / "there.json").exists()


def test_a_dataset_that_cannot_be_migrated_is_skipped_and_reported(workplace: Path) -> None:
    one_of_two_is_unreadable(workplace)
    lumos = Lumos()
    report = lumos.migration.migrate(
        "datahub-file:here.json", "datahub-file:there.json", on_error="skip"
    )
    assert [(each.kind, each.key) for each in report.skipped] == [("dataset", UNREADABLE_URN)]
    assert "globalTags.tags[0]" in report.skipped[0].problem
    assert not report.is_whole
    assert [each.urn for each in DatahubFile.at("there.json").export()] == [EVENTS_URN]
    assert lumos.migration.try_migrate(
        "datahub-file:here.json", "datahub-file:there.json", on_error="skip"
    ).skipped


def test_the_report_counts_aspects_by_kind_on_both_sides(workplace: Path) -> None:
    changes = [
        proposal(CUSTOMERS, "datasetProperties", {"name": "c", "description": "Who buys"}),
        proposal(CUSTOMERS, "browsePathsV2", {"path": [{"id": "shop"}]}),
        proposal(EVENTS, "datasetProperties", {"name": "e", "description": "What happens"}),
        proposal("urn:li:container:c0ffee", "containerProperties", {"name": "shop"}),
    ]
    opened(workplace / "here.json", changes)
    report = Lumos().migration.migrate("datahub-file:here.json", "datahub-file:there.json")
    assert report.verified is not None
    assert report.verified.aspects == {
        "dataset.datahub.browsePathsV2": AspectCount(source=1, target=1, changed=0),
        "dataset.documentation": AspectCount(source=2, target=2, changed=0),
        "other.datahub.containerProperties": AspectCount(source=1, target=1, changed=0),
        "other.kind": AspectCount(source=1, target=1, changed=0),
    }
