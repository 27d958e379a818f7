"""Walks along columns: values, uses, stars, structs, and names in any case."""

from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.model.lineage import ColumnMapping, ColumnUse, Derivation, Edge, UseKind
from lumos.store.lineage.walks import ColumnNode, ColumnReach, walk_columns

AT = datetime(2024, 1, 1, tzinfo=UTC)


def edge(link: str, *lineage_texts: str, origin: str = "sql:a", job: str | None = None) -> Edge:
    """An edge such as `a b`, with mappings `x>y` and uses `x?y` or `x?` about the whole."""
    upstream, downstream = link.split()
    mappings = [text.split(">") for text in lineage_texts if ">" in text]
    uses = [text.split("?") for text in lineage_texts if "?" in text]
    return Edge(
        upstream=upstream,
        downstream=downstream,
        origin=origin,
        at=AT,
        job=job,
        columns=tuple(ColumnMapping(upstream=up, downstream=down) for up, down in mappings),
        uses=tuple(
            ColumnUse(upstream=up, downstream=down or None, usage=UseKind.FILTER)
            for up, down in uses
        ),
    )


def loader(edges: Iterable[Edge], side: str) -> Callable[[Collection[str]], Iterable[Edge]]:
    return lambda urns: [each for each in edges if getattr(each, side) in urns]


def down(
    start: str, *edges: Edge, depth: int | None = None, past_uses: bool = False
) -> ColumnReach:
    urn, _, column = start.partition(".")
    load = loader(edges, "upstream")
    node = ColumnNode(urn, column)
    return walk_columns(node, load, direction="downstream", depth=depth, past_uses=past_uses)


def up(start: str, *edges: Edge, past_uses: bool = False) -> ColumnReach:
    urn, _, column = start.partition(".")
    load = loader(edges, "downstream")
    return walk_columns(
        ColumnNode(urn, column), load, direction="upstream", depth=None, past_uses=past_uses
    )


def depth_texts(found: ColumnReach) -> dict[str, str]:
    """Where a walk came to, as `b.y`: how far, with `?` where it is only decided about."""
    return {
        f"{node.urn}.{node.column or ''}".rstrip("."): str(far)
        + ("" if node in found.direct else "?")
        for node, far in found.depths.items()
    }


CASES = [
    pytest.param(["a b x>y", "b c y>z w>v"], {"a.x": "0", "b.y": "1", "c.z": "2"}, id="values"),
    pytest.param(["a b x>y x>z"], {"a.x": "0", "b.y": "1", "b.z": "1"}, id="several"),
    pytest.param(["a b X>Y", "b c y>z"], {"a.x": "0", "b.Y": "1", "c.z": "2"}, id="any-case"),
    pytest.param(["a b *>*", "b c x>y"], {"a.x": "0", "b.x": "1", "c.y": "2"}, id="star"),
    pytest.param(["a b x?", "b c y>z"], {"a.x": "0", "b": "1?"}, id="decides-about-all"),
    pytest.param(["a b x?y", "b c y>z"], {"a.x": "0", "b.y": "1?"}, id="decides-about-one"),
    pytest.param(["a b x?y x>y"], {"a.x": "0", "b.y": "1"}, id="both"),
    pytest.param(["a b x?y x>w", "b b w>y"], {"a.x": "0", "b.w": "1", "b.y": "2"}, id="later-made"),
    pytest.param(["a a x>x x>y"], {"a.x": "0", "a.y": "1"}, id="self-reference"),
    pytest.param(["a b x>x", "b a x>x"], {"a.x": "0", "b.x": "1"}, id="cycle"),
    pytest.param(["a b x.p>y x>z w>v"], {"a.x": "0", "b.y": "1", "b.z": "1"}, id="inside-a-struct"),
    pytest.param(["a b xx>y"], {"a.x": "0"}, id="no-part-of-a-name"),
    pytest.param([], {"a.x": "0"}, id="nothing"),
]


def parsed(texts: list[str]) -> list[Edge]:
    return [edge(" ".join(text.split()[:2]), *text.split()[2:]) for text in texts]


@pytest.mark.parametrize(("edges", "expected"), CASES)
def test_a_walk_down_from_a_column(edges: list[str], expected: dict[str, str]) -> None:
    assert depth_texts(down("a.x", *parsed(edges))) == expected


def test_a_walk_may_go_past_what_is_only_decided_about() -> None:
    edges = parsed(["a b x?", "b c y>z", "c d z>w", "a e x?p", "e f p>q"])
    found = down("a.x", *edges, past_uses=True)
    assert depth_texts(found) == {
        "a.x": "0", "b": "1?", "e.p": "1?", "c": "2?", "f.q": "2?", "d": "3?",
    }  # fmt: skip


def test_a_walk_up_finds_what_made_a_column_and_what_decided_about_it() -> None:
    edges = parsed(["a b x>y k? j?w", "s a v>x f?x"])
    assert depth_texts(up("b.y", *edges)) == {
        "b.y": "0", "a.x": "1", "a.k": "1?", "s.v": "2", "s.f": "2?",
    }  # fmt: skip


