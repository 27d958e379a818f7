"""Topics in the store: history, usage, properties and bad input.

The cluster is a fake in memory and the registry is a stub; test_kafka_server.py has real ones.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Literal

import pytest

from fake_kafka import FakeCluster
from lumos import Lumos
from lumos.model.dataset import Dataset
from lumos.sources import SourceNotUsable
from lumos.store import Store
from registry_stub import RegistryStub

pytestmark = pytest.mark.usefixtures("workplace")

ORDERS = "lumos://kafka/shop.orders"
HUSH = "hush-hush"


@pytest.fixture
def registry() -> Iterator[RegistryStub]:
    with RegistryStub() as stub:
        yield stub


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    fake = FakeCluster()
    monkeypatch.setattr("lumos.sources.kafka.source.KafkaCluster", lambda _: fake)
    return fake


def lumos_for(registry: RegistryStub | None, **facts: object) -> Lumos:
    url = {} if registry is None else {"schema_registry_url": registry.url}
    source = {"type": "kafka", "bootstrap_servers": "broker:9092", **url, **facts}
    return Lumos(overrides={"sources": [source]})


def record(**fields: object) -> dict[str, Any]:
    return {
        "type": "record", "name": "Order", "doc": "An order.",
        "fields": [{"name": name, "type": type} for name, type in fields.items()],
    }  # fmt: skip


def dataset(lumos: Lumos, urn: str = ORDERS) -> Dataset:
    return Store.open(lumos.database).get(urn)


def events(lumos: Lumos, urn: str = ORDERS) -> list[str]:
    return [
        f"{event.type.value} {event.schema_version} {event.metadata.get('table_version', '')}".strip()
        for event in Store.open(lumos.database).events(urn)
    ]


def test_each_registered_version_is_one_entry_of_the_history(
    cluster: FakeCluster, registry: RegistryStub
) -> None:
    cluster.add("shop.orders", b"")
    registry.register("shop.orders-value", record(id="int"))
    registry.register("shop.orders-key", '"string"')
    registry.register("shop.orders-value", record(id="int", note="string"))
    registry.register("shop.orders-value", record(id="long", note="string"))
    lumos = lumos_for(registry)
    assert lumos.ingest().summary.datasets_new == 1
    history = [
        "CREATED 1.0.0 value v1",
        "SCHEMA_CHANGED 1.1.0 value v2",
        "SCHEMA_CHANGED 2.0.0 value v3",
    ]
    assert events(lumos)[:1] == history[:1]
    assert len(events(lumos)) == 3
    found = dataset(lumos)
    assert str(found.schema) == "_key STRING NOT NULL KEY\nid INT64 NOT NULL\nnote STRING NOT NULL"
    assert found.documentation is not None
    assert found.documentation.description == "An order."
    before = lumos.store_status().rows
    again = lumos.ingest()
    assert (again.summary.datasets_new, again.summary.datasets_changed) == (0, 0)
    assert {**lumos.store_status().rows, "audit": before["audit"]} == before


def test_a_rescan_reads_only_new_versions_and_records_each_of_them(
    cluster: FakeCluster, registry: RegistryStub
) -> None:
    cluster.add("shop.orders", b"")
    for number in range(5):
        registry.register(
            "shop.orders-value", record(**{f"c{n}": "int" for n in range(number + 1)})
        )
    lumos = lumos_for(registry)
    lumos.ingest()
    registry.requests.clear()
    lumos.ingest()
    read = [path for path in registry.requests if "/versions/" in path]
    assert read == ["/subjects/shop.orders-value/versions/5"]
    # The schema of version 4 comes back, and is changed again before the next scan.
    registry.register("shop.orders-value", record(**{f"c{n}": "int" for n in range(4)}))
    registry.register("shop.orders-value", record(**{f"c{n}": "int" for n in range(5)}))
    lumos.ingest()
    assert len(events(lumos)) == 7
    assert events(lumos)[-2].endswith("value v6")
    lumos.ingest()
    assert len(events(lumos)) == 7


def test_a_version_without_differences_is_a_change_of_metadata(
    cluster: FakeCluster, registry: RegistryStub
) -> None:
    cluster.add("shop.orders", b"")
    registry.register("shop.orders-value", record(id="int"))
    lumos = lumos_for(registry)
    lumos.ingest()
    registry.register("shop.orders-value", {**record(id="int"), "aliases": ["Purchase"]})
    lumos.ingest()
    assert events(lumos)[-1].startswith("METADATA_CHANGED 1.0.0")


def test_times_of_the_registry_are_those_of_the_history(
    cluster: FakeCluster, registry: RegistryStub
) -> None:
    cluster.add("shop.orders", b"")
    registry.register("shop.orders-value", record(id="int"), at=1_700_000_000_000)
    registry.register("shop.orders-value", record(id="long"), at=1_710_000_000_000)
    lumos = lumos_for(registry)
    lumos.ingest()
    found = Store.open(lumos.database).events(ORDERS)
    assert [event.at.date().isoformat() for event in found] == ["2023-11-14", "2024-03-09"]


def test_subjects_and_settings_of_a_topic_are_its_properties(
    cluster: FakeCluster, registry: RegistryStub
) -> None:
    cluster.add("shop.orders", b"", b"")
    cluster.settings["shop.orders"] = {"retention.ms": "604800000"}
    registry.register("address", record(city="string") | {"name": "Address"})
    registry.register(
        "shop.orders-value", record(to="Address"), references=(("Address", "address", 1),)
    )
    registry.compatibility["shop.orders-value"] = "FULL"
    lumos = lumos_for(registry)
    lumos.ingest()
    found = dataset(lumos)
    assert found.properties == {
        "kafka.schema_from": "registry",
        "kafka.value.subject": "shop.orders-value",
        "kafka.value.version": "1",
        "kafka.value.schema_id": "2",
        "kafka.value.schema_type": "AVRO",
        "kafka.value.compatibility": "FULL",
        "kafka.value.references": "Address (address v1)",
        "kafka.partitions": "1",
        "kafka.replication_factor": "3",
        "kafka.config.cleanup.policy": "delete",
        "kafka.config.retention.ms": "604800000",
        "kafka.comment": "An order.",
    }
    assert (found.format, found.statistics and found.statistics.row_count) == ("avro", 2)
    registry.compatibility["shop.orders-value"] = "NONE"
    cluster.add("shop.orders", b"")
    lumos.ingest()
    assert events(lumos) == ["CREATED 1.0.0 value v1", "METADATA_CHANGED 1.0.0 value v1"]
    statistics = dataset(lumos).statistics
    assert statistics is not None
    assert statistics.row_count == 3


def test_new_messages_alone_are_no_change(cluster: FakeCluster, registry: RegistryStub) -> None:
    cluster.add("shop.orders", b"")
    registry.register("shop.orders-value", record(id="int"))
    lumos = lumos_for(registry)
    lumos.ingest()
    cluster.add("shop.orders", b"", b"")
    assert lumos.ingest().summary.datasets_changed == 0
    statistics = dataset(lumos).statistics
    assert statistics is not None
    assert statistics.row_count == 3


def test_consumer_groups_are_readers_and_count_only_if_they_move(cluster: FakeCluster) -> None:
    cluster.add("shop.orders", b'{"a": 1}')
    cluster.add("shop.unread", b'{"a": 1}')
    cluster.committed = {
        "billing": {"shop.orders": 5, "elsewhere": 1},
        "search": {"shop.orders": 2},
    }
    lumos = lumos_for(None)
    for _ in range(2):
        lumos.ingest()
    cluster.committed["billing"]["shop.orders"] = 8
    lumos.ingest()
    usage = lumos.usage.show("shop.orders")
    assert {each.name: each.reads for each in usage.readers} == {"billing": 2, "search": 1}
    unread = lumos.usage.unread(since=datetime.now(UTC).date())
    assert [each.urn for each in unread.datasets] == ["lumos://kafka/shop.unread"]


def test_consumer_groups_can_be_left_out(cluster: FakeCluster) -> None:
    cluster.add("shop.orders", b'{"a": 1}')
    cluster.committed = {"billing": {"shop.orders": 5}}
    lumos = lumos_for(None, consumer_groups=False)
    lumos.ingest()
    assert lumos.usage.show("shop.orders").reads == 0


def test_topics_are_selected_by_patterns_and_internal_ones_are_left_out(
    cluster: FakeCluster,
) -> None:
    for name in ("events.a", "events.b", "metrics.c", "other", "__consumer_offsets", "_schemas"):
        cluster.add(name, b"{}")
    lumos = lumos_for(None, topic_patterns=["events.*", "metrics.*"], exclude=["*.b"])
    assert {each.name for each in lumos.ingest().datasets} == {"events.a", "metrics.c"}
    everything = lumos_for(None).discover()
    assert {each.name for each in everything.datasets} == {
        "events.a",
        "events.b",
        "metrics.c",
        "other",
    }
    named = lumos_for(None, topics=["__consumer_offsets"]).discover()
    assert {each.name for each in named.datasets} == {"__consumer_offsets"}


def test_topics_without_a_schema_are_sampled_and_their_schema_is_stable(
    cluster: FakeCluster, registry: RegistryStub
) -> None:
    cluster.add("shop.orders", *[b'{"id": %d, "note": "x"}' % n for n in range(20)], key=b"k1")
    cluster.add("shop.empty")
    registry.register("shop.typed-value", record(id="int"))
    cluster.add("shop.typed", b"")
    lumos = lumos_for(registry, sample_size=10)
    lumos.ingest()
    assert str(dataset(lumos).schema) == "_key STRING KEY\nid INT64\nnote STRING"
    assert dataset(lumos).format == "json"
    assert "shop.typed" not in cluster.sampled
    cluster.add("shop.orders", *[b'{"id": 1.5}'] * 10, key=b"k1")
    report = lumos.ingest()
    (changed,) = (each for each in report.datasets if each.change == "changed")
    assert [(each.path, each.kind) for each in changed.changes] == [("id", "type_changed")]
    assert str(dataset(lumos).schema) == "_key STRING KEY\nid FLOAT64\nnote STRING"


def test_no_message_is_read_if_the_sample_size_is_zero(cluster: FakeCluster) -> None:
    cluster.add("shop.orders", b'{"id": 1}')
    lumos = lumos_for(None, sample_size=0)
    lumos.ingest()
    assert cluster.sampled == []
    assert dataset(lumos).schema is not None


def test_a_topic_that_gets_a_schema_continues_its_history(
    cluster: FakeCluster, registry: RegistryStub
) -> None:
    cluster.add("shop.orders", b'{"id": 1}')
    lumos = lumos_for(registry)
    lumos.ingest()
    registry.register("shop.orders-value", json.dumps({"type": "object", "properties": {"id": {"type": "string"}}}), type="JSON")  # fmt: skip
    lumos.ingest()
    assert [each.split()[0] for each in events(lumos)] == ["CREATED", "SCHEMA_CHANGED"]


def test_record_names_are_found_by_the_ids_in_messages(
    cluster: FakeCluster, registry: RegistryStub
) -> None:
    created = registry.register("com.acme.Created", record(id="int"))
    paid = registry.register("com.acme.Paid", record(id="int", amount="double"))
    cluster.add("shop.orders", b"\0" + created.to_bytes(4, "big") + b"\2")
    lumos = lumos_for(registry)
    lumos.ingest()
    created_column = "`com.acme.Created` STRUCT<id: INT32 NOT NULL> COMMENT 'An order.'"
    assert str(dataset(lumos).schema) == created_column
    cluster.messages["shop.orders"] = []
    cluster.add("shop.orders", b"\0" + paid.to_bytes(4, "big") + b"\2")
    lumos.ingest()
    # What an earlier sample has shown stays, although no message has it any more.
    assert str(dataset(lumos).schema) == (
        f"{created_column}\n"
        "`com.acme.Paid` STRUCT<id: INT32 NOT NULL, amount: FLOAT64 NOT NULL> COMMENT 'An order.'"
    )
    assert len(events(lumos)) == 2


def test_half_of_the_topics_without_permission_do_not_stop_the_others(
    cluster: FakeCluster, registry: RegistryStub
) -> None:
    for number in range(10):
        cluster.add(f"t{number}", b"{}")
        registry.register(f"t{number}-value", record(id="int"))
    lumos = lumos_for(registry)
    lumos.ingest()
    registry.denied = {f"t{number}-value" for number in range(0, 10, 2)}
    registry.broken = {"t1-value"}
    cluster.no_configs = {"t3"}
    report = lumos.ingest()
    assert (report.missing, report.held) == ((), ())
    codes = sorted(each.code for each in report.problems)
    assert codes == ["no_configuration", *["not_allowed"] * 5, "registry_error"]
    assert len(lumos.list().datasets) == 10


def test_named_topics_that_cannot_be_seen_are_reported(cluster: FakeCluster) -> None:
    for name in ("orders", "secret"):
        cluster.add(name, b"{}")
    cluster.hidden = {"secret"}
    cluster.unreadable = {"orders"}
    report = lumos_for(None, topics=["orders", "secret", "order"]).ingest()
    assert {(each.path, each.code, each.remark) for each in report.problems} == {
        ("orders", "not_allowed", False),
        ("secret", "not_allowed", False),
        ("order", "no_such_topic", True),
    }


def test_hostile_names_are_only_names(cluster: FakeCluster, registry: RegistryStub) -> None:
    topic = "a'; DROP TABLE dataset;--"
    for name in (topic, "größe", "x/../y", "a%2Fb", "{braces}"):
        cluster.add(name, b"")
        registry.register(f"{name}-value", record(**{"select": "int"}))
    report = lumos_for(registry).ingest()
    assert {each.name for each in report.datasets} == {
        topic,
        "größe",
        "x/../y",
        "a%2Fb",
        "{braces}",
    }
    assert not report.problems
    again = lumos_for(registry).ingest()
    assert again.summary.datasets_unchanged == 5


def test_cyclic_references_end(cluster: FakeCluster, registry: RegistryStub) -> None:
    cluster.add("shop.orders", b"")
    registry.register("a", record(b="B") | {"name": "A"}, references=(("B", "b", 1),))
    registry.register("b", record(a="A") | {"name": "B"}, references=(("A", "a", 1),))
    registry.register("shop.orders-value", record(a="A"), references=(("A", "a", 1),))
    lumos = lumos_for(registry)
    report = lumos.ingest()
    assert [each.code for each in report.problems] == ["cyclic_references"]
    assert "recursive:A" in str(dataset(lumos).schema)


def test_missing_references_are_reported(cluster: FakeCluster, registry: RegistryStub) -> None:
    cluster.add("shop.orders", b"")
    registry.register("shop.orders-value", record(a="A"), references=(("A", "gone", 7),))
    lumos = lumos_for(registry)
    assert [each.code for each in lumos.ingest().problems] == ["missing_reference"]
    assert str(dataset(lumos).schema) == "a UNKNOWN('A') NOT NULL"


def test_a_long_chain_of_references_is_refused(
    cluster: FakeCluster, registry: RegistryStub
) -> None:
    registry.register("r0", record(x="int") | {"name": "R0"})
    for number in range(1, 250):
        registry.register(f"r{number}", record(x=f"R{number - 1}") | {"name": f"R{number}"}, references=((f"R{number - 1}", f"r{number - 1}", 1),))  # fmt: skip
    cluster.add("shop.orders", b"")
    registry.register("shop.orders-value", record(a="R249"), references=(("R249", "r249", 1),))
    report = lumos_for(registry).ingest()
    assert [each.code for each in report.problems] == ["too_many_references"]


def test_an_older_version_that_cannot_be_parsed_is_remarked_on(
    cluster: FakeCluster, registry: RegistryStub
) -> None:
    cluster.add("shop.orders", b"")
    registry.register("shop.orders-value", "{")
    registry.register("shop.orders-value", record(id="int"))
    lumos = lumos_for(registry)
    report = lumos.ingest()
    assert [(each.code, each.remark) for each in report.problems] == [("invalid_schema", True)]
    assert len(events(lumos)) == 1


@pytest.mark.parametrize("lists", ["by_prefix", "never"])
def test_a_registry_that_repeats_itself_gives_each_version_once(
    cluster: FakeCluster, registry: RegistryStub, lists: Literal["by_prefix", "never"]
) -> None:
    cluster.add("shop.orders", b"")
    registry.register("shop.orders-value", record(id="int"))
    registry.register("shop.orders-value", record(id="long"))
    registry.repeats = 50
    registry.lists_schemas = lists
    lumos = lumos_for(registry)
    lumos.ingest()
    assert len(events(lumos)) == 2
    listed = [path for path in registry.requests if path == "/schemas" or "/versions" in path]
    assert {registry.requests[path] for path in listed} == {1}


def test_a_first_scan_reads_all_versions_of_a_subject_with_one_request(
    cluster: FakeCluster, registry: RegistryStub
) -> None:
    cluster.add("shop.orders", b"")
    for count in range(1, 6):
        registry.register("shop.orders-value", record(**{f"c{n}": "int" for n in range(count)}))
        registry.register("shop.orders-values", record(other="int"))
    lumos = lumos_for(registry)
    lumos.ingest()
    assert len(events(lumos)) == 5
    assert registry.requests["/schemas"] == 1
    assert not any("/versions" in path for path in registry.requests)
    registry.register("shop.orders-value", record(c0="int"))
    registry.requests.clear()
    lumos.ingest()
    assert len(events(lumos)) == 6
    assert "/schemas" not in registry.requests


@pytest.mark.parametrize("lists", ["all", "never", "broken"])
def test_a_registry_that_does_not_list_schemas_by_subject_is_asked_for_each_version(
    cluster: FakeCluster, registry: RegistryStub, lists: Literal["all", "never", "broken"]
) -> None:
    for number in range(30):
        cluster.add(f"t{number}", b"")
        registry.register(f"t{number}-value", record(id="int"))
        registry.register(f"t{number}-value", record(id="long"))
    registry.lists_schemas = lists
    lumos = lumos_for(registry)
    assert lumos.ingest().problems == ()
    read = [path for path in registry.requests if "/versions/" in path]
    assert len(read) == 60
    # Of the threads that asked before the first answer.
    assert registry.requests["/schemas"] <= 8


def test_a_slow_registry_is_given_up_and_nothing_is_recorded(
    cluster: FakeCluster, registry: RegistryStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lumos.http.retries import ONCE

    monkeypatch.setattr("lumos.sources.kafka.registry._RETRIES", ONCE)
    cluster.add("shop.orders", b"")
    registry.register("shop.orders-value", record(id="int"))
    registry.delay = 1.5
    with pytest.raises(SourceNotUsable, match=r"The schema registry at http.* does not answer"):
        lumos_for(registry, request_timeout=1).ingest()


def test_the_login_of_the_registry_is_sent_and_never_shown(
    cluster: FakeCluster, registry: RegistryStub
) -> None:
    cluster.add("shop.orders", b"")
    registry.register("shop.orders-value", record(id="int"))
    registry.login = "Basic cmVhZGVyOmh1c2gtaHVzaA=="
    lumos_for(registry, schema_registry_user="reader", schema_registry_password=HUSH).ingest()
    with pytest.raises(SourceNotUsable) as refused:
        lumos_for(registry, schema_registry_token=HUSH).ingest()
    assert "rejected the login" in str(refused.value)
    assert HUSH not in str(refused.value)
    assert registry.authorizations == {registry.login, f"Bearer {HUSH}"}


def test_a_wrong_address_of_the_registry_has_a_next_step(
    cluster: FakeCluster, registry: RegistryStub
) -> None:
    cluster.add("shop.orders", b"")
    source = {
        "type": "kafka", "bootstrap_servers": "broker:9092",
        "schema_registry_url": f"{registry.url}/apis",
    }  # fmt: skip
    with pytest.raises(SourceNotUsable, match="Check schema_registry_url"):
        Lumos(overrides={"sources": [source]}).ingest()


def test_an_address_takes_the_access_of_the_configured_cluster() -> None:
    from lumos.config.sources import KafkaSourceSettings
    from lumos.errors import MisuseError
    from lumos.sources.addresses import section_of

    configured = KafkaSourceSettings(
        bootstrap_servers=("a:9092", "b:9092"), schema_registry_url="http://registry:8081"
    )
    found = section_of("kafka://b:9092/events.*", [configured])
    assert isinstance(found, KafkaSourceSettings)
    assert (found.topic_patterns, found.schema_registry_url) == (
        ("events.*",), "http://registry:8081",
    )  # fmt: skip
    other = section_of("kafka://c:9092,d:9092", [configured])
    assert isinstance(other, KafkaSourceSettings)
    assert (other.bootstrap_servers, other.schema_registry_url) == (("c:9092", "d:9092"), None)
    with pytest.raises(MisuseError, match="without user and password"):
        section_of(f"kafka://me:{HUSH}@c:9092", [])
