"""`lumos enrich`: a file under review, what names tell, and what has to be documented."""

from pathlib import Path
from typing import Any

import pytest

from lumos import Lumos
from lumos.annotations.items import ItemStore
from lumos.config.yaml_tree import ConfigurationError
from lumos.errors import MisuseError
from lumos.model.catalog import GlossaryTerm, Group, User
from lumos.model.dataset import Dataset
from lumos.store import DatasetFilter
from recorded_lake import RecordedLake

FILE = """\
version: 1
users:
  jane.smith: jane@example.com
groups:
  analytics-team: {members: [jane.smith], description: "Reports & models"}
terms:
  Customer: Who buys
  Customer Identifier: {definition: "Number of a customer", parent: Customer}
datasets:
  - dataset: orders
    description: |
      Every order of the shop.

      Amounts in ${currency}, costs $5.
    business_context: Source of truth for revenue
    domain: sales
    owners:
      - analytics-team
      - {user: jane.smith, type: DATA_STEWARD}
    tags: [gold]
    terms: [Customer]
    compliance: [GDPR]
    properties: {sla: daily by 6am, tier: 1}
    fields:
      email: Where to write
      address.city: {description: Town, tags: [pii], terms: [Customer], properties: {source: form}}
  - dataset: "sales/*"
    tags: [finance]
    fields:
      id: {terms: [Customer Identifier]}
"""


@pytest.fixture
def lake(seen: RecordedLake) -> RecordedLake:
    schema = "id INT64\nemail STRING\naddress STRUCT<city: STRING>"
    seen.see_all(["sales/orders", "sales/items", "raw/clicks"], schema)
    return seen


def dataset(seen: RecordedLake, name: str = "sales/orders") -> Dataset:
    return seen.store.get(f"lumos://file/lake/{name}")


def write(text: str, name: str = "enrich.yaml") -> Path:
    Path(name).write_text(text)
    return Path(name)


def test_everything_comes_from_one_file(lake: RecordedLake) -> None:
    report = lake.lumos.annotations.enrich(write(FILE))
    assert (report.matched, report.changed) == (2, 2)
    orders = dataset(lake)
    assert orders.documentation is not None
    assert orders.documentation.description == (
        "Every order of the shop.\n\nAmounts in ${currency}, costs $5."
    )
    assert orders.documentation.domain == "sales"
    assert [(each.name, each.kind, each.type) for each in orders.ownership.owners] == [  # type: ignore[union-attr]
        ("analytics-team", "group", "TECHNICAL_OWNER"), ("jane.smith", "user", "DATA_STEWARD"),
    ]  # fmt: skip
    assert orders.governance is not None
    assert orders.governance.tags == ("finance", "gold") or orders.governance.tags == (
        "gold",
        "finance",
    )
    assert (orders.governance.terms, orders.governance.compliance) == (("Customer",), ("GDPR",))
    assert orders.properties == {"sla": "daily by 6am", "tier": "1"}
    identifier, email, address = orders.schema.fields  # type: ignore[union-attr]
    assert (identifier.terms, email.description) == (("Customer Identifier",), "Where to write")
    (city,) = address.nested
    assert (city.description, city.tags, city.terms, city.properties) == (
        "Town", ("pii",), ("Customer",), {"source": "form"},
    )  # fmt: skip
    items = ItemStore(lake.lumos.annotation_writer)
    assert items.all(User) == {"jane.smith": User(name="jane.smith", email="jane@example.com")}
    assert items.all(GlossaryTerm)["Customer Identifier"].parent == "Customer"


def test_the_same_file_again_changes_nothing(lake: RecordedLake) -> None:
    lake.lumos.annotations.enrich(write(FILE))
    before = lake.lumos.store_status().rows
    report = lake.lumos.annotations.enrich(write(FILE))
    assert (report.changed, report.items, report.overruled) == (0, (), ())
    assert lake.lumos.store_status().rows == before


def test_a_dry_run_shows_all_and_writes_nothing(lake: RecordedLake) -> None:
    before = lake.lumos.store_status().rows
    report = lake.lumos.annotations.enrich(write(FILE), dry_run=True)
    assert report.changed == 2
    assert "term Customer Identifier" in report.items
    assert lake.lumos.store_status().rows == before


