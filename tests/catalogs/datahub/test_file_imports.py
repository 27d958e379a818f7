"""Imports into a metadata file that people work in: nothing of theirs is lost, and no ghosts stay."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from catalogs.datahub_samples import ORDERS, proposal, row
from lumos import Lumos
from lumos.catalogs.datahub.file_platform import DatahubFile
from lumos.model.catalog import CatalogEntity, Group
from lumos.snapshots.format.reader import open_snapshot
from lumos.snapshots.format.writer import write_snapshot
from lumos.snapshots.reports import ImportReport
from snapshots.sample_inventories import FACTS

Aspects = dict[str, Any]
STAMP = {"time": 0, "actor": "urn:li:corpuser:x"}
TARGET = "datahub-file:target.json"


@pytest.fixture
def lumos(workplace: Path) -> Lumos:
    return Lumos(overrides={"storage.path": str(workplace / "lumos.db")})


def source() -> Aspects:
    """What a catalog says of a dataset; much of it only DataHub understands."""
    return {
        "status": {"removed": False},
        "datasetProperties": {"name": "orders", "description": "A", "customProperties": {"k": "v"}},
        "schemaMetadata": {
            "schemaName": "orders", "platform": "urn:li:dataPlatform:hive", "version": 0, "hash": "",
            "platformSchema": {"com.linkedin.schema.OtherSchema": {"rawSchema": ""}},
            "fields": [row("id", "StringType", "string"), row("email", "StringType", "string")],
        },
        "editableSchemaMetadata": {"editableSchemaFieldInfo": [
            {"fieldPath": "id", "description": "the id",
             "glossaryTerms": {"terms": [{"urn": "urn:li:glossaryTerm:T1"}], "auditStamp": STAMP}},
        ]},
        "globalTags": {"tags": [{"tag": "urn:li:tag:pii", "context": "src"}]},
        "ownership": {"owners": [{"owner": "urn:li:corpuser:joe", "type": "DATAOWNER",
                                  "source": {"type": "MANUAL"}}], "lastModified": STAMP},
        "deprecation": {"deprecated": False, "note": "from source", "actor": "urn:li:corpuser:a"},
        "browsePathsV2": {"path": [{"id": "old"}]},
        "embed": {"renderUrl": "http://a"},
    }  # fmt: skip


def write(path: str, aspects: Aspects) -> None:
    said = [proposal(ORDERS, aspect, body) for aspect, body in aspects.items()]
    Path(path).write_text(json.dumps(said), encoding="utf-8")


def read(path: str = "target.json") -> Aspects:
    said = json.loads(Path(path).read_text(encoding="utf-8"))
    return {change["aspectName"]: change["aspect"]["json"] for change in said}


def bring(lumos: Lumos, aspects: Aspects) -> ImportReport:
    """Brings what a catalog says into the other one by way of a snapshot."""
    write("source.json", aspects)
    lumos.snapshot.export("estate.json", platform="datahub-file:source.json")
    return lumos.snapshot.load("estate.json", platform=TARGET)


def edit(change: Callable[[Aspects], None]) -> bytes:
    """Somebody works in the catalog; gives the file as it is then."""
    aspects = read()
    change(aspects)
    write("target.json", aspects)
    return Path("target.json").read_bytes()


def by_hand(aspects: Aspects) -> None:
    """Edits in every place that Lumos only carries."""
    aspects["deprecation"] |= {"deprecated": True, "note": "by hand"}
    del aspects["browsePathsV2"]
    aspects["institutionalMemory"] = {"elements": [{"url": "http://wiki"}]}
    [info] = aspects["editableSchemaMetadata"]["editableSchemaFieldInfo"]
    info["glossaryTerms"]["terms"].append({"urn": "urn:li:glossaryTerm:ByHand"})
    described = {
        "fieldPath": "email", "description": "by hand",
        "globalTags": {"tags": [{"tag": "urn:li:tag:ByHand"}]},
    }  # fmt: skip
    aspects["editableSchemaMetadata"]["editableSchemaFieldInfo"].append(described)
    aspects["globalTags"]["tags"][0]["context"] = "by hand"
    aspects["ownership"]["owners"][0]["source"] = {"type": "OTHER"}


def test_an_unchanged_import_leaves_every_edit_alone(lumos: Lumos) -> None:
    bring(lumos, source())
    edited = edit(by_hand)
    report = bring(lumos, source())
    assert Path("target.json").read_bytes() == edited
    assert not report.changes
    assert not report.conflicts


def test_what_the_source_changed_comes_in_beside_edits(lumos: Lumos) -> None:
    bring(lumos, source())
    edit(by_hand)
    later = source()
    later["embed"] = {"renderUrl": "http://b"}
    later["deprecation"]["decommissionTime"] = 7
    later["globalTags"]["tags"].append({"tag": "urn:li:tag:new", "context": "src"})
    [info] = later["editableSchemaMetadata"]["editableSchemaFieldInfo"]
    info["description"] = "the key"
    assert not bring(lumos, later).conflicts
    wanted = source()
    by_hand(wanted)
    wanted["embed"] = {"renderUrl": "http://b"}
    wanted["deprecation"]["decommissionTime"] = 7
    wanted["globalTags"]["tags"].append({"tag": "urn:li:tag:new", "context": "src"})
    wanted["editableSchemaMetadata"]["editableSchemaFieldInfo"][0]["description"] = "the key"
    assert read() == wanted


def test_what_is_gone_from_the_source_leaves_no_ghost(lumos: Lumos) -> None:
    bring(lumos, source())
    later = source()
    del later["embed"], later["browsePathsV2"]
    bring(lumos, later)
    assert read() == later


def test_where_both_changed_a_record_people_win_and_it_is_told_once(lumos: Lumos) -> None:
    bring(lumos, source())
    edit(lambda aspects: aspects["deprecation"].update(note="by hand"))
    later = source()
    later["deprecation"]["note"] = "from the source again"
    report = bring(lumos, later)
    assert read()["deprecation"]["note"] == "by hand"
    assert [(each.path, each.theirs, each.ours) for each in report.conflicts] == [
        ("raw.datahub.deprecation.body.note", "by hand", "from the source again")
    ]


def test_taking_an_import_back_leaves_the_file_as_it_was(lumos: Lumos) -> None:
    bring(lumos, source())
    edit(by_hand)
    before = read()
    later = source()
    later["embed"] = {"renderUrl": "http://b"}
    later["schemaMetadata"]["fields"].append(row("new", "StringType", "string"))
    later["datasetProperties"]["description"] = "B"
    [info] = later["editableSchemaMetadata"]["editableSchemaFieldInfo"]
    info["glossaryTerms"]["terms"] = [{"urn": "urn:li:glossaryTerm:T2"}]
    bring(lumos, later)
    assert read() != before
    report = lumos.snapshot.roll_back(platform=TARGET)
    assert not report.kept
    assert read() == before


def test_an_import_into_edited_records_is_taken_back_but_for_edits_since(lumos: Lumos) -> None:
    bring(lumos, source())
    later = source()
    later["embed"] = {"renderUrl": "http://b"}
    later["deprecation"]["note"] = "later"
    bring(lumos, later)
    edit(lambda aspects: aspects["deprecation"].update(actor="urn:li:corpuser:by-hand"))
    report = lumos.snapshot.roll_back(platform=TARGET)
    assert [each.aspects for each in report.kept] == [("raw.datahub.deprecation",)]
    wanted = source()
    wanted["deprecation"]["actor"] = "urn:li:corpuser:by-hand"
    assert read() == wanted


def test_a_dataset_that_people_hid_stays_hidden_until_there_is_news(lumos: Lumos) -> None:
    bring(lumos, source())
    edit(lambda aspects: aspects["status"].update(removed=True))
    bring(lumos, source())
    assert read()["status"] == {"removed": True}
    gone = source()
    gone["status"] = {"removed": True}
    bring(lumos, gone)
    bring(lumos, source())
    assert read()["status"] == {"removed": False}


def test_taking_back_an_import_of_terms_restores_them(lumos: Lumos) -> None:
    def said(definition: str, source: str) -> list[Any]:
        info = {"definition": definition, "termSource": source, "sourceRef": "x"}
        return [proposal("urn:li:glossaryTerm:t", "glossaryTermInfo", info)]

    def bring(changes: list[Any]) -> None:
        Path("source.json").write_text(json.dumps(changes), encoding="utf-8")
        lumos.snapshot.export("estate.json", platform="datahub-file:source.json")
        lumos.snapshot.load("estate.json", platform=TARGET)

    bring(said("first", "INTERNAL"))
    edited = said("by hand", "INTERNAL")
    Path("target.json").write_text(json.dumps(edited), encoding="utf-8")
    bring(said("second", "EXTERNAL"))
    assert json.loads(Path("target.json").read_bytes()) == said("by hand", "EXTERNAL")
    assert not lumos.snapshot.roll_back(platform=TARGET).kept
    assert json.loads(Path("target.json").read_bytes()) == edited


def test_people_terms_and_charts_are_merged_item_by_item(lumos: Lumos) -> None:
    def said(members: str, related: str, tags: str, note: str) -> list[Any]:
        users = [f"urn:li:corpuser:{name}" for name in members]
        terms = [f"urn:li:glossaryTerm:{name}" for name in related]
        chart = "urn:li:chart:(looker,1)"
        return [
            proposal("urn:li:corpGroup:g", "corpGroupInfo",
                     {"displayName": "G", "admins": [], "members": users, "groups": []}),
            proposal("urn:li:glossaryTerm:t", "glossaryTermInfo",
                     {"definition": "d", "termSource": "INTERNAL", "customProperties": {note: "1"}}),
            proposal("urn:li:glossaryTerm:t", "glossaryRelatedTerms", {"relatedTerms": terms}),
            proposal(chart, "globalTags", {"tags": [{"tag": f"urn:li:tag:{tag}"} for tag in tags]}),
            proposal(chart, "chartInfo", {"title": "T", "description": note}),
            *(proposal(user, "corpUserInfo", {"active": True}) for user in users),
            *(proposal(term, "glossaryTermInfo", {"definition": "d", "termSource": "INTERNAL"})
              for term in terms),
        ]  # fmt: skip

    def bring(*words: str) -> None:
        Path("source.json").write_text(json.dumps(said(*words)), encoding="utf-8")
        lumos.snapshot.export("estate.json", platform="datahub-file:source.json")
        lumos.snapshot.load("estate.json", platform=TARGET)

    bring("ab", "xy", "s", "n")
    # Somebody adds b member, term and tag, takes others out, and the source adds others.
    edited = said("bc", "yz", "sp", "n")
    Path("target.json").write_text(json.dumps(edited), encoding="utf-8")
    bring("abd", "xyw", "sq", "m")
    found = {
        (change["entityUrn"], change["aspectName"]): change["aspect"]["json"]
        for change in json.loads(Path("target.json").read_text(encoding="utf-8"))
    }
    members = found["urn:li:corpGroup:g", "corpGroupInfo"]["members"]
    assert {urn[-1] for urn in members} == set("bcd")
    related = found["urn:li:glossaryTerm:t", "glossaryRelatedTerms"]["relatedTerms"]
    assert {urn[-1] for urn in related} == set("yzw")
    properties = found["urn:li:glossaryTerm:t", "glossaryTermInfo"]["customProperties"]
    assert properties == {"m": "1"}
    tags = found["urn:li:chart:(looker,1)", "globalTags"]["tags"]
    assert {tag["tag"][-1] for tag in tags} == set("spq")
    assert found["urn:li:chart:(looker,1)", "chartInfo"]["description"] == "m"


def test_what_datahub_cannot_hold_comes_back_from_the_store(lumos: Lumos) -> None:
    group = Group(name="lake", display_name="Lake team", properties={"cost center": "17"})
    tag = CatalogEntity(urn="lumos:tag:pii", display_name="PII", raw={"openmetadata": {"a": 1}})
    write_snapshot(Path("before.jsonl"), FACTS, [], groups=[group], others=[tag])
    report = lumos.snapshot.load("before.jsonl", platform=TARGET)
    assert not report.refused
    file = DatahubFile.at("target.json")
    assert file.get_item(Group, "lake") == Group(name="lake", display_name="Lake team")
    lumos.snapshot.export("after.jsonl", platform=TARGET)
    with open_snapshot(Path("after.jsonl")) as found:
        assert (list(found.groups()), list(found.others())) == ([group], [tag])
    # What people change in the catalog is exported as well.
    file.put_item(CatalogEntity(urn=tag.urn, display_name="Personal data"))
    lumos.snapshot.export("after.jsonl", platform=TARGET)
    with open_snapshot(Path("after.jsonl")) as found:
        (edited,) = found.others()
    assert (edited.display_name, edited.raw) == ("Personal data", tag.raw)
