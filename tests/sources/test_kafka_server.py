"""Kafka and a schema registry, both real: SASL, TLS, permissions, sampling and history."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from lumos import Lumos
from lumos.sources import SourceNotUsable
from lumos.store import Store
from servers.kafka import kafka_broker, register, schema_registry, set_compatibility

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("workplace")]

HUSH = "hush-hush"
_LOGIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'user_reader="{HUSH}" user_admin="{HUSH}";'
)


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with kafka_broker() as (address, _):
        yield address


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    with schema_registry() as address:
        set_compatibility(address, "NONE")
        yield address


def create(address: str, *topics: str, **settings: str) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": address})
    new = [NewTopic(topic, 2, config=settings) for topic in topics]
    for future in admin.create_topics(new).values():
        future.result(60)
    return admin


def send(address: str, topic: str, *values: bytes, key: bytes | None = None) -> None:
    producer = Producer({"bootstrap.servers": address})
    for value in values:
        producer.produce(topic, value=value, key=key)
    assert producer.flush(60) == 0


def lumos_for(address: str, **facts: object) -> Lumos:
    source = {"type": "kafka", "bootstrap_servers": address, "request_timeout": 60, **facts}
    return Lumos(overrides={"sources": [source]})


def avro(**fields: str) -> dict[str, object]:
    entries = [{"name": name, "type": type} for name, type in fields.items()]
    return {"type": "record", "name": "Order", "fields": entries}


def test_versions_of_a_registry_are_the_history_of_a_topic(broker: str, registry: str) -> None:
    create(broker, "shop.orders", "shop.parcels", **{"retention.ms": "3600000"})
    register(registry, "shop.orders-value", avro(id="int"))
    register(registry, "shop.orders-key", '"string"')
    register(registry, "shop.orders-value", avro(id="long", note="string"))
    register(
        registry, "shop.parcels-value",
        'syntax = "proto3"; message Parcel { int64 id = 1; string city = 2; }',
        schemaType="PROTOBUF",
    )  # fmt: skip
    lumos = lumos_for(broker, topic_patterns=["shop.*"], schema_registry_url=registry)
    lumos.ingest()
    store = Store.open(lumos.database)
    orders = store.get("lumos://kafka/shop.orders")
    assert str(orders.schema) == "_key STRING NOT NULL KEY\nid INT64 NOT NULL\nnote STRING NOT NULL"
    assert orders.properties is not None
    assert orders.properties["kafka.config.retention.ms"] == "3600000"
    assert orders.properties["kafka.value.version"] == "2"
    assert orders.properties["kafka.value.compatibility"] == "NONE"
    assert str(store.get("lumos://kafka/shop.parcels").schema) == "id INT64\ncity STRING"
    assert len(store.events("lumos://kafka/shop.orders")) == 2
    register(registry, "shop.orders-value", avro(id="long"))
    again = lumos.ingest()
    assert again.summary.datasets_changed == 1
    assert len(store.events("lumos://kafka/shop.orders")) == 3
    assert lumos.ingest().summary.datasets_changed == 0


def test_references_are_those_of_the_registry(broker: str, registry: str) -> None:
    create(broker, "ref.orders", "ref.visits")
    address = {
        "type": "record", "name": "Address", "namespace": "acme",
        "fields": [{"name": "city", "type": "string"}],
    }  # fmt: skip
    register(registry, "acme.Address", address)
    register(
        registry, "ref.orders-value", avro(to="acme.Address"),
        references=[{"name": "acme.Address", "subject": "acme.Address", "version": 1}],
    )  # fmt: skip
    register(
        registry, "page.json", {"type": "object", "properties": {"url": {"type": "string"}}},
        schemaType="JSON",
    )  # fmt: skip
    register(
        registry, "ref.visits-value",
        {"type": "object", "properties": {"page": {"$ref": "page.json"}}}, schemaType="JSON",
        references=[{"name": "page.json", "subject": "page.json", "version": 1}],
    )  # fmt: skip
    lumos = lumos_for(broker, topic_patterns=["ref.*"], schema_registry_url=registry)
    assert lumos.ingest().problems == ()
    store = Store.open(lumos.database)
    orders, visits = (store.get(f"lumos://kafka/ref.{each}") for each in ("orders", "visits"))
    assert str(orders.schema) == "to STRUCT<city: STRING NOT NULL> NOT NULL"
    assert str(visits.schema) == "page STRUCT<url: STRING>"


def test_sampling_commits_nothing_and_groups_are_readers(broker: str) -> None:
    admin = create(broker, "raw.json", "raw.csv", "raw.empty")
    send(broker, "raw.json", *[b'{"id": %d, "city": "Bonn"}' % n for n in range(50)], key=b"k")
    send(broker, "raw.csv", *[b"%d;x;2026-11-0%d" % (n, n) for n in range(1, 8)])
    consumer = Consumer(
        {"bootstrap.servers": broker, "group.id": "billing", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["raw.json"])
    seen = 0
    while seen < 50:
        seen += len(consumer.consume(50, timeout=30))
    consumer.commit(asynchronous=False)
    consumer.close()
    lumos = lumos_for(broker, topic_patterns=["raw.*"], sample_size=20)
    report = lumos.ingest()
    assert {each.name: each.format for each in report.datasets} == {
        "raw.json": "json", "raw.csv": "csv", "raw.empty": "topic",
    }  # fmt: skip
    store = Store.open(lumos.database)
    assert (
        str(store.get("lumos://kafka/raw.json").schema) == "_key STRING KEY\nid INT64\ncity STRING"
    )
    statistics = store.get("lumos://kafka/raw.json").statistics
    assert statistics is not None
    assert statistics.row_count == 50
    groups = {each.group_id for each in admin.list_consumer_groups().result(60).valid}
    assert "lumos" not in groups
    assert [each.name for each in lumos.usage.show("raw.json").readers] == ["billing"]


def _certificates(folder: Path) -> tuple[Path, Path]:
    """A key with its certificate for the broker, in one file, and the certificate to trust."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-keyout", key, "-out", certificate, "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    both = folder / "both.pem"
    both.write_text(key.read_text() + certificate.read_text())
    return both, certificate


