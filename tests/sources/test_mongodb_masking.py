"""What looks like a secret in pipelines, validators and indexes of MongoDB is not kept."""

from typing import Any

import bson
import pytest

from lumos.sources.mongodb.masking import mask_secrets
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
        {"$jsonSchema": {"properties": {"tokens": {"properties": {"token": {"enum": ["HUSH"]}}}}}},
        {"$jsonSchema": {"properties": {"password": {"not": {"enum": ["HUSH"]}}}}},
        {"$jsonSchema": {"properties": {"credentials": {"items": {"enum": ["HUSH"]}}}}},
        {"$jsonSchema": {"properties": {"token": {"anyOf": [{"enum": ["HUSH"]}]}}}},
        {"$expr": {"$eq": [{"$toLower": "$password"}, "HUSH"]}},
        {"$expr": {"$eq": ["HUSH", {"$trim": {"input": "$password"}}]}},
        {"$expr": {"$ne": [{"$getField": "password"}, {"$literal": "HUSH"}]}},
        {"$expr": {"$in": [{"$getField": {"field": "token", "input": "$$ROOT"}}, ["HUSH"]]}},
        {"$expr": {"$and": [True, {"$gte": [{"$toLower": "$password"}, "HUSH"]}]}},
        {"$expr": {"$regexMatch": {"input": "$password", "regex": "HUSH"}}},
        {"$expr": {"$regexMatch": {"input": {"$toLower": "$token"}, "regex": "HUSH"}}},
        {"$set": {"a": {"$setField": {"field": "password", "input": "$a", "value": "HUSH"}}}},
        {"$set": {"a": {"$arrayToObject": {"$literal": [{"k": "password", "v": "HUSH"}]}}}},
        {"$search": {"text": {"path": ["password", "name"], "query": "HUSH"}}},
        {
            "$lookup": {
                "let": {"pw": "$password"},
                "pipeline": [{"$match": {"$expr": {"$eq": ["$$pw", "HUSH"]}}}],
            }
        },
        {
            "$lookup": {
                "let": {"u": "$user"},
                "pipeline": [{"$match": {"$expr": {"$eq": ["$$u.password", "HUSH"]}}}],
            }
        },
        {"$let": {"vars": {"p": {"$toLower": "$token"}}, "in": {"$ne": ["HUSH", "$$p"]}}},
        {
            "$let": {
                "vars": {"p": "$token"},
                "in": {"$let": {"vars": {"q": "$$p"}, "in": {"$eq": ["$$q", "HUSH"]}}},
            }
        },
        {"$filter": {"input": "$credentials", "as": "t", "cond": {"$eq": ["$$t", "HUSH"]}}},
        {"$map": {"input": "$credentials", "in": {"$eq": ["$$this", "HUSH"]}}},
        {"$where": "this.password == 'HUSH'"},
        {"$where": {"$code": "this.password == 'HUSH'"}},
        {"$expr": {"$function": {"body": "function(token) { return token == 'HUSH' }"}}},
        {"properties": {"token": {"$eq": "HUSH"}}},
        {"$set": {"properties": {"token": "HUSH"}}},
        {"note": "password=HUSH"},
    ],
)
def test_what_is_compared_to_a_secret_or_put_in_its_place_is_masked(value: Any) -> None:
    shown = as_json(mask_secrets([{"$match": value}]))
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
        {"$jsonSchema": {"properties": {"state": {"enum": ["open"]}, "enum": {"type": "int"}}}},
        {"$expr": {"$eq": ["$state", "open"]}},
        [{"$match": {"state": {"$in": ["a", 1]}}}],
        {"$expr": {"$and": [{"$ne": ["$password", None]}, {"$eq": ["$state", "open"]}]}},
        {"$expr": {"$eq": [{"$toLower": "$password"}, "$former.password"]}},
        {"$expr": {"$regexMatch": {"input": "$state", "regex": "^o"}}},
        {"$facet": {"token": [{"$lookup": {"from": "tokens", "as": "found"}}]}},
        {"$where": "this.state == 'open'"},
        {"$lookup": {"let": {"pw": "$password", "s": "$state"}, "pipeline": [
            {"$match": {"$expr": {"$and": [
                {"$eq": ["$$pw", "$password"]}, {"$eq": ["$$s", "open"]}]}}}]}},
        {"$unwind": {"path": "$token", "includeArrayIndex": "place"}},
    ],
)  # fmt: skip
def test_rules_and_other_values_stay_as_they_are(value: Any) -> None:
    assert mask_secrets(value) == value
