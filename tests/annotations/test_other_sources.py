"""Words where others have a say as well: comments of databases, imports, catalogs, merged datasets."""

import json
from pathlib import Path

import msgspec
import pytest

from catalogs.local_platform import LocalStorePlatform
from databases import PostgresDatabase
from lumos import Lumos
from lumos.catalogs.datahub.file_platform import DatahubFile
from lumos.lineage.reported_lineage import ReportedAnnotations, UrnReference
from lumos.model.dataset import Dataset
from lumos.model.schema import Field, Schema, parse_schema
from lumos.store import Store
from recorded_lake import RecordedLake, urn_of

pytestmark = pytest.mark.usefixtures("workplace")


@pytest.fixture
def shop(database: PostgresDatabase) -> PostgresDatabase:
    database.run(
        "CREATE TABLE orders (id bigint PRIMARY KEY, email text)",
        "COMMENT ON TABLE orders IS 'of the database'",
        "COMMENT ON COLUMN orders.email IS 'column of the database'",
    )
    return database


def lumos_for(shop: PostgresDatabase) -> Lumos:
    return Lumos(overrides={"sources": [shop.section()]})


def orders(lumos: Lumos) -> Dataset:
    store = Store.open(lumos.database)
    return store.get(store.find("orders"))


def email(lumos: Lumos) -> Field:
    schema = orders(lumos).schema
    assert schema is not None
    return schema.fields[1]


def description(lumos: Lumos) -> str | None:
    documentation = orders(lumos).documentation
    return None if documentation is None else documentation.description


def test_comments_follow_the_database_until_a_person_writes(shop: PostgresDatabase) -> None:
    lumos = lumos_for(shop)
    lumos.ingest()
    lumos.annotations.docs.set("orders", "of a person")
    lumos.annotations.docs.set("orders", "column of a person", fields=["email"])
    assert lumos.ingest().summary.datasets_unchanged == 1
    shop.run(
        "COMMENT ON TABLE orders IS 'new'", "COMMENT ON COLUMN orders.email IS 'new column'",
        "ALTER TABLE orders ADD note text",
    )  # fmt: skip
    (report,) = lumos.ingest().datasets
    assert report.event == "SCHEMA_CHANGED"
    assert (description(lumos), email(lumos).description) == ("of a person", "column of a person")
    assert lumos.ingest().summary.datasets_unchanged == 1
    lumos.annotations.docs.remove("orders", description=True, mine=True)
    lumos.annotations.docs.remove("orders", fields=["email"], mine=True)
    assert (description(lumos), email(lumos).description) == ("new", "new column")
    assert lumos.ingest().summary.datasets_unchanged == 1
    shop.run("COMMENT ON COLUMN orders.email IS NULL")
    lumos.ingest()
    assert email(lumos).description is None


def test_a_comment_changed_behind_a_persons_words_shows_when_they_are_gone(
    shop: PostgresDatabase,
) -> None:
    lumos = lumos_for(shop)
    lumos.ingest()
    lumos.annotations.docs.set("orders", "column of a person", fields=["email"])
    shop.run("COMMENT ON COLUMN orders.email IS 'new column'")
    assert lumos.ingest().summary.datasets_unchanged == 1
    assert email(lumos).description == "column of a person"
    lumos.annotations.docs.remove("orders", fields=["email"], mine=True)
    assert email(lumos).description == "new column"
    assert lumos.ingest().summary.datasets_unchanged == 1


def test_what_a_person_took_away_the_database_does_not_bring_back(shop: PostgresDatabase) -> None:
    lumos = lumos_for(shop)
    lumos.ingest()
    (owner,) = orders(lumos).ownership.owners  # type: ignore[union-attr]
    lumos.annotations.docs.remove("orders", description=True)
    lumos.annotations.owners.assign(owner.name, "orders", remove=True)
    shop.run("ALTER TABLE orders ADD note text")
    lumos.ingest()
    assert (description(lumos), orders(lumos).ownership.owners) == (None, ())  # type: ignore[union-attr]


def test_a_reporter_speaks_before_the_database_and_after_people(shop: PostgresDatabase) -> None:
    lumos = lumos_for(shop)
    lumos.ingest()
    urn = orders(lumos).urn
    reported = ReportedAnnotations(
        dataset=UrnReference(urn=urn), description="of dbt", columns={"EMAIL": "column of dbt"}
    )
    lumos.annotations.describe("dbt:shop", [(urn, reported)])
    assert (description(lumos), email(lumos).description) == ("of dbt", "column of dbt")
    assert lumos.ingest().summary.datasets_unchanged == 1
    lumos.annotations.describe("dbt:shop", [])
    assert (description(lumos), email(lumos).description) == (
        "of the database", "column of the database",
    )  # fmt: skip


