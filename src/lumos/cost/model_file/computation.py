"""Computes attribution and savings of a cost model file."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain, islice
from pathlib import Path
from typing import Final

import numpy as np

from lumos.cost.model_file.parser import InvalidModel, ModelEdge, ModelFile
from lumos.cost.solver.attribution import AmountsTooLarge, Attribution, attribute
from lumos.cost.solver.cycles import CycleNotSolved
from lumos.cost.solver.graph import CostGraph, Floats, Integers, unread_nodes
from lumos.cost.solver.savings import savings_of_all
from lumos.cost.solver.shares import NOISE, InvalidShare
from lumos.errors import MisuseError, UnknownName, did_you_mean
from lumos.model.cost import (
    ADJUSTMENT,
    COST_TYPES,
    DEFAULT_METHOD,
    IDLE,
    METHODS,
    RESERVED,
    SHARED,
    UNALLOCATED,
    AttributionMethod,
)
from lumos.model.json_codec import to_json
from lumos.model.money import micros
from lumos.model.report import FORMAT_VERSION, Report

# With more names, searching for similar ones takes too long.
_MAX_COMPARED: Final = 5000
_NAN: Final = float("nan")
_DIGITS: Final = 6
# Larger reports are written in parts, which saves gigabytes of memory.
_BATCH_SIZE: Final = 20_000


class ModelDataset(Report, frozen=True, kw_only=True):
    """The costs of a dataset or job; `by_type` is the total by cost type.

    `savings` are the savings of removing only this node.
    """

    urn: str
    direct: Decimal
    attributed: Decimal
    total: Decimal
    retained: Decimal
    by_type: dict[str, Decimal]
    savings: Decimal


class ModelComponent(Report, frozen=True, kw_only=True):
    """A lineage cycle and its total cost; `closed` if no cost flows out of it."""

    urns: tuple[str, ...]
    total: Decimal
    closed: bool


class ModelTotals(Report, frozen=True, kw_only=True):
    """The totals of a model: `spent` is the sum of retained and unattributed costs.

    `assumed` is the part that was split equally because usage is unknown.
    """

    spent: Decimal
    retained: Decimal
    unallocated: Decimal
    idle: Decimal
    shared: Decimal
    adjustment: Decimal
    assumed: Decimal


class ModelReport(Report, frozen=True, kw_only=True):
    """The result of `lumos cost model`; field names are a public contract."""

    format_version: str = FORMAT_VERSION
    method: AttributionMethod
    datasets: list[ModelDataset]
    components: list[ModelComponent]
    totals: ModelTotals
    remarks: list[str]


@dataclass(frozen=True, kw_only=True)
class CostModelInput:
    """A validated model, ready to be computed."""

    graph: CostGraph
    method: AttributionMethod
    unattributed: dict[str, int]
    remarks: list[str]


class ComputedModel:
    """Attribution and savings of a model, as a report or as JSON in parts."""

    def __init__(self, model: CostModelInput) -> None:
        self._model = model
        self._attribution = attribute(model.graph, model.method)
        self._savings = savings_of_all(model.graph)

    @property
    def is_large(self) -> bool:
        """Whether the report should be written in parts."""
        return self._model.graph.nodes > _BATCH_SIZE

    def report(self) -> ModelReport:
        return _report(self._model, self._attribution, list(self._datasets()))

    def json(self) -> Iterator[bytes]:
        """Yield the report as JSON in parts."""
        empty = to_json(_report(self._model, self._attribution, []))
        before, field, after = empty.partition(b'"datasets":[')
        yield before + field
        datasets = self._datasets()
        part = list(islice(datasets, _BATCH_SIZE))
        while part:
            yield to_json(part)[1:-1]
            part = list(islice(datasets, _BATCH_SIZE))
            yield b"," if part else b""
        yield after

    def _datasets(self) -> Iterator[ModelDataset]:
        return _datasets(self._model.graph, self._attribution, self._savings)


def compute(file: Path) -> ComputedModel:
    """The attribution and savings of a model file."""
    try:
        return ComputedModel(read_model(file))
    except (InvalidShare, AmountsTooLarge, CycleNotSolved) as error:
        raise InvalidModel(file, str(error)) from None


def read_model(file: Path) -> CostModelInput:
    """The model in a JSON or YAML file; raises InvalidModel if it cannot be computed."""
    model_file = ModelFile(file)
    method = model_file.method or DEFAULT_METHOD
    if method not in METHODS:
        raise model_file.invalid(str(UnknownName("method", method, METHODS)))
    nodes = _Nodes(model_file)
    edges = _Edges(model_file, nodes)
    _report_unknown_types(model_file, set(nodes.costs), set(edges.shares))
    types = (*nodes.costs, *(each for each in edges.shares if each not in nodes.costs))
    types = tuple(sorted(types or COST_TYPES[:2], key=_type_order))
    count = len(nodes.node_by_urn)
    costs = np.zeros((len(types), count), dtype=np.int64)
    for row, name in enumerate(types):
        if name in nodes.costs:
            nodes_with_cost, amounts = nodes.costs[name]
            costs[row, np.array(nodes_with_cost)] = amounts
    upstream, downstream = np.array(edges.upstream), np.array(edges.downstream)
    edges.check_duplicates(upstream, downstream)
    end_uses = unread_nodes(count, upstream, downstream)
    end_uses[list(nodes.live)] = list(nodes.live.values())
    graph = CostGraph(
        urns=list(nodes.node_by_urn),
        types=types,
        is_job=np.isin(np.arange(count), nodes.jobs),
        costs=costs,
        live=end_uses,
        upstream=upstream,
        downstream=downstream,
        explicit=edges.explicit(types),
        weights=np.array(edges.weights).reshape(1, -1),
        last_read=np.array(edges.last_read),
    )
    return CostModelInput(
        graph=graph, method=method, unattributed=nodes.unattributed, remarks=model_file.remarks
    )


def _report_unknown_types(model_file: ModelFile, costs: set[str], shares: set[str]) -> None:
    """Add remarks on shares of cost types that do not occur, which may be misspelled."""
    for name in sorted(shares - costs - set(COST_TYPES)):
        hint = did_you_mean(name, costs)
        model_file.remarks.append(f"Shares of '{name}' are ignored: no cost has that type.{hint}")


def _type_order(name: str) -> tuple[int, str]:
    """Sort key: known cost types in their order, then others by name."""
    index_by_type: dict[str, int] = {each: index for index, each in enumerate(COST_TYPES)}
    return index_by_type.get(name, len(index_by_type)), name


def _mixed_currencies_message(currencies: dict[str, str]) -> str:
    (first, first_source), (second, second_source) = currencies.items()
    return (
        f"The costs of {first_source} are in {first} and those of {second_source} in {second}. "
        "Write all of them in one currency."
    )


class _Nodes:
    """The datasets and jobs of the file by node number."""

    def __init__(self, model_file: ModelFile) -> None:
        self.node_by_urn: dict[str, int] = {}
        self.costs: dict[str, tuple[array[int], array[int]]] = {}
        self.live: dict[int, bool] = {}
        self.jobs: list[int] = []
        self.unattributed: dict[str, int] = {}
        self._model_file = model_file
        currencies = {model_file.currency.upper(): "the model"} if model_file.currency else {}
        for entry in chain.from_iterable(model_file.nodes()):
            if entry.urn in self.node_by_urn or entry.urn in self.unattributed:
                raise model_file.invalid(
                    f"The URN '{entry.urn}' is listed twice under datasets. Keep one."
                )
            if entry.currency is not None:
                currencies.setdefault(entry.currency.upper(), entry.urn)
            if len(currencies) > 1:
                raise model_file.invalid(_mixed_currencies_message(currencies))
            if not entry.urn:
                raise model_file.invalid("A dataset needs a URN that is not empty.")
            amounts = {
                name: self._micros(entry.urn, name, amount)
                for name, amount in (entry.costs or {}).items()
            }
            if entry.urn in RESERVED:
                self.unattributed[entry.urn] = sum(amounts.values())
                continue
            node = self.node_by_urn[entry.urn] = len(self.node_by_urn)
            for name, amount in amounts.items():
                nodes_with_cost, units = self.costs.setdefault(name, (array("q"), array("q")))
                nodes_with_cost.append(node)
                units.append(amount)
            if entry.live is not None:
                self.live[node] = entry.live
            if entry.kind == "job":
                self.jobs.append(node)
        if not self.node_by_urn and not self.unattributed:
            raise model_file.invalid(
                "The model is empty. It needs at least one entry under 'datasets'."
            )

    def _micros(self, urn: str, name: str, amount: Decimal) -> int:
        try:
            return micros(amount)
        except MisuseError as error:
            raise self._model_file.invalid(f"The {name} cost of '{urn}': {error}") from None


class _Edges:
    """The edges of the file by node numbers."""

    def __init__(self, model_file: ModelFile, nodes: _Nodes) -> None:
        self._model_file = model_file
        self._nodes = nodes
        # Arrays instead of lists, so that millions of edges fit into memory.
        self.upstream = array("q")
        self.downstream = array("q")
        self.weights = array("d")
        self.last_read = array("d")
        self.shares: dict[str, dict[int, float]] = {}
        self._uniform_shares: dict[int, float] = {}
        node_by_urn = nodes.node_by_urn.get
        for batch in model_file.edges():
            start = len(self.upstream)
            ends = [
                (node_by_urn(edge.upstream, -1), node_by_urn(edge.downstream, -1)) for edge in batch
            ]
            self.upstream.extend(end[0] for end in ends)
            self.downstream.extend(end[1] for end in ends)
            self.weights.extend(_NAN if edge.bytes is None else edge.bytes for edge in batch)
            self.last_read.extend(edge.read_at() for edge in batch)
            for number, (edge, pair) in enumerate(zip(batch, ends, strict=True), start=start):
                if -1 in pair or edge.share is not None or edge.shares is not None:
                    self._add_shares(edge, number, pair)
        negative = np.flatnonzero(np.array(self.weights) < 0)
        if len(negative):
            number = int(negative[0])
            raise model_file.invalid(
                f"edges[{number}]: bytes must not be negative ({self.weights[number]:g})."
            )

    def explicit(self, types: tuple[str, ...]) -> Floats:
        """[k, m] explicit shares, NaN if none; one row if all cost types have the same shares."""
        rows = np.full((len(types) if self.shares else 1, len(self.upstream)), np.nan)
        rows[:, list(self._uniform_shares)] = list(self._uniform_shares.values())
        for row, name in enumerate(types if self.shares else ()):
            shares_of_type = self.shares.get(name, {})
            rows[row, list(shares_of_type)] = list(shares_of_type.values())
        return rows

    def check_duplicates(self, upstream: Integers, downstream: Integers) -> None:
        """Raise if an edge is listed twice."""
        keys = upstream * max(len(self._nodes.node_by_urn), 1) + downstream
        order = np.argsort(keys, kind="stable")
        repeated = np.flatnonzero(np.diff(keys[order]) == 0)
        if len(repeated):
            first, second = (int(order[repeated[0] + step]) for step in (0, 1))
            urns = list(self._nodes.node_by_urn)
            raise self._model_file.invalid(
                f"The edge {urns[upstream[first]]} -> {urns[downstream[first]]} is listed twice, "
                f"as edges[{first}] and edges[{second}]. Keep one, with the sum of both."
            )

    def _add_shares(self, entry: ModelEdge, number: int, ends: tuple[int, int]) -> None:
        """Add the shares of an edge; raise if one of its nodes is unknown."""
        edge = f"edges[{number}] ({entry.upstream} -> {entry.downstream})"
        if -1 in ends:
            raise self._unknown_urn(entry.upstream if ends[0] < 0 else entry.downstream, edge)
        if entry.share is not None and entry.shares is not None:
            raise self._model_file.invalid(
                f"{edge}: give either 'share', or 'shares' by cost type."
            )
        if entry.share is not None:
            self._uniform_shares[number] = self._check_share(entry.share, edge)
        for name, share in (entry.shares or {}).items():
            self.shares.setdefault(name, {})[number] = self._check_share(share, f"{edge}, {name}")

    def _unknown_urn(self, urn: str, edge: str) -> MisuseError:
        if urn in RESERVED:
            return self._model_file.invalid(
                f"{edge}: {urn} is never attributed along lineage. Remove the edge."
            )
        known = list(self._nodes.node_by_urn)
        hint = did_you_mean(urn, known) if len(known) <= _MAX_COMPARED else ""
        return self._model_file.invalid(f"{edge}: '{urn}' is not listed under 'datasets'.{hint}")

    def _check_share(self, share: float, edge: str) -> float:
        if not 0 <= share <= 1 + NOISE:
            raise self._model_file.invalid(
                f"{edge}: the share must be a number from 0 to 1, such as 0.6, not {share:g}."
            )
        return min(share, 1.0)


def _report(
    model: CostModelInput, attribution: Attribution, datasets: list[ModelDataset]
) -> ModelReport:
    graph, unattributed = model.graph, model.unattributed
    spent = int(graph.costs.sum()) + sum(unattributed.values())
    return ModelReport(
        method=model.method,
        datasets=datasets,
        components=[
            ModelComponent(
                urns=tuple(graph.urns[node] for node in each.members),
                total=amount(int(each.loaded.sum())),
                closed=bool(each.closed.all()),
            )
            for each in attribution.components
        ],
        totals=ModelTotals(
            spent=amount(spent),
            retained=amount(int(attribution.retained.sum())),
            unallocated=amount(unattributed.get(UNALLOCATED, 0)),
            idle=amount(unattributed.get(IDLE, 0)),
            shared=amount(unattributed.get(SHARED, 0)),
            adjustment=amount(unattributed.get(ADJUSTMENT, 0)),
            assumed=amount(int(attribution.assumed_amount.sum())),
        ),
        remarks=model.remarks,
    )


def _datasets(
    graph: CostGraph, attribution: Attribution, savings: Integers
) -> Iterator[ModelDataset]:
    rows = zip(
        graph.urns,
        graph.costs.sum(axis=0).tolist(),
        attribution.loaded.sum(axis=0).tolist(),
        attribution.retained.sum(axis=0).tolist(),
        attribution.loaded.T.tolist(),
        savings.tolist(),
        strict=True,
    )
    for urn, direct, total, retained, by_type, savings_of_node in rows:
        yield ModelDataset(
            urn=urn,
            direct=amount(direct),
            attributed=amount(total - direct),
            total=amount(total),
            retained=amount(retained),
            by_type=dict(zip(graph.types, map(amount, by_type), strict=True)),
            savings=amount(savings_of_node),
        )


def amount(units: int) -> Decimal:
    """Micro-units as a decimal without trailing zeros."""
    digits = _DIGITS
    while digits and units % 10 == 0:
        units //= 10
        digits -= 1
    return Decimal(units).scaleb(-digits)
