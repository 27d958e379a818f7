"""What is said of datasets and fields: written, heard, told of once, and kept through every scan."""

import getpass
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from lumos import Lumos
from lumos.annotations.reports import AnnotationReport
from lumos.errors import MisuseError
from lumos.lineage.reported_lineage import ReportedAnnotations, UrnReference
from lumos.model.change import ChangeEvent, EventType
from lumos.model.dataset import Dataset, Owner
from lumos.model.schema import Field, parse_schema
from lumos.store.errors import UnknownDataset
from lumos.store.history import EventFilter
from recorded_lake import SOURCE, RecordedLake, urn_of

ORDERS = "lumos://file/lake/orders"
SCHEMA = "id INT64\nemail STRING\naddress STRUCT<city: STRING, zip: STRING>"


@pytest.fixture
def orders(seen: RecordedLake) -> RecordedLake:
    seen.see("orders", SCHEMA)
    return seen


def dataset(seen: RecordedLake, name: str = "orders") -> Dataset:
    return seen.store.get(f"lumos://file/lake/{name}")


def field(seen: RecordedLake, name: str, of: str = "orders") -> Field:
    schema = dataset(seen, of).schema
    assert schema is not None
    found = schema.field(name)
    assert found is not None
    return found


def events(seen: RecordedLake) -> list[ChangeEvent]:
    return list(seen.store.change_log.events(EventFilter()))


def rescan(seen: RecordedLake, schema: str = SCHEMA, name: str = "orders") -> ChangeEvent | None:
    """A scan that finds the same content as the last one did."""
    recorder = seen.recorder()
    known = seen.store.known(source=SOURCE)
    urn = str(urn_of(f"/lake/{name}"))
    found = seen._found(name, parse_schema(schema), None)
    found = msgspec.structs.replace(found, content=known[urn].content)
    (outcome,) = recorder.record([(urn_of(found.path), found)])
    return outcome.event


def describe(seen: RecordedLake, reporter: str, **facts: object) -> AnnotationReport:
    reported = ReportedAnnotations(dataset=UrnReference(urn=ORDERS), **facts)  # type: ignore[arg-type]
    return seen.lumos.annotations.describe(reporter, [(ORDERS, reported)])


def test_a_tag_is_one_event_with_author_and_a_step_of_the_cloud_version(
    orders: RecordedLake,
) -> None:
    report = orders.lumos.annotations.tags.set("orders", "pii", "gold")
    assert dataset(orders).governance.tags == ("pii", "gold")  # type: ignore[union-attr]
    event = events(orders)[0]
    assert (event.type, event.cause, event.author) == (
        EventType.METADATA_CHANGED, "user", getpass.getuser(),
    )  # fmt: skip
    assert event.summary == "tags pii, gold added"
    assert (event.cloud_version, event.schema_version) == ("S-2", "1.0.0")
    assert (report.matched, report.changed, report.datasets[0].event_id) == (1, 1, event.event_id)


def test_saying_the_same_again_changes_nothing(orders: RecordedLake) -> None:
    orders.lumos.annotations.tags.set("orders", "pii")
    before = orders.lumos.store_status().rows
    assert orders.lumos.annotations.tags.set("orders", "pii").changed == 0
    assert orders.lumos.store_status().rows == before


def test_a_dry_run_says_what_would_change_and_changes_nothing(orders: RecordedLake) -> None:
    before = orders.lumos.store_status().rows
    report = orders.lumos.annotations.docs.set("orders", "All orders", domain="sales", dry_run=True)
    assert (report.dry_run, report.changed) == (True, 1)
    assert report.datasets[0].changes == ("description written", "domain written")
    assert orders.lumos.store_status().rows == before


def test_words_on_fields_stand_in_the_schema_and_step_its_patch(orders: RecordedLake) -> None:
    people = orders.lumos.annotations
    people.docs.set("orders", "Where to write", fields=["email"])
    people.tags.set("orders", "pii", fields=["email", "address.city"])
    people.terms.set("orders", "E-mail", fields=["email"])
    people.properties.set("orders", {"format": "rfc5322"}, fields=["email"])
    people.compliance.set("orders", "GDPR", fields=["email"])
    email = field(orders, "email")
    assert (email.description, email.tags, email.terms) == ("Where to write", ("pii",), ("E-mail",))
    assert (email.properties, email.compliance) == ({"format": "rfc5322"}, ("GDPR",))
    assert [(note.path, note.tags) for note in field(orders, "address").nested] == [
        ("address.city", ("pii",))
    ]
    assert dataset(orders).versioning.schema_version == "1.0.2"  # type: ignore[union-attr]
    assert [event.summary for event in reversed(events(orders))][1:] == [
        "description of email written",
        "tag pii added to email; tag pii added to address.city",
        "term E-mail added to email",
        "property format of email written",
        "compliance label GDPR added to email",
    ]


