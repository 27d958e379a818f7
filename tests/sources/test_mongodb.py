"""MongoDB as a source: what is told of collections, what stays steady, what is refused and how."""

import json
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import bson
import msgspec
import pytest
from bson.raw_bson import RawBSONDocument
from pymongo.errors import OperationFailure

from lumos.config.secret import ConnectionString, Secret
from lumos.config.sources import MongodbSourceSettings as Settings
from lumos.model.change import Verdict
from lumos.model.discovery import Discovery, FoundDataset
from lumos.model.schema import Schema
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import classify
from lumos.sources import SampleReader, SourceNotUsable
from lumos.sources.interface import EarlierSchema
from lumos.sources.mongodb.connection import MongoAccess
from lumos.sources.mongodb.sampling import CollectionSample, CollectionSampler
from lumos.sources.mongodb.source import MongodbSource
from mongo_wire import MongoWire, Served, serving

HUSH = "hush-hush"
IDENTITY = UUID("11111111-2222-3333-4444-555555555555")


@pytest.fixture
def wire() -> MongoWire:
    orders = [{"_id": number, "total": 1.5, "note": "x"} for number in range(30)]
    return MongoWire({"shop": {"orders": Served(orders, identity=IDENTITY)}})


@pytest.fixture
def address(wire: MongoWire) -> Iterator[str]:
    with serving(wire) as address:
        yield address


def source_at(address: str, **facts: Any) -> MongodbSource:
    return MongodbSource(Settings(connection_string=ConnectionString(address), **facts))


def found_at(address: str, **facts: Any) -> Discovery:
    return source_at(address, **facts).read(lambda _share: None)


def only(discovery: Discovery) -> FoundDataset:
    (found,) = discovery.datasets
    return found


def again(source: MongodbSource, known: Schema, told: Mapping[str, str] = {}) -> FoundDataset:
    """What the next sample comes to, in the light of what is known."""

    def here(pieces: list[bytes], observer: SampleReader) -> list[bytes]:
        return [observer(piece) for piece in pieces]

    return only(source.read_samples(here, lambda _path: EarlierSchema(told, lambda: known)))


def lines(schema: Schema) -> list[str]:
    return [str(field) for field in schema.fields]


def test_a_collection_is_told_with_what_the_server_says_of_it(
    wire: MongoWire, address: str
) -> None:
    shop = wire.databases["shop"]["orders"]
    shop.indexes.append({"v": 2, "key": {"total": 1}, "name": "total_1", "unique": True})
    shop.options |= {"capped": True, "size": 4096, "max": 30, "collation": {"locale": "de"}}

    found = only(found_at(address))

    assert (found.path, found.name, found.format) == ("shop/orders", "shop.orders", "collection")
    assert found.location.uri == f"{address}/shop/orders"
    assert found.location.identity == IDENTITY.hex
    assert lines(found.schema) == ["_id INT32 NOT NULL KEY", "total FLOAT64", "note STRING"]
    assert (found.statistics.row_count, found.statistics.row_count_exact) == (30, False)
    assert found.statistics.total_size_bytes > 500
    assert found.source_metadata is not None
    assert found.source_metadata.properties == {
        "capped": "4096 bytes, 30 documents",
        "collation": '{"locale":"de"}',
        "index._id_": '{"key": {"_id": 1}}',
        "index.total_1": '{"key": {"total": 1}, "unique": true}',
    }


def test_nothing_is_written_and_every_question_has_an_end(wire: MongoWire, address: str) -> None:
    wire.databases["shop"]["orders"].documents *= 50
    found_at(address)
    names = {next(iter(command)) for command in wire.asked}
    assert names <= {
        "buildInfo", "listDatabases", "listCollections", "collStats", "aggregate", "find",
        "listIndexes", "endSessions", "count",
    }  # fmt: skip
    reads = [command for command in wire.asked if {"find", "aggregate", "collStats"} & {*command}]
    assert reads
    assert all(command["maxTimeMS"] == 300_000 for command in reads)


@pytest.mark.parametrize(
    ("options", "mode"), [("", "secondaryPreferred"), ("?readPreference=nearest", "nearest")]
)
def test_secondaries_are_read_unless_the_address_says_otherwise(options: str, mode: str) -> None:
    access = MongoAccess.of(Settings(connection_string=ConnectionString(f"mongodb://h/{options}")))
    with access.client() as client:
        assert client.read_preference.mongos_mode == mode