def test_an_imported_comment_follows_its_database_when_that_is_scanned(
    shop: PostgresDatabase, tmp_path: Path
) -> None:
    lumos_for(shop).ingest()
    lumos_for(shop).snapshot.export(tmp_path / "all.json")
    store = {"storage.path": str(tmp_path / "other.db"), "sources": [shop.section()]}
    other = Lumos(overrides=store)
    other.snapshot.load(tmp_path / "all.json")
    listed = [
        *other.annotations.docs.list("orders").annotations,
        *other.annotations.properties.list("orders").annotations,
    ]
    assert {word.by for word in listed if not word.field} == {"source"}
    shop.run("COMMENT ON TABLE orders IS 'new'")
    other.ingest()
    assert description(other) == "new"


def test_a_comment_that_was_edited_elsewhere_stays(shop: PostgresDatabase, tmp_path: Path) -> None:
    lumos = lumos_for(shop)
    lumos.ingest()
    lumos.annotations.docs.set("orders", "of a person")
    lumos.snapshot.export(tmp_path / "all.json")
    store = {"storage.path": str(tmp_path / "other.db"), "sources": [shop.section()]}
    other = Lumos(overrides=store)
    other.snapshot.load(tmp_path / "all.json")
    (word,) = (word for word in other.annotations.docs.list("orders").annotations if not word.field)
    assert (word.by, word.value) == ("import", "of a person")
    shop.run("COMMENT ON TABLE orders IS 'new'")
    other.ingest()
    assert description(other) == "of a person"
    other.annotations.docs.remove("orders", description=True)
    assert description(other) is None


def test_properties_from_a_database_cannot_be_edited(shop: PostgresDatabase) -> None:
    lumos = lumos_for(shop)
    lumos.ingest()
    with pytest.raises(Exception, match="come from the data source"):
        lumos.annotations.properties.set("orders", {"postgres.owner": "me"})


def test_a_renamed_table_keeps_what_people_said(shop: PostgresDatabase) -> None:
    lumos = lumos_for(shop)
    lumos.ingest()
    lumos.annotations.tags.set("orders", "pii", fields=["email"])
    lumos.annotations.tags.set("orders", "gold")
    shop.run("ALTER TABLE orders RENAME TO purchases")
    lumos.ingest()
    store = Store.open(lumos.database)
    purchases = store.get(store.find("purchases"))
    assert purchases.schema is not None
    assert purchases.schema.fields[1].tags == ("pii",)
    assert purchases.governance is not None
    assert purchases.governance.tags == ("gold",)
    assert lumos.ingest().summary.datasets_unchanged == 1


SCHEMA = "id INT64\nemail STRING\naddress STRUCT<city: STRING>"


def enriched(seen: RecordedLake) -> Lumos:
    seen.see("orders", SCHEMA)
    people = seen.lumos.annotations
    people.docs.set("orders", "All orders", domain="sales")
    people.docs.set("orders", "Where to write", fields=["email"])
    people.tags.set("orders", "pii", fields=["address.city"])
    people.terms.set("orders", "City", fields=["address.city"])
    people.properties.set("orders", {"a": "b"}, fields=["email"])
    people.compliance.set("orders", "GDPR", fields=["email"])
    people.owners.add("team", group=True, members=["jane"])
    people.owners.assign("team", "orders")
    return seen.lumos


@pytest.mark.parametrize("ending", ["json", "yaml", "jsonl", "parquet"])
def test_snapshots_carry_all_words_and_a_scan_elsewhere_keeps_them(
    seen: RecordedLake, tmp_path: Path, ending: str
) -> None:
    file = tmp_path / f"all.{ending}"
    hash = enriched(seen).snapshot.export(file).hash
    other = RecordedLake(Lumos(overrides={"storage.path": str(tmp_path / "other.db")}))
    other.lumos.snapshot.load(file)
    assert other.lumos.snapshot.export(tmp_path / f"again.{ending}").hash == hash
    other.see("orders", SCHEMA)
    schema = other.store.get("lumos://file/lake/orders").schema
    assert schema == seen.store.get("lumos://file/lake/orders").schema


def test_a_catalog_receives_words_and_gives_them_back(tmp_path: Path) -> None:
    catalog = tmp_path / "estate.json"
    settings = {"platform": f"datahub-file:{catalog}", "storage.path": str(tmp_path / "lumos.db")}
    seen = RecordedLake(Lumos(overrides=settings))
    enriched(seen)
    held = DatahubFile.at(str(catalog)).get("lumos://file/lake/orders")
    assert held is not None
    now = seen.store.get("lumos://file/lake/orders")
    assert (held.schema, held.documentation, held.ownership) == (
        now.schema, now.documentation, now.ownership,
    )  # fmt: skip
    assert held.versioning is not None
    assert now.versioning is not None
    assert held.versioning.cloud_version == now.versioning.cloud_version
    assert {item.name for item in DatahubFile.at(str(catalog)).items()} == {"City", "team", "jane"}  # type: ignore[union-attr]
    seen.lumos.annotations.docs.remove("orders")
    seen.lumos.annotations.owners.assign("team", "orders", remove=True)
    held = DatahubFile.at(str(catalog)).get("lumos://file/lake/orders")
    assert held is not None
    assert held.documentation is None or held.documentation.description is None
    assert held.ownership is None or held.ownership.owners == ()