def test_a_scan_after_enrichment_finds_nothing_changed(orders: RecordedLake) -> None:
    people = orders.lumos.annotations
    people.docs.set("orders", "Where to write", fields=["email"])
    people.terms.set("orders", "City", fields=["address.city"])
    assert rescan(orders) is None
    assert field(orders, "email").description == "Where to write"


def test_words_survive_new_data_a_changed_schema_and_a_rename(orders: RecordedLake) -> None:
    people = orders.lumos.annotations
    people.docs.set("orders", "Where to write", fields=["email"])
    people.docs.set("orders", "Town", fields=["address.city"])
    people.terms.set("orders", "E-mail", fields=["email"])
    orders.see("orders", SCHEMA)
    changed = orders.see("orders", f"{SCHEMA}\nnote STRING")
    assert changed.summary == "1 field added: note"
    orders.see("renamed", f"{SCHEMA}\nnote STRING", renamed_from="orders")
    assert field(orders, "email", of="renamed").description == "Where to write"
    assert field(orders, "email", of="renamed").terms == ("E-mail",)
    assert field(orders, "address", of="renamed").nested[0].description == "Town"


def test_a_field_that_vanishes_keeps_its_words_until_it_is_back(orders: RecordedLake) -> None:
    people = orders.lumos.annotations
    people.docs.set("orders", "Where to write", fields=["email"])
    orders.see("orders", "id INT64")
    (word,) = people.docs.list("orders").annotations
    assert (word.field, word.value, word.state) == ("email", "Where to write", "field gone")
    orders.see("orders", "id INT64\nemail STRING")
    assert field(orders, "email").description == "Where to write"
    assert people.docs.list("orders").annotations[0].state == "said"


def test_the_words_of_the_place_are_back_when_a_person_takes_theirs_back(
    seen: RecordedLake,
) -> None:
    seen.see("orders", "email STRING COMMENT 'of the file'")
    docs = seen.lumos.annotations.docs
    docs.set("orders", "of a person", fields=["email"])
    seen.see("orders", "email STRING COMMENT 'of another file'")
    assert field(seen, "email").description == "of a person"
    docs.remove("orders", fields=["email"], mine=True)
    assert field(seen, "email").description == "of another file"


def test_what_a_person_removes_stays_removed(seen: RecordedLake) -> None:
    seen.see("orders", "email STRING COMMENT 'of the file'")
    seen.lumos.annotations.docs.remove("orders", fields=["email"])
    assert field(seen, "email").description is None
    seen.see("orders", "email STRING COMMENT 'of the file'")
    assert field(seen, "email").description is None


def test_bulk_by_pattern_says_how_many_were_touched(seen: RecordedLake) -> None:
    seen.see_all(["sales/a", "sales/b", "other/c"], "id INT64\nemail STRING")
    seen.lumos.annotations.tags.set("sales/a", "gold")
    report = seen.lumos.annotations.tags.set("sales/*", "gold")
    assert (report.matched, report.changed) == (2, 1)
    assert [each.name for each in report.datasets] == ["b"]
    report = seen.lumos.annotations.tags.set("*", "pii", fields=["email"])
    assert (report.matched, report.changed) == (3, 3)


def test_a_pattern_of_fields_means_all_that_fit(seen: RecordedLake) -> None:
    seen.see("orders", "home_email STRING\nwork_email STRING\nid INT64")
    seen.lumos.annotations.tags.set("orders", "pii", fields=["*_email"])
    assert [each.tags for each in dataset(seen).schema.fields] == [("pii",), ("pii",), ()]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ordrs", "Did you mean 'orders'?"),
        ("nothing/*", "No dataset matches 'nothing/*'"),
        ("", "matches nothing"),
    ],
)
def test_datasets_that_are_not_there_are_reported_with_the_nearest(
    orders: RecordedLake, text: str, words: str
) -> None:
    with pytest.raises(MisuseError, match=words.replace("?", r"\?").replace("*", r"\*")):
        orders.lumos.annotations.tags.set(text, "pii")


