"""Facts are put into a text, and nothing in the text is run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.config.settings import PLACEHOLDERS, ChangeRule
from lumos.errors import MisuseError
from lumos.notifications.messages import fill_template, printable_text

FACTS = dict.fromkeys(PLACEHOLDERS, "") | {"dataset_name": "orders", "verdict": "breaking"}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{dataset_name}: {verdict}", "orders: breaking"),
        ("{dataset_name}\n{location}\nend", "orders\nend"),
        ("at {location}{dataset_name}", "at orders"),
        ("{{dataset_name}}", "{dataset_name}"),
        ('{"text": "{dataset_name}"}', '{"text": "orders"}'),
        ("${verdict} %(verdict)s", "$breaking %(verdict)s"),
        ("{{0}} } {", "{{0}} } {"),
        ("", ""),
    ],
)
def test_only_a_known_name_in_braces_is_replaced(template: str, text: str) -> None:
    ChangeRule(channels=("chat",), template=template)
    assert fill_template(template, FACTS) == text


def test_what_a_fact_says_is_not_filled_again() -> None:
    assert fill_template("{dataset_name}", {**FACTS, "dataset_name": "{verdict}"}) == "{verdict}"


@pytest.mark.parametrize(
    "name",
    ["owner", "__class__", "Dataset_name", " dataset_name ", "", "0", "urn!r", "urn.x", "urn[0]"],
)
def test_a_name_that_is_no_fact_is_refused_when_the_configuration_is_read(name: str) -> None:
    with pytest.raises(MisuseError, match="not a known placeholder"):
        ChangeRule(channels=("chat",), title=f"{{{name}}}")


@given(st.text())
def test_any_text_that_is_accepted_can_be_filled(template: str) -> None:
    try:
        ChangeRule(channels=("chat",), template=template)
    except MisuseError:
        return
    fill_template(template, FACTS)


@given(st.text(st.characters()))
def test_a_value_is_one_line_that_can_be_stored_and_sent(value: str) -> None:
    shown = printable_text(value)
    assert shown.isprintable()
    shown.encode()


def test_names_cannot_forge_lines_and_odd_bytes_become_signs() -> None:
    assert printable_text("a\nBREAKING: b\x1b[31m\udc80ß") == "a?BREAKING: b?[31m?ß"