def test_what_the_file_no_longer_says_goes_and_what_others_wrote_stays(lake: RecordedLake) -> None:
    people = lake.lumos.annotations
    people.tags.set("orders", "by-hand", fields=["email"])
    people.docs.set("items", "Written by hand")
    people.enrich(write(FILE))
    people.docs.set("orders", "Over the file")
    report = people.enrich(write("datasets:\n  - dataset: orders\n    tags: [gold]\n"))
    orders = dataset(lake)
    assert orders.documentation.description == "Over the file"  # type: ignore[union-attr]
    assert orders.documentation.domain is None  # type: ignore[union-attr]
    assert (orders.ownership.owners, orders.governance.tags) == ((), ("gold",))  # type: ignore[union-attr]
    assert orders.properties == {}
    _, email, address = orders.schema.fields  # type: ignore[union-attr]
    assert (email.description, email.tags, address.nested) == (None, ("by-hand",), ())
    assert dataset(lake, "sales/items").documentation.description == "Written by hand"  # type: ignore[union-attr]
    items = ItemStore(lake.lumos.annotation_writer)
    assert (items.all(User), items.all(Group), items.all(GlossaryTerm)) == ({}, {}, {})
    assert "term Customer (removed)" in report.items


def test_people_and_terms_that_others_changed_or_use_stay(lake: RecordedLake) -> None:
    people = lake.lumos.annotations
    people.enrich(write(FILE))
    people.terms.define("Customer", definition="Better words")
    people.terms.set("clicks", "Customer Identifier", fields=["id"])
    people.enrich(write("version: 1\n"))
    assert set(ItemStore(lake.lumos.annotation_writer).all(GlossaryTerm)) == {
        "Customer",
        "Customer Identifier",
    }


def test_the_last_of_peoples_words_counts(lake: RecordedLake) -> None:
    people = lake.lumos.annotations
    file = write("datasets:\n  - {dataset: orders, description: of the file}\n")
    people.docs.set("orders", "by hand")
    people.enrich(file)
    assert dataset(lake).documentation.description == "of the file"  # type: ignore[union-attr]
    people.docs.set("orders", "by hand again")
    report = people.enrich(file)
    assert (report.changed, [word.what for word in report.overruled]) == (0, ["description"])
    people.docs.remove("orders", description=True, mine=True)
    assert dataset(lake).documentation.description == "of the file"  # type: ignore[union-attr]


def test_two_files_do_not_take_each_others_words_back(lake: RecordedLake) -> None:
    people = lake.lumos.annotations
    one = write("datasets:\n  - {dataset: orders, tags: [a, both]}\n", "one.yaml")
    two = write("datasets:\n  - {dataset: orders, tags: [b, both]}\n", "two.yaml")
    people.enrich(one)
    people.enrich(two)
    one.write_text("datasets: []\n")
    people.enrich(one)
    assert dataset(lake).governance.tags == ("both", "b")  # type: ignore[union-attr]


def test_a_file_is_known_by_its_name_wherever_it_lies(lake: RecordedLake, tmp_path: Path) -> None:
    people = lake.lumos.annotations
    people.enrich(write("name: shop\ndatasets:\n  - {dataset: orders, tags: [a]}\n"))
    (tmp_path / "elsewhere").mkdir()
    people.enrich(write("name: shop\ndatasets: []\n", "elsewhere/other.yaml"))
    assert dataset(lake).governance.tags == ()  # type: ignore[union-attr]


BAD: list[tuple[str, str]] = [
    ("datasets:\n  - dataset: ordrs\n", r"enrich.yaml:2: No dataset ordrs.*Did you mean .*orders"),
    ("datasets:\n  - dataset: orders\n    fields:\n      emial: x\n", r"enrich.yaml:4: No field 'emial'.*email"),
    ("datasets:\n  - dataset: orders\n    tagz: [x]\n", r"enrich.yaml:3.*tagz.*tags"),
    ("datasets:\n  - tags: [x]\n", r"enrich.yaml:2.*needs 'dataset'"),
    ("datasets:\n  - dataset: orders\n    owners:\n      - {user: a, type: BOSS}\n", r"enrich.yaml:3.*ownership type named 'BOSS'"),
    ("datasets:\n  - dataset: orders\n    owners:\n      - {user: a, group: b}\n", r"enrich.yaml:4.*exactly one of 'user' and 'group'"),
    ("version: 2\n", r"enrich.yaml:1.*version must be 1"),
    ("terms:\n  A: {parent: B}\n", r"enrich.yaml:2: No term named 'B'"),
    ("terms:\n  A: {parent: B}\n  B: {parent: A}\n", r"enrich.yaml:2: The term 'A' is its own ancestor"),
    ("datasets:\n  - !!python/object:os.system x\n", r"enrich.yaml:2"),
    ("datasets: [\n", r"not valid YAML"),
    ("- a\n", r"must be a mapping|mapping"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), BAD, ids=[row[1][:40] for row in BAD])
