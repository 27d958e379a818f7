"""Metadata files of DataHub: what is read from them, and what a change leaves alone."""

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from catalogs import datahub_samples as samples
from catalogs.datahub_samples import CUSTOMERS, EVENTS, ORDERS, proposal, row
from lumos.catalogs.datahub.file_platform import DatahubFile
from lumos.catalogs.datahub.metadata_file import NotMetadata
from lumos.errors import LumosError, MisuseError
from lumos.model.catalog import CatalogEntity, CatalogEntry, GlossaryTerm, Group, User
from lumos.model.dataset import (
    Definition,
    Documentation,
    Governance,
    Lineage,
    Owner,
    Ownership,
    Statistics,
    UpstreamEdge,
)
from lumos.model.lineage import ColumnMapping, ColumnUse, UseKind
from lumos.model.schema import Field, NestedField, Schema, parse_schema
from lumos.model.types import INT64, STRING

ORDERS_URN = "lumos://hive/shop/orders"
EVENTS_URN = "lumos://kafka/shop.events?env=DEV"
CUSTOMERS_URN = "lumos://snowflake@eu/FINANCE/customers"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "estate.json"


@pytest.fixture
def file(path: Path) -> DatahubFile:
    """The made-up estate."""
    return opened(path, samples.estate())


def opened(path: Path, changes: Any) -> DatahubFile:
    path.write_text(json.dumps(changes, indent=1), encoding="utf-8")
    return DatahubFile.at(str(path))