def test_an_import_speaks_after_the_people_here(seen: RecordedLake, tmp_path: Path) -> None:
    enriched(seen).snapshot.export(tmp_path / "all.json")
    other = Lumos(overrides={"storage.path": str(tmp_path / "other.db")})
    other.snapshot.load(tmp_path / "all.json")
    seen.lumos.snapshot.load(tmp_path / "all.json")
    other.annotations.docs.set("orders", "Said elsewhere")
    other.snapshot.export(tmp_path / "edited.json")
    seen.lumos.snapshot.load(tmp_path / "edited.json")
    assert description(seen.lumos) == "Said elsewhere"
    urn = orders(seen.lumos).urn
    reported = ReportedAnnotations(dataset=UrnReference(urn=urn), description="of dbt")
    assert [
        word.by for word in seen.lumos.annotations.describe("dbt:shop", [(urn, reported)]).overruled
    ] == ["import"]


def test_words_on_fields_that_a_catalog_writes_survive_the_next_scan(seen: RecordedLake) -> None:
    enriched(seen)
    local = LocalStorePlatform(seen.store)
    entry = local.get("lumos://file/lake/orders")
    assert entry is not None
    assert entry.schema is not None
    first, second, *rest = entry.schema.fields
    fields = (
        msgspec.structs.replace(first, description="Number"),
        msgspec.structs.replace(second, description="Said elsewhere", compliance=()),
        *rest,
    )
    local.put(msgspec.structs.replace(entry, schema=Schema(fields=fields)))
    seen.see("orders", SCHEMA)
    schema = seen.store.get("lumos://file/lake/orders").schema
    assert schema is not None
    assert [field.description for field in schema.fields] == ["Number", "Said elsewhere", None]
    assert schema.fields[1].compliance == ()
    by = {word.field: word.by for word in seen.lumos.annotations.docs.list("orders").annotations}
    assert (by["id"], by["email"]) == ("import", "import")


def test_a_merged_dataset_brings_its_words_along(seen: RecordedLake) -> None:
    seen.see("part", SCHEMA)
    seen.lumos.annotations.docs.set("part", "Where to write", fields=["email"])
    seen.see("orders", SCHEMA)
    recorder = seen.recorder()
    found = msgspec.structs.replace(
        seen._found("orders", parse_schema(SCHEMA), None), merged_from=("/lake/part",)
    )
    list(recorder.record([(urn_of(found.path), found)]))
    schema = seen.store.get("lumos://file/lake/orders").schema
    assert schema is not None
    assert schema.fields[1].description == "Where to write"


def test_differences_between_snapshots_show_labels_of_fields(
    seen: RecordedLake, tmp_path: Path
) -> None:
    enriched(seen)
    seen.lumos.snapshot.export(tmp_path / "a.json")
    seen.lumos.annotations.compliance.remove("orders", "GDPR", fields=["email"])
    seen.lumos.annotations.properties.set("orders", {"a": "c"}, fields=["email"])
    seen.lumos.snapshot.export(tmp_path / "b.json")
    report = seen.lumos.snapshot.diff(tmp_path / "a.json", tmp_path / "b.json")
    found = {(each.path, each.change, each.impact) for each in report.differences}
    assert found == {
        ("email.compliance", "removed", "breaking"),
        ("email.properties[a]", "changed", "informational"),
    }


def test_a_selection_takes_the_terms_of_its_fields_along(
    seen: RecordedLake, tmp_path: Path
) -> None:
    enriched(seen)
    seen.lumos.annotations.terms.define("Elsewhere")
    seen.lumos.snapshot.export(tmp_path / "some.json", patterns=["orders"])
    document = json.loads((tmp_path / "some.json").read_text())
    assert [term["name"] for term in document["glossary"]] == ["City"]


def test_imported_annotations_have_the_reporter_import(seen: RecordedLake, tmp_path: Path) -> None:
    enriched(seen).snapshot.export(tmp_path / "all.json")
    other = Lumos(overrides={"storage.path": str(tmp_path / "other.db")})
    other.snapshot.load(tmp_path / "all.json")
    words = other.annotations.docs.list("orders").annotations
    assert {word.by for word in words} == {"import"}
    assert {bool(word.field) for word in words} == {True, False}