def test_a_wrong_file_is_reported_with_its_line_and_nothing_is_written(
    lake: RecordedLake, text: str, words: str
) -> None:
    before = lake.lumos.store_status().rows
    with pytest.raises(ConfigurationError, match=words):
        lake.lumos.annotations.enrich(write(text))
    assert lake.lumos.store_status().rows == before


def test_all_that_is_wrong_is_reported_at_once(lake: RecordedLake) -> None:
    text = "datasets:\n  - dataset: nothing\n  - dataset: orders\n    fields: {nope: x}\n"
    with pytest.raises(ConfigurationError) as error:
        lake.lumos.annotations.enrich(write(text))
    assert [problem.position.line for problem in error.value.problems] == [2, 4]


def test_a_pattern_without_datasets_and_a_field_that_is_gone_are_remarks(
    lake: RecordedLake,
) -> None:
    text = "datasets:\n  - {dataset: 'new/*', tags: [a]}\n  - dataset: orders\n    fields:\n      email: text\n"
    lake.lumos.annotations.enrich(write(text))
    lake.see("sales/orders", "id INT64")
    report = lake.lumos.annotations.enrich(write(text))
    assert [remark.partition(": ")[2] for remark in report.remarks] == [
        "no dataset matches 'new/*'.",
        "lumos://file/lake/sales/orders no longer has the field email.",
    ]
    lake.see("sales/orders", "id INT64\nemail STRING")
    assert dataset(lake).schema.fields[1].description == "text"  # type: ignore[union-attr]


def test_there_must_be_a_file(lake: RecordedLake) -> None:
    with pytest.raises(MisuseError, match=r"There is no file nothing\.yaml"):
        lake.lumos.annotations.enrich("nothing.yaml")


RULES: dict[str, object] = {
    "glossary_mappings": {"cust_id": "Customer Identifier", "*_ts": "Timestamp"},
    "path_patterns": {"/raw/*": "Raw data", "/raw/events/*": "Raw event data from the stream"},
}


@pytest.fixture
def named(stored: dict[str, object]) -> RecordedLake:
    seen = RecordedLake(Lumos(overrides={**stored, **RULES}))
    seen.see_all(
        ["raw/events/clicks", "raw/other", "mart"],
        "CUST_ID INT64\nat_ts INT64\nx STRUCT<cust_id: INT64>",
    )
    return seen


def test_missing_descriptions_are_inferred_from_names(named: RecordedLake) -> None:
    report = named.lumos.annotations.infer()
    assert report.changed == 3
    clicks, other, mart = (
        dataset(named, name) for name in ("raw/events/clicks", "raw/other", "mart")
    )
    assert clicks.documentation.description == "Raw event data from the stream"  # type: ignore[union-attr]
    assert other.documentation.description == "Raw data"  # type: ignore[union-attr]
    assert mart.documentation is None
    customer, at, x = mart.schema.fields  # type: ignore[union-attr]
    assert (customer.description, customer.terms) == (
        "Customer Identifier",
        ("Customer Identifier",),
    )
    assert (at.description, x.nested[0].description) == ("Timestamp", "Customer Identifier")
    assert report.items == ("term Customer Identifier", "term Timestamp")
    assert named.lumos.annotations.infer().changed == 0
    word = named.lumos.annotations.docs.list("other").annotations[0]
    assert (word.by, word.slot) == ("inferred", "description")


def test_what_is_inferred_gives_way_to_a_person_and_does_not_come_back(named: RecordedLake) -> None:
    people = named.lumos.annotations
    people.infer()
    people.docs.set("other", "by hand")
    assert people.infer().changed == 0
    assert dataset(named, "raw/other").documentation.description == "by hand"  # type: ignore[union-attr]
    people.docs.remove("other", description=True)
    assert dataset(named, "raw/other").documentation.description is None  # type: ignore[union-attr]


def test_only_what_is_empty_is_inferred(named: RecordedLake) -> None:
    people = named.lumos.annotations
    people.docs.set("mart", "Key", fields=["CUST_ID"])
    people.terms.set("mart", "Key", fields=["CUST_ID"])
    people.infer()
    customer = dataset(named, "mart").schema.fields[0]  # type: ignore[union-attr]
    assert (customer.description, customer.terms) == ("Key", ("Key",))


