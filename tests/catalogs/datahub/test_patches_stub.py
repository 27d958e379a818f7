"""Patches make one body of an aspect the other, as a stub of DataHub's server applies them."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalogs.servers.gms_patches import patched
from examples import examples
from lumos.catalogs.datahub.writer import build_patch

SOURCES = st.sampled_from((None, "urn:li:dataHubAction:a", "urn:li:dataHubAction:b"))
STAMP = {"time": 0, "actor": "urn:li:corpuser:unknown"}


def members(**keys: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Members of a list with different keys, and something that they say beside."""

    def member(source: str | None, note: str, **values: Any) -> dict[str, Any]:
        made = {key: value for key, value in values.items() if value is not None}
        if source is not None:
            made["attribution"] = {"time": 1, "actor": "urn:li:corpuser:a", "source": source}
        return {**made, "context": note} if note else made

    each = st.builds(member, source=SOURCES, note=st.sampled_from(("", "x")), **keys)
    return st.lists(
        each,
        max_size=4,
        unique_by=lambda made: str([made.get(key) for key in (*keys, "attribution")]),
    )


LISTS = {
    "globalTags": ("tags", members(tag=st.sampled_from(("urn:li:tag:a", "urn:li:tag:b/~c")))),
    "glossaryTerms": ("terms", members(urn=st.sampled_from(("urn:li:glossaryTerm:a", "urn:li:glossaryTerm:b")))),
    "domains": ("domains", st.lists(st.sampled_from("abcd").map("urn:li:domain:{}".format), unique=True)),
    "ownership": (
        "owners",
        members(
            owner=st.sampled_from(("urn:li:corpuser:a", "urn:li:corpuser:b")),
            type=st.sampled_from(("DATAOWNER", "TECHNICAL_OWNER")),
            typeUrn=st.sampled_from((None, "urn:li:ownershipType:x")),
        ),
    ),
}  # fmt: skip


def about(member: Any) -> Any:
    """What a member says something of."""
    if isinstance(member, str):
        return member
    return next(member[key] for key in ("tag", "urn", "owner") if key in member)


def beside(aspect: str) -> dict[str, Any]:
    return {"auditStamp": STAMP} if aspect == "glossaryTerms" else {}


@pytest.mark.parametrize("aspect", LISTS)
@settings(max_examples=examples(150))
@given(data=st.data())
def test_a_patch_of_a_list_leaves_exactly_what_is_wanted(aspect: str, data: st.DataObject) -> None:
    name, lists = LISTS[aspect]
    old, new = ({name: data.draw(lists), **beside(aspect)} for _ in range(2))
    made = build_patch(aspect, old, new, new)
    if made is None:
        # Only members in several roles or from several sources have orders that no patch leads to.
        groups = {
            (
                about(member),
                *(member.get(key) for key in ("type", "typeUrn")),
                str(member.get("attribution")),
            )
            for member in (*old[name], *new[name])
            if isinstance(member, dict)
        }
        assert len({group[1:] for group in groups}) > 1
        return
    for times in range(1, 3):
        body: Any = old
        for _ in range(times):
            body = patched(aspect, body, msgspec.json.decode(made))
        assert body == new


@pytest.mark.parametrize("aspect", LISTS)
@settings(max_examples=examples(50))
@given(data=st.data())
def test_what_others_add_meanwhile_stays(aspect: str, data: st.DataObject) -> None:
    name, lists = LISTS[aspect]
    old, new = ({name: data.draw(lists), **beside(aspect)} for _ in range(2))
    made = build_patch(aspect, old, new, new)
    if made is None:
        return
    theirs: Any = {
        "tag": "urn:li:tag:theirs",
        "urn": "urn:li:glossaryTerm:theirs",
        "owner": "urn:li:corpuser:theirs",
        "type": "NONE",
    }
    if aspect == "domains":
        theirs = "urn:li:domain:theirs"
    meanwhile = {**old, name: [*old[name], theirs]}
    body = patched(aspect, meanwhile, msgspec.json.decode(made))
    assert sorted(map(str, body[name])) == sorted(map(str, [*new[name], theirs]))


