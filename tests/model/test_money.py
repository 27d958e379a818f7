"""Amounts of money as they are kept and shown."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as some

from lumos.errors import MisuseError
from lumos.model.money import (
    amount_of,
    format_money,
    micros,
    round_amount,
    round_balanced,
    round_balanced_by,
)


@pytest.mark.parametrize(
    ("units", "currency", "text"),
    [
        (1_234_500_000, "USD", "$1,234.50"),
        (-12_000_000, "EUR", "-€12.00"),
        (3_100_000, "CHF", "CHF 3.10"),
        (1_499_999, "JPY", "¥1"),
        (-4_000, "USD", "$0.00"),
        (5_000, "USD", "$0.00"),
        (15_000, "USD", "$0.02"),
    ],
)
def test_amounts_are_written_with_the_sign_of_their_currency(units, currency, text) -> None:
    assert format_money(units, currency) == text


def test_decimals_become_micro_units_and_return() -> None:
    assert micros("0.0000014") == 1
    assert micros(Decimal("5800")) == 5_800_000_000
    for text in ("12.345678", "-0.5", "1500", "0", "100"):
        assert str(amount_of(micros(text))) == text


@pytest.mark.parametrize("amount", ["NaN", "Infinity", "1e30"])
def test_what_is_no_amount_is_refused(amount: str) -> None:
    with pytest.raises(MisuseError):
        micros(amount)


@given(some.lists(some.integers(-(10**12), 10**12), max_size=30), some.integers(0, 6))
def test_balanced_amounts_give_the_rounded_sum_and_move_less_than_one_step(amounts, digits) -> None:
    shown = round_balanced(amounts, digits)
    step = 10 ** (6 - digits)
    assert sum(shown) == round_amount(sum(amounts), digits)
    assert all(abs(a - b) < step for a, b in zip(amounts, shown, strict=True)) or step == 1
    assert all(each % step == 0 for each in shown)


@given(some.lists(some.integers(-(10**12), 10**12), min_size=1, max_size=30))
def test_one_amount_makes_up_for_all_others_where_that_is_not_seen(amounts: list[int]) -> None:
    shown = round_balanced_by([*amounts, 10**10], 2, len(amounts))
    assert shown[:-1] == [round_amount(each, 2) for each in amounts]
    assert sum(shown) == round_amount(sum(amounts) + 10**10, 2)
    assert round_balanced_by([*amounts, 0], 2, len(amounts)) == round_balanced(
        [*amounts, 0], 2
    ) or (sum(round_amount(each, 2) for each in amounts) == round_amount(sum(amounts), 2))