def changes(path: Path) -> list[Any]:
    found: list[Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def bodies(path: Path, urn: str, aspect: str) -> list[Any]:
    return [
        change["aspect"]["json"]
        for change in changes(path)
        if (change.get("entityUrn"), change.get("aspectName")) == (urn, aspect)
    ]


def entry(file: DatahubFile, urn: str = ORDERS_URN) -> CatalogEntry:
    found = file.get(urn)
    assert found is not None
    return found


def changed(file: DatahubFile, **aspects: Any) -> None:
    file.put(msgspec.structs.replace(entry(file), **aspects))


def test_datasets_have_the_names_that_lumos_gives_them(file: DatahubFile) -> None:
    assert [each.urn for each in file.export()] == [ORDERS_URN, EVENTS_URN, CUSTOMERS_URN]


def test_people_s_words_are_read_before_the_source_s(file: DatahubFile) -> None:
    found = entry(file)
    assert found.documentation == Documentation(description="Orders, by hand.", domain="sales")
    assert found.schema is not None
    city = NestedField(
        path="ship.city",
        description="By hand",
        tags=("PII",),
        terms=("City",),
        native_type="varchar(40)",
    )
    assert city in found.schema.fields[1].nested


def test_plain_paths_are_read_as_nested_fields(file: DatahubFile) -> None:
    assert str(entry(file).schema) == (
        "id INT64 NOT NULL KEY\n"
        "ship STRUCT<city: STRING(40), geo: STRUCT<lat: FLOAT64>> COMMENT 'Where to'\n"
        "lines ARRAY<STRUCT<sku: STRING>>"
    )


def test_typed_paths_are_read_as_nested_fields(path: Path) -> None:
    root = "[version=2.0].[type=Order]"
    rows = [
        row(f"{root}.[type=long].id", "NumberType", "long", nullable=False),
        row(f"{root}.[type=array].[type=CatalogItem].items", "ArrayType", "array"),
        row(
            f"{root}.[type=array].[type=CatalogItem].items.[type=string].sku",
            "StringType",
            "string",
        ),
        row(f"{root}.[type=map].[type=Tag].tags", "MapType", "map"),
        row(f"{root}.[type=map].[type=Tag].tags.[type=boolean].on", "BooleanType", "boolean"),
        row(f"{root}.[type=union].u", "UnionType", "union"),
        row(f"{root}.[type=union].[type=A].u", "RecordType", "A"),
        row(f"{root}.[type=union].[type=A].u.[type=int].f", "NumberType", "int"),
        row(f"{root}.[type=union].[type=string].u", "StringType", "string"),
        row("[version=2.0].[key=True].[type=string].key", "StringType", "string"),
    ]
    file = opened(path, [proposal(EVENTS, "schemaMetadata", {"fields": rows})])
    assert str(entry(file, EVENTS_URN).schema) == (
        "id INT64 NOT NULL\n"
        "items ARRAY<STRUCT<sku: STRING>>\n"
        "tags MAP<STRING, STRUCT<`on`: BOOLEAN>>\n".replace("`on`", "on")
        + "u UNION<STRUCT<f: INT32>, STRING>\n"
        "key STRING KEY"
    )


@pytest.mark.parametrize(
    ("platform", "kind", "native", "text"),
    [
        ("snowflake", "NumberType", "NUMBER(38,0)", "DECIMAL(38,0)"),
        ("oracle", "NumberType", "NUMBER(6, 2)", "DECIMAL(6,2)"),
        ("postgres", "TimeType", "timestamp with time zone", "TIMESTAMPTZ(us)"),
        ("bigquery", "NumberType", "INT64", "INT64"),
        ("hive", "ArrayType", "array<string>", "ARRAY<STRING>"),
        ("s3", "NumberType", "int64", "INT64"),
        ("kafka", "NumberType", "long", "INT64"),
        ("x", "BooleanType", "varchar(100)", "BOOLEAN"),
        ("x", "StringType", "whatever", "STRING"),
        ("x", "NumberType", "R8", "UNKNOWN('R8')"),
        ("x", "NullType", "", "UNKNOWN"),
    ],
)
def test_types_are_read_from_native_texts_that_fit_the_class(
    path: Path, platform: str, kind: str, native: str, text: str
) -> None:
    urn = f"urn:li:dataset:(urn:li:dataPlatform:{platform},t,PROD)"
    file = opened(path, [proposal(urn, "schemaMetadata", {"fields": [row("a", kind, native)]})])
    schema = entry(file, f"lumos://{platform}/t").schema
    assert schema is not None
    assert schema.fields[0].type.text == text


def test_owners_tags_terms_and_properties_are_read(file: DatahubFile) -> None:
    found = entry(file)
    assert found.ownership == Ownership(
        owners=(
            Owner(name="jdoe", type="DATAOWNER"),
            Owner(name="lake", kind="group", type="DATA_STEWARD"),
        )
    )
    assert found.governance == Governance(tags=("tier, one (gold)", "legacy"), terms=("Order",))
    assert found.properties == {
        "string": "a property of that name",
        "retention": "90 days",
        "urn:li:structuredProperty:io.acme.tier": "gold",
        "urn:li:structuredProperty:io.acme.slo": "[99.5,1]",
    }
    assert found.definition == Definition(sql="SELECT 2", dialect="SQL")


def test_lineage_is_read_with_its_columns(file: DatahubFile) -> None:
    assert entry(file).lineage == Lineage(
        upstream=(
            UpstreamEdge(
                urn=EVENTS_URN,
                type="COPIED",
                columns=(ColumnMapping(upstream="id", downstream="id", transformation="COALESCE"),),
            ),
            UpstreamEdge(
                urn=CUSTOMERS_URN,
                columns=(
                    ColumnMapping(upstream="C_ID", downstream="id", transformation="COALESCE"),
                ),
            ),
        )
    )


def test_what_datahub_has_no_place_for_leaves_its_own_words_on_columns(
    file: DatahubFile, path: Path
) -> None:
    before = entry(file)
    (said,) = bodies(path, ORDERS, "upstreamLineage")
    assert before.lineage is not None
    first, *others = before.lineage.upstream
    known = msgspec.structs.replace(
        first,
        columns=tuple(
            msgspec.structs.replace(column, cast_to="STRING", file="m.sql", line=3)
            for column in first.columns
        ),
        uses=(ColumnUse(upstream="day", usage=UseKind.FILTER, expression="day > 3"),),
    )
    wanted = Lineage(upstream=(known, *others))
    file.put(msgspec.structs.replace(before, lineage=wanted))
    assert entry(DatahubFile.at(str(path))).lineage == wanted
    now = bodies(path, ORDERS, "upstreamLineage")[-1]
    assert now["fineGrainedLineages"] == said["fineGrainedLineages"]


def test_deletions_are_read(file: DatahubFile) -> None:
    assert [each.deleted for each in file.export()] == [False, True, False]


def test_people_and_terms_are_read_and_all_else_is_kept(file: DatahubFile) -> None:
    items = list(file.items())
    plain = [msgspec.structs.replace(item, raw={}) for item in items]
    assert User(name="jdoe", display_name="John Doe", email="jdoe@example.com") in plain
    assert Group(name="lake", display_name="Lake", members=("jdoe",)) in plain
    assert (
        GlossaryTerm(name="Order", display_name="Order", definition="What was asked for.") in plain
    )
    others = [item.urn for item in items if isinstance(item, CatalogEntity)]
    assert others[:3] == [
        "urn:li:container:c0ffee",
        "lumos:dashboard:looker/1",
        "lumos:task:airflow/nightly/load/prod",
    ]
    assert len(others) == 4, "the old form of usage is there, too"


def test_an_estate_goes_into_another_file_without_loss(file: DatahubFile, tmp_path: Path) -> None:
    other = DatahubFile.at(str(tmp_path / "other.json"))
    with other.batch():
        for item in file.items():
            other.put_item(item)
        for each in file.export():
            other.put(each)
    again = DatahubFile.at(str(tmp_path / "other.json"))
    assert list(again.export()) == list(file.export())
    assert all(item in list(again.items()) for item in file.items())
    for urn in (ORDERS, EVENTS, CUSTOMERS):
        old, new = (side._opened.file.writes(urn) for side in (file, again))
        assert sorted(map(repr, old)) == sorted(map(repr, new))


def test_writing_back_what_was_read_changes_no_byte(file: DatahubFile, path: Path) -> None:
    before = path.read_bytes()
    for each in file.export():
        assert not file.put(each).changed
    for item in list(file.items()):
        file.put_item(item)
    assert path.read_bytes() == before


def test_a_change_leaves_every_other_change_as_it_is(file: DatahubFile, path: Path) -> None:
    before = changes(path)
    changed(file, governance=Governance(tags=("legacy", "new"), terms=("Order",)))
    after = changes(path)
    [position] = [number for number, change in enumerate(after) if change != before[number]]
    assert len(after) == len(before)
    assert after[position]["aspect"]["json"]["tags"] == [
        before[position]["aspect"]["json"]["tags"][1],
        {"tag": "urn:li:tag:new"},
    ]
    assert after[position]["systemMetadata"] == samples.SYSTEM


def test_an_event_stays_an_event(file: DatahubFile, path: Path) -> None:
    changed(file, ownership=Ownership(owners=(Owner(name="jdoe", type="DATAOWNER"),)))
    [snapshot] = changes(path)[0]["proposedSnapshot"].values()
    names = [name for aspect in snapshot["aspects"] for name in aspect]
    assert names[2] == "com.linkedin.pegasus2avro.common.Ownership"
    assert snapshot["aspects"][2][names[2]]["owners"] == [
        {"owner": "urn:li:corpuser:jdoe", "type": "DATAOWNER", "source": {"type": "MANUAL"}}
    ]
    changed(file, ownership=None)
    [snapshot] = changes(path)[0]["proposedSnapshot"].values()
    assert len(snapshot["aspects"]) == 4
    assert entry(DatahubFile.at(str(path))).ownership is None


def test_a_new_column_leaves_what_others_say_of_the_rest(file: DatahubFile, path: Path) -> None:
    schema = entry(file).schema
    assert schema is not None
    fields = (*schema.fields[:2], Field(name="note", type=STRING, description="Free text"))
    changed(file, schema=Schema(fields=fields))
    [snapshot] = changes(path)[0]["proposedSnapshot"].values()
    metadata = snapshot["aspects"][3]["com.linkedin.pegasus2avro.schema.SchemaMetadata"]
    assert [each["fieldPath"] for each in metadata["fields"]] == [
        "id", "ship", "ship.city", "ship.geo", "ship.geo.lat", "note",
    ]  # fmt: skip
    assert metadata["fields"][2]["glossaryTerms"]["terms"] == [{"urn": "urn:li:glossaryTerm:City"}]
    assert metadata["created"] == samples.STAMP
    assert entry(DatahubFile.at(str(path))).schema == Schema(fields=fields)


def test_another_type_of_a_column_leaves_people_s_words_theirs(
    file: DatahubFile, path: Path
) -> None:
    schema = entry(file).schema
    assert schema is not None
    edits = entry(file).raw["datahub"]["editableSchemaMetadata"]
    typed = tuple(
        msgspec.structs.replace(field, type=INT64, native_type=None)
        if field.name != "ship"
        else field
        for field in schema.fields
    )
    changed(file, schema=Schema(fields=typed))
    again = entry(DatahubFile.at(str(path)))
    assert again.schema == Schema(fields=typed)
    assert again.raw["datahub"]["editableSchemaMetadata"] == edits


def test_another_word_on_a_column_takes_the_place_of_people_s(
    file: DatahubFile, path: Path
) -> None:
    schema = entry(file).schema
    assert schema is not None
    ship = schema.fields[1]
    notes = tuple(
        msgspec.structs.replace(note, description="Later", tags=("PII", "new"))
        if note.path == "ship.city"
        else note
        for note in ship.nested
    )
    wanted = Schema(
        fields=(schema.fields[0], msgspec.structs.replace(ship, nested=notes), *schema.fields[2:])
    )
    changed(file, schema=wanted)
    assert entry(DatahubFile.at(str(path))).schema == wanted
    [snapshot] = changes(path)[0]["proposedSnapshot"].values()
    edits = snapshot["aspects"][4]["com.linkedin.pegasus2avro.schema.EditableSchemaMetadata"]
    assert all("description" not in info for info in edits["editableSchemaFieldInfo"])


def test_a_description_of_lumos_takes_the_place_of_people_s_only_when_it_is_put(
    file: DatahubFile, path: Path
) -> None:
    ours = CatalogEntry(
        urn=ORDERS_URN, name="orders", platform="hive",
        documentation=Documentation(description="From the scan."),
    )  # fmt: skip
    file.write(ours)
    assert entry(file).documentation == Documentation(
        description="Orders, by hand.", domain="sales"
    )
    changed(file, documentation=Documentation(description="From the scan.", domain="sales"))
    assert entry(DatahubFile.at(str(path))).documentation == Documentation(
        description="From the scan.", domain="sales"
    )
    assert bodies(path, ORDERS, "editableDatasetProperties") == [{"created": samples.STAMP}]
    assert bodies(path, ORDERS, "domains") == [
        {"domains": ["urn:li:domain:sales", "urn:li:domain:finance"]}
    ]


def test_edits_in_datahub_are_merged_into_what_travels_in_properties(path: Path) -> None:
    file = DatahubFile.at(str(path))
    governance = Governance(tags=("PII",), compliance=("GDPR",))
    held = file.put(
        CatalogEntry(urn=ORDERS_URN, name="orders", platform="hive", governance=governance)
    ).held
    assert held == {"governance": "partly"}
    found = changes(path)
    for change in found:
        if change["aspectName"] == "globalTags":
            change["aspect"]["json"]["tags"] = [{"tag": "urn:li:tag:by-hand"}]
    read = opened(path, found).get(ORDERS_URN)
    assert read is not None
    assert read.governance == Governance(tags=("by-hand",), compliance=("GDPR",))


def test_what_somebody_made_of_a_packed_property_is_a_property(path: Path) -> None:
    file = DatahubFile.at(str(path))
    file.put(
        CatalogEntry(
            urn=ORDERS_URN, name="orders", platform="hive", statistics=Statistics(row_count=7)
        )
    )
    found = changes(path)
    found[0]["aspect"]["json"]["customProperties"]["lumos.statistics"] = "seven rows"
    read = entry(opened(path, found))
    assert read.statistics is None
    assert read.properties == {"lumos.statistics": "seven rows"}


def test_long_texts_are_split(path: Path) -> None:
    file = DatahubFile.at(str(path))
    long = CatalogEntry(
        urn=ORDERS_URN, name="orders", platform="hive",
        documentation=Documentation(business_context="x" * 70_000),
    )  # fmt: skip
    file.put(long)
    custom = bodies(path, ORDERS, "datasetProperties")[0]["customProperties"]
    assert sorted(custom) == [f"lumos.documentation{end}" for end in ("", ".2", ".3")]
    assert all(len(text) <= 30_000 for text in custom.values())
    assert entry(DatahubFile.at(str(path))) == long


def test_a_single_change_and_an_empty_file_are_read(path: Path) -> None:
    assert len(list(opened(path, samples.estate()[0]).export())) == 1
    assert list(opened(path, []).export()) == []


def test_later_changes_count_and_deleted_aspects_are_gone(path: Path) -> None:
    gone = {**proposal(ORDERS, "ownership", None), "changeType": "DELETE"}
    del gone["aspect"]
    said = [
        proposal(ORDERS, "ownership", {"owners": [{"owner": "urn:li:corpuser:a", "type": "NONE"}]}),
        gone,
        proposal(ORDERS, "status", {"removed": True}),
        proposal(ORDERS, "status", {"removed": False}),
    ]
    file = opened(path, said)
    assert entry(file).ownership is None
    assert not entry(file).deleted
    changed(file, ownership=Ownership(owners=(Owner(name="b"),)))
    assert entry(DatahubFile.at(str(path))).ownership == Ownership(owners=(Owner(name="b"),))


def test_edges_to_instances_need_no_order(file: DatahubFile, tmp_path: Path) -> None:
    """Only with the dataset itself does a file tell the instance that is meant."""
    estate = list(file.export())
    other = DatahubFile.at(str(tmp_path / "other.json"))
    other.put(estate[0])
    assert other.get(ORDERS_URN) == msgspec.structs.replace(
        estate[0], raw=entry(DatahubFile.at(str(tmp_path / "other.json"))).raw
    )
    for each in estate[1:]:
        other.put(each)
    again = DatahubFile.at(str(tmp_path / "other.json"))
    assert list(again.export()) == estate
    assert not any(again.put(each).changed for each in estate)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "truncated"),
        (b"[{", "truncated"),
        (b'{"datasets": []}', r"\[0\]: the change has no entity URN"),
        (b"[1]", r"\[0\]: Expected `object`"),
        (b'"text"', "Expected `array`"),
        (b"\xff\xfe", "JSON is malformed"),
        (b"PAR1", "JSON is malformed"),
        (b'[{"proposedSnapshot": {"DatasetSnapshot": {"urn": "urn:li:dataset:(a,b,c)", "aspects": [{}]}}}]', r"aspects\[0\]: Expected an object with one aspect"),
        (b'[{"proposedSnapshot": {"DatasetSnapshot": {"urn": "urn:li:dataset:(a,b,c)", "aspects": [{"a": 1, "b": 2}]}}}]', r"\[0\]\.proposedSnapshot\.DatasetSnapshot\.aspects\[0\]: .*got 2 aspects"),
        (b'[{"entityType": "dataset", "entityUrn": "urn:li:dataset:(urn:li:dataPlatform:s3,a,PROD)", "aspectName": "x", "aspect": {"json": {"n": 1e400}}}]', r"urn:li:dataset:.*Number out of range"),
        (b'[{"entityType": "dataset", "entityUrn": "urn:li:chart:(a,b)"}]', r"\[0\].entityUrn: .*not the URN of a dataset"),
        (b'[{"entityType": "dataset", "entityUrn": 7}]', r"\[0\]: Expected `str \| null`"),
        (b'[{"proposedSnapshot": {"X": {"aspects": []}}}]', r"\[0\]: Object missing required field `urn`"),
    ],
)  # fmt: skip
def test_files_of_another_kind_are_refused(path: Path, content: bytes, problem: str) -> None:
    path.write_bytes(content)
    with pytest.raises(NotMetadata, match=problem) as caught:
        list(DatahubFile.at(str(path)).export())
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("aspect", "body", "place"),
    [
        ("schemaMetadata", {"fields": [{"fieldPath": "a"}, {"nullable": True}]}, r"schemaMetadata.fields\[1\]"),
        ("schemaMetadata", [], "schemaMetadata"),
        ("ownership", {"owners": [{"owner": 7}]}, r"ownership.owners\[0\].owner"),
        ("globalTags", {"tags": ["urn:li:tag:x"]}, r"globalTags.tags\[0\]"),
        ("upstreamLineage", {"upstreams": [{"type": "COPY"}]}, r"upstreamLineage.upstreams\[0\]"),
        ("datasetProperties", {"customProperties": {"a": 1}}, r"datasetProperties.customProperties\[...\]"),
        ("structuredProperties", {"properties": {}}, "structuredProperties.properties"),
    ],
)  # fmt: skip
def test_an_aspect_of_another_shape_is_refused_with_its_place(
    path: Path, aspect: str, body: Any, place: str
) -> None:
    with pytest.raises(NotMetadata, match=f"shop.orders,PROD\\) {place}"):
        list(opened(path, [proposal(ORDERS, aspect, body)]).export())


