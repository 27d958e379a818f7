"""OpenMetadata's published JSON schemas, which every request to the stub is held against.

They come with `org.open-metadata:openmetadata-spec` from Maven Central, through the Ivy that Spark
brings along, into build/. 1.4.0 is the last release there, and the adapter speaks to later ones:
what these take beside it is written out in `_SINCE`.
"""

import hashlib
import json
import re
import subprocess
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pyspark
import pytest
from referencing import Registry
from referencing.jsonschema import DRAFT7

VERSION = "1.4.0"
_SHA256 = "4dcf3e603298652a57caaaf23922b16ec2e0153761c5f280019afba47759350a"
_FOLDER = Path(__file__).parents[3] / "build" / "openmetadata-spec"
_ROOT = "json/schema/"
_BASE = "file:///"
_BASIC = f"{_BASE}type/basic.json#/definitions/"
_REFERENCES = {"$ref": f"{_BASE}type/entityReferenceList.json"}
_NAMES = {"type": "array", "items": {"$ref": f"{_BASIC}fullyQualifiedEntityName"}}
# Several owners since 1.5, several domains since 1.9, where `owner` and `domain` went.
_SINCE: dict[str, dict[str, Any]] = {
    "owner": {"owners": _REFERENCES},
    "domain": {"domains": _NAMES},
}
_TEXT = {"type": "string"}
_LIST = {"type": "array"}
_OBJECT = {"type": "object"}
_TAGS = {"type": "array", "items": {"$ref": f"{_BASE}type/tagLabel.json"}}
_ANY_SERVICE = {
    "name": _TEXT, "displayName": _TEXT, "description": _TEXT, "serviceType": {"enum": ["Rest"]},
    "connection": _OBJECT, "owners": _REFERENCES, "domains": _NAMES,
    "tags": _TAGS,
}  # fmt: skip
_ANY_DATA = {
    **{key: each for key, each in _ANY_SERVICE.items() if key not in ("serviceType", "connection")},
    "dataProducts": _NAMES, "extension": _OBJECT, "endpointURL": _TEXT, "sourceUrl": _TEXT,
}  # fmt: skip
_COLLECTION = {**_ANY_DATA, "service": _TEXT}
_ENDPOINT = {
    **_ANY_DATA, "apiCollection": _TEXT, "requestMethod": {"enum": ["GET", "POST", "PUT"]},
    "requestSchema": _OBJECT, "responseSchema": _OBJECT,
}  # fmt: skip


def _later(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": ["name", *required],
        "additionalProperties": False,
    }


# Kinds of entity that came later, by what this project sends of them.
_KINDS_SINCE = {
    "api/services/createApiService.json": _later(_ANY_SERVICE, "serviceType"),
    "entity/services/apiService.json": _later({**_ANY_SERVICE, "domains": _REFERENCES}),
    "api/data/createAPICollection.json": _later(_COLLECTION, "service"),
    "entity/data/apiCollection.json": _later({**_COLLECTION, "domains": _REFERENCES}),
    "api/data/createAPIEndpoint.json": _later(_ENDPOINT, "apiCollection"),
    "entity/data/apiEndpoint.json": _later({**_ENDPOINT, "domains": _REFERENCES, "dataProducts": _REFERENCES}),
}  # fmt: skip
_SINCE_OF: dict[str, dict[str, Any]] = {
    "api/domains/createDomain.json": {"tags": _TAGS, "extension": _OBJECT},
    "entity/domains/domain.json": {"tags": _TAGS, "extension": _OBJECT},
    "api/domains/createDataProduct.json": {"tags": _TAGS, "extension": _OBJECT},
    "entity/domains/dataProduct.json": {"tags": _TAGS, "extension": _OBJECT},
    "api/classification/createTag.json": {"owners": _REFERENCES, "domains": _NAMES},
    "entity/classification/tag.json": {"owners": _REFERENCES, "domains": _REFERENCES},
    "api/data/createChart.json": {"extension": _OBJECT},
    "entity/data/chart.json": {"extension": _OBJECT},
    "api/data/createDashboardDataModel.json": {"extension": _OBJECT},
    "entity/data/dashboardDataModel.json": {"extension": _OBJECT},
    # References instead of names.
    "api/data/createGlossary.json": {"reviewers": _REFERENCES},
    "api/data/createGlossaryTerm.json": {"reviewers": _REFERENCES},
    "api/data/createTable.json": {"locationPath": {"type": "string"}},
    "entity/data/table.json": {"locationPath": {"type": "string"}},
    # Columns may have names of any length; related terms say how they are related.
    "entity/data/glossaryTerm.json": {"relatedTerms": {"type": "array"}},
}