@pytest.mark.parametrize(
    ("count", "asked"),
    [
        pytest.param(20, "find", id="all, where they are few"),
        pytest.param(21, "aggregate", id="a sample, where they are many"),
    ],
)
def test_a_sample_is_taken_where_there_is_more_than_it_holds(
    count: int, asked: str, wire: MongoWire, address: str
) -> None:
    wire.databases["shop"]["orders"].documents = [{"_id": number} for number in range(count)]
    found_at(address, sample_size=20)
    assert any(asked in command for command in wire.asked)


def test_a_key_that_a_sample_misses_stays_and_the_schema_is_the_same(
    wire: MongoWire, address: str
) -> None:
    documents = [{"_id": number, "note": "x"} for number in range(500)]
    documents += [{"_id": number, "rare": {"deep": [number]}} for number in range(500, 502)]
    wire.databases["shop"]["orders"].documents = documents
    source = source_at(address, sample_size=600)
    first = only(source.read(lambda _share: None))
    assert first.schema.field("rare") is not None

    source = source_at(address, sample_size=5)
    wire.databases["shop"]["orders"].documents = documents[:500]
    second = again(source, first.schema)

    assert second.schema.full == first.schema.full
    assert second.content == first.content
    rare = second.schema.field("rare")
    assert rare is not None
    assert rare.properties == {"mongodb.presence": "0"}


def test_many_samples_of_one_collection_come_to_one_schema(wire: MongoWire, address: str) -> None:
    wire.databases["shop"]["orders"].documents = [
        {
            "_id": number,
            **({"a": number} if number % 2 else {"a": str(number)}),
            **({"b": {"x": 1, "y": [number]}} if number % 3 else {"b": {"y": ["t"], "z": None}}),
        }
        for number in range(1000)
    ]
    source = source_at(address, sample_size=100)
    known = only(source.read(lambda _share: None)).schema
    for _ in range(10):
        found = again(source, known)
        assert found.schema.full == known.full
        known = found.schema


def test_the_whole_collection_takes_back_what_is_gone(wire: MongoWire, address: str) -> None:
    known = only(found_at(address)).schema
    wire.databases["shop"]["orders"].documents = [{"_id": 1, "total": 2}]
    found = again(source_at(address), known)
    assert lines(found.schema) == ["_id INT32 NOT NULL KEY", "total INT32"]


def test_an_old_count_does_not_pass_a_sample_off_as_the_whole(
    wire: MongoWire, address: str
) -> None:
    known = only(found_at(address)).schema
    served = wire.databases["shop"]["orders"]
    served.documents = [{"_id": number} for number in range(30)]
    served.counted = 5
    found = again(source_at(address, sample_size=10), known)
    assert found.schema.full == known.full


def test_an_empty_collection_keeps_what_was_known(wire: MongoWire, address: str) -> None:
    known = only(found_at(address)).schema
    wire.databases["shop"]["orders"].documents = []
    assert again(source_at(address), known).schema.full == known.full


def test_the_first_document_of_an_empty_collection_breaks_nothing(
    wire: MongoWire, address: str
) -> None:
    wire.databases["shop"]["orders"].documents = []
    before = only(found_at(address)).schema
    assert lines(before) == ["_id NULL NOT NULL KEY"]
    wire.databases["shop"]["orders"].documents = [{"_id": 1, "total": 2}]
    after = again(source_at(address), before).schema
    assert lines(after) == ["_id INT32 NOT NULL KEY", "total INT32"]
    findings = classify(compare(before, after), format="collection")
    assert {(each.consumer, each.storage) for each in findings} == {
        (Verdict.COMPATIBLE, Verdict.COMPATIBLE)
    }


VALIDATOR = {
    "$jsonSchema": {
        "bsonType": "object",
        "required": ["total", "note"],
        "properties": {
            "total": {"bsonType": ["double", "int"], "description": "What is to be paid."},
            "email": {"bsonType": "string"},
            "ship": {"bsonType": "object", "properties": {"city": {"bsonType": "string"}}},
        },
    }
}