def test_what_was_edited_in_a_snapshot_is_refused_with_its_place(path: Path) -> None:
    file = DatahubFile.at(str(path))
    for carried in ({"ownership": [{"body": {"owners": [1]}}]}, {"ownership": 7}, 7):
        with pytest.raises(LumosError, match=r"ownership|raw\.datahub"):
            file.put(
                CatalogEntry(urn=ORDERS_URN, name="o", platform="hive", raw={"datahub": carried})
            )
    assert not path.exists()


def test_a_file_that_changed_meanwhile_is_not_written_over(file: DatahubFile, path: Path) -> None:
    entry(file)
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(LumosError, match="changed by another program"):
        changed(file, documentation=None)
    assert path.read_text(encoding="utf-8") == "[]"


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    file = DatahubFile.at(str(tmp_path / "nowhere" / "estate.json"))
    with pytest.raises(LumosError, match="cannot be written"):
        file.put(CatalogEntry(urn=ORDERS_URN, name="orders", platform="hive"))
    with pytest.raises(LumosError, match="cannot be read"):
        list(DatahubFile.at(str(tmp_path)).export())


def test_the_path_must_be_given() -> None:
    with pytest.raises(MisuseError, match=r"datahub-file:metadata\.json"):
        DatahubFile(None)
    with pytest.raises(MisuseError, match="is not a dataset URN"):
        DatahubFile.at("x.json").put(CatalogEntry(urn="orders", name="orders", platform="hive"))


