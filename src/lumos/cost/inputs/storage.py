"""What the bytes of datasets cost, by provider and storage class."""

from array import array
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from lumos.config.prices import GB, Prices, charges_for_storage, class_of, provider_of, usual_class
from lumos.cost.inputs.nodes import Wiring
from lumos.cost.solver.graph import Integers
from lumos.model.money import MICRO, reckonable
from lumos.model.period import Period
from lumos.store.costs import ALWAYS, Size

if TYPE_CHECKING:
    from lumos.store import Store


class StorageCosts:
    """The storage of all datasets in a period.

    The last size measured on or before the last day of the period is used for all of it.
    """

    def __init__(
        self,
        store: "Store",
        prices: Prices,
        period: Period,
        wiring: Wiring,
        *,
        moves: Mapping[str, str],
    ) -> None:
        self._prices = prices
        self._period = period
        self._moves = moves
        self._rates: dict[tuple[str, str], tuple[int, int] | None] = {}
        self.missing: set[str] = set()
        self._unpriced: dict[str, tuple[int, int]] = {}
        self._later = 0
        # As pairs of numbers, for there may be millions of these.
        self._costs = array("q")
        for pair in self._priced(wiring, store.costs.sizes(period.last)):
            self._costs.extend(pair)

    def put_into(self, costs: Integers) -> None:
        """Adds the cost of each dataset to its place."""
        pairs = np.array(self._costs).reshape(-1, 2)
        costs[pairs[:, 0]] += pairs[:, 1]

    @property
    def remarks(self) -> tuple[str, ...]:
        """Datasets without a storage price, and datasets that were scanned too late."""
        found = [
            f"{datasets:,} dataset{'' if datasets == 1 else 's'} on {provider} "
            f"({_shown(size)}) {'has' if datasets == 1 else 'have'} no storage price and "
            f"count{'s' if datasets == 1 else ''} as free. To price storage, set "
            f"{self._prices.storage_key(provider, '')}."
            for provider, (datasets, size) in sorted(self._unpriced.items())
        ]
        if self._later == 1:
            found.append("1 dataset was first scanned after this period; its later size is used.")
        elif self._later:
            found.append(
                f"{self._later:,} datasets were first scanned after this period; their later "
                "sizes are used."
            )
        return tuple(found)

    def _priced(self, wiring: Wiring, sizes: Mapping[str, Size]) -> Iterator[tuple[int, int]]:
        last = (self._period.last - ALWAYS).days
        for urn, (platform, _) in wiring.datasets.items():
            size = sizes.get(urn)
            if size is None or size.total <= 0:
                continue
            self._later += size.day > last
            provider = provider_of(platform)
            if urn in self._moves:
                provider, by_class = self._moved(provider, size, self._moves[urn])
            else:
                by_class = _by_class(provider, size)
            cost = sum(self._cost(provider, name, held) for name, held in by_class.items())
            if cost:
                yield wiring.places[urn], reckonable(cost, f"for the storage of {urn}")

    @staticmethod
    def _moved(provider: str, size: Size, to: str) -> tuple[str, dict[str, int]]:
        elsewhere, dot, storage_class = to.rpartition(".")
        there = provider_of(elsewhere) if dot else provider
        return there, {class_of(storage_class): size.total}

    def _cost(self, provider: str, storage_class: str, held: int) -> int:
        at = provider, storage_class
        if at not in self._rates:
            self._rates[at] = self._rate(provider, storage_class)
        rate = self._rates[at]
        if rate is None:
            self._note_missing(provider, storage_class, held)
            return 0
        above, below = rate
        return (2 * held * above + below) // (2 * below)

    def _rate(self, provider: str, storage_class: str) -> tuple[int, int] | None:
        """Micro-units for a byte in the period, as a fraction."""
        price = self._prices.of_storage(provider, storage_class)
        if price is None:
            return None
        rate = Fraction(price) * MICRO * self._period.months / GB
        return rate.numerator, rate.denominator

    def _note_missing(self, provider: str, storage_class: str, held: int) -> None:
        priced = any(each == provider for each, _ in self._prices.storage)
        if priced or charges_for_storage(provider):
            self.missing.add(self._prices.storage_key(provider, storage_class))
        else:
            datasets, size = self._unpriced.get(provider, (0, 0))
            self._unpriced[provider] = datasets + 1, size + held


def _shown(size: int) -> str:
    return f"{size / GB:,.1f} GB" if size >= GB / 10 else f"{size / 1024**2:,.1f} MB"


def _by_class(provider: str, size: Size) -> dict[str, int]:
    """Bytes by storage class; those of no known class are of the usual one."""
    found: dict[str, int] = {}
    for name, held in size.classes.items():
        storage_class = class_of(name) or usual_class(provider)
        found[storage_class] = found.get(storage_class, 0) + held
    if rest := size.total - sum(found.values()):
        usual = usual_class(provider)
        found[usual] = found.get(usual, 0) + rest
    return {name: held for name, held in found.items() if held > 0}
