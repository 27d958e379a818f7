"""A stub of DataHub's metadata service (GMS): it keeps what it is sent, and answers as that does.

Checked against acryl-datahub 1.7 (what its emitter and graph client send and expect) and read in
the server's public source: statuses, the 422 of a failed validation, patches by key and their
templates, batchGet and scroll leaving out entities without any aspect that was asked for, default
aspects, limits of URNs. Never compared with a running server. Stricter than the source: unknown
fields are refused (a server of today trims them without a word).

Not known, and chosen: that a batch is taken as a whole or not at all; the 16 MB; the status for a
scroll id that has expired (400); the browse path of a new dataset; that null is as good as absent.
"""

import base64
import binascii
import re
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from . import gms_model as model
from .gms_patches import Unpatchable, patched
from .http import Answer, Request, Server, serve

TOKEN = "a-token-of-the-stub"
_LARGEST_BODY = 16 << 20
_WINDOW = 10_000
_DATASET = re.compile(r"urn:li:dataset:\((urn:li:dataPlatform:[^,]+),")
_ENTITY = re.compile(r"/openapi/v3/entity/(\w+)/(urn%3Ali%3A[^/]+|urn:li:.+?)(?:/(\w+))?")


class _Aspect(msgspec.Struct):
    value: str
    contentType: str = "application/json"


class Proposal(msgspec.Struct, kw_only=True):
    """One change as it was sent."""

    entityType: str
    entityUrn: str
    changeType: str
    aspectName: str
    aspect: _Aspect | None = None
    systemMetadata: dict[str, Any] | None = None
    headers: dict[str, str] | None = None
    auditHeader: dict[str, Any] | None = None
    entityKeyAspect: dict[str, Any] | None = None


class _Batch(msgspec.Struct, kw_only=True):
    proposals: list[Proposal] = []
    proposal: Proposal | None = None
    is_async: str = msgspec.field(name="async", default="false")


class Held(NamedTuple):
    """An aspect: its body as JSON, and how often it was written."""

    body: bytes
    version: int


class _Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


_batch_of = msgspec.json.Decoder(_Batch).decode
_json = msgspec.json.encode