def test_the_same_estate_gives_the_same_bytes(tmp_path: Path) -> None:
    fields = parse_schema("id INT64 NOT NULL KEY\nitems ARRAY<STRUCT<sku: STRING>>").fields
    for name in ("a.json", "b.json"):
        file = DatahubFile.at(str(tmp_path / name))
        with file.batch():
            for number in range(3):
                urn = f"lumos://s3/lake/t{number}"
                file.put(
                    CatalogEntry(urn=urn, name="t", platform="s3", schema=Schema(fields=fields))
                )
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_columns_have_the_paths_that_datahub_s_own_sources_give_them(path: Path) -> None:
    fields = parse_schema(
        "id INT64 NOT NULL KEY\nitems ARRAY<STRUCT<sku: STRING NOT NULL, tags: MAP<STRING, INT64>>>\nday DATE PARTITION"
    ).fields
    file = DatahubFile.at(str(path))
    file.put(
        CatalogEntry(urn=ORDERS_URN, name="orders", platform="hive", schema=Schema(fields=fields))
    )
    [metadata] = bodies(path, ORDERS, "schemaMetadata")
    top = "[version=2.0].[type=struct].[type=array].[type=struct].items"
    assert [each["fieldPath"] for each in metadata["fields"]] == [
        "id", top, f"{top}.[type=string].sku", f"{top}.[type=map].[type=long].tags", "day",
    ]  # fmt: skip
    assert metadata["fields"][0]["isPartOfKey"]
    assert metadata["fields"][-1]["isPartitioningKey"]
    assert not metadata["fields"][2]["nullable"]
    assert all("jsonProps" not in each for each in metadata["fields"])


