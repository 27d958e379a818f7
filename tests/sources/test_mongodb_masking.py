"""What looks like a secret in pipelines, validators and indexes of MongoDB is not kept."""

from typing import Any

import bson
import pytest

from lumos.sources.mongodb.masking import masked
from lumos.sources.mongodb.sampling import as_json


@pytest.mark.parametrize(
    "value",
    [
        {"token": "HUSH"},
        {"password": {"$eq": "HUSH"}},
        {"api_key": {"$in": ["HUSH", {"$regex": "HUSH"}]}},
        {"password": {"$not": {"$eq": "HUSH"}}},
        {"credentials": {"user": "HUSH"}},
        {"account.secret": ["HUSH"]},
        {"token": bson.Binary(b"HUSH")},
        {"token": bson.Regex("HUSH")},
        {"$expr": {"$eq": ["$password", "HUSH"]}},
        {"$expr": {"$in": ["$user.token", ["HUSH"]]}},
        {"$set": {"token": {"$cond": {"if": "$a", "then": "HUSH"}}}},
        {"$jsonSchema": {"properties": {"token": {"enum": ["HUSH"]}}}},
        {"note": "password=HUSH"},
    ],
)
def test_what_is_compared_to_a_secret_or_put_in_its_place_is_masked(value: Any) -> None:
    shown = as_json(masked([{"$match": value}]))
    assert "HUSH" not in shown
    assert "SFVTSA" not in shown
    assert "***" in shown


@pytest.mark.parametrize(
    "value",
    [
        {"password": {"$exists": True, "$type": "string"}},
        {"password": None},
        {"$jsonSchema": {"required": ["password"], "properties": {
            "password": {"bsonType": "string", "minLength": 8, "description": "salted"},
            "credentials": {"bsonType": "object", "properties": {"user": {"bsonType": "string"}}},
        }}},
        {"$expr": {"$eq": ["$state", "open"]}},
        [{"$match": {"state": {"$in": ["a", 1]}}}],
    ],
)  # fmt: skip
def test_rules_and_other_values_stay_as_they_are(value: Any) -> None:
    assert masked(value) == value