def test_a_validator_tells_words_requirements_and_what_is_not_there_yet(
    wire: MongoWire, address: str
) -> None:
    served = wire.databases["shop"]["orders"]
    served.options["validator"] = VALIDATOR
    served.documents[3] = {"_id": 3, "total": 2.0, "note": None}

    found = only(found_at(address))

    assert lines(found.schema) == [
        "_id INT32 NOT NULL KEY",
        "total FLOAT64 NOT NULL COMMENT 'What is to be paid.'",
        # Somebody wrote it before the validator came.
        "note STRING",
        "email STRING",
        "ship STRUCT<city: STRING>",
    ]
    assert found.source_metadata is not None
    assert json.loads(found.source_metadata.properties["validator"]) == VALIDATOR


def test_rules_for_a_password_are_told_and_a_password_is_not(wire: MongoWire, address: str) -> None:
    rules = {"$jsonSchema": {"properties": {"password": {"bsonType": "string"}}}}
    wire.databases["shop"]["orders"].options["validator"] = rules
    pipeline = [
        {"$match": {"apiToken": HUSH, "password": {"$exists": True}}},
        {"$set": {"from": f"mongodb://u:{HUSH}@h/db"}},
    ]
    wire.databases["shop"]["view"] = Served(
        type="view", options={"viewOn": "orders", "pipeline": pipeline}
    )
    orders, view = found_at(address).datasets
    assert orders.schema.field("password") is not None
    assert orders.source_metadata is not None
    assert json.loads(orders.source_metadata.properties["validator"]) == rules
    assert view.source_metadata is not None
    assert HUSH not in view.source_metadata.properties["pipeline"]
    assert '"password":{"$exists":true}' in view.source_metadata.properties["pipeline"]


@pytest.mark.parametrize(
    "level", [{"validationAction": "warn"}, {"validationLevel": "moderate"}], ids=str
)
def test_a_validator_that_nobody_enforces_requires_nothing(
    level: dict[str, str], wire: MongoWire, address: str
) -> None:
    wire.databases["shop"]["orders"].options |= {"validator": VALIDATOR, **level}
    total = only(found_at(address)).schema.field("total")
    assert total is not None
    assert total.nullable


def test_views_are_told_with_their_pipeline_and_are_never_sampled_by_chance(
    wire: MongoWire, address: str
) -> None:
    pipeline = [{"$match": {"total": {"$gt": 10}}}]
    wire.databases["shop"] = {
        "large": Served(
            [{"name": "x"}], type="view", options={"viewOn": "orders", "pipeline": pipeline}
        )
    }
    found = only(found_at(address))
    assert found.format == "view"
    assert lines(found.schema) == ["name STRING"]
    assert found.source_metadata is not None
    assert found.source_metadata.properties == {
        "view_on": "orders",
        "pipeline": '[{"$match":{"total":{"$gt":10}}}]',
    }
    assert not any("aggregate" in command or "listIndexes" in command for command in wire.asked)


def view(documents: list[dict[str, Any]], *pipeline: dict[str, Any]) -> Served:
    return Served(documents, type="view", options={"viewOn": "orders", "pipeline": list(pipeline)})


@pytest.mark.parametrize(
    ("stage", "size", "columns"),
    [
        pytest.param({"$match": {}}, 10, ["b INT32"], id="seen as a whole"),
        pytest.param({"$match": {}}, 1, ["a INT32", "b INT32"], id="first documents"),
        pytest.param({"$project": {"b": 1}}, 1, ["b INT32"], id="defined anew"),
    ],
)
def test_a_view_loses_columns_where_it_is_seen_whole_or_is_another(
    wire: MongoWire, address: str, stage: dict[str, Any], size: int, columns: list[str]
) -> None:
    views = wire.databases["shop"] = {"recent": view([{"a": 1}, {"a": 2}], {"$match": {}})}
    before = only(found_at(address))
    assert before.source_metadata is not None
    views["recent"] = view([{"b": 1}, {"b": 2}], stage)
    found = again(
        source_at(address, sample_size=size), before.schema, before.source_metadata.properties
    )
    assert lines(found.schema) == columns


def test_shards_are_told_by_their_key(wire: MongoWire, address: str) -> None:
    wire.databases["shop"]["orders"].sharded = True
    wire.shard_keys["shop.orders"] = {"country": 1, "_id": "hashed"}
    told = only(found_at(address)).source_metadata
    assert told is not None
    assert told.properties["shard_key"] == '{"country": 1, "_id": "hashed"}'


