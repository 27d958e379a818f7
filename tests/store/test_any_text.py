"""Text that PostgreSQL does not take travels under another sign."""

from hypothesis import given
from hypothesis import strategies as st

from lumos.store.database import escape_text, unescape_text

TEXTS = st.text() | st.text(alphabet="\0\U0010ffff01a")


@given(TEXTS)
def test_every_text_comes_back(text: str) -> None:
    assert "\0" not in escape_text(text)
    assert unescape_text(escape_text(text)) == text


@given(TEXTS, TEXTS)
def test_two_texts_never_become_one(one: str, two: str) -> None:
    assert (escape_text(one) == escape_text(two)) == (one == two)