def test_a_hundred_edits_of_one_dataset_leave_one_file(path: Path) -> None:
    file = DatahubFile.at(str(path))
    for number in range(100):
        field = Field(name=f"c{number}", type=INT64)
        file.put(
            CatalogEntry(
                urn=ORDERS_URN, name="orders", platform="hive", schema=Schema(fields=(field,))
            )
        )
    assert len(changes(path)) == 2
    assert [each.name for each in path.parent.iterdir()] == ["estate.json"]


def test_what_is_packed_into_properties_is_not_carried_a_second_time(path: Path) -> None:
    file = DatahubFile.at(str(path))
    counted = CatalogEntry(
        urn=ORDERS_URN, name="orders", platform="hive", statistics=Statistics(row_count=7)
    )
    file.put(counted)
    found = changes(path)
    found[0]["aspect"]["json"]["externalUrl"] = "http://a"
    read = entry(opened(path, found))
    assert read.statistics == Statistics(row_count=7)
    [statement] = read.raw["datahub"]["datasetProperties"]
    assert statement["body"] == {
        "name": "orders",
        "externalUrl": "http://a",
        "customProperties": {},
    }
    DatahubFile.at(str(path)).put(read)
    assert changes(path) == found


@pytest.mark.parametrize("aspect", [None, "datasetKey"])
def test_a_dataset_that_was_deleted_for_good_is_read_as_deleted(
    path: Path, tmp_path: Path, aspect: str | None
) -> None:
    end = {"entityType": "dataset", "entityUrn": ORDERS, "changeType": "DELETE"}
    if aspect is not None:
        end["aspectName"] = aspect
    said = [
        proposal(ORDERS, "status", {"removed": False}),
        proposal(ORDERS, "datasetProperties", {"name": "orders", "customProperties": {}}),
        end,
    ]
    file = opened(path, said)
    found = entry(file)
    assert found.deleted
    # Into another file, and back to life.
    other = tmp_path / "other.json"
    DatahubFile.at(str(other)).put(found)
    assert changes(other)[-1] == end
    assert sorted(map(json.dumps, changes(other))) == sorted(map(json.dumps, said))
    assert entry(DatahubFile.at(str(other))) == found
    changed(file, deleted=False)
    restored = entry(DatahubFile.at(str(path)))
    assert not restored.deleted
    assert end not in changes(path)