@pytest.mark.parametrize(
    ("facts", "names"),
    [
        pytest.param({}, ["shop.orders", "shop.users", "web.users"], id="all but the server's"),
        pytest.param({"databases": ("web",)}, ["web.users"], id="a database"),
        pytest.param({"databases": ("w*",)}, ["web.users"], id="databases by a pattern"),
        pytest.param({"collections": ("users",)}, ["shop.users", "web.users"], id="collections"),
        pytest.param({"collections": ("shop.u*",)}, ["shop.users"], id="with their database"),
        pytest.param({"exclude": ("users",)}, ["shop.orders"], id="left out"),
    ],
)
def test_only_what_is_wanted_is_looked_at(
    facts: dict[str, Any], names: list[str], wire: MongoWire, address: str
) -> None:
    wire.databases["shop"] |= {
        "users": Served(),
        "system.views": Served(),
        "system.buckets.t": Served(),
    }
    wire.databases["web"] = {"users": Served()}
    source = source_at(address, **facts)
    discovery = source.read(lambda _share: None)
    assert [found.name for found in discovery.datasets] == names
    assert all(source.covers(found.path) for found in discovery.datasets)
    everything = ("shop/orders", "shop/users", "web/users")
    assert sum(map(source.covers, everything)) == len(names)
    assert not source.covers("admin/users")


def test_the_database_of_the_address_is_the_one_that_is_read(wire: MongoWire, address: str) -> None:
    wire.databases["web"] = {"users": Served()}
    assert only(found_at(f"{address}/web")).name == "web.users"
    assert len(found_at(f"{address}/admin").datasets) == 2


def test_a_database_that_is_not_there_is_a_remark(address: str) -> None:
    (remark,) = found_at(address, databases=("shopp",)).problems
    assert (remark.code, remark.remark) == ("no_such_database", True)
    assert "Did you mean 'shop'?" in remark.reason


def test_named_databases_are_read_without_the_right_to_list_them(
    wire: MongoWire, address: str
) -> None:
    wire.refuse("listDatabases", 13, "not authorized on admin to execute command")
    assert only(found_at(address, databases=("shop",))).name == "shop.orders"
    with pytest.raises(SourceNotUsable, match="no permission to read"):
        found_at(address)


def test_a_database_that_cannot_be_listed_is_a_problem_and_others_are_read(
    wire: MongoWire, address: str
) -> None:
    wire.databases["web"] = {"users": Served()}
    wire.refuse("listCollections web", 13, "not authorized on web to execute command")
    discovery = found_at(address)
    assert only(discovery).name == "shop.orders"
    (problem,) = discovery.problems
    assert (problem.path, problem.code, problem.remark) == ("web", "not_allowed", False)


@pytest.mark.parametrize(
    ("code", "word"),
    [(13, "not_allowed"), (50, "too_slow"), (11601, "unreadable")],
)
def test_a_collection_that_cannot_be_read_is_a_problem_and_others_are_read(
    code: int, word: str, wire: MongoWire, address: str
) -> None:
    wire.databases["shop"]["users"] = Served([{"_id": 1}])
    wire.refuse("find shop.orders", code, "no")
    discovery = found_at(address)
    assert only(discovery).name == "shop.users"
    (problem,) = discovery.problems
    assert (problem.path, problem.code, problem.remark) == ("shop/orders", word, False)


@pytest.mark.parametrize("code", [238, 40324])
def test_a_server_without_random_samples_returns_its_first_documents(
    code: int, wire: MongoWire, address: str
) -> None:
    wire.databases["shop"]["orders"] = Served(
        [{"_id": number, f"k{number}": 1} for number in range(30)]
    )
    wire.refuse("aggregate shop.orders", code, "`$sample` is not implemented yet")
    found = only(found_at(address, sample_size=10))
    assert [field.name for field in found.schema.fields] == [
        "_id", *(f"k{number}" for number in range(10)),
    ]  # fmt: skip


def test_sizes_and_indexes_that_nobody_may_see_are_left_out(wire: MongoWire, address: str) -> None:
    for command in ("collStats", "listIndexes"):
        wire.refuse(command, 13, "not authorized")
    found = only(found_at(address))
    assert found.statistics.row_count == 30
    assert found.source_metadata is not None
    assert found.source_metadata.properties == {}


def test_a_source_of_which_nothing_can_be_read_is_refused(wire: MongoWire, address: str) -> None:
    wire.refuse("find", 11601, "operation was interrupted")
    with pytest.raises(SourceNotUsable, match="operation was interrupted"):
        found_at(address)


