"""URNs: one spelling for each dataset."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lumos.model.urn import InvalidUrn, Urn, display_names

from .strategies import ODD_NAMES

SEGMENTS = st.sampled_from((*ODD_NAMES, "%", "%41", "a/b", "?env=DEV", "@", ".", "..", "\ud800"))
TEXTS = SEGMENTS | st.text(max_size=8)


@settings(max_examples=examples(600))
@given(
    platform=st.from_regex(r"[a-z][a-z0-9_.+-]{0,8}", fullmatch=True),
    path=st.lists(TEXTS, min_size=1, max_size=4).filter(lambda path: path != [""]),
    instance=TEXTS,
    environment=st.sampled_from(["", "PROD", "DEV", "QA_2", "A-B"]),
)
def test_every_urn_comes_back_from_its_text(
    platform: str, path: list[str], instance: str, environment: str
) -> None:
    urn = Urn.of(platform, path, instance=instance, environment=environment)
    assert (urn.platform, urn.path, urn.instance) == (platform, tuple(path), instance)
    assert urn.environment == (environment or "PROD")
    assert Urn.parse(str(urn)) == urn
    assert str(Urn.parse(str(urn))) == str(urn)


@pytest.mark.parametrize(
    ("text", "urn", "name"),
    [
        (
            "lumos://s3/data-lake-prod/raw/events/user_clicks",
            Urn("s3", ("data-lake-prod", "raw", "events", "user_clicks")),
            "user_clicks",
        ),
        (
            "lumos://snowflake@eu/FINANCE/customers",
            Urn("snowflake", ("FINANCE", "customers"), "eu"),
            "customers",
        ),
        (
            "lumos://snowflake@eu/FINANCE/customers?env=DEV",
            Urn("snowflake", ("FINANCE", "customers"), "eu", "DEV"),
            "customers",
        ),
        ("lumos://s3/b/day=2024-01-01", Urn("s3", ("b", "day=2024-01-01")), "day=2024-01-01"),
        ("lumos://file//etc/hosts", Urn("file", ("", "etc", "hosts")), "hosts"),
        ("lumos://s3/b/folder/", Urn("s3", ("b", "folder", "")), "folder"),
        ("lumos://postgres/a%2Fb/c%3Fd", Urn("postgres", ("a/b", "c?d")), "c?d"),
        ("lumos://postgres@h:5432/db/t", Urn("postgres", ("db", "t"), "h:5432"), "t"),
        ("lumos://kafka/gr%C3%B6%C3%9Fe", Urn("kafka", ("größe",)), "größe"),
    ],
)
def test_a_urn_reads_and_prints(text: str, urn: Urn, name: str) -> None:
    assert Urn.parse(text) == urn
    assert str(urn) == text
    assert urn.name == name


def test_the_default_environment_is_not_written() -> None:
    assert Urn.parse("lumos://s3/a?env=PROD") == Urn.parse("lumos://s3/a")
    assert str(Urn.parse("lumos://s3/a?env=PROD")) == "lumos://s3/a"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("s3://bucket/key", "it does not start with lumos://"),
        ("", "it does not start with lumos://"),
        ("lumos://", "'' is not a valid platform name"),
        ("lumos://S3/a", "'S3' is not a valid platform name"),
        ("lumos://s3", "it has no path"),
        ("lumos://s3/", "it has no path"),
        ("lumos://s3@/a", "the instance after '@' is empty"),
        ("lumos://s3/a?env=dev", "'?env=dev' is not an environment"),
        ("lumos://s3/a?", "'?' is not an environment"),
        ("lumos://s3/a?region=eu", "'?region=eu' is not an environment"),
        ("lumos://s3/%FF", "'%FF' is not percent-encoded UTF-8"),
        ("lumos://s3@%C3/a", "'%C3' is not percent-encoded UTF-8"),
    ],
)
def test_an_error_says_what_is_wrong_and_shows_a_right_one(text: str, problem: str) -> None:
    with pytest.raises(InvalidUrn) as caught:
        Urn.parse(text)
    assert problem in str(caught.value)
    assert "lumos://s3/data-lake/raw/events" in str(caught.value)
    assert caught.value.text == text


@pytest.mark.parametrize("platform", ["s3/bucket", "s3@eu", "S3", "", "s3?env=DEV"])
def test_a_platform_that_would_read_back_as_something_else_is_refused(platform: str) -> None:
    with pytest.raises(InvalidUrn, match="is not a valid platform name"):
        Urn.of(platform, ["a"])


@pytest.mark.parametrize("path", [[], [""]])
def test_a_urn_needs_a_path(path: list[str]) -> None:
    with pytest.raises(InvalidUrn, match="it has no path"):
        Urn.of("s3", path)


def test_an_unlawful_environment_is_refused() -> None:
    with pytest.raises(InvalidUrn, match="is not an environment"):
        Urn.of("s3", ["a"], environment="dev&x=1")


@pytest.mark.parametrize(
    ("urns", "recorded", "names"),
    [
        pytest.param(["lumos://s3/a/b/orders"], {}, ["orders"], id="last segment"),
        pytest.param(
            ["lumos://s3/a/orders.csv"], {"lumos://s3/a/orders.csv": "orders"}, ["orders"],
            id="recorded name",
        ),
        pytest.param(
            ["lumos://s3/x/crm/people", "lumos://s3/x/old/people"], {}, ["crm/people", "old/people"],
            id="folder",
        ),
        pytest.param(
            ["lumos://s3/a/raw/people", "lumos://s3/b/raw/people"], {},
            ["a/raw/people", "b/raw/people"], id="as many folders as are needed",
        ),
        pytest.param(
            ["lumos://s3/raw/people"], {"lumos://s3/old/people": "people"}, ["raw/people"],
            id="another on record",
        ),
        pytest.param(
            ["lumos://s3/raw/people", "lumos://gcs/raw/people"], {},
            ["lumos://s3/raw/people", "lumos://gcs/raw/people"], id="same path",
        ),
        pytest.param(
            ["lumos://s3/people", "lumos://s3/raw/people"], {}, ["lumos://s3/people", "raw/people"],
            id="one path is the end of the other",
        ),
        pytest.param(
            ["lumos://s3/crm/people", "lumos://s3/old/people.csv"],
            {"lumos://s3/old/people.csv": "people"}, ["crm/people", "people.csv"],
            id="an end that is the name of both",
        ),
        pytest.param(["public.orders"], {}, ["public.orders"], id="no URN"),
    ],
)  # fmt: skip
def test_datasets_are_called_by_the_shortest_name_that_distinguishes_them(
    urns: list[str], recorded: dict[str, str], names: list[str]
) -> None:
    assert list(display_names(urns, recorded).values()) == names