class Gms:
    """The state of the stub, and its routes; give it to a `Server`.

    `validating=False` takes everything as it is, for measurements. `index_lag` is the number of
    calls after which the search index knows what was written; `scroll_life` the number of calls
    that a scroll id lives; `keys_of_missing` lets batchGet answer the key of what is not there.
    """

    def __init__(
        self,
        *,
        token: str | None = TOKEN,
        validating: bool = True,
        index_lag: int = 0,
        scroll_life: int | None = None,
        keys_of_missing: bool = False,
        counts: bool = True,
        checks_references: bool = False,
        version: str = "v1.3.0",
        recording: bool = True,
    ) -> None:
        self.token = token
        self.validating = validating
        self.index_lag = index_lag
        self.scroll_life = scroll_life
        self.keys_of_missing = keys_of_missing
        self.counts = counts
        self.checks_references = checks_references
        self.version = version
        self.recording = recording
        self.entities: dict[str, dict[str, Held]] = {}
        self.proposals: list[Proposal] = []
        self.taken: Counter[tuple[str, str]] = Counter()
        self.calls = 0
        self._indexed_from: dict[str, int] = {}
        self._sorted: dict[str, list[str]] | None = None

    # What a test does beside the client: as another user, or to look.

    def emptied(self) -> None:
        self.entities.clear()
        self._indexed_from.clear()
        self._sorted = None
        self.forget()

    def forget(self) -> None:
        self.proposals.clear()
        self.taken.clear()

    def hold(self, urn: str, aspects: Mapping[str, Any]) -> None:
        """Puts aspects there without a call."""
        self._write({(urn, name): _json(body) for name, body in aspects.items()})

    def aspects(self, urn: str) -> dict[str, Any]:
        """The bodies of an entity's aspects, its key left out."""
        held = self.entities.get(urn, {})
        return {
            name: msgspec.json.decode(aspect.body)
            for name, aspect in held.items()
            if not name.endswith("Key")
        }

    def state(self) -> dict[str, dict[str, Any]]:
        """All that is there, to be compared."""
        return {urn: self.aspects(urn) for urn in sorted(self.entities)}

    def datasets(self) -> list[str]:
        return [urn for urn in sorted(self.entities) if urn.startswith("urn:li:dataset:")]

    def saved(self) -> Any:
        """What is there now, for `restore`."""
        return {urn: dict(held) for urn, held in self.entities.items()}

    def restore(self, saved: Any) -> None:
        self.emptied()
        self.entities.update({urn: dict(held) for urn, held in saved.items()})
        self._indexed_from.update(dict.fromkeys(saved, 0))

    # Routes.

    def __call__(self, request: Request) -> Answer:
        self.calls += 1
        if (
            self.token is not None
            and request.headers.get("Authorization") != f"Bearer {self.token}"
        ):
            return _problem(401, "Unauthorized to perform this action.")
        try:
            return self._route(request)
        except _Refused as refused:
            return _problem(refused.status, str(refused))
        except Unpatchable as error:
            return _problem(500, f"java.lang.RuntimeException: {error}")
        except (msgspec.DecodeError, KeyError) as error:
            return _problem(400, f"the body is not what the route takes: {error!r}")

    def _route(self, request: Request) -> Answer:
        entity = _ENTITY.fullmatch(request.path)
        match request.method, request.path, request.query.get("action"):
            case "GET", "/config", _:
                return Answer.of(self._config())
            case "POST", "/aspects" | "/aspects/", "ingestProposalBatch" | "ingestProposal":
                return self._ingest(request)
            case "POST", "/entities", "delete":
                return self._delete(request.json["urn"])
            case "POST", "/entities", "search":
                return self._search(request.json)
            case "POST", "/openapi/v3/entity/scroll", _:
                return self._scroll(request.query, request.json)
            case "POST", "/api/graphql", _:
                return self._graphql(request.json)
            case "GET", "/openapi/v1/registry/models/entity/specifications", _:
                return _specifications(request.query)
            case "POST", path, _ if path.endswith("/batchGet"):
                return self._batch_get(request.json, "systemMetadata" in request.query)
            case "GET", path, _ if path.startswith("/entitiesV2/"):
                return self._entity(unquote(path.removeprefix("/entitiesV2/")), request.query)
            case "GET", path, _ if path.startswith("/aspects/"):
                urn = unquote(path.removeprefix("/aspects/"))
                return self._latest(urn, request.query["aspect"])
            case "DELETE", _, _ if entity and entity[3]:
                return self._delete_aspect(unquote(entity[2]), entity[3])
            case "DELETE", _, _ if entity:
                raise AssertionError(
                    f"this deletes an entity with all that people wrote: {entity[2]}"
                )
        return _problem(404, f"no route for {request.method} {request.target}")

    def _config(self) -> dict[str, Any]:
        return {
            "noCode": "true",
            "patchCapable": True,
            "versions": {"acryldata/datahub": {"version": self.version, "commit": "stub"}},
            "datahub": {"serverType": "prod", "serverEnv": "core"},
        }

    # Writing.

    def _ingest(self, request: Request) -> Answer:
        if len(request.body) > _LARGEST_BODY:
            raise _Refused(413, f"Request body of {len(request.body)} bytes is too large")
        batch = _batch_of(request.body)
        proposals = [batch.proposal] if batch.proposal else batch.proposals
        changed: dict[tuple[str, str], bytes] = {}
        for proposal in proposals:
            place = (proposal.entityUrn, proposal.aspectName)
            try:
                changed[place] = self._proposed(proposal, changed)
            except model.Invalid as error:
                text = f"{proposal.entityUrn} {proposal.aspectName}: {error}"
                raise _Refused(422, text) from error
        self._write(changed)
        if self.recording:
            self.proposals += proposals
            self.taken.update((proposal.entityUrn, proposal.aspectName) for proposal in proposals)
        return Answer.of({"value": "success"})

    def _proposed(self, proposal: Proposal, changed: Mapping[tuple[str, str], bytes]) -> bytes:
        """The body of an aspect as it will be."""
        urn, name, aspect = proposal.entityUrn, proposal.aspectName, proposal.aspect
        if aspect is None or proposal.changeType not in ("UPSERT", "CREATE", "PATCH"):
            raise _Refused(400, f"{proposal.changeType} of {name} is not supported: {urn}")
        if self.validating:
            model.check_urn(proposal.entityType, urn)
        if proposal.changeType == "CREATE" and name in self.entities.get(urn, {}):
            raise model.Invalid("Cannot perform CREATE since the aspect already exists.")
        if proposal.changeType != "PATCH" and not self.validating:
            return aspect.value.encode()
        body = msgspec.json.decode(aspect.value)
        if proposal.changeType == "PATCH":
            body = patched(name, self._current(urn, name, changed), body)
        if self.validating:
            body = model.normal(proposal.entityType, name, body)
            self._check_references(name, body, changed)
        return _json(body)

    def _current(self, urn: str, name: str, changed: Mapping[tuple[str, str], bytes]) -> Any:
        body = changed.get((urn, name))
        if body is None and name in self.entities.get(urn, {}):
            body = self.entities[urn][name].body
        return None if body is None else msgspec.json.decode(body)

    def _check_references(
        self, name: str, body: Any, changed: Mapping[tuple[str, str], bytes]
    ) -> None:
        if not self.checks_references or name != "structuredProperties":
            return
        for assigned in body["properties"]:
            if self._current(assigned["propertyUrn"], "propertyDefinition", changed) is None:
                raise model.Invalid(f"Unexpected structured property {assigned['propertyUrn']}")

    def _write(self, changed: Mapping[tuple[str, str], bytes]) -> None:
        new = {}
        for (urn, name), body in changed.items():
            held = self.entities.get(urn)
            if held is None:
                held = self.entities[urn] = {}
                new[urn] = held
                self._sorted = None
                self._indexed_from[urn] = self.calls + self.index_lag
            held[name] = Held(body, held[name].version + 1 if name in held else 1)
        for urn, held in new.items():
            self._add_defaults(urn, held)

    def _add_defaults(self, urn: str, held: dict[str, Held]) -> None:
        """What a server adds to an entity that it has not seen before."""
        if self.validating:
            name, key = model.key_of(urn)
            held.setdefault(name, Held(_json(key), 1))
        dataset = _DATASET.match(urn)
        if dataset:
            held.setdefault("browsePathsV2", Held(b'{"path":[{"id":"Default"}]}', 1))
        if platform := _platform_of(urn):
            held.setdefault("dataPlatformInstance", Held(_json({"platform": platform}), 1))

    def _delete(self, urn: str) -> Answer:
        gone = self.entities.pop(urn, {})
        self._indexed_from.pop(urn, None)
        self._sorted = None
        return Answer.of({"value": {"urn": urn, "rows": len(gone), "timeseriesRows": 0}})

    def _delete_aspect(self, urn: str, name: str) -> Answer:
        aspects = self.entities.get(urn, {})
        if name.endswith("Key"):
            raise AssertionError(f"this deletes an entity with all that people wrote: {urn}")
        aspects.pop(name, None)
        return Answer(200)

    # Reading.

    def _batch_get(self, asked: Sequence[dict[str, Any]], with_metadata: bool) -> Answer:
        found = []
        for question in asked:
            urn = question["urn"]
            names = [name for name in question if name != "urn"]
            answer = self._told(urn, names, with_metadata)
            if self.keys_of_missing and urn not in self.entities:
                name, key = model.key_of(urn)
                answer[name] = {"value": key}
            if len(answer) > 1:
                found.append(answer)
        return Answer.of(found)

    def _told(self, urn: str, names: Sequence[str], with_metadata: bool) -> dict[str, Any]:
        answer: dict[str, Any] = {"urn": urn}
        held = self.entities.get(urn, {})
        for name in names or held:
            aspect = held.get(name)
            if aspect is not None:
                answer[name] = {"value": msgspec.Raw(aspect.body)}
                if with_metadata:
                    answer[name]["systemMetadata"] = {"version": str(aspect.version)}
        return answer

    def _entity(self, urn: str, query: Mapping[str, str]) -> Answer:
        name, key = model.key_of(urn)
        wanted = query.get("aspects", "")
        names = wanted.removeprefix("List(").removesuffix(")").split(",") if wanted else []
        told = self._told(urn, names, True)
        told.setdefault(name, {"value": key})
        aspects = {
            aspect: {"name": aspect, "type": "VERSIONED", "version": 0, **told[aspect]}
            for aspect in told
            if aspect != "urn"
        }
        return Answer.of({"urn": urn, "entityName": urn.split(":")[2], "aspects": aspects})

    def _latest(self, urn: str, name: str) -> Answer:
        held = self.entities.get(urn, {}).get(name)
        if held is None:
            return _problem(404, f"Did not find urn: {urn} aspect: {name} version: 0")
        union = {model.wire_name(name): msgspec.Raw(held.body)}
        return Answer.of({"version": 0, "aspect": union})

    def _found(self, types: Iterable[str] | None, deleted: bool) -> list[str]:
        if self._sorted is None:
            self._sorted = {}
            for urn in sorted(self.entities):
                self._sorted.setdefault(urn.split(":", 3)[2], []).append(urn)
        found = sorted(
            urn
            for type in (types if types is not None else self._sorted)
            for urn in self._sorted.get(type, [])
            if self._indexed_from[urn] <= self.calls
        )
        return found if deleted else [urn for urn in found if not self._is_removed(urn)]

    def _is_removed(self, urn: str) -> bool:
        status = self.entities[urn].get("status")
        return status is not None and bool(msgspec.json.decode(status.body).get("removed"))

    def _page(
        self, found: list[str], count: int, scroll_id: str | None
    ) -> tuple[list[str], str | None]:
        start = bisect_right(found, self._last_of(scroll_id)) if scroll_id else 0
        page = found[start : start + count]
        more = start + count < len(found)
        next_id = _json([page[-1], self.calls]) if page and more else None
        return page, base64.urlsafe_b64encode(next_id).decode() if next_id else None

    def _last_of(self, scroll_id: str) -> str:
        try:
            last, made_at = msgspec.json.decode(base64.urlsafe_b64decode(scroll_id))
        except (binascii.Error, msgspec.DecodeError, ValueError) as error:
            raise _Refused(400, f"Invalid scroll id: {scroll_id}") from error
        if self.scroll_life is not None and self.calls - made_at > self.scroll_life:
            raise _Refused(400, "No search context found for the scroll id: it has expired")
        return str(last)

    def _scroll(self, query: Mapping[str, str], body: dict[str, Any]) -> Answer:
        found = self._found(body.get("entities"), query.get("includeSoftDelete") == "true")
        page, scroll_id = self._page(found, int(query.get("count", 10)), query.get("scrollId"))
        names = body.get("aspects")
        if names is None:
            entities: list[dict[str, Any]] = [{"urn": urn} for urn in page]
        else:
            told = (self._told(urn, names, "systemMetadata" in query) for urn in page)
            entities = [answer for answer in told if len(answer) > 1]
        answer: dict[str, Any] = {"entities": entities}
        if scroll_id:
            answer["scrollId"] = scroll_id
        if self.counts:
            answer["totalCount"] = len(found)
        return Answer.of(answer)

    def _graphql(self, body: dict[str, Any]) -> Answer:
        if "scrollAcrossEntities" not in body["query"]:
            return Answer.of({"errors": [{"message": "the stub knows scrollAcrossEntities only"}]})
        given = body["variables"]
        types = given.get("types")
        names = None if types is None else [_type_of(word) for word in types]
        removed = given.get("orFilters") or []
        hides = any(
            rule.get("field") == "removed" and rule.get("negated")
            for clause in removed
            for rule in clause.get("and", [])
        )
        found = self._found(names, deleted=not hides)
        page, scroll_id = self._page(found, given["batchSize"], given.get("scrollId"))
        results = [{"entity": {"urn": urn}, "extraProperties": []} for urn in page]
        told = {"nextScrollId": scroll_id, "searchResults": results, "total": len(found)}
        return Answer.of({"data": {"scrollAcrossEntities": told}})

    def _search(self, body: dict[str, Any]) -> Answer:
        start, count = body.get("start", 0), body.get("count", 10)
        if start + count > _WINDOW:
            message = "Result window is too large, from + size must be less than or equal to"
            raise _Refused(400, f"{message}: [{_WINDOW}] but was [{start + count}]")
        found = self._found([body["entity"]], deleted=False)
        page = [{"entity": urn} for urn in found[start : start + count]]
        told = {"from": start, "pageSize": count, "numEntities": min(len(found), _WINDOW)}
        return Answer.of({"value": {**told, "entities": page}})


