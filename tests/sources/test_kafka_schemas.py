"""From subjects and registered schemas to the schema and history of a topic, without servers."""

import json
from collections.abc import Mapping

import pytest

from lumos.model.discovery import PastSchema
from lumos.sources.kafka.registry import (
    RegisteredSchema,
    ResolvedReferences,
    SubjectNotReadable,
)
from lumos.sources.kafka.samples import infer_schema, merge_with_known, schema_ids, with_key
from lumos.sources.kafka.schemas import (
    ParsedSchema,
    SubjectVersions,
    combine,
    history_of,
    parse_schema,
)
from lumos.sources.kafka.subjects import NamingStrategy, TopicSubject, subjects_by_topic

KEY = TopicSubject("orders-key", "key")
VALUE = TopicSubject("orders-value", "value")


def registered(
    schema: object, *, type: str = "AVRO", subject: str = "s", version: int = 1, id: int = 1
) -> RegisteredSchema:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return RegisteredSchema(subject=subject, version=version, id=id, type=type, text=text)


def record(name: str, **fields: object) -> dict[str, object]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": field, "type": type} for field, type in fields.items()],
    }


def parsed(
    schema: object, *, references: Mapping[str, object] | None = None, **facts: object
) -> ParsedSchema:
    type = str(facts.get("type", "AVRO"))
    others = tuple((name, registered(each, type=type)) for name, each in (references or {}).items())
    return parse_schema(registered(schema, **facts), ResolvedReferences(others))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("strategy", "subjects", "expected"),
    [
        pytest.param(
            "auto", ["orders-key", "orders-value", "orders-eu-value", "stray"],
            {"orders": ["orders-key key", "orders-value value"], "orders-eu": ["orders-eu-value value"]},
            id="topic names",
        ),
        pytest.param(
            "auto", ["orders-com.acme.Created", "orders-eu-com.acme.Created", "orders-com.acme.Paid"],
            {
                "orders": ["orders-com.acme.Created value com.acme.Created", "orders-com.acme.Paid value com.acme.Paid"],
                "orders-eu": ["orders-eu-com.acme.Created value com.acme.Created"],
            },
            id="topic and record names, the longest topic wins",
        ),
        pytest.param(
            "auto", ["orders-value", "orders-Created"], {"orders": ["orders-value value"], "orders-eu": []},
            id="one strategy per topic",
        ),
        pytest.param(
            "topic_name", ["orders-Created", "orders-key"], {"orders": ["orders-key key"], "orders-eu": []},
            id="only topic names",
        ),
        pytest.param(
            "topic_record_name", ["orders-value"], {"orders": ["orders-value value value"], "orders-eu": []},
            id="a record called value",
        ),
        pytest.param(
            "record_name", ["com.acme.Created", "orders-value"], {"orders": [], "orders-eu": []},
            id="record names name no topic",
        ),
        pytest.param("auto", ["-value", "orders-", "-", ""], {"orders": [], "orders-eu": []}, id="odd names"),
    ],
)  # fmt: skip
def test_subjects_belong_to_topics_by_the_naming_strategy(
    strategy: NamingStrategy, subjects: list[str], expected: dict[str, list[str]]
) -> None:
    found = subjects_by_topic(["orders", "orders-eu"], subjects, strategy)
    assert {
        topic: [" ".join(filter(None, each)) for each in entries]
        for topic, entries in found.items()
    } == expected


def test_key_and_value_stay_apart() -> None:
    key = parsed(record("K", id="long", region="string"))
    value = parsed(record("V", id="long", amount=["null", "double"]))
    assert str(combine({KEY: key, VALUE: value})) == (
        "_key STRUCT<id: INT64 NOT NULL, region: STRING NOT NULL> KEY\n"
        "id INT64 NOT NULL\n"
        "amount FLOAT64"
    )


def test_a_plain_key_has_its_type_and_a_field_of_that_name_keeps_it() -> None:
    combined = combine({KEY: parsed('"string"'), VALUE: parsed(record("V", _key="int"))})
    assert str(combined) == "__key STRING NOT NULL KEY\n_key INT32 NOT NULL"


def test_each_type_of_records_is_a_column() -> None:
    created = TopicSubject("orders-Created", "value", "Created")
    paid = TopicSubject("orders-Paid", "value", "Paid")
    first = combine({created: parsed(record("Created", id="long"))})
    both = combine(
        {created: parsed(record("Created", id="long")), paid: parsed(record("Paid", id="long"))}
    )
    assert str(first) == "Created STRUCT<id: INT64 NOT NULL>"
    assert str(both) == f"{first}\nPaid STRUCT<id: INT64 NOT NULL>"