def test_a_dry_run_of_inference_writes_nothing(named: RecordedLake) -> None:
    before = named.lumos.store_status().rows
    assert named.lumos.annotations.infer(dry_run=True).changed == 3
    assert named.lumos.store_status().rows == before


def test_inference_needs_rules(lake: RecordedLake) -> None:
    with pytest.raises(MisuseError, match="no rules to infer from"):
        lake.lumos.annotations.infer()


def required(stored: dict[str, object], **facts: Any) -> Lumos:
    names = ["description", "owner", "business_domain", "sla"]
    return Lumos(overrides={**stored, "documentation": {"required_fields": names, **facts}})


def test_missing_documentation_is_listed(stored: dict[str, object]) -> None:
    exceptions = [{"pattern": "/tmp/*", "reason": "Temporary"}]
    seen = RecordedLake(required(stored, exceptions=exceptions))
    seen.see_all(["a", "b", "tmp/x"], "id INT64")
    people = seen.lumos.annotations
    people.docs.set("a", "text", domain="sales")
    people.owners.add("jane")
    people.owners.assign("jane", "*")
    people.properties.set("a", {"SLA": "daily"})
    report = people.missing()
    assert (report.checked, report.complete, report.blocks, report.mode) == (
        2,
        1,
        False,
        "warn_only",
    )
    assert [(each.name, each.missing, each.owners) for each in report.datasets] == [
        ("b", ("description", "business_domain", "sla"), ("jane",))
    ]
    assert [(each.name, each.reason) for each in report.exempt] == [("x", "Temporary")]


def test_missing_documentation_may_block(stored: dict[str, object]) -> None:
    seen = RecordedLake(required(stored, enforcement={"mode": "block_on_missing"}))
    seen.see("a", "id INT64")
    assert seen.lumos.annotations.missing().blocks


def test_nothing_can_be_missing_where_nothing_is_required(lake: RecordedLake) -> None:
    with pytest.raises(MisuseError, match="No documentation is required"):
        lake.lumos.annotations.missing()


def test_a_guess_is_back_when_a_person_takes_their_words_back(named: RecordedLake) -> None:
    people = named.lumos.annotations
    people.infer()
    people.docs.set("other", "by hand")
    people.infer()
    people.docs.remove("other", description=True, mine=True)
    assert dataset(named, "raw/other").documentation.description == "Raw data"  # type: ignore[union-attr]


def test_patterns_look_below_the_folder_that_was_scanned(stored: dict[str, object]) -> None:
    rules = {"required_fields": ["owner"], "exceptions": [{"pattern": "/tmp/*", "reason": "x"}]}
    patterns = {"/tmp/*": "Scratch"}
    seen = RecordedLake(
        Lumos(overrides={**stored, "documentation": rules, "path_patterns": patterns})
    )
    seen.see_below("/tmp/shop/lake", ["sales/orders", "tmp/scratch.csv"])
    report = seen.lumos.annotations.missing()
    assert [each.name for each in report.datasets] == ["orders"]
    assert [each.name for each in report.exempt] == ["scratch"]
    assert [each.name for each in seen.lumos.annotations.infer().datasets] == ["scratch"]


def test_unknown_names_are_reported_along_with_errors_of_shape(
    lake: RecordedLake, tmp_path: Path
) -> None:
    known = next(iter(lake.store.list(DatasetFilter())))
    file = tmp_path / "enrich.yaml"
    file.write_text(
        "datasets:\n- dataset: nowhere\n  tgs: [x]\n"
        f"- dataset: {known.urn}\n  fields:\n    nothing: x\n"
    )
    with pytest.raises(MisuseError) as raised:
        lake.lumos.annotations.enrich(file)
    for words in (
        "enrich.yaml:3",
        "enrich.yaml:2: No dataset",
        "enrich.yaml:6: No field 'nothing'",
    ):
        assert words in str(raised.value)


@pytest.mark.parametrize(
    "text",
    ["users: {ops: a@b.example}\ngroups: {ops: {}}", "groups: {x: {members: [x]}}",
     "groups: {jane: {}}", "users: {team: t@b.example}"],
)  # fmt: skip
def test_a_file_makes_no_name_both_a_user_and_a_group(
    lake: RecordedLake, tmp_path: Path, text: str
) -> None:
    lake.lumos.annotations.owners.add("jane")
    lake.lumos.annotations.owners.add("team", group=True)
    (tmp_path / "enrich.yaml").write_text(text)
    with pytest.raises(MisuseError, match="cannot be both a user and a group"):
        lake.lumos.annotations.enrich(tmp_path / "enrich.yaml")
