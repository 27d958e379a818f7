"""The cost feature of the SDK: reports, savings, recorded history and the HTML page."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple, TypedDict, Unpack

from lumos.config import Settings
from lumos.config.prices import NoPrices, engine_of, features_of, method_of, prices_of, provider_of
from lumos.cost.history import CostHistory, metering_start_in, record
from lumos.cost.inputs.graph import CostInputs, build_inputs
from lumos.cost.ledger import CostLedger, NodeLabels
from lumos.cost.model_file.computation import ModelReport, compute
from lumos.cost.page import dataset_page, spend_page
from lumos.cost.report_builder import (
    by_report,
    cost_report,
    explain_report,
    report_header,
    top_report,
    what_if_report,
)
from lumos.cost.reports import (
    CostByReport,
    CostExplainReport,
    CostRecordReport,
    CostReport,
    CostTopReport,
    CostTrendReport,
    GroupBy,
    Ranking,
    RetireReport,
    SavingsReport,
)
from lumos.cost.savings_report import retire_report, saving_hints, savings_report
from lumos.cost.solver.attribution import attribute
from lumos.cost.wording import metered_text
from lumos.errors import MisuseError, UnknownName
from lumos.model.cost import METHODS, AttributionMethod
from lumos.model.dataset_pattern import DatasetPattern
from lumos.model.money import amount_of
from lumos.model.period import Period, month_before, month_of, period_of, recent
from lumos.names import NoMatchingDataset, find_matching, find_urn
from lumos.store import Store
from lumos.store.errors import AmbiguousName, UnknownDataset

_PAGE_ROWS: Final = 40
_NOT_A_MONTH: Final = "Trends use whole months; other periods only if no month is recorded."


class CostOptions(TypedDict, total=False):
    """The period, the attribution method and the assumptions of a what-if report.

    `prices` maps keys such as `s3.standard` to prices, `moves` maps datasets to storage classes,
    and `schedules` maps jobs to schedules such as `weekly` or `0.5x`.
    """

    period: str | None
    method: str | None
    prices: Mapping[str, Decimal]
    moves: Mapping[str, str]
    schedules: Mapping[str, str]


class _ComputedCosts(NamedTuple):
    ledger: CostLedger
    before: CostLedger | None
    changes: tuple[str, ...]

    @property
    def assumptions(self) -> dict[str, Any]:
        return {"before": self.before, "changes": self.changes}


class Costs:
    """Cost reports on the datasets and jobs of one store."""

    def __init__(
        self,
        settings: Settings,
        store: Callable[[], Store],
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        publishing: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._settings = settings
        self._open = store
        self._clock = clock
        self._publishing = publishing

    def has_prices(self) -> bool:
        """Whether prices of storage or compute are configured."""
        return bool(self._settings.cost_model.storage or self._settings.cost_model.compute)

    def report(self, urn: str, **options: Unpack[CostOptions]) -> CostReport:
        """The own and upstream cost of a dataset or job, by cost type, team and upstream."""
        computed = self._compute(options)
        return self._report(computed, find_node(self._store, computed.ledger, urn))

    def top(
        self, limit: int = 20, *, ranked_by: Ranking = "retained", **options: Unpack[CostOptions]
    ) -> CostTopReport:
        """The most expensive datasets and jobs."""
        computed = self._compute(options)
        return top_report(computed.ledger, limit=limit, ranked_by=ranked_by, **computed.assumptions)

    def by(self, by: GroupBy, **options: Unpack[CostOptions]) -> CostByReport:
        """The own and retained cost of each team, domain, platform or tag."""
        computed = self._compute(options)
        return by_report(computed.ledger, by, **computed.assumptions)

    def trend(self, urn: str | None = None, **options: Unpack[CostOptions]) -> CostTrendReport:
        """The recorded costs of earlier periods, and the current cost."""
        computed = self._compute(options)
        node = None if urn is None else find_node(self._store, computed.ledger, urn)
        return self._trend(computed, node)

    def reports(self, limit: int) -> Iterator[tuple[CostReport, CostTrendReport]]:
        """The reports and trends of the datasets with the highest cost, from one computation."""
        computed = self._compute({})
        ledger = computed.ledger
        top = top_report(ledger, limit=limit, ranked_by="total", **computed.assumptions)
        for each in top.datasets:
            node = ledger.node_by_urn[each.urn]
            yield self._report(computed, node), self._trend(computed, node)

    def explain(
        self, urn: str, *, limit: int = 20, **options: Unpack[CostOptions]
    ) -> CostExplainReport:
        """The lineage paths and shares that make up a total cost, the largest first."""
        computed = self._compute(options)
        node = find_node(self._store, computed.ledger, urn)
        return explain_report(computed.ledger, node, limit=limit, **computed.assumptions)

    def savings(
        self,
        *urns: str,
        feature: str | None = None,
        tag: str | None = None,
        **options: Unpack[CostOptions],
    ) -> SavingsReport:
        """The monthly savings from removing datasets, selected by name, feature or tag."""
        if not urns and feature is None and tag is None:
            raise MisuseError("Name what to remove: lumos cost savings DATASET, --feature or --tag")
        computed = self._compute(options)
        ledger = computed.ledger
        nodes = [find_node(self._store, ledger, urn) for urn in urns]
        if feature is not None:
            nodes += feature_nodes(self._store, self._settings, ledger, feature)
        if tag is not None:
            nodes += self._nodes_with_tag(ledger, tag)
        nodes = list(dict.fromkeys(nodes))
        groups = [*([f"the feature {feature}"] if feature is not None else []),
                  *([f"all datasets tagged {tag}"] if tag is not None else [])]  # fmt: skip
        return savings_report(
            ledger,
            nodes,
            request=(*groups, *urns) if groups else (),
            feature=None if urns or tag is not None else feature,
            **computed.assumptions,
        )

    def retire(self, top: int = 10, **options: Unpack[CostOptions]) -> RetireReport:
        """Unused datasets, and which datasets to retire together for the largest savings."""
        computed = self._compute(options)
        return retire_report(computed.ledger, top, **computed.assumptions)

    def record(self, period: str | None = None, *, aspects: bool = True) -> CostRecordReport:
        """Record the costs of a period, by default of the last full month."""
        requested = month_before(month_of(self._today)) if period is None else self._period(period)
        if requested.last >= self._today:
            raise MisuseError(
                f"{requested.name} is not over yet. The last full month is "
                f"{month_before(month_of(self._today)).name}."
            )
        store, at = self._store, self._clock()
        is_again = any(each.name == requested.name for each in store.costs.periods())
        ledger = self._ledger({}, requested)
        with self._publishing():
            datasets, written = record(store, ledger, aspects=aspects, at=at)
        with store.transaction() as transaction:
            transaction.audit("cost record", requested.name, at=at, details=f"{datasets} figures")
        remarks = [] if requested.kind == "month" else [_NOT_A_MONTH]
        if (since := metering_start_in(store.costs.metered_since(), requested)) is not None:
            remarks.append(f"Trends do not compare with it: {metered_text(since, requested)}.")
        return CostRecordReport(
            **report_header(ledger, remarks=tuple(remarks)),
            datasets=datasets,
            spent=amount_of(ledger.spent),
            aspects_written=written,
            is_again=is_again,
        )

    @staticmethod
    def model(file: str | Path) -> ModelReport:
        """The attribution of a cost model that is defined in one file; needs no store."""
        return compute(Path(file)).report()

    def page(self, urn: str | None = None, **options: Unpack[CostOptions]) -> str:
        """A self-contained HTML page on one dataset, or on the total spend."""
        computed = self._compute(options)
        ledger = computed.ledger
        if urn is not None:
            node = find_node(self._store, ledger, urn)
            return dataset_page(ledger, self._report(computed, node), self._trend(computed, node))
        top = top_report(ledger, limit=_PAGE_ROWS, ranked_by="retained", **computed.assumptions)
        teams = by_report(ledger, "team", **computed.assumptions)
        return spend_page(ledger, top, teams, self._trend(computed, None))

    def _report(self, computed: _ComputedCosts, node: int) -> CostReport:
        ledger = computed.ledger
        history = CostHistory(self._store, ledger, ledger.urn(node))
        trends = history.trends(ledger.inputs.period, int(ledger.totals[node]))
        hints = saving_hints(self._store, self._settings, ledger, node)
        return cost_report(
            ledger,
            node,
            trends=trends,
            hints=hints,
            remarks=history.remarks,
            **computed.assumptions,
        )

    def _trend(self, computed: _ComputedCosts, node: int | None) -> CostTrendReport:
        ledger, before = computed.ledger, computed.before
        period = ledger.inputs.period
        urn = None if node is None else ledger.urn(node)
        assumed = None if node is None else int(ledger.attribution.assumed[:, node].sum())
        cost = ledger.spent if node is None else int(ledger.totals[node])
        history = CostHistory(self._store, ledger, urn)
        points = history.points(until=period)
        remarks = history.remarks
        if not points:
            earlier = month_before(period).name
            remarks = (
                *remarks,
                f"No earlier period is recorded. Record {earlier} with: lumos cost record "
                f"--period {earlier}",
            )
        what_if: dict[str, Any] = {}
        if before is not None:
            previous = before.spent if urn is None else int(before.totals[before.node_by_urn[urn]])
            what_if["what_if"] = what_if_report(computed.changes, previous, cost)
            what_if["before"] = history.current_point(before, urn)
        return CostTrendReport(
            **report_header(ledger, assumed=assumed, remarks=remarks),
            **what_if,
            dataset=urn,
            name=None if node is None else ledger.name(node),
            points=points,
            now=history.current_point(ledger, urn),
            trends=history.trends(period, cost),
        )

    def _nodes_with_tag(self, ledger: CostLedger, tag: str) -> list[int]:
        nodes = [
            ledger.node_by_urn[urn]
            for urn in ledger.labels.tagged(tag)
            if urn in ledger.node_by_urn
        ]
        if not nodes:
            raise UnknownName("tag", tag, ledger.labels.tags, listed="Tags")
        return nodes

    def _compute(self, options: CostOptions) -> _ComputedCosts:
        """The ledger of a period and, for a what-if report, the ledger without its assumptions."""
        requested = options.get("period")
        period = recent(self._today) if requested is None else self._period(requested)
        changes = tuple(_assumption_texts(options))
        ledger = self._ledger(options, period)
        if not changes:
            return _ComputedCosts(ledger, None, ())
        without_assumptions: CostOptions = {"method": options.get("method")}
        return _ComputedCosts(ledger, self._ledger(without_assumptions, period), changes)

    def _ledger(self, options: CostOptions, period: Period) -> CostLedger:
        inputs: CostInputs = build_inputs(
            self._store,
            self._settings,
            period,
            prices=options.get("prices") or None,
            moves=options.get("moves") or None,
            schedules=options.get("schedules") or None,
        )
        method = self._method(options.get("method"))
        attribution = attribute(inputs.graph, method)
        ledger = CostLedger(inputs, attribution, self._labels, method, today=self._today)
        prices = prices_of(self._settings)
        if not (prices.storage or prices.compute or ledger.own.any() or ledger.unattributed):
            raise NoPrices(*self._providers_and_engines(ledger))
        return ledger

    def _providers_and_engines(self, ledger: CostLedger) -> tuple[list[str], list[str]]:
        """The providers of stored and configured data, and the engines of known jobs."""
        jobs = Counter(
            platform
            for node, urn in enumerate(ledger.graph.urns)
            if ledger.graph.is_job[node]
            for platform in self._labels.of("platform", urn)
        )
        # Does not include tables that are only known from lineage: their storage is unknown.
        platforms = [*self._store.data_platforms(), *(each.type for each in self._settings.sources)]
        engines = [engine_of(name) for name, _ in jobs.most_common()]
        return list(dict.fromkeys(map(provider_of, platforms))), list(dict.fromkeys(engines))

    def _method(self, requested: str | None) -> AttributionMethod:
        if requested is None:
            return method_of(self._settings)
        for method in METHODS:
            if method == requested.strip().lower():
                return method
        raise UnknownName("method", requested, METHODS)

    def _period(self, text: str) -> Period:
        return period_of(text, today=self._today)

    @property
    def _today(self) -> date:
        return self._clock().date()

    @cached_property
    def _store(self) -> Store:
        return self._open()

    @cached_property
    def _labels(self) -> NodeLabels:
        return NodeLabels(self._store)


def _assumption_texts(options: CostOptions) -> list[str]:
    """The assumptions of a what-if report as text."""
    return [
        *(f"price {key} at {price}" for key, price in options.get("prices", {}).items()),
        *(
            f"{name} in storage class {storage}"
            for name, storage in options.get("moves", {}).items()
        ),
        *(
            f"{job} runs {schedule}{' as often' if schedule[:1].isdigit() else ''}"
            for job, schedule in options.get("schedules", {}).items()
        ),
    ]


def find_node(store: Store, ledger: CostLedger, name: str) -> int:
    """The node of a dataset or job, given by URN or name; raises UnknownDataset."""
    if name in ledger.node_by_urn:
        return ledger.node_by_urn[name]
    try:
        urn = find_urn(store, name, with_lineage=True)
    except UnknownDataset as unknown:
        return _find_job(ledger, name, unknown)
    if urn not in ledger.node_by_urn:
        raise MisuseError(f"{urn} no longer exists, so it has no current cost.")
    return ledger.node_by_urn[urn]


def _find_job(ledger: CostLedger, name: str, unknown: UnknownDataset) -> int:
    pattern = DatasetPattern(name)
    nodes = [
        node
        for node, urn in enumerate(ledger.graph.urns)
        if ledger.name(node) == name or pattern.matches(urn, ledger.name(node))
    ]
    if len(nodes) == 1:
        return nodes[0]
    if nodes:
        raise AmbiguousName(name, tuple(ledger.urn(node) for node in nodes[:5]))
    raise unknown


def feature_nodes(store: Store, settings: Settings, ledger: CostLedger, name: str) -> list[int]:
    """The datasets of a configured feature."""
    features = features_of(settings)
    if name not in features:
        if features:
            raise UnknownName("feature", name, features, listed="Features")
        raise MisuseError(
            f"No feature named '{name}': none is configured. Add it to lumos.yaml, for example "
            f"cost_calculation: {{features: {{{name}: {{patterns: ['{name}/*']}}}}}}"
        )
    feature = features[name]
    urns = [find_urn(store, each) for each in feature.datasets]
    for pattern in feature.patterns:
        matching = find_matching(store, DatasetPattern(pattern))
        if not matching:
            raise NoMatchingDataset(pattern)
        urns += [each.urn for each in matching]
    urns += [urn for tag in feature.tags for urn in ledger.labels.tagged(tag)]
    nodes = [ledger.node_by_urn[urn] for urn in dict.fromkeys(urns) if urn in ledger.node_by_urn]
    if not nodes:
        raise MisuseError(f"The feature '{name}' contains no existing dataset.")
    return nodes