def test_a_part_of_a_struct_is_handed_on_inside_it_only_where_nothing_is_made_of_it() -> None:
    same = ColumnMapping(upstream="x", downstream="y", derivation=Derivation.IDENTITY)
    made = ColumnMapping(upstream="x", downstream="z", derivation=Derivation.TRANSFORMATION)
    both = Edge(upstream="a", downstream="b", origin="o", at=AT, columns=(same, made))
    assert depth_texts(down("a.x.p", both)) == {"a.x.p": "0", "b.y.p": "1", "b.z": "1"}
    assert depth_texts(up("b.y.p", both)) == {"b.y.p": "0", "a.x.p": "1"}


def test_a_step_names_its_reporter_and_job() -> None:
    plain = edge("a b", "x>y", origin="snapshot:b")
    mapping = ColumnMapping(upstream="x", downstream="y", transformation="upper(x)")
    by_sql = Edge(upstream="a", downstream="b", origin="sql:m", at=AT, job="j", columns=(mapping,))
    (step,) = down("a.x", plain, by_sql).steps
    assert (step.origins, step.jobs) == (("snapshot:b", "sql:m"), ("j",))
    assert (step.mappings, step.kind) == ((mapping,), "DIRECT")


def test_a_walk_ends_at_its_depth_and_says_so() -> None:
    edges = parsed(["a b x>y", "b c y>z", "c a z>x"])
    found = down("a.x", *edges, depth=1)
    assert (depth_texts(found), found.truncated) == ({"a.x": "0", "b.y": "1"}, True)
    whole = down("a.x", *edges, depth=2)
    assert (len(whole.depths), len(whole.steps), whole.truncated) == (3, 3, False)


names = st.sampled_from(["a", "b", "c", "d"])
mappings = st.tuples(names, names, st.sampled_from("xy"), st.sampled_from("xy"), st.booleans())


@given(st.lists(mappings, max_size=14), st.none() | st.integers(0, 3))
def test_columns_are_reached_as_a_plain_search_reaches_them(
    lineage_texts: list[tuple[str, str, str, str, bool]], depth: int | None
) -> None:
    edges = [
        edge(f"{before} {after}", f"{one}{'>' if is_value else '?'}{other}")
        for before, after, one, other, is_value in lineage_texts
    ]
    values = {((s[0], s[2]), (s[1], s[3])) for s in lineage_texts if s[4]}
    uses = {((s[0], s[2]), (s[1], s[3])) for s in lineage_texts if not s[4]}
    made = {("a", "x"): 0}
    for _ in range(len(lineage_texts)):
        for before, after in values:
            if before in made:
                made[after] = min(made.get(after, 99), made[before] + 1)
    made = {node: far for node, far in made.items() if depth is None or far <= depth}
    decided: dict[tuple[str, str], int] = {}
    for before, after in uses:
        if before in made and (depth is None or made[before] < depth):
            decided[after] = min(decided.get(after, 99), made[before] + 1)
    found = down("a.x", *edges, depth=depth)
    assert {tuple(node): far for node, far in found.depths.items()} == decided | made
    assert {tuple(node) for node in found.direct} == set(made)
    assert {(tuple(step.upstream), tuple(step.downstream)) for step in found.steps} == {
        link for link in values | uses if link[0] in made and link[1] in decided | made
    }


def test_a_field_is_not_read_where_only_its_neighbour_is() -> None:
    edges = [edge("a b", "address.geo.lat>lat", "items[].sku>sku", "items[].qty?")]
    assert depth_texts(down("a.address.street", *edges)) == {"a.address.street": "0"}
    assert depth_texts(down("a.items[].cost", *edges)) == {"a.items[].cost": "0"}
    assert depth_texts(down("a.items[].sku", *edges)) == {"a.items[].sku": "0", "b.sku": "1"}
    assert depth_texts(down("a.items[].qty", *edges)) == {"a.items[].qty": "0", "b": "1?"}


@pytest.mark.parametrize("start", ["address", "address.geo", "address.geo.lat", "Address.Geo"])
def test_a_struct_is_read_where_its_field_is(start: str) -> None:
    assert "b.lat" in depth_texts(down(f"a.{start}", edge("a b", "address.geo.lat>lat")))


def test_the_field_of_an_element_may_be_written_without_its_brackets() -> None:
    assert "b.sku" in depth_texts(down("a.items.sku", edge("a b", "items[].sku>sku")))
    assert "b.skus" in depth_texts(down("a.items[].sku", edge("a b", "items.sku>skus")))
    assert "b.x" in depth_texts(down("a.notes{}", edge("a b", "notes.home>x")))


def identity(link: str, upstream: str, downstream: str) -> Edge:
    mapping = ColumnMapping(
        upstream=upstream, downstream=downstream, derivation=Derivation.IDENTITY
    )
    return msgspec.structs.replace(edge(link), columns=(mapping,))


def test_a_field_is_followed_through_elements_that_are_passed_on() -> None:
    edges = [
        identity("a b", "items[]", "item"),
        identity("b c", "item.sku", "sku"),
        identity("a d", "items[]", "*"),
        identity("d e", "cost", "amount"),
    ]
    assert depth_texts(down("a.items[].cost", *edges)) == {
        "a.items[].cost": "0",
        "b.item.cost": "1",
        "d.cost": "1",
        "e.amount": "2",
    }
    assert depth_texts(up("c.sku", *edges)) == {
        "c.sku": "0",
        "b.item.sku": "1",
        "a.items[].sku": "2",
    }
    assert depth_texts(up("e.amount", *edges)) == {
        "e.amount": "0",
        "d.cost": "1",
        "a.items[].cost": "2",
    }
