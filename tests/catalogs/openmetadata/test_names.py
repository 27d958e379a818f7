"""Names go from Lumos to OpenMetadata and back, from either side, without loss."""

import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from catalogs.strategies import TEXTS, URNS
from lumos.catalogs.openmetadata.names import (
    MAX_NAME_LENGTH,
    EntityLocation,
    OpenMetadataNames,
    Service,
    decode_name,
    encode_name,
    join_fqn,
    shorten_name,
    split_fqn,
)
from lumos.errors import MisuseError
from lumos.model.urn import Urn

# What the published schemas of OpenMetadata say that a name is.
ENTITY_NAME = re.compile(r"((?!::).){1,256}\Z")
PIECES = st.sampled_from(
    (
        "%",
        "25",
        "3A",
        "%3A",
        ":",
        "_",
        "%_",
        "default",
        "%64efault",
        '"',
        ".",
        "/",
        "%2F",
        "%22",
        "a",
    )
)
ODD = st.lists(PIECES, max_size=6).map("".join) | TEXTS
NAMES = ODD.filter(ENTITY_NAME.match)
SERVICES = st.sampled_from(
    ("snowflake", "snowflake@eu", "prod", "lake.s3", "openmetadata", "weird one!", "postgres?env=DEV",
     "%6Cumos", "kafka", "table:x", "s3@a?env=DEV", "file")
)  # fmt: skip
PLACES = st.one_of(
    st.builds(lambda *parts: EntityLocation("table", parts), SERVICES, NAMES, NAMES, NAMES),
    st.builds(lambda *parts: EntityLocation("container", parts), SERVICES, NAMES),
    st.builds(lambda *parts: EntityLocation("container", parts), SERVICES, NAMES, NAMES),
    st.builds(lambda *parts: EntityLocation("container", parts), SERVICES, NAMES, NAMES, NAMES),
    st.builds(lambda *parts: EntityLocation("topic", parts), SERVICES, NAMES),
)
ESTATE = (
    Service("databaseServices", "prod", "Snowflake"),
    Service("databaseServices", "snowflake", "Snowflake"),
    Service("storageServices", "lake.s3", "S3"),
    Service("storageServices", "weird one!", "CustomStorage"),
    Service("databaseServices", "dwh", "Redshift"),
    Service("storageServices", "lumos", "CustomStorage"),
)


@given(text=ODD)
@example("%3A::")
@example("::%3A")
def test_every_text_has_a_name_and_comes_back_from_it(text: str) -> None:
    name = encode_name(text)
    assert decode_name(name) == text
    assert ENTITY_NAME.match(shorten_name(name))
    assert not set(name) & set('">\0\n\r\x85\u2028\u2029')


@given(parts=st.lists(NAMES, min_size=1, max_size=4))
def test_qualified_names_are_taken_apart_as_they_were_joined(parts: list[str]) -> None:
    assert split_fqn(join_fqn(*parts)) == tuple(parts)


@given(
    urn=URNS
    | st.builds(
        lambda platform, path: str(Urn.of(platform, path)),
        st.sampled_from(("postgres", "s3", "kafka", "lumos", "openmetadata")),
        st.lists(ODD, min_size=1, max_size=4).filter(lambda path: path != [""]),
    )
)
@pytest.mark.parametrize(
    "names", [OpenMetadataNames(), OpenMetadataNames(ESTATE, {"dwh": "redshift@eu?env=DEV"})]
)
def test_every_dataset_has_a_place_and_comes_back_from_it(
    names: OpenMetadataNames, urn: str
) -> None:
    place = names.locate(Urn.parse(urn))
    assume(not place.is_shortened)
    assert names.urn(place) == Urn.parse(urn)
    assert all(ENTITY_NAME.match(part) for part in place.parts)


@given(place=PLACES)
@pytest.mark.parametrize(
    "names", [OpenMetadataNames(), OpenMetadataNames(ESTATE, {"dwh": "redshift@eu?env=DEV"})]
)
def test_every_place_is_a_dataset_and_comes_back_from_it(
    names: OpenMetadataNames, place: EntityLocation
) -> None:
    assert names.locate(names.urn(place)) == place