@pytest.mark.parametrize(
    ("path", "near"),
    [("emial", "email"), ("address.cty", "address.city"), ("city", "address.city")],
)
def test_fields_that_are_not_there_are_reported_with_the_nearest(
    orders: RecordedLake, path: str, near: str
) -> None:
    with pytest.raises(MisuseError, match=f"No field '{path}' .*Did you mean .*{near}"):
        orders.lumos.annotations.tags.set("orders", "pii", fields=[path])
    assert len(events(orders)) == 1


@pytest.mark.parametrize(
    ("schema", "reported", "path"),
    [
        ("items ARRAY<STRUCT<price: INT64>>", "items.price", "items[].price"),
        ("items MAP<STRING, STRUCT<price: INT64>>", "items.price", "items{}.price"),
        ("`a.b` INT64", "a.b", "`a.b`"),
        ("Id INT64", "id", "Id"),
    ],
)
def test_fields_may_be_named_as_people_say_them(
    seen: RecordedLake, schema: str, reported: str, path: str
) -> None:
    seen.see("orders", schema)
    seen.lumos.annotations.docs.set("orders", "text", fields=[reported])
    assert [word.field for word in seen.lumos.annotations.docs.list("orders").annotations] == [path]


def test_search_finds_new_words_at_once(orders: RecordedLake) -> None:
    people = orders.lumos.annotations
    people.docs.set("orders", "Zweckbindung der Parzellen", context="Kataster")
    people.docs.set("orders", "Postleitzahlbereich", fields=["address.zip"])
    people.tags.set("orders", "vertraulich", fields=["email"])
    people.owners.add("jane")
    people.owners.assign("jane", "orders")
    for text in ("Parzellen", "Kataster", "jane", "Postleitzahlbereich", "vertraulich"):
        assert [each.urn for each in orders.lumos.search(text).results] == [ORDERS], text
    assert orders.lumos.search("orders", tag="vertraulich").total == 1
    people.tags.remove("orders", "vertraulich", fields=["email"])
    assert orders.lumos.search("vertraulich").total == 0


def test_a_persons_words_win_over_a_reporters(orders: RecordedLake) -> None:
    orders.lumos.annotations.docs.set("orders", "by hand")
    report = describe(orders, "dbt:shop", description="by dbt", tags=("daily",))
    assert report.datasets[0].changes == ("tag daily added",)
    assert [(word.what, word.by) for word in report.overruled] == [
        ("description", getpass.getuser())
    ]
    assert dataset(orders).documentation.description == "by hand"  # type: ignore[union-attr]
    orders.lumos.annotations.docs.remove("orders", description=True, mine=True)
    assert dataset(orders).documentation.description == "by dbt"  # type: ignore[union-attr]


def test_a_reporters_silence_takes_back_only_its_own_words(orders: RecordedLake) -> None:
    orders.lumos.annotations.tags.set("orders", "gold")
    facts = {
        "description": "by dbt",
        "tags": ("daily", "gold"),
        "owners": (Owner(name="analytics-team", kind="group"),),
        "properties": {"sla": "by 6am"},
        "columns": {"email": "address"},
        "column_tags": {"email": ("pii",)},
    }
    describe(orders, "dbt:shop", **facts)
    describe(orders, "sql:a.sql", tags=("daily",))
    assert field(orders, "email").description == "address"
    assert describe(orders, "dbt:shop", **facts).changed == 0
    report = orders.lumos.annotations.describe("dbt:shop", [])
    now = dataset(orders)
    assert now.governance.tags == ("gold", "daily")  # type: ignore[union-attr]
    assert now.documentation.description is None  # type: ignore[union-attr]
    assert now.ownership.owners == ()  # type: ignore[union-attr]
    assert now.properties == {}
    assert (field(orders, "email").description, field(orders, "email").tags) == (None, ())
    assert report.changed == 1