def _platform_of(urn: str) -> str | None:
    """The platform that a server reads from the URNs of ten types of entities."""
    _, _, type, key = urn.split(":", 3)
    match type:
        case "dataset" | "mlModel" | "mlFeatureTable" | "mlModelDeployment" | "mlModelGroup":
            return key.removeprefix("(").partition(",")[0]
        case "chart" | "dashboard" | "dataFlow":
            tool = key.removeprefix("(").partition(",")[0]
        case "dataProcess":
            tool = key.split(",")[1]
        case "dataJob":
            tool = key.removeprefix("(urn:li:dataFlow:(").partition(",")[0]
        case _:
            return None
    return f"urn:li:dataPlatform:{tool.lower()}"


def _type_of(word: str) -> str:
    """GraphQL writes CORP_USER for corpuser."""
    plain = word.replace("_", "").lower()
    return next((entity for entity in model.entities() if entity.lower() == plain), plain)


def _specifications(query: Mapping[str, str]) -> Answer:
    start, count = int(query.get("start", 0)), int(query.get("count", 20))
    every = model.entities()
    elements = [
        {
            "name": entity,
            "keyAspectName": model.key_name(entity),
            "aspectSpecs": [
                {"aspectAnnotation": {"name": name}} for name in sorted(model.aspects_of(entity))
            ],
        }
        for entity in every[start : start + count]
    ]
    told = {"start": start, "count": len(elements), "total": len(every)}
    return Answer.of({**told, "elements": elements})


def _problem(status: int, message: str) -> Answer:
    return Answer.of({"message": message, "status": status}, status)


if __name__ == "__main__":
    fast = "--fast" in sys.argv
    serve(Server(Gms(validating=not fast, recording=not fast), recording=not fast))