def test_descriptions_inside_of_a_key_are_kept() -> None:
    key = {
        "type": "record", "name": "K", "doc": "who",
        "fields": [{"name": "id", "type": "long", "doc": "the customer"}],
    }  # fmt: skip
    (field,) = combine({KEY: parsed(key)}).fields
    assert field.description == "who"
    assert [(each.path, each.description) for each in field.nested] == [("_key.id", "the customer")]


def test_avro_references_are_resolved() -> None:
    address = {
        "type": "record", "name": "Address", "namespace": "com.acme",
        "fields": [
            {"name": "city", "type": "string"},
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["HOME", "WORK"]}},
        ],
    }  # fmt: skip
    order = record("Order", ship_to="com.acme.Address", kind="com.acme.Kind")
    found = parsed(order, references={"com.acme.Address": address}).schema
    assert str(found) == (
        "ship_to STRUCT<city: STRING NOT NULL, kind: ENUM('HOME','WORK') NOT NULL> NOT NULL\n"
        "kind ENUM('HOME','WORK') NOT NULL"
    )


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("address.json", "address.json"),
        ("address.json#/definitions/Street", "address.json"),
        ("address.json", "https://acme.example/schemas/address.json"),
    ],
)
def test_json_schema_references_are_resolved(reference: str, name: str) -> None:
    street = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    address = {**street, "definitions": {"Street": street}}
    order = {
        "$id": "https://acme.example/schemas/order.json",
        "type": "object",
        "properties": {"id": {"type": "integer"}, "ship_to": {"$ref": reference}},
    }
    found = parsed(order, type="JSON", references={name: address}).schema
    assert str(found) == "id INT64\nship_to STRUCT<city: STRING NOT NULL>"


def test_references_inside_of_a_referenced_document_stay_there() -> None:
    address = {
        "type": "object",
        "properties": {"city": {"$ref": "#/definitions/City"}},
        "definitions": {"City": {"type": "string"}},
    }
    order = {
        "type": "object", "properties": {"a": {"$ref": "a~b/c.json"}},
        "definitions": {"City": {"type": "integer"}},
    }  # fmt: skip
    found = parsed(order, type="JSON", references={"a~b/c.json": address}).schema
    assert str(found) == "a STRUCT<city: STRING>"


def test_protobuf_imports_are_resolved_and_the_first_message_counts() -> None:
    text = (
        'syntax = "proto3"; package acme; import "address.proto"; '
        "message Order { int64 id = 1; acme.Address ship_to = 2; } message Other { bool x = 1; }"
    )
    address = 'syntax = "proto3"; package acme; message Address { string city = 1; }'
    found = parsed(text, type="PROTOBUF", references={"address.proto": address}).schema
    assert str(found) == "id INT64\nship_to STRUCT<city: STRING>"


@pytest.mark.parametrize(
    ("text", "type", "code"),
    [
        ("{", "AVRO", "invalid_schema"),
        ("17", "AVRO", "invalid_schema"),
        ('{"type": "record", "name": "x"}', "AVRO", "invalid_schema"),
        ("[]", "JSON", "invalid_schema"),
        ("message {", "PROTOBUF", "invalid_schema"),
        ("", "PROTOBUF", "invalid_schema"),
        ("{}", "XSD", "unknown_schema_type"),
        ("[" * 50_000 + "]" * 50_000, "AVRO", "invalid_schema"),
    ],
)
def test_a_schema_that_is_none_has_a_reason(text: str, type: str, code: str) -> None:
    with pytest.raises(SubjectNotReadable) as refused:
        parsed(text, type=type)
    assert refused.value.code == code
    assert "version 1 of 's'" in refused.value.reason


def test_a_key_of_greatest_depth_is_cut_and_not_refused() -> None:
    schema: object = "long"
    for level in range(120):
        schema = record(f"R{level}", inner=schema)
    (field,) = combine({KEY: parsed(schema)}).fields
    assert "UNKNOWN('too deep')" in field.type.text


def _texts(past: tuple[PastSchema, ...]) -> list[str]:
    return [f"{each.version}: {str(each.schema).replace(chr(10), ', ')}" for each in past]