class Specification:
    """The schemas of one release."""

    def __init__(self, jar: Path) -> None:
        with zipfile.ZipFile(jar) as archive:
            self._schemas = {
                name.removeprefix(_ROOT): _adapted(
                    name.removeprefix(_ROOT), json.loads(_plain(archive.read(name).decode()))
                )
                for name in archive.namelist()
                if name.startswith(_ROOT) and name.endswith(".json")
            } | _KINDS_SINCE
        resources = (
            (f"{_BASE}{path}", DRAFT7.create_resource(schema))
            for path, schema in self._schemas.items()
        )
        self._registry: Registry[Any] = Registry().with_resources(resources)
        self._validators: dict[str, Any] = {}

    def complaint(self, schema: str, body: Any) -> str | None:
        """What is wrong with a body, if anything is; `schema` is a path, with a `#` or not."""
        validator = self._validators.get(schema)
        if validator is None:
            validator = jsonschema.Draft7Validator(
                {"$ref": f"{_BASE}{schema}"}, registry=self._registry
            )
            self._validators[schema] = validator
        error = next(validator.iter_errors(body), None)
        return None if error is None else f"{error.json_path}: {error.message[:300]}"

    def complaint_of_field(self, entity: str, field: str, value: Any) -> str | None:
        """What is wrong with one field of an entity."""
        if field not in self._schemas[entity]["properties"]:
            return f"'{entity}' has no field '{field}'"
        return self.complaint(f"{entity}#/properties/{field}", value)


def _plain(text: str) -> str:
    # Java's flag for letters of all scripts, which Python knows anyway.
    return text.replace("(?U)", "")


def _adapted(path: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A schema as later releases have it, found by its path: not every `$id` is right."""
    schema.pop("$id", None)
    properties = schema.get("properties", {})
    if path.startswith(("api/", "entity/")):
        for old, new in _SINCE.items():
            if properties.pop(old, None) is not None:
                properties |= new
        if path.startswith("entity/") and "domains" in properties:
            properties["domains"] = _REFERENCES
    properties |= _SINCE_OF.get(path, {})
    if path == "entity/data/table.json":
        schema["definitions"]["columnName"].pop("maxLength")
    return schema


@cache
def specification() -> Specification:
    """The published schemas; skips the test, saying why, where they cannot be had."""
    jar = _FOLDER / f"openmetadata-spec-{VERSION}.jar"
    if not jar.exists():
        problem = _fetch(jar)
        if problem is not None:
            pytest.skip(f"OpenMetadata's schemas cannot be had here: {problem}")
    digest = hashlib.sha256(jar.read_bytes()).hexdigest()
    assert digest == _SHA256, f"{jar} is not what was published: {digest}"
    return Specification(jar)


def _fetch(jar: Path) -> str | None:
    """Brings the jar; says what went wrong."""
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"), None)
    if ivy is None:
        return "Spark brings no Ivy along"
    command = [
        "java", "-jar", ivy, "-warn", "-notransitive", "-types", "jar", "-cache", _FOLDER / "ivy",
        "-dependency", "org.open-metadata", "openmetadata-spec", VERSION,
        "-retrieve", _FOLDER / "[artifact]-[revision].[ext]",
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return str(problem)
    if jar.exists():
        return None
    return re.sub(r"\s+", " ", done.stdout + done.stderr)[-300:] or "nothing came"
