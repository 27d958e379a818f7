"""Costs as the SDK offers them."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict, Unpack

from lumos.config import Settings
from lumos.config.prices import NoPrices, engine_of, method_of, prices_of, provider_of
from lumos.cost.inputs.graph import Inputs, cost_graph
from lumos.cost.labels import Labels
from lumos.cost.ledger import Books
from lumos.cost.report_builder import answer, by_report, cost_report, top_report, what_if
from lumos.cost.reports import (
    ByReport,
    CostReport,
    ExplainReport,
    GroupBy,
    Ranking,
    RecordReport,
    RetireReport,
    SavingsReport,
    TopReport,
    TrendReport,
)
from lumos.cost.selection import feature_members, node_meant
from lumos.cost.solver.attribution import attribute
from lumos.cost.solver.graph import METHODS, Method
from lumos.cost.suggestions import hints
from lumos.cost.trend import History, point_of
from lumos.errors import MisuseError, UnknownName
from lumos.model.money import amount_of
from lumos.model.period import Period, month_before, month_of, period_of, recent
from lumos.store import Store
from lumos.store.actor import audit

if TYPE_CHECKING:
    from lumos.cost.model_file.computation import ModelReport

_PAGE_ROWS: Final = 40
_NO_MONTH: Final = "Trends use whole months; other periods only where no month is recorded."


class How(TypedDict, total=False):
    """Of which period, by which method, and what is supposed to be otherwise.

    Prices go by keys such as `s3.standard`, storage classes by dataset, and paces such as `weekly`
    or `0.5x` by job.
    """

    period: str | None
    method: str | None
    prices: Mapping[str, Decimal]
    moves: Mapping[str, str]
    schedules: Mapping[str, str]


class _Reckoned(NamedTuple):
    books: Books
    before: Books | None
    changes: tuple[str, ...]

    @property
    def supposed(self) -> dict[str, Any]:
        return {"before": self.before, "changes": self.changes}


class Costs:
    """What the datasets of one store cost."""

    def __init__(
        self,
        settings: Settings,
        store: Callable[[], Store],
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        telling: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._settings = settings
        self._open = store
        self._clock = clock
        self._telling = telling

    def report(self, urn: str, **how: Unpack[How]) -> CostReport:
        """The own and upstream cost of a dataset or job, by cost type, team and upstream."""
        reckoned = self._reckoned(how)
        return self._report(reckoned, node_meant(self._store, reckoned.books, urn))

    def top(
        self, limit: int = 20, *, ranked_by: Ranking = "retained", **how: Unpack[How]
    ) -> TopReport:
        """The datasets that cost most."""
        reckoned = self._reckoned(how)
        return top_report(reckoned.books, limit=limit, ranked_by=ranked_by, **reckoned.supposed)

    def by(self, by: GroupBy, **how: Unpack[How]) -> ByReport:
        """The own and retained cost of each team, domain, platform or tag."""
        reckoned = self._reckoned(how)
        return by_report(reckoned.books, by, **reckoned.supposed)

    def trend(self, urn: str | None = None, **how: Unpack[How]) -> TrendReport:
        """The recorded costs of earlier periods, and the current ones."""
        reckoned = self._reckoned(how)
        node = None if urn is None else node_meant(self._store, reckoned.books, urn)
        found = self._trend(reckoned, node)
        if not found.points:
            before = month_before(reckoned.books.inputs.period).name
            raise MisuseError(
                f"No earlier period is recorded. Record {before} with: lumos cost record "
                f"--period {before}"
            )
        return found

    def explain(self, urn: str, *, limit: int = 20, **how: Unpack[How]) -> ExplainReport:
        """The lineage paths and shares behind a total cost, the largest first."""
        from lumos.cost.explanation import explain_report

        reckoned = self._reckoned(how)
        node = node_meant(self._store, reckoned.books, urn)
        return explain_report(reckoned.books, node, limit=limit, **reckoned.supposed)

    def savings(
        self,
        *urns: str,
        feature: str | None = None,
        tag: str | None = None,
        **how: Unpack[How],
    ) -> SavingsReport:
        """What removing datasets saves, by name, as a feature or with a tag."""
        from lumos.cost.savings_report import savings_report

        if not urns and feature is None and tag is None:
            raise MisuseError("Name what to remove: lumos cost savings DATASET, --feature or --tag")
        reckoned = self._reckoned(how)
        books = reckoned.books
        nodes = [node_meant(self._store, books, urn) for urn in urns]
        if feature is not None:
            nodes += feature_members(self._store, self._settings, books, feature)
        if tag is not None:
            nodes += self._tagged(books, tag)
        nodes = list(dict.fromkeys(nodes))
        groups = [*([f"the feature {feature}"] if feature is not None else []),
                  *([f"all datasets tagged {tag}"] if tag is not None else [])]  # fmt: skip
        return savings_report(
            books,
            nodes,
            asked_for=(*groups, *urns) if groups else (),
            feature=None if urns or tag is not None else feature,
            **reckoned.supposed,
        )

    def retire(self, top: int = 10, **how: Unpack[How]) -> RetireReport:
        """Unused datasets, and which datasets to retire together for the largest savings."""
        from lumos.cost.retirement import retire_report

        reckoned = self._reckoned(how)
        return retire_report(reckoned.books, top, **reckoned.supposed)

    def record(self, period: str | None = None, *, aspects: bool = True) -> RecordReport:
        """Records the costs of a period, by default of the last full month."""
        from lumos.cost.history import record

        wanted = month_before(month_of(self._today)) if period is None else self._period(period)
        if wanted.last >= self._today:
            raise MisuseError(
                f"{wanted.name} is not over yet. The last full month is "
                f"{month_before(month_of(self._today)).name}."
            )
        store, at = self._store, self._clock()
        is_again = any(each.name == wanted.name for each in store.costs.periods())
        books = self._books({}, wanted)
        with self._telling():
            datasets, written = record(store, books, aspects=aspects, at=at)
        with store.transaction() as transaction:
            audit(transaction, "cost record", wanted.name, at=at, details=f"{datasets} figures")
        return RecordReport(
            **answer(books, remarks=() if wanted.kind == "month" else (_NO_MONTH,)),
            datasets=datasets,
            spent=amount_of(books.spent),
            aspects_written=written,
            is_again=is_again,
        )

    @staticmethod
    def model(file: str | Path) -> "ModelReport":
        """The cost model that stands in one file, computed; records nothing and needs no store."""
        from lumos.cost.model_file.computation import compute

        return compute(Path(file)).report()

    def page(self, urn: str | None = None, **how: Unpack[How]) -> str:
        """A self-contained page on one dataset, or on the total spend."""
        from lumos.cost.page import dataset_page, estate_page

        reckoned = self._reckoned(how)
        books = reckoned.books
        if urn is not None:
            node = node_meant(self._store, books, urn)
            return dataset_page(books, self._report(reckoned, node), self._trend(reckoned, node))
        top = top_report(books, limit=_PAGE_ROWS, ranked_by="retained", **reckoned.supposed)
        teams = by_report(books, "team", **reckoned.supposed)
        return estate_page(books, top, teams, self._trend(reckoned, None))

    def _report(self, reckoned: _Reckoned, node: int) -> CostReport:
        books = reckoned.books
        history = History(self._store, books, books.urn(node))
        trends = history.trends(books.inputs.period, int(books.totals[node]))
        found = hints(self._store, self._settings, books, node)
        return cost_report(
            books, node, trends=trends, hints=found, remarks=history.remarks, **reckoned.supposed
        )

    def _trend(self, reckoned: _Reckoned, node: int | None) -> TrendReport:
        books, before = reckoned.books, reckoned.before
        period = books.inputs.period
        urn = None if node is None else books.urn(node)
        assumed = None if node is None else int(books.attribution.assumed[:, node].sum())
        cost = books.spent if node is None else int(books.totals[node])
        supposed: dict[str, Any] = {}
        if before is not None:
            was = before.spent if urn is None else int(before.totals[before.places[urn]])
            supposed["what_if"] = what_if(reckoned.changes, was, cost)
            supposed["before"] = point_of(before, urn)
        history = History(self._store, books, urn)
        return TrendReport(
            **answer(books, assumed=assumed, remarks=history.remarks),
            **supposed,
            dataset=urn,
            name=None if node is None else books.name(node),
            points=history.points(until=period),
            now=point_of(books, urn),
            trends=history.trends(period, cost),
        )

    def _tagged(self, books: Books, tag: str) -> list[int]:
        nodes = [books.places[urn] for urn in books.labels.tagged(tag) if urn in books.places]
        if not nodes:
            raise UnknownName("tag", tag, books.labels.tags, listed="Tags")
        return nodes

    def _reckoned(self, how: How) -> _Reckoned:
        """The books as they are, or as they would be with what they were before."""
        text = how.get("period")
        period = recent(self._today) if text is None else self._period(text)
        changes = tuple(_changes(how))
        books = self._books(how, period)
        if not changes:
            return _Reckoned(books, None, ())
        plain: How = {"method": how.get("method")}
        return _Reckoned(books, self._books(plain, period), changes)

    def _books(self, how: How, period: Period) -> Books:
        inputs: Inputs = cost_graph(
            self._store,
            self._settings,
            period,
            prices=how.get("prices") or None,
            moves=how.get("moves") or None,
            schedules=how.get("schedules") or None,
        )
        method = self._method(how.get("method"))
        attribution = attribute(inputs.graph, method)
        books = Books(inputs, attribution, self._labels, method, today=self._today)
        prices = prices_of(self._settings)
        if not (prices.storage or prices.compute or books.own.any() or books.beside):
            raise NoPrices(*self._priceable(books))
        return books

    def _priceable(self, books: Books) -> tuple[list[str], list[str]]:
        """The providers of stored and configured data, and the engines of known jobs."""
        found = Counter(
            (bool(books.graph.is_job[node]), platform)
            for node, urn in enumerate(books.graph.urns)
            for platform in self._labels.of("platform", urn)
        )
        named = [name for (is_job, name), _ in found.most_common() if not is_job]
        named += [each.type for each in self._settings.sources]
        engines = [engine_of(name) for (is_job, name), _ in found.most_common() if is_job]
        return list(dict.fromkeys(map(provider_of, named))), list(dict.fromkeys(engines))

    def _method(self, wanted: str | None) -> Method:
        if wanted is None:
            return method_of(self._settings)
        for method in METHODS:
            if method == wanted.strip().lower():
                return method
        raise UnknownName("method", wanted, METHODS)

    def _period(self, text: str) -> Period:
        return period_of(text, today=self._today)

    @property
    def _today(self) -> date:
        return self._clock().date()

    @cached_property
    def _store(self) -> Store:
        return self._open()

    @cached_property
    def _labels(self) -> Labels:
        return Labels(self._store)


def _changes(how: How) -> list[str]:
    """The assumptions of a what-if report, in words."""
    return [
        *(f"price {key} at {price}" for key, price in how.get("prices", {}).items()),
        *(f"{name} in storage class {storage}" for name, storage in how.get("moves", {}).items()),
        *(f"{job} runs {_often(pace)}" for job, pace in how.get("schedules", {}).items()),
    ]


def _often(pace: str) -> str:
    return f"{pace} as often" if pace[:1].isdigit() else pace