def _versions(
    subject: TopicSubject, *entries: tuple[int, int, dict[str, object]]
) -> list[ParsedSchema]:
    return [
        parsed(schema, subject=subject.subject, version=version, id=id)
        for version, id, schema in entries
    ]


def test_each_version_of_key_and_value_is_a_step_in_the_order_of_ids() -> None:
    keys = _versions(KEY, (1, 2, record("K", id="int")), (2, 4, record("K", id="long")))
    values = _versions(
        VALUE, (1, 1, record("V", a="int")), (2, 3, record("V", a="int", b="int")),
        (4, 5, record("V", b="int")),
    )  # fmt: skip
    past = history_of({KEY: SubjectVersions(keys), VALUE: SubjectVersions(values)})
    assert _texts(past) == [
        "value v1: _key STRUCT<id: INT32 NOT NULL> KEY, a INT32 NOT NULL",
        "value v2: _key STRUCT<id: INT32 NOT NULL> KEY, a INT32 NOT NULL, b INT32 NOT NULL",
        "key v2: _key STRUCT<id: INT64 NOT NULL> KEY, a INT32 NOT NULL, b INT32 NOT NULL",
        "value v4: _key STRUCT<id: INT64 NOT NULL> KEY, b INT32 NOT NULL",
    ]
    assert not any(each.exact_time for each in past)


def test_only_versions_after_the_recorded_one_are_steps() -> None:
    values = _versions(VALUE, (2, 3, record("V", a="int")), (3, 5, record("V", a="long")))
    past = history_of({VALUE: SubjectVersions(values, recorded=2)})
    assert _texts(past) == [": a INT32 NOT NULL", "value v3: a INT64 NOT NULL"]
    assert len(history_of({VALUE: SubjectVersions(values[:1], recorded=2)})) == 1


def test_a_schema_that_another_subject_registered_first_keeps_its_place() -> None:
    # Version 2 has an older id than version 1, since its text was registered elsewhere before.
    values = _versions(VALUE, (1, 9, record("V", a="int")), (2, 4, record("V", b="int")))
    past = history_of({VALUE: SubjectVersions(values)})
    assert [each.version for each in past] == ["value v1", "value v2"]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([b'{"a": 1}', b'{"a": 2.5, "b": "x"}'], "json: a FLOAT64, b STRING"),
        ([b"1", b"2"], "json: value INT64"),
        ([b"[1, 2]"], "json: value ARRAY<INT64>"),
        ([b"1;x;2026-11-01", b"2;y;2026-11-02", b"3;z;2026-11-03"], "csv: column_1 INT64, column_2 STRING, column_3 DATE"),
        ([b"hello world"], "text: value STRING"),
        ([b"\x01\x02\xff\xfe"], "binary: value BINARY"),
        ([b""], "text: value STRING"),
        ([b"Obj\x01 and no more"], "binary: value BINARY"),
        ([b"{" * 100_000], "text: value STRING"),
    ],
)  # fmt: skip
def test_messages_without_a_schema_have_an_inferred_one(
    messages: list[bytes], expected: str
) -> None:
    format, schema = infer_schema(messages)
    assert f"{format}: {str(schema).replace(chr(10), ', ')}" == expected


def test_avro_files_in_messages_bring_their_schema() -> None:
    import io

    import fastavro

    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(record("V", a="int")), [{"a": 1}])
    assert str(infer_schema([file.getvalue()]).schema) == "a INT32 NOT NULL"


def test_a_sample_only_adds_and_widens_and_a_whole_topic_decides() -> None:
    known = infer_schema([b'{"a": 1, "b": true}']).schema
    seen = infer_schema([b'{"a": 1.5, "c": "x"}']).schema
    merged = merge_with_known(seen, known, is_whole=False)
    assert str(merged) == "a FLOAT64\nb BOOLEAN\nc STRING"
    assert merge_with_known(seen, known, is_whole=True) == seen
    assert str(with_key(seen, [b"x1"])).startswith("_key STRING KEY\n")
    assert str(with_key(seen, [b'{"id": 1}'])).startswith("_key STRUCT<id: INT64> KEY\n")


def test_schema_ids_count_only_if_all_messages_have_one() -> None:
    framed = b"\0\0\0\1\2rest"
    assert schema_ids([framed, b"\0\0\0\0\7"]) == {258, 7}
    assert schema_ids([framed, b"{}"]) == set()
    assert schema_ids([]) == set()
