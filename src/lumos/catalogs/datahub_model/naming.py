"""Which dataset of DataHub is which of Lumos, as far as a file tells."""

from collections.abc import Mapping
from functools import lru_cache

from lumos.catalogs.datahub_model import names
from lumos.model.urn import InvalidUrn, Urn


class Naming:
    """Names that depend on each other: which instances there are, and which names are taken.

    In one catalog a name means one dataset, and a dataset has one name, whether it is there itself
    or only edges lead to it.
    """

    def __init__(self) -> None:
        self._lumos: dict[str, str] = {}
        self._datahub: dict[str, str] = {}
        self._expected: dict[str, str] = {}
        self._meant: dict[str, str] = {}
        self._called: dict[str, str] = {}

    def know(self, datahub: str, instance: str | None) -> None:
        """Takes note of a dataset that is there, and of the instance that it is said to be in."""
        self.forget(datahub)
        self._expected.pop(datahub, None)
        urn = names.lumos_urn(datahub, instance)
        assert urn is not None, "datasets have URNs of datasets"
        self._lumos[datahub] = str(urn)
        self._datahub[str(urn)] = datahub

    def forget(self, datahub: str) -> None:
        """Frees the name of a dataset that is no longer there."""
        lumos = self._lumos.pop(datahub, None)
        if lumos is not None and self._datahub.get(lumos) == datahub:
            del self._datahub[lumos]

    def mean(self, datahub: str, lumos: str) -> None:
        """Keeps a name for a dataset that an edge leads to by it, also while it is not there."""
        self._meant.setdefault(datahub, lumos)
        self._called.setdefault(lumos, datahub)

    def refer(self, lumos: str) -> None:
        """Settles the name of a dataset that edges will lead to."""
        if (datahub := self.datahub(lumos)) is not None:
            self.mean(datahub, lumos)

    def expect(self, lumos: str) -> str | None:
        """Takes for granted that a dataset will be there; gives its name if it is not there yet."""
        datahub = self.datahub(lumos)
        if datahub is None or datahub in self._lumos:
            return None
        self._expected[datahub] = lumos
        return datahub

    def missing(self) -> frozenset[str]:
        """The names of datasets that were expected in vain, which they no longer are."""
        missing = frozenset(self._expected)
        self._expected.clear()
        return missing

    def known(self) -> Mapping[str, str]:
        """The datasets that are there: Lumos's names, and DataHub's."""
        return self._datahub

    def lumos(self, datahub: str) -> str:
        """The name in Lumos; what is no dataset keeps its own."""
        known = self._lumos.get(datahub) or self._expected.get(datahub)
        if known is not None:
            return known
        urn = names.lumos_urn(datahub)
        return datahub if urn is None else str(urn)

    def datahub(self, lumos: str) -> str | None:
        """The name in DataHub, or nothing where this names no dataset of Lumos."""
        if (known := self._datahub.get(lumos)) is not None:
            return known
        called = self._called.get(lumos)
        if called is not None and self._is_free(called, lumos):
            return called
        if (urn := _urn(lumos)) is None:
            return None
        datahub = names.dataset_urn(urn)
        return datahub if self._is_free(datahub, lumos) else names.dataset_urn(urn, apart=True)

    def _is_free(self, datahub: str, lumos: str) -> bool:
        """Whether a name means no other dataset; one that is there goes before what edges mean."""
        return self._lumos.get(datahub, self._meant.get(datahub, lumos)) == lumos


@lru_cache(maxsize=65_536)
def can_mean(datahub: str, lumos: str) -> bool:
    """Whether a dataset may have that name in DataHub."""
    urn = _urn(lumos)
    is_apart = names.is_apart(datahub)
    return urn is not None and names.dataset_urn(urn, apart=is_apart) == datahub


@lru_cache(maxsize=4_096)
def _urn(text: str) -> Urn | None:
    try:
        urn = Urn.parse(text)
    except InvalidUrn:
        return None
    return urn if str(urn) == text else None