def test_what_a_person_took_off_a_reporter_does_not_bring_back(orders: RecordedLake) -> None:
    describe(orders, "dbt:shop", tags=("daily",))
    orders.lumos.annotations.tags.remove("orders", "daily")
    assert describe(orders, "dbt:shop", tags=("daily",)).changed == 0
    assert dataset(orders).governance.tags == ()  # type: ignore[union-attr]
    orders.lumos.annotations.tags.set("orders", "daily")
    assert dataset(orders).governance.tags == ("daily",)  # type: ignore[union-attr]


def test_a_reporter_may_speak_of_datasets_that_are_not_there(orders: RecordedLake) -> None:
    reported = ReportedAnnotations(dataset=UrnReference(urn="lumos://dbt/x"), description="text")
    report = orders.lumos.annotations.describe("dbt:shop", [("lumos://dbt/x", reported)])
    assert (report.matched, report.changed) == (0, 0)


def test_a_dataset_that_is_gone_cannot_be_written_to(orders: RecordedLake) -> None:
    orders.lose("orders")
    with pytest.raises(MisuseError, match="has been missing since"):
        orders.lumos.annotations.tags.set("orders", "pii")


def test_terms_have_definitions_parents_and_uses(orders: RecordedLake) -> None:
    terms = orders.lumos.annotations.terms
    terms.define("Customer", definition="Who buys")
    assert terms.define("Buyer", parent="Customer").created
    assert not terms.define("Buyer", parent="Customer").changed
    with pytest.raises(MisuseError, match="cannot be its own ancestor"):
        terms.define("Customer", parent="Buyer")
    with pytest.raises(MisuseError, match=r"No term named 'Costumer'.*Did you mean 'Customer'"):
        terms.define("Other", parent="Costumer")
    report = terms.set("orders", "Buyer", "Parcel")
    assert report.items == ("term Parcel",)
    with pytest.raises(MisuseError, match="still used by orders"):
        terms.undefine("Parcel")
    with pytest.raises(MisuseError, match="still the parent of Buyer"):
        terms.undefine("Customer")
    terms.remove("orders", "Parcel")
    terms.undefine("Parcel")
    listed = terms.list()
    assert [term.name for term in listed.glossary or ()] == ["Buyer", "Customer"]
    assert [(label.name, label.datasets) for label in listed.labels] == [("Buyer", 1)]


@pytest.mark.parametrize("words", [{"description": "  "}, {}])
def test_nothing_is_no_documentation(orders: RecordedLake, words: dict[str, str]) -> None:
    with pytest.raises(MisuseError, match=r"(?i)nothing to write|is empty"):
        orders.lumos.annotations.docs.set("orders", **words)


def test_an_unknown_urn_is_reported(orders: RecordedLake) -> None:
    with pytest.raises(UnknownDataset):
        orders.lumos.annotations.tags.set("lumos://file/lake/nothing", "pii")


def test_each_change_leaves_a_row_in_the_audit(orders: RecordedLake) -> None:
    orders.lumos.annotations.tags.set("orders", "pii")
    with orders.lumos.database.reading() as connection:
        rows = connection.exec_driver_sql("SELECT action, target, details FROM audit").all()
    assert [tuple(row) for row in rows] == [("tag add", "orders", "1 of 1 datasets")]


def test_two_who_speak_at_once_are_both_heard(
    seen: RecordedLake, stored: dict[str, object]
) -> None:
    names = [f"d{number}" for number in range(6)]
    seen.see_all(names, SCHEMA)

    def tag(tag: str) -> int:
        return Lumos(overrides=stored).annotations.tags.set("d*", tag, fields=["email"]).changed

    tags = ["a", "b", "c", "d"]
    with ThreadPoolExecutor(max_workers=4) as pool:
        assert list(pool.map(tag, tags)) == [6, 6, 6, 6]
    for name in names:
        assert sorted(field(seen, "email", of=name).tags) == tags
        assert dataset(seen, name).versioning.cloud_version == "S-5"  # type: ignore[union-attr]


def test_handlers_hear_of_words_as_of_any_change(orders: RecordedLake) -> None:
    received: list[str] = []
    orders.lumos.on_change(
        lambda event: received.append(event.summary), types=[EventType.METADATA_CHANGED]
    )
    orders.lumos.annotations.tags.set("orders", "pii", dry_run=True)
    orders.lumos.annotations.tags.set("orders", "pii")
    orders.lumos.annotations.tags.set("orders", "pii")
    assert received == ["tag pii added"]