def test_the_check_says_what_is_there(address: str) -> None:
    assert source_at(address).check() == (
        f"{address}, MongoDB 7.0.14, 1 collection and views in 1 database"
    )


@pytest.mark.parametrize(
    ("code", "text"), [(18, f"Authentication failed for {HUSH}."), (8000, "bad auth : no")]
)
def test_a_wrong_password_is_told_without_it(
    code: int, text: str, wire: MongoWire, address: str
) -> None:
    wire.refuse("saslStart", code, text)
    written = address.replace("://", f"://reader:{HUSH}@")
    with pytest.raises(SourceNotUsable) as refused:
        source_at(written).check()
    assert "rejected the login" in str(refused.value)
    assert HUSH not in str(refused.value)


def test_user_and_password_may_stand_beside_the_host(wire: MongoWire, address: str) -> None:
    wire.refuse("saslStart", 18, "Authentication failed.")
    port = int(address.rpartition(":")[2])
    settings = Settings(host="127.0.0.1", port=port, user="reader", password=Secret(HUSH))
    source = MongodbSource(settings)
    assert source.address == address
    with pytest.raises(SourceNotUsable, match="rejected the login"):
        source.check()


def test_an_old_server_is_named_as_such(wire: MongoWire, address: str) -> None:
    wire.wire_version = 4
    with pytest.raises(SourceNotUsable, match="is too old"):
        source_at(address).check()


@pytest.mark.parametrize(
    "string",
    [
        f"mongodb://reader:{HUSH}/@host/db",
        f"mongodb://reader:{HUSH}@host/db?nonsense",
        f"mongodb://reader:{HUSH}@host:port/db",
        f"mysql://reader:{HUSH}@host/db",
    ],
)
def test_a_connection_string_that_cannot_be_read_is_not_shown(string: str) -> None:
    with pytest.raises(SourceNotUsable) as refused:
        source_at(string).check()
    assert HUSH not in str(refused.value)
    assert "mongodb://user:password@host" in str(refused.value)


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("host/db?tls=maybe", "The value of tls must be 'true' or 'false'"),
        ("host/db?authMechanism=FOO", "authmechanism must be in"),
        ("host/db?bogus=1", "Unknown option: bogus."),
        ("host/?tlsInsecure=true&tlsAllowInvalidCertificates=true", "specified simultaneously"),
        (f"host/?tlsCertificateKeyFilePassword={HUSH}&tls=false", "TLS has not been enabled"),
        ("host:99999/db", "Port must be an integer between 0 and 65535"),
    ],
)
def test_a_wrong_option_is_named(place: str, told: str) -> None:
    with pytest.raises(SourceNotUsable) as refused:
        source_at(f"mongodb://reader:{HUSH}@{place}").check()
    assert told in str(refused.value)
    assert HUSH not in str(refused.value)


def test_what_travels_to_executors_shows_no_secret(address: str) -> None:
    written = address.replace("://", f"://reader:{HUSH}@")
    sampler = source_at(written).sample_reader()
    assert HUSH not in f"{sampler._access!r} {sampler._access}"
    assert pickle.loads(pickle.dumps(sampler))._access == sampler._access


@pytest.mark.parametrize(
    ("string", "shown"),
    [
        ("mongodb://a,b:27018/x?replicaSet=r", "mongodb://a,b:27018"),
        ("mongodb://u:p@[::1]:27017/", "mongodb://[::1]"),
        ("mongodb+srv://u:p@cluster.example/x", "mongodb+srv://cluster.example"),
        ("mongodb://u:p@%2Ftmp%2Fm-27017.sock/x", "mongodb://%2Ftmp%2Fm-27017.sock"),
    ],
)
def test_an_address_is_shown_by_its_hosts(string: str, shown: str) -> None:
    assert source_at(string).address == shown


def test_names_with_any_marks_come_back_from_urns(wire: MongoWire, address: str) -> None:
    wire.databases = {"shop": {"a/b c.d": Served([{"_id": 1}])}}
    source = source_at(address, instance="eu")
    found = only(source.read(lambda _share: None))
    urn = source.urn(found.path, environment="PROD")
    assert urn.path_text == found.path
    assert source.covers(found.path)


