"""A catalog that scans keep true, while people work in it."""

import json
from pathlib import Path

import pytest

from lumos import Lumos
from lumos.catalogs.datahub.file_platform import DatahubFile
from lumos.errors import MisuseError
from lumos.model.dataset import Governance
from lumos.plugins import PLATFORMS, register, unregister


@pytest.fixture
def lake(workplace: Path) -> Path:
    (workplace / "lumos.yaml").write_text("platform: datahub-file:estate.json", encoding="utf-8")
    (workplace / "lake" / "orders").mkdir(parents=True)
    return workplace / "lake"


def write(lake: Path, header: str, row: str) -> None:
    (lake / "orders" / "part-0.csv").write_text(f"{header}\n{row}\n", encoding="utf-8")


def test_edits_in_a_metadata_file_outlive_the_next_scan(lake: Path, workplace: Path) -> None:
    write(lake, "id,old", "1,a")
    Lumos().ingest(lake)
    path = workplace / "estate.json"
    # Somebody tags the dataset, and describes a column.
    changes = json.loads(path.read_text(encoding="utf-8"))
    urn = changes[0]["entityUrn"]
    for change in changes:
        if change["aspectName"] == "schemaMetadata":
            change["aspect"]["json"]["fields"][0]["description"] = "By hand"
    tags = {"tags": [{"tag": "urn:li:tag:by-hand"}]}
    changes.append({"entityType": "dataset", "entityUrn": urn, "changeType": "UPSERT",
                    "aspectName": "globalTags", "aspect": {"json": tags}})  # fmt: skip
    path.write_text(json.dumps(changes), encoding="utf-8")
    write(lake, "id,new", "1,2024-01-15")
    Lumos().ingest(lake)
    [entry] = DatahubFile.at(str(path)).export()
    assert entry.schema is not None
    assert [(field.name, field.description) for field in entry.schema.fields] == [
        ("id", "By hand"),
        ("new", None),
    ]
    assert entry.governance == Governance(tags=("by-hand",))
    assert entry.versioning is not None
    assert entry.versioning.cloud_version == "S-2"


def test_a_column_of_another_type_keeps_what_people_wrote_over_it(
    lake: Path, workplace: Path
) -> None:
    write(lake, "id,note", "1,a")
    Lumos().ingest(lake)
    path = workplace / "estate.json"
    changes = json.loads(path.read_text(encoding="utf-8"))
    info = {"fieldPath": "id", "description": "By hand",
            "globalTags": {"tags": [{"tag": "urn:li:tag:key", "context": "by hand"}]}}  # fmt: skip
    edits = {"editableSchemaFieldInfo": [info]}
    changes.append({"entityType": "dataset", "entityUrn": changes[0]["entityUrn"], "changeType": "UPSERT",
                    "aspectName": "editableSchemaMetadata", "aspect": {"json": edits}})  # fmt: skip
    path.write_text(json.dumps(changes), encoding="utf-8")
    write(lake, "id,note", "one,a")
    Lumos().ingest(lake)
    later = {
        change["aspectName"]: change["aspect"]["json"]
        for change in json.loads(path.read_text(encoding="utf-8"))
    }
    assert later["editableSchemaMetadata"] == edits
    [id, _] = later["schemaMetadata"]["fields"]
    assert id["nativeDataType"] == "STRING"
    assert "description" not in id


def test_a_dataset_that_people_hid_stays_hidden_when_its_data_change(
    lake: Path, workplace: Path
) -> None:
    write(lake, "id,note", "1,a")
    Lumos().ingest(lake)
    DatahubFile.at(str(workplace / "estate.json")).delete("lumos://file" + str(lake / "orders"))
    write(lake, "id,note,more", "1,a,b")
    Lumos().ingest(lake)
    [entry] = DatahubFile.at(str(workplace / "estate.json")).export()
    assert entry.deleted
    assert entry.schema is not None
    assert len(entry.schema.fields) == 3


def test_what_is_gone_from_a_lake_is_hidden_in_the_file(lake: Path, workplace: Path) -> None:
    write(lake, "id,old", "1,a")
    for name in ("a", "b", "c"):
        (lake / name).mkdir()
        (lake / name / "x.csv").write_text(f"{name},n\n1,2\n", encoding="utf-8")
    Lumos().ingest(lake)
    (lake / "orders" / "part-0.csv").unlink()
    Lumos().ingest(lake)
    gone = {entry.name for entry in DatahubFile.at("estate.json").export() if entry.deleted}
    assert gone == {"orders"}
    write(lake, "id,old", "1,a")
    Lumos().ingest(lake)
    assert not any(
        entry.deleted for entry in DatahubFile.at(str(workplace / "estate.json")).export()
    )


def test_what_a_watcher_sees_is_told(lake: Path, workplace: Path) -> None:
    settings = "platform: datahub-file:estate.json\nsources: [{type: file, path: lake}]"
    (workplace / "lumos.yaml").write_text(settings, encoding="utf-8")
    write(lake, "id,old", "1,a")
    assert Lumos().watch(once=True).failures == 0
    [entry] = DatahubFile.at("estate.json").export()
    assert entry.name == "orders"


def test_a_catalog_without_addresses_is_not_given_one(lake: Path) -> None:
    register(PLATFORMS, "plain", object)
    try:
        with pytest.raises(MisuseError, match="has no address"):
            Lumos(environment={"LUMOS_PLATFORM": "plain:somewhere"}).ingest(lake)
    finally:
        unregister(PLATFORMS, "plain")