@pytest.mark.parametrize(
    ("urn", "home", "fqn"),
    [
        ("lumos://snowflake@eu/SALES/PUBLIC/Orders", "table", "snowflake@eu.SALES.PUBLIC.Orders"),
        ("lumos://mysql/shop/orders", "table", "mysql.default.shop.orders"),
        ("lumos://postgres/t?env=DEV", "table", "postgres?env=DEV.default.default.t"),
        ("lumos://postgres/default/t", "table", "postgres.default.%64efault.t"),
        ("lumos://postgres/default/default/t", "table", "postgres.%64efault.default.t"),
        ("lumos://trino/a/b/c/d", "table", "trino.a.b.c/d"),
        ("lumos://s3/lake", "container", "s3.lake"),
        ("lumos://s3/lake/raw/orders.v2", "container", 's3.lake."raw/orders.v2"'),
        ("lumos://kafka/events.signup", "topic", 'kafka."events.signup"'),
        ("lumos://foo/a%3A%3Ab/c%22d/e", "table", "foo.a%3A%3Ab.c%22d.e"),
        ("lumos://lumos/a/b/c", "table", "%6Cumos.a.b.c"),
    ],
)
def test_datasets_are_where_people_look_for_them(urn: str, home: str, fqn: str) -> None:
    place = OpenMetadataNames().locate(Urn.parse(urn))
    assert (place.type, place.fqn) == (home, fqn)


@pytest.mark.parametrize(
    ("home", "fqn", "urn"),
    [
        ("table", "prod.SALES.PUBLIC.orders", "lumos://snowflake@prod/SALES/PUBLIC/orders"),
        ("table", "dwh.a.b.c", "lumos://redshift@eu/a/b/c?env=DEV"),
        ("container", '"lake.s3".bucket.raw', "lumos://s3@lake.s3/bucket/raw"),
        (
            "container",
            '"weird one!".bucket',
            "lumos://openmetadata/container:weird%20one%21.bucket",
        ),
        ("container", "s3.bucket.a.b", "lumos://openmetadata/container:s3.bucket.a.b"),
    ],
)
def test_services_that_were_there_before_are_recognised(home: str, fqn: str, urn: str) -> None:
    names = OpenMetadataNames(ESTATE, {"dwh": "redshift@eu?env=DEV"})
    place = EntityLocation(home, split_fqn(fqn))
    assert str(names.urn(place)) == urn
    assert names.locate(Urn.parse(urn)) == place


def test_a_configured_service_takes_the_datasets_of_its_platform() -> None:
    names = OpenMetadataNames(ESTATE, {"prod": "snowflake"})
    assert names.locate(Urn.parse("lumos://snowflake/a/b/c")).fqn == "prod.a.b.c"
    other = names.urn(EntityLocation("table", ("snowflake", "a", "b", "c")))
    assert str(other) == "lumos://snowflake@snowflake/a/b/c"


def test_what_a_service_is_said_to_be_must_be_a_platform() -> None:
    with pytest.raises(MisuseError, match="Invalid platform"):
        OpenMetadataNames((), {"prod": "Snow flake"})


def test_long_names_are_cut_and_stay_apart() -> None:
    names = OpenMetadataNames()
    first, second = (
        names.locate(Urn.of("s3", ("lake", f"{'x' * 400}{end}"))) for end in ("a", "b")
    )
    assert first != second
    assert first.is_shortened
    assert max(map(len, first.parts)) <= MAX_NAME_LENGTH


@pytest.mark.parametrize("name", ["a.b\\", 'a.\\"b', "\\", 'x."', "a.b/\\"])
def test_a_backslash_in_a_qualified_name_is_a_letter_like_any_other(name: str) -> None:
    assert split_fqn(join_fqn("bus", name, "c")) == ("bus", name, "c")