def test_words_on_a_field_that_is_gone_can_be_taken_away(orders: RecordedLake) -> None:
    people = orders.lumos.annotations
    people.tags.set("orders", "pii", fields=["email"])
    people.docs.set("orders", "The town", fields=["address.city"])
    orders.see("orders", "id INT64")
    assert people.tags.remove("orders", "pii", fields=["email"], dry_run=True).changed == 1
    count = len(events(orders))
    report = people.tags.remove("orders", "pii", fields=["email"])
    assert [each.changes for each in report.datasets] == [("tag pii removed from email",)]
    assert people.docs.remove("orders", fields=["address.city"], mine=True).changed == 1
    assert (people.tags.list("orders").annotations, people.docs.list("orders").annotations) == (
        (),
        (),
    )
    assert len(events(orders)) == count, "the dataset itself is as it was"
    orders.see("orders", SCHEMA)
    assert field(orders, "email").tags == ()
    with pytest.raises(MisuseError, match="No field 'emial'"):
        people.tags.remove("orders", "pii", fields=["emial"])


def test_removing_a_missing_label_says_so_and_names_the_next_command(
    orders: RecordedLake,
) -> None:
    annotations = orders.lumos.annotations
    assert annotations.tags.remove("orders", "never_set").remarks == (
        "Nothing was removed: 'orders' has no tag 'never_set'. "
        "To see what it has: lumos tag list orders",
    )
    annotations.tags.set("orders", "gold")
    assert not annotations.tags.remove("orders", "gold").remarks


def test_a_field_in_other_letters_keeps_its_words(orders: RecordedLake) -> None:
    orders.lumos.annotations.tags.set("orders", "pii", fields=["email"])
    orders.lumos.annotations.docs.set("orders", "The town", fields=["address.city"])
    event = orders.see("orders", SCHEMA.replace("email", "EMAIL").replace("city", "City"))
    assert field(orders, "EMAIL").tags == ("pii",)
    assert [note.path for note in field(orders, "address").nested] == ["address.City"]
    assert {type(finding.change).__name__ for finding in event.findings} == {
        "FieldRemoved", "FieldAdded",
    }  # fmt: skip
    assert [word.state for word in orders.lumos.annotations.tags.list("orders").annotations] == [
        "said"
    ]
    orders.see("orders", SCHEMA)
    assert field(orders, "email").tags == ("pii",)


def test_a_field_that_differs_from_two_others_in_letters_is_neither(orders: RecordedLake) -> None:
    orders.lumos.annotations.tags.set("orders", "pii", fields=["email"])
    orders.see("orders", "id INT64\nEmail STRING\nEMAIL STRING")
    assert (field(orders, "Email").tags, field(orders, "EMAIL").tags) == ((), ())


def test_names_with_underscores_are_reported_as_they_are(orders: RecordedLake) -> None:
    orders.lumos.annotations.tags.set("orders", "tier_2")
    orders.lumos.annotations.tags.remove("orders", "tier_2")
    describe(orders, "dbt:shop", tags=("tier_2",))
    orders.lumos.annotations.tags.remove("orders", "tier_2")
    (kept,) = describe(orders, "dbt:shop", tags=("tier_2",)).overruled
    assert kept.what == "tag tier_2"


def test_no_word_changes_on_what_went_with_the_type_of_its_column(orders: RecordedLake) -> None:
    orders.lumos.annotations.docs.set("orders", "The town", fields=["address.city"])
    event = orders.see("orders", "id INT64\nemail STRING\naddress STRING")
    assert [finding.change.path for finding in event.findings] == ["address"]


def test_annotations_of_all_kinds_are_listed_with_their_authors(orders: RecordedLake) -> None:
    annotations = orders.lumos.annotations
    annotations.owners.add("ann", group=False)
    annotations.owners.assign("ann", "orders")
    annotations.tags.set("orders", "pii", fields=["email"])
    annotations.docs.set("orders", "All orders")
    listed = annotations.list(ORDERS).annotations
    assert {(each.slot, each.field, each.name or each.value) for each in listed} == {
        ("owner", "", "TECHNICAL_OWNER:user:ann"),
        ("tag", "email", "pii"),
        ("description", "", "All orders"),
    }
    assert {each.author for each in listed} == {getpass.getuser()}