def test_documents_that_are_no_bson_are_counted_and_others_read() -> None:
    from bson import encode

    from lumos.sources.mongodb.documents import DocumentCounter

    class Cursor(list[RawBSONDocument]):
        def __enter__(self) -> "Cursor":
            return self

        def __exit__(self, *_: object) -> None:
            pass

    whole = encode({"a": 1})
    broken = whole.replace(b"\x10a", b"\x77a")
    documents = DocumentCounter()
    documents.count_documents(Cursor([RawBSONDocument(whole), RawBSONDocument(broken)]))
    assert (documents.seen.count, documents.damaged) == (1, 1)
    assert msgspec.msgpack.encode(documents.seen)


@pytest.mark.parametrize("name", ["tlsCAFile", "tlsCertificateKeyFile"])
def test_a_file_for_the_connection_that_is_not_there_is_named(name: str) -> None:
    source = source_at(f"mongodb://127.0.0.1:1/shop?tls=true&{name}=/nope.pem")
    with pytest.raises(SourceNotUsable, match=r"'/nope\.pem' .* No such file or directory"):
        source.check()


def test_a_file_that_holds_no_certificate_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("nothing")
    source = source_at(f"mongodb://127.0.0.1:1/shop?tls=true&tlsCAFile={file}")
    with pytest.raises(SourceNotUsable, match="Check tlsCAFile"):
        source.check()


def test_a_file_that_only_the_driver_has_is_told_by_executors(address: str) -> None:
    (work,) = source_at(address).sample_tasks().pieces
    elsewhere = MongoAccess(display_address="x", uri="mongodb://x/?tls=true&tlsCAFile=/nope.pem")
    answer = msgspec.msgpack.decode(CollectionSampler(elsewhere)(work), type=CollectionSample)
    assert answer.code == "unreadable"
    assert "'/nope.pem'" in answer.reason


@pytest.mark.parametrize("secret", ["p%40ss+W0rd", "p@ss+W0rd", "KEYPW", "SESSION/1"])
def test_no_secret_of_the_address_is_told_however_it_is_written(secret: str) -> None:
    properties = "authMechanismProperties=AWS_SESSION_TOKEN:SESSION%2F1"
    access = MongoAccess(
        display_address="h",
        uri=f"mongodb://u:p%40ss+W0rd@h/shop?tlsCertificateKeyFilePassword=KEYPW&{properties}",
    )
    told = access.describe(OperationFailure(f"login with {secret} failed"))
    assert told == "login with *** failed"


def test_times_far_off_any_calendar_may_stand_in_views_and_indexes() -> None:
    far = bson.DatetimeMS(1 << 60)
    until = {"until": {"$lt": far}}
    indexes = [{"v": 2, "key": {"a": 1}, "name": "a_1", "partialFilterExpression": until}]
    view = {"viewOn": "orders", "pipeline": [{"$match": until}]}
    wire = MongoWire({"shop": {
        "orders": Served([{"_id": 1}], indexes=indexes),
        "late": Served([{"a": 1}], type="view", options=view),
    }})  # fmt: skip
    with serving(wire) as address:
        found = source_at(address).read(lambda _share: None)
    assert found.problems == ()
    told = {each.path: each.source_metadata.properties for each in found.datasets}
    assert str(1 << 60) in told["shop/late"]["pipeline"]
    assert str(1 << 60) in told["shop/orders"]["index.a_1"]


def damaged_answer() -> dict[str, Any]:
    broken = bson.encode({"a": 1}).replace(b"\x10a", b"\x77a")
    return {"ok": 1.0, "version": "8.0.0", "more": RawBSONDocument(broken)}


def test_an_answer_that_is_no_bson_is_a_problem_of_its_collection(
    wire: MongoWire, address: str
) -> None:
    wire.databases["shop"]["other"] = Served([{"_id": 1}])
    wire.refused["collStats shop.orders"] = damaged_answer()
    found = source_at(address).read(lambda _share: None)
    assert [each.path for each in found.datasets] == ["shop/other"]
    assert [(each.path, each.code) for each in found.problems] == [("shop/orders", "unreadable")]


@pytest.mark.parametrize("command", ["buildinfo", "listDatabases"])
def test_a_server_that_answers_no_bson_is_refused_in_a_sentence(
    wire: MongoWire, address: str, command: str
) -> None:
    wire.refused[command] = damaged_answer()
    with pytest.raises(SourceNotUsable, match=r"Reading from .* failed"):
        source_at(address).check()
