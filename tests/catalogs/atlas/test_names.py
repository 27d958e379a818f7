"""Tags, terms and columns have names in Atlas that lead back to them."""

import re
from urllib.parse import unquote

from hypothesis import example, given
from hypothesis import strategies as st

from catalogs.strategies import TEXTS
from lumos.catalogs.atlas.entries import classification_name, column_name, tag_of
from lumos.catalogs.atlas.items import _term_name

# As Atlas checks the names of classifications.
VALID = re.compile(r"[a-zA-Z][a-zA-Z0-9_ .]*", re.ASCII)
TAGS = TEXTS | st.from_regex(r"[_x0-9A-F -]{0,12}", fullmatch=True)


@given(first=TAGS, second=TAGS)
@example(first="_x4-", second="\x04x2D_")
@example(first="lumos_x_a", second="a")
@example(first="", second=" ")
def test_each_tag_has_a_classification_of_its_own(first: str, second: str) -> None:
    names = [classification_name(tag) for tag in (first, second)]
    assert all(VALID.fullmatch(name) and not name.endswith(" ") for name in names)
    assert [tag_of(name) for name in names] == [first, second]
    assert (first == second) == (names[0] == names[1])


def test_plain_tags_keep_their_names() -> None:
    assert [classification_name(tag) for tag in ("PII", "tier-1", "a b", "no.dots", "1st")] == [
        "PII", "tier_x2D_1", "a b", "no.dots", "lumos_x_1st",
    ]  # fmt: skip


def test_a_tag_with_the_name_of_another_type_gets_a_prefix() -> None:
    name = classification_name("DataSet", {"DataSet": "ENTITY"})
    assert name == "lumos_x_DataSet"
    assert tag_of(name) == "DataSet"


@given(name=TEXTS)
def test_terms_and_columns_can_be_told_from_their_glossary_and_dataset(name: str) -> None:
    assert "@" not in _term_name(name)
    assert unquote(_term_name(name)) == name
    urn, _, column = column_name("lumos://s3/a", name).partition("#")
    assert (urn, unquote(column)) == ("lumos://s3/a", name)
