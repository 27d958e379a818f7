"""People and other programs work in a DataHub server beside Lumos; the server is a stub of one."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from catalogs.servers.gms import TOKEN, Gms
from catalogs.servers.http import Request, Server
from lumos.catalogs.datahub.platform import Datahub
from lumos.config.platforms import DatahubPlatform
from lumos.config.secret import Secret
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import (
    Documentation,
    Governance,
    Lineage,
    Owner,
    Ownership,
    UpstreamEdge,
)
from lumos.model.lineage import ColumnMapping
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.types import INT64, STRING, Member, Struct

URN = "lumos://s3/lake/orders"
NAME = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/orders,PROD)"
ANN = {"owner": "urn:li:corpuser:ann", "type": "DATAOWNER"}
ELSEWHERE = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/elsewhere,PROD)"
TO_ELSEWHERE = {"dataset": ELSEWHERE, "type": "TRANSFORMED"}
PLACE = Struct((Member("x", INT64),))
TERM = {"urn": "urn:li:glossaryTerm:ByHand"}


class Estate:
    """A server, and what somebody does in it meanwhile."""

    def __init__(self, gms: Gms, server: Server) -> None:
        self.gms = gms
        self.server = server

    def catalog(self) -> Datahub:
        return Datahub(DatahubPlatform(gms_server=self.server.address, token=Secret(TOKEN)))

    def write(self, entry: CatalogEntry, base: CatalogEntry | None = None) -> None:
        self.catalog().write(entry, base=base)

    def now(self) -> CatalogEntry:
        found = self.catalog().get(URN)
        assert found is not None
        return found

    def add(self, aspect: str, name: str, *members: Any) -> None:
        """Somebody adds members to a list in an aspect."""
        body = self.gms.aspects(NAME).get(aspect) or {}
        extra = {"auditStamp": {"time": 1, "actor": ANN["owner"]}} if name == "terms" else {}
        self.gms.hold(NAME, {aspect: {**extra, **body, name: [*body.get(name, []), *members]}})

    def just_before_the_next_write(self, act: Callable[[], None]) -> None:
        def once(request: Request) -> None:
            if request.path == "/aspects" and once in self.server.before:
                self.server.before.remove(once)
                act()

        self.server.before.append(once)


@pytest.fixture
def estate() -> Iterator[Estate]:
    gms = Gms()
    with Server(gms) as server:
        yield Estate(gms, server)


def plain(**aspects: Any) -> CatalogEntry:
    return CatalogEntry(urn=URN, name="orders", platform="s3", **aspects)


def claim(*, more: bool = False) -> CatalogEntry:
    """What Lumos claims of a dataset, and what it claims a day later."""
    later = ("later",) if more else ()
    edges = ("a", "b") if more else ("a",)
    return plain(
        governance=Governance(tags=("pii", *later), terms=("Order", *later)),
        ownership=Ownership(owners=tuple(Owner(name=name) for name in ("team", *later))),
        lineage=Lineage(upstream=tuple(UpstreamEdge(urn=f"lumos://s3/lake/{name}") for name in edges)),
        documentation=Documentation(description="Orders, later" if more else "Orders"),
        properties={"tier": "2" if more else "1"},
    )  # fmt: skip


EDITS: dict[str, Callable[[Estate], None]] = {
    "a tag": lambda estate: estate.add("globalTags", "tags", {"tag": "urn:li:tag:by-hand"}),
    "a term": lambda estate: estate.add("glossaryTerms", "terms", TERM),
    "an owner": lambda estate: estate.add("ownership", "owners", ANN),
    "an edge": lambda estate: estate.add("upstreamLineage", "upstreams", TO_ELSEWHERE),
    "words": lambda estate: estate.gms.hold(
        NAME, {"editableDatasetProperties": {"description": "By hand"}}
    ),
    "a property": lambda estate: estate.gms.hold(
        NAME,
        {
            "datasetProperties": {
                **(properties := estate.gms.aspects(NAME)["datasetProperties"]),
                "customProperties": {**properties["customProperties"], "by": "hand"},
            }
        },
    ),
}


def by_hand(entry: CatalogEntry) -> set[str]:
    """Which of the edits are to be seen."""
    assert entry.governance
    assert entry.ownership
    assert entry.lineage
    assert entry.documentation
    seen = {
        "a tag": "by-hand" in entry.governance.tags,
        "a term": "ByHand" in entry.governance.terms,
        "an owner": "ann" in {owner.name for owner in entry.ownership.owners},
        "an edge": "lumos://s3/lake/elsewhere" in {edge.urn for edge in entry.lineage.upstream},
        "words": entry.documentation.description == "By hand",
        "a property": (entry.properties or {}).get("by") == "hand",
    }
    return {name for name, is_seen in seen.items() if is_seen}


def ours(entry: CatalogEntry) -> bool:
    """Whether all that Lumos newly claims is there."""
    assert entry.governance
    assert entry.ownership
    assert entry.lineage
    return (
        {"pii", "later"} <= set(entry.governance.tags)
        and {"Order", "later"} <= set(entry.governance.terms)
        and {"team", "later"} <= {owner.name for owner in entry.ownership.owners}
        and {"lumos://s3/lake/a", "lumos://s3/lake/b"}
        <= {edge.urn for edge in entry.lineage.upstream}
        and (entry.properties or {}).get("tier") == "2"
    )


@pytest.mark.parametrize("edit", EDITS)
def test_what_people_add_between_two_writes_stays(estate: Estate, edit: str) -> None:
    estate.write(claim())
    EDITS[edit](estate)
    estate.write(claim(more=True), base=claim())
    assert by_hand(estate.now()) == {edit}
    assert ours(estate.now())


@pytest.mark.parametrize("edit", EDITS)
def test_what_people_add_between_our_read_and_our_write_stays(estate: Estate, edit: str) -> None:
    estate.write(claim())
    estate.just_before_the_next_write(lambda: EDITS[edit](estate))
    estate.write(claim(more=True), base=claim())
    assert by_hand(estate.now()) == {edit}
    assert ours(estate.now())


def test_what_people_add_where_there_was_nothing_stays(estate: Estate) -> None:
    estate.write(plain())
    estate.just_before_the_next_write(
        lambda: estate.add("globalTags", "tags", {"tag": "urn:li:tag:by-hand"})
    )
    estate.write(plain(governance=Governance(tags=("pii",))))
    assert estate.now().governance == Governance(tags=("by-hand", "pii"))


ORDERS = {
    "one before": (("m",), ("a", "m")),
    "turned round": (("a", "b"), ("b", "a")),
    "another first": (("a", "b"), ("b", "c", "a")),
}


def owned(*names: str) -> CatalogEntry:
    """Owned by some people in roles that come and go."""
    types = ("DATAOWNER", "DATA_STEWARD")
    owners = (Owner(name=name, type=types[n % 2]) for n, name in enumerate(names))
    return plain(ownership=Ownership(owners=tuple(owners)))


CLAIMS: dict[str, Callable[..., CatalogEntry]] = {
    "a tag": lambda *names: plain(governance=Governance(tags=names)),
    "a term": lambda *names: plain(governance=Governance(terms=names)),
    "an owner": owned,
    "an edge": lambda *names: plain(
        lineage=Lineage(upstream=tuple(UpstreamEdge(urn=f"lumos://s3/lake/{name}") for name in names))
    ),
}  # fmt: skip


# Owners who change both their role and their place are replaced as a whole.
@pytest.mark.parametrize(
    ("edit", "order"),
    [
        (edit, order)
        for edit in CLAIMS
        for order in ORDERS
        if (edit, order) != ("an owner", "another first")
    ],
)
def test_an_order_yields_to_what_people_add_meanwhile(
    estate: Estate, edit: str, order: str
) -> None:
    old, new = (CLAIMS[edit](*names) for names in ORDERS[order])
    estate.write(old)
    estate.write(new, base=old)
    assert estate.now() == new
    estate.write(old, base=new)
    estate.just_before_the_next_write(lambda: EDITS[edit](estate))
    estate.write(new, base=old)
    nothing = claim()
    now = msgspec.structs.replace(
        estate.now(),
        **{
            name: getattr(nothing, name)
            for name in ("governance", "ownership", "lineage", "documentation")
            if getattr(estate.now(), name) is None
        },
    )
    assert by_hand(now) == {edit}


@pytest.mark.parametrize("old", [None, "Sales"])
def test_a_domain_that_people_set_meanwhile_stays_and_goes_first(
    estate: Estate, old: str | None
) -> None:
    first = plain(documentation=Documentation(description="Orders", domain=old))
    estate.write(first)
    theirs = {"domains": {"domains": ["urn:li:domain:Theirs"]}}
    estate.just_before_the_next_write(lambda: estate.gms.hold(NAME, theirs))
    estate.write(plain(documentation=Documentation(description="Orders", domain="Ops")), base=first)
    documentation = estate.now().documentation
    assert documentation == Documentation(description="Orders", domain="Theirs")


def test_a_domain_comes_and_changes_and_goes(estate: Estate) -> None:
    base = None
    for domain in ("Sales", "Ops", None):
        entry = plain(documentation=Documentation(description="Orders", domain=domain))
        estate.write(entry, base=base)
        assert estate.now() == entry
        base = entry


def test_a_dropped_column_takes_no_words_of_others_with_it(estate: Estate) -> None:
    first, second = (
        plain(schema=Schema(fields=tuple(Field(name=name, type=INT64) for name in names)))
        for names in (("id", "old"), ("id",))
    )
    estate.write(first)
    info = {"fieldPath": "old", "description": "By hand"}
    estate.gms.hold(NAME, {"editableSchemaMetadata": {"editableSchemaFieldInfo": [info]}})
    estate.just_before_the_next_write(
        lambda: estate.add(
            "editableSchemaMetadata", "editableSchemaFieldInfo", {**info, "fieldPath": "id"}
        )
    )
    estate.write(second, base=first)
    assert estate.now().schema == Schema(
        fields=(Field(name="id", type=INT64, description="By hand"),)
    )


def test_what_lumos_no_longer_claims_goes_and_what_people_set_stays(estate: Estate) -> None:
    estate.write(claim(more=True))
    for edit in EDITS.values():
        edit(estate)
    fewer = plain(governance=Governance(), ownership=Ownership(), lineage=Lineage(), properties={})
    estate.write(fewer, base=claim(more=True))
    now = estate.now()
    assert by_hand(now) == set(EDITS)
    assert now.governance == Governance(tags=("by-hand",), terms=("ByHand",))
    assert now.properties == {"by": "hand"}
    assert now.lineage == Lineage(upstream=(UpstreamEdge(urn="lumos://s3/lake/elsewhere"),))


def test_writing_what_is_there_sends_nothing(estate: Estate) -> None:
    estate.write(claim())
    for edit in EDITS.values():
        edit(estate)
    estate.gms.forget()
    estate.write(claim(), base=claim())
    assert estate.gms.proposals == []


def test_people_keep_their_words_on_a_column_whatever_becomes_of_it(estate: Estate) -> None:
    def columns(**types: Any) -> CatalogEntry:
        fields = tuple(Field(name=name, type=type) for name, type in types.items())
        return plain(schema=Schema(fields=fields))

    first, second = columns(id=INT64, old=PLACE), columns(id=STRING, new=STRING)
    estate.write(first)
    words = {
        "description": "By hand",
        "globalTags": {"tags": [{"tag": "urn:li:tag:gold"}]},
        "glossaryTerms": {"terms": [TERM], "auditStamp": {"time": 1, "actor": ANN["owner"]}},
    }
    infos = [{"fieldPath": path, **words} for path in ("id", "old", "old.x")]
    estate.gms.hold(NAME, {"editableSchemaMetadata": {"editableSchemaFieldInfo": infos}})
    estate.write(second, base=first)
    said: dict[str, Any] = {"description": "By hand", "tags": ("gold",), "terms": ("ByHand",)}
    id = Field(name="id", type=STRING, **said)
    assert estate.now().schema == Schema(fields=(id, Field(name="new", type=STRING)))
    rows = estate.gms.aspects(NAME)["schemaMetadata"]["fields"]
    assert [(row["fieldPath"], "description" in row) for row in rows] == [("id", False), ("new", False)]  # fmt: skip
    estate.write(first, base=second)
    old = Field(name="old", type=PLACE, nested=(NestedField(path="old.x", **said),), **said)
    assert estate.now().schema == Schema(fields=(msgspec.structs.replace(id, type=INT64), old))
    held = estate.gms.aspects(NAME)
    assert held["editableSchemaMetadata"]["editableSchemaFieldInfo"] == infos
    assert not any("lumos.schema" in key for key in held["datasetProperties"]["customProperties"])
    estate.gms.forget()
    estate.write(first, base=first)
    assert estate.gms.proposals == []


def test_what_people_typed_stays_theirs_where_lumos_said_the_same(estate: Estate) -> None:
    base, ours = (plain(documentation=Documentation(description=text)) for text in ("A", "B"))
    estate.write(base)
    typed = {"editableDatasetProperties": {"description": "A"}}
    estate.gms.hold(NAME, typed)
    written = estate.catalog().write(ours, base=base)
    assert [each.path for each in written.conflicts] == ["documentation.description"]
    assert estate.now().documentation == base.documentation
    assert estate.gms.aspects(NAME)["editableDatasetProperties"]["description"] == "A"
    assert estate.catalog().write(ours, base=ours).conflicts == ()
    assert estate.now().documentation == base.documentation


def test_what_people_typed_on_columns_stays_theirs_where_lumos_said_the_same(
    estate: Estate,
) -> None:
    def columns(text: str) -> CatalogEntry:
        inside = NestedField(path="place.x", description=text)
        id = Field(name="id", type=INT64, description=text)
        return plain(schema=Schema(fields=(id, Field(name="place", type=PLACE, nested=(inside,)))))

    base, ours = columns("A"), columns("B")
    estate.write(base)
    infos = [{"fieldPath": path, "description": "A"} for path in ("id", "place.x")]
    estate.gms.hold(NAME, {"editableSchemaMetadata": {"editableSchemaFieldInfo": infos}})
    written = estate.catalog().write(ours, base=base)
    assert len(written.conflicts) == 2
    assert estate.now().schema == base.schema
    held = estate.gms.aspects(NAME)["editableSchemaMetadata"]["editableSchemaFieldInfo"]
    assert held == infos
    assert estate.catalog().write(ours, base=ours).conflicts == ()
    assert estate.now().schema == base.schema


def test_terms_of_columns_are_terms_of_columns(estate: Estate) -> None:
    note = NestedField(path="place.x", terms=("Length",))
    entry = plain(
        schema=Schema(
            fields=(
                Field(name="id", type=INT64, terms=("Order", "Key"), tags=("pii",)),
                Field(name="place", type=PLACE, nested=(note,), terms=("Place",)),
            )
        )
    )
    estate.write(entry)
    rows = estate.gms.aspects(NAME)["schemaMetadata"]["fields"]
    assert [[each["urn"].rpartition(":")[2] for each in (row.get("glossaryTerms") or {"terms": []})["terms"]] for row in rows] == [["Order", "Key"], ["Place"], ["Length"]]  # fmt: skip
    assert "lumos.schema" not in estate.gms.aspects(NAME)["datasetProperties"].get("customProperties", {})  # fmt: skip
    assert estate.now() == entry
    fewer = plain(schema=Schema(fields=(Field(name="id", type=INT64, terms=("Key",)),)))
    estate.write(fewer, base=entry)
    assert estate.now().schema == fewer.schema


def test_lineage_of_another_source_is_not_overwritten_with_its_columns(estate: Estate) -> None:
    theirs = {
        "upstreamType": "FIELD_SET",
        "upstreams": [f"urn:li:schemaField:({ELSEWHERE},x)"],
        "downstreamType": "FIELD",
        "downstreams": [f"urn:li:schemaField:({NAME},y)"],
        "confidenceScore": 0.5,
    }
    estate.gms.hold(
        NAME,
        {
            "datasetProperties": {"name": "orders"},
            "upstreamLineage": {"upstreams": [TO_ELSEWHERE], "fineGrainedLineages": [theirs]},
        },
    )
    edge = UpstreamEdge(
        urn="lumos://s3/lake/a", columns=(ColumnMapping(upstream="id", downstream="id"),)
    )
    estate.write(plain(lineage=Lineage(upstream=(edge,))))
    body = estate.gms.aspects(NAME)["upstreamLineage"]
    assert [each["dataset"] for each in body["upstreams"]] == [
        ELSEWHERE,
        "urn:li:dataset:(urn:li:dataPlatform:s3,lake/a,PROD)",
    ]
    assert theirs in body["fineGrainedLineages"]
    assert len(body["fineGrainedLineages"]) == 2


def test_columns_of_a_dataset_that_no_edge_leads_to_are_left_alone(estate: Estate) -> None:
    theirs = {
        "upstreamType": "FIELD_SET",
        "upstreams": [f"urn:li:schemaField:({ELSEWHERE},x)"],
        "downstreamType": "FIELD",
        "downstreams": [f"urn:li:schemaField:({NAME},y)"],
        "confidenceScore": 0.7,
    }
    edges = [
        UpstreamEdge(urn=f"lumos://s3/lake/{name}", columns=(ColumnMapping(upstream="id", downstream="id"),))
        for name in "ab"
    ]  # fmt: skip
    first, second = (plain(lineage=Lineage(upstream=tuple(edges[:number]))) for number in (1, 2))
    estate.write(first)
    estate.add("upstreamLineage", "fineGrainedLineages", theirs)
    estate.write(second, base=first)
    assert estate.now().lineage == second.lineage
    items = estate.gms.aspects(NAME)["upstreamLineage"]["fineGrainedLineages"]
    assert [item["confidenceScore"] for item in items] == [1.0, 0.7, 1.0]
    estate.gms.forget()
    estate.write(second, base=second)
    assert estate.gms.proposals == []


def test_aspects_that_lumos_knows_nothing_of_are_left_alone_and_travel(estate: Estate) -> None:
    others = {
        "deprecation": {"deprecated": True, "note": "Use v2", "actor": ANN["owner"]},
        "institutionalMemory": {
            "elements": [
                {
                    "url": "https://wiki.example",
                    "description": "Wiki",
                    "createStamp": {"time": 1, "actor": ANN["owner"]},
                }
            ]
        },
        "siblings": {"siblings": [ELSEWHERE], "primary": True},
    }
    estate.gms.hold(NAME, {"datasetProperties": {"name": "orders"}, **others})
    estate.write(claim())
    there = estate.gms.aspects(NAME)
    assert {name: there[name] for name in others} == others
    entry = estate.now()
    estate.gms.emptied()
    estate.catalog().put(entry)
    assert estate.now() == entry
    moved = estate.gms.aspects(NAME)
    assert {name: moved[name] for name in others} == others


def test_a_deleted_dataset_is_hidden_and_nothing_of_it_is_lost(estate: Estate) -> None:
    estate.write(claim())
    before = estate.gms.aspects(NAME)
    estate.gms.forget()
    estate.catalog().delete(URN)
    assert [proposal.aspectName for proposal in estate.gms.proposals] == ["status"]
    assert estate.gms.aspects(NAME) == {**before, "status": {"removed": True}}


def test_a_dataset_under_another_casing_is_neither_taken_for_it_nor_merged(estate: Estate) -> None:
    upper, lower = (
        CatalogEntry(urn=f"lumos://snowflake/db/s/{name}", name=name, platform="snowflake")
        for name in ("ORDERS", "orders")
    )
    catalog = estate.catalog()
    catalog.write(upper)
    assert catalog.get(lower.urn) is None
    catalog.write(lower)
    assert list(estate.catalog().export()) == [upper, lower]


def test_a_dataset_that_another_program_wrote_is_recognised_in_its_instance(estate: Estate) -> None:
    platform = "urn:li:dataPlatform:snowflake"
    name = f"urn:li:dataset:({platform},eu.FINANCE.customers,PROD)"
    instance = f"urn:li:dataPlatformInstance:({platform},eu)"
    estate.gms.hold(
        name,
        {
            "datasetProperties": {"name": "customers"},
            "dataPlatformInstance": {"platform": platform, "instance": instance},
        },
    )
    urn = "lumos://snowflake@eu/FINANCE/customers"
    estate.catalog().write(
        CatalogEntry(
            urn=urn, name="customers", platform="snowflake", governance=Governance(tags=("pii",))
        )
    )
    assert list(estate.gms.entities) == [name]
    edge = Lineage(upstream=(UpstreamEdge(urn=urn),))
    estate.write(plain(lineage=edge))
    assert estate.gms.aspects(NAME)["upstreamLineage"]["upstreams"][0]["dataset"] == name
    assert estate.now().lineage == edge


def test_an_edge_of_another_program_leads_to_the_instance_that_the_server_names(
    estate: Estate,
) -> None:
    platform = "urn:li:dataPlatform:snowflake"
    name = f"urn:li:dataset:({platform},eu.FINANCE.customers,PROD)"
    instance = f"urn:li:dataPlatformInstance:({platform},eu)"
    estate.gms.hold(name, {"dataPlatformInstance": {"platform": platform, "instance": instance}})
    estate.gms.hold(
        NAME, {"upstreamLineage": {"upstreams": [{"dataset": name, "type": "TRANSFORMED"}]}}
    )
    lineage = estate.now().lineage
    assert lineage is not None
    assert [edge.urn for edge in lineage.upstream] == ["lumos://snowflake@eu/FINANCE/customers"]


def test_what_the_server_makes_by_itself_is_not_carried_anywhere(estate: Estate) -> None:
    estate.write(claim())
    assert {"browsePathsV2", "dataPlatformInstance"} <= estate.gms.aspects(NAME).keys()
    assert estate.now() == claim()


def test_an_owner_is_told_from_the_same_person_in_another_role(estate: Estate) -> None:
    first = plain(ownership=Ownership(owners=(Owner(name="ann", type="DATA_STEWARD"),)))
    estate.write(first)
    estate.add("ownership", "owners", ANN)
    estate.write(plain(ownership=Ownership()), base=first)
    owners = estate.gms.aspects(NAME)["ownership"]["owners"]
    assert [(owner["owner"], owner["type"]) for owner in owners] == [
        ("urn:li:corpuser:ann", "DATAOWNER")
    ]


def test_conflicts_are_told_and_people_win(estate: Estate) -> None:
    base = plain(documentation=Documentation(description="A"))
    estate.write(base)
    EDITS["words"](estate)
    ours = msgspec.structs.replace(base, documentation=Documentation(description="C"))
    written = estate.catalog().write(ours, base=base)
    assert [conflict.path for conflict in written.conflicts] == ["documentation.description"]
    assert estate.now().documentation == Documentation(description="By hand")