def test_tls_sasl_and_permissions(tmp_path: Path) -> None:
    keystore, certificate = _certificates(tmp_path)
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.client.plain.sasl.jaas.config": _LOGIN,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
    }
    with kafka_broker(protocol="SASL_SSL", settings=settings) as (address, internal):
        admin = create(internal, "open.a", "open.b", "closed.a", "closed.b")
        acls = [
            AclBinding(
                ResourceType.TOPIC, "open.", ResourcePatternType.PREFIXED, "User:reader", "*",
                operation, AclPermissionType.ALLOW,
            )
            for operation in (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
        ]  # fmt: skip
        acls.append(
            AclBinding(
                ResourceType.TOPIC, "open.a", ResourcePatternType.LITERAL, "User:reader", "*",
                AclOperation.READ, AclPermissionType.ALLOW,
            )
        )  # fmt: skip
        for future in admin.create_acls(acls).values():
            future.result(60)
        for topic in ("open.a", "open.b"):
            send(internal, topic, b'{"id": 1}')
        login = {
            "security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_username": "reader",
            "sasl_password": HUSH, "ssl_ca_file": str(certificate),
        }  # fmt: skip
        report = lumos_for(
            address, topics=["closed.a"], topic_patterns=["*.a", "*.b"], **login
        ).ingest()
        assert {each.name for each in report.datasets} == {"open.a"}
        problems = {(each.path, each.code) for each in report.problems if not each.remark}
        assert problems == {("closed.a", "not_allowed"), ("open.b", "not_allowed")}
        with pytest.raises(SourceNotUsable, match="rejected the login") as wrong:
            lumos_for(address, **{**login, "sasl_password": f"{HUSH}-wrong"}).ingest()
        assert HUSH not in str(wrong.value)
        untrusted = {key: value for key, value in login.items() if key != "ssl_ca_file"}
        with pytest.raises(SourceNotUsable, match="No encrypted connection"):
            lumos_for(address, **untrusted).ingest()
