"""Text that PostgreSQL does not take travels under another sign."""

from hypothesis import given
from hypothesis import strategies as st

from lumos.store.any_text import hidden, shown

TEXTS = st.text() | st.text(alphabet="\0\U0010ffff01a")


@given(TEXTS)
def test_every_text_comes_back(text: str) -> None:
    assert "\0" not in hidden(text)
    assert shown(hidden(text)) == text


@given(TEXTS, TEXTS)
def test_two_texts_never_become_one(one: str, two: str) -> None:
    assert (hidden(one) == hidden(two)) == (one == two)
