"""Names between Lumos and DataHub: nothing is lost in either direction."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumos.model.urn import Urn
from lumos.platforms.datahub_file import names

ODD = (
    "", " ", "a.b", "a/b", "a,b", "(", ")", "()", "a(b),c", "%", "%25", "%2C", "%252C", "%2E", "%2F",
    "%40", "%2540", "@", "?env=DEV", "%3Fenv=DEV", "%253Fenv=X", "Größe", "名前", "🦆", '"', "'", "`",
    "\\", "\n", "\x00", "␟", "%E2%90%9F", "\ud800", "%ED%A0%80", "UPPER", "Mixed", "[type=int]", "urn:li:tag:x",
    "day=2024-01-01 00%3A00", "100%", "%%28",
)  # fmt: skip
TEXTS = (
    st.sampled_from(ODD)
    | st.text(max_size=8)
    | st.text(alphabet="%234580CEFenv=?A.,/@(", max_size=9)
)
PLATFORMS = st.sampled_from(("s3", "snowflake", "kafka", "postgres", "file", "datahub", "x-y_z+1"))
ENVIRONMENTS = st.sampled_from(("", "DEV", "NON_PROD", "STAGING7", "A-B"))
URNS = st.builds(
    lambda platform, path, instance, environment: Urn.of(
        platform, path, instance=instance, environment=environment
    ),
    PLATFORMS,
    st.lists(TEXTS, min_size=1, max_size=4).filter(lambda path: path != [""]),
    st.just("") | TEXTS,
    ENVIRONMENTS,
)


@settings(max_examples=1500, deadline=None)
@given(URNS, st.booleans())
def test_every_urn_of_lumos_comes_back(urn: Urn, apart: bool) -> None:
    there = names.dataset_urn(urn, apart=apart)
    assert names.lumos_urn(there, urn.instance or None) == urn


@settings(max_examples=1500, deadline=None)
@given(URNS, URNS)
def test_two_datasets_never_have_one_name_where_they_are_kept_apart(one: Urn, two: Urn) -> None:
    if one != two:
        assert names.dataset_urn(one, apart=True) != names.dataset_urn(two, apart=True)


@settings(max_examples=1500, deadline=None)
@given(
    platform=PLATFORMS | st.sampled_from(("Mixed", "adlsGen2", "a b", "%")),
    name=TEXTS.filter(bool) | st.lists(TEXTS, min_size=1).map(".".join).filter(bool),
    environment=st.sampled_from(("PROD", "NON_PROD", "prod", "STAGING7", "%")),
    instance=st.none() | TEXTS.filter(bool),
)
def test_every_urn_of_datahub_comes_back(
    platform: str, name: str, environment: str, instance: str | None
) -> None:
    urn = f"urn:li:dataset:(urn:li:dataPlatform:{platform},{name},{environment})"
    read = names.lumos_urn(urn, instance)
    assert read is not None
    assert Urn.parse(str(read)) == read
    assert urn in (names.dataset_urn(read), names.dataset_urn(read, apart=True))


@given(TEXTS.filter(bool))
def test_names_of_tags_and_people_come_back(name: str) -> None:
    urn = names.entity_urn("tag", name)
    assert names.entity_name("tag", urn) == name
    assert not set(urn) & set("(),␟")
    assert names.entity_name("corpuser", urn) is None


@given(TEXTS, TEXTS)
def test_names_of_fields_come_back(dataset: str, path: str) -> None:
    parent = names.dataset_urn(Urn.of("s3", ["a", dataset]))
    assert names.field_name(names.field_urn(parent, path)) == (parent, path)


@pytest.mark.parametrize(
    ("lumos", "datahub"),
    [
        ("lumos://s3/data-lake/raw/events.v2", "(urn:li:dataPlatform:s3,data-lake/raw/events.v2,PROD)"),
        ("lumos://snowflake/FINANCE/Customers", "(urn:li:dataPlatform:snowflake,FINANCE.Customers,PROD)"),
        ("lumos://snowflake@eu/FINANCE/customers?env=DEV", "(urn:li:dataPlatform:snowflake,eu.FINANCE.customers,DEV)"),
        ("lumos://s3@minio/lake/orders", "(urn:li:dataPlatform:s3,minio.lake/orders,PROD)"),
        ("lumos://kafka/events.signup", "(urn:li:dataPlatform:kafka,events.signup,PROD)"),
        ("lumos://postgres/shop/public/a.b", "(urn:li:dataPlatform:postgres,shop.public.a%2Eb,PROD)"),
        ("lumos://s3/lake/sales,%20net%20%28eu%29", "(urn:li:dataPlatform:s3,lake/sales%2C net %28eu%29,PROD)"),
        ("lumos://hive/größe/Ünïcode".replace("ö", "%C3%B6").replace("ß", "%C3%9F").replace("Ü", "%C3%9C").replace("ï", "%C3%AF"),
         "(urn:li:dataPlatform:hive,größe.Ünïcode,PROD)"),
        ("lumos://s3/lake/orders?env=STAGING", "(urn:li:dataPlatform:s3,lake/orders%3Fenv=STAGING,NON_PROD)"),
        ("lumos://datahub/urn:li:dataset:%28urn:li:dataPlatform:adlsGen2,a%2Fb,PROD%29", "(urn:li:dataPlatform:adlsGen2,a/b,PROD)"),
    ],
)  # fmt: skip
def test_names_look_as_datahub_s_own_sources_make_them(lumos: str, datahub: str) -> None:
    urn = Urn.parse(lumos)
    assert names.dataset_urn(urn) == f"urn:li:dataset:{datahub}"
    assert names.lumos_urn(f"urn:li:dataset:{datahub}", urn.instance or None) == urn


def test_what_names_no_dataset_is_none() -> None:
    assert names.lumos_urn("urn:li:chart:(looker,1)") is None
    assert names.field_name("urn:li:dataset:(a,b,c)") is None