def test_a_dataset_that_was_made_anew_has_nothing_from_before(path: Path) -> None:
    said = [
        proposal(ORDERS, "datasetProperties", {"name": "orders", "description": "Before."}),
        {"entityType": "dataset", "entityUrn": ORDERS, "changeType": "DELETE"},
        proposal(ORDERS, "globalTags", {"tags": [{"tag": "urn:li:tag:new"}]}),
    ]
    found = entry(opened(path, said))
    assert not found.deleted
    assert found.documentation is None
    assert found.governance == Governance(tags=("new",))


@pytest.mark.parametrize("depth", [99, 101, 150, pytest.param(1500, marks=pytest.mark.slow)])
def test_a_schema_deeper_than_types_go_is_carried(path: Path, tmp_path: Path, depth: int) -> None:
    rows, way = [], "[version=2.0].[type=struct]"
    for level in range(depth):
        kind, word = ("StringType", "string") if level == depth - 1 else ("RecordType", "struct")
        way += f".[type={word}].f{level}"
        rows.append(row(way, kind, word))
    body = {"schemaName": "x", "platform": "urn:li:dataPlatform:hive", "version": 0, "hash": "",
            "platformSchema": {}, "fields": rows}  # fmt: skip
    said = [proposal(ORDERS, "schemaMetadata", body)]
    found = entry(opened(path, said))
    assert found.schema is not None
    other = DatahubFile.at(str(tmp_path / "other.json"))
    other.put(msgspec.structs.replace(found, documentation=Documentation(description="Deep.")))
    assert bodies(tmp_path / "other.json", ORDERS, "schemaMetadata") == [body]


def test_a_link_to_a_file_stays_a_link(file: DatahubFile, path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(path)
    changed(DatahubFile.at(str(link)), documentation=Documentation(description="By link."))
    assert link.is_symlink()
    assert entry(file).documentation == Documentation(description="By link.")


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param((Path, "read_bytes"), id="while it is read"),
        pytest.param((os, "fsync"), id="while it is written"),
    ],
)
def test_what_another_program_writes_meanwhile_is_not_lost(
    file: DatahubFile, path: Path, monkeypatch: pytest.MonkeyPatch, moment: tuple[Any, str]
) -> None:
    place, name = moment
    original = getattr(place, name)
    others = [proposal(ORDERS, "status", {"removed": True})]

    def interrupted(*arguments: Any) -> Any:
        result = original(*arguments)
        monkeypatch.undo()
        path.write_text(json.dumps(others), encoding="utf-8")
        return result

    monkeypatch.setattr(place, name, interrupted)
    with pytest.raises(LumosError, match="changed by another program"):
        changed(file, documentation=None)
    assert changes(path) == others
    assert list(path.parent.iterdir()) == [path]