@settings(max_examples=examples(100))
@given(
    old=st.dictionaries(st.sampled_from(("a", "b/c", "~d", "lumos.x")), st.text(max_size=2)),
    new=st.dictionaries(st.sampled_from(("a", "b/c", "~d", "lumos.x")), st.text(max_size=2)),
    names=st.tuples(st.none() | st.text(max_size=2), st.none() | st.text(max_size=2)),
)
def test_properties_are_patched_key_by_key(
    old: dict[str, str], new: dict[str, str], names: tuple[str | None, str | None]
) -> None:
    before, after = (
        {"customProperties": custom, **({} if name is None else {"description": name})}
        for custom, name in zip((old, new), names, strict=True)
    )
    made = build_patch("datasetProperties", before, after, after)
    assert made is not None
    meanwhile = {**before, "customProperties": {**old, "theirs": "1"}}
    body = patched("datasetProperties", meanwhile, msgspec.json.decode(made))
    expected = {**after, "customProperties": {**new, "theirs": "1"}, "tags": []}
    assert body == expected


def test_properties_are_patched_where_there_was_nothing() -> None:
    new = {"name": "orders", "customProperties": {"a": "1"}}
    made = build_patch("datasetProperties", None, new, {**new, "tags": []})
    assert made is not None
    meanwhile = {"description": "By hand", "customProperties": {"theirs": "1"}, "tags": []}
    body = patched("datasetProperties", meanwhile, msgspec.json.decode(made))
    assert body == {
        **meanwhile,
        "name": "orders",
        "customProperties": {"theirs": "1", "a": "1"},
    }


def test_a_property_without_a_name_is_not_patched_but_replaced() -> None:
    assert build_patch("datasetProperties", {"customProperties": {"": "x"}}, {}, {}) is None


def test_an_aspect_that_shall_be_gone_is_emptied() -> None:
    old = {"upstreams": [{"dataset": "urn:x"}], "fineGrainedLineages": [{"upstreams": []}]}
    made = build_patch("upstreamLineage", old, None, None)
    assert made is not None
    body = patched("upstreamLineage", old, msgspec.json.decode(made))
    assert body == {"upstreams": []}


@pytest.mark.parametrize(
    ("aspect", "key"),
    [
        ("globalTags", "tag"),
        ("glossaryTerms", "urn"),
        ("upstreamLineage", "dataset"),
        ("editableSchemaMetadata", "fieldPath"),
    ],
)
def test_members_come_and_go_in_any_order_by_patches(aspect: str, key: str) -> None:
    name = {
        "globalTags": "tags",
        "glossaryTerms": "terms",
        "upstreamLineage": "upstreams",
        "editableSchemaMetadata": "editableSchemaFieldInfo",
    }[aspect]
    few, more, others, before, turned = (
        {name: [{key: f"urn:{each}"} for each in some]} for some in ("ab", "abc", "bd", "0ab", "ba")
    )
    theirs = {key: "urn:theirs"}
    for old, new in (
        (few, more), (more, few), (few, others), (few, before), (few, turned), (None, few)
    ):  # fmt: skip
        made = build_patch(aspect, old, new, new)
        assert made is not None
        body = patched(aspect, old, msgspec.json.decode(made))
        assert body[name] == new[name]
        meanwhile = {name: [*(old or {name: []})[name], theirs]}
        body = patched(aspect, meanwhile, msgspec.json.decode(made))
        assert theirs in body[name]
        assert [each for each in body[name] if each != theirs] == new[name]


def test_a_person_in_many_roles_is_patched_with_all_others() -> None:
    def owners(*pairs: str) -> dict[str, Any]:
        return {"owners": [{"owner": pair[0], "type": pair[1]} for pair in pairs]}

    old, theirs = owners("bX"), {"owner": "theirs", "type": "Y"}
    assert build_patch("ownership", old, owners("aY", "bX"), owners("aY", "bX")) is None
    for new in (owners("bX", "aY", "cX"), owners("bX", "aX", "bY")):
        made = build_patch("ownership", old, new, new)
        assert made is not None
        meanwhile = {"owners": [*old["owners"], theirs]}
        body = patched("ownership", meanwhile, msgspec.json.decode(made))
        assert [each for each in body["owners"] if each != theirs] == new["owners"]
        assert theirs in body["owners"]


def test_what_is_there_twice_is_patched_to_be_there_once() -> None:
    twice = {"tags": [{"tag": "urn:a", "context": "x"}, {"tag": "urn:a"}]}
    once = {"tags": [{"tag": "urn:a"}]}
    made = build_patch("globalTags", twice, once, once)
    assert made is not None
    assert patched("globalTags", twice, msgspec.json.decode(made)) == once
    assert build_patch("globalTags", once, twice, twice) is None
