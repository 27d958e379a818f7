"""The HTML page on costs: key figures, cost flow, most expensive datasets, teams and trend."""

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

import numpy as np

from lumos.cost.ledger import CostLedger
from lumos.cost.reports import (
    CostByReport,
    CostReport,
    CostReportHeader,
    CostRow,
    CostTopReport,
    CostTrendReport,
    CostTrends,
    TrendPoint,
    UnlistedCosts,
)
from lumos.cost.solver.graph import Floats
from lumos.cost.wording import (
    JOB_COST,
    NO_RECORDS,
    NOT_ATTRIBUTED,
    OWN_COST,
    RETAINED_COST,
    TOTAL_COST,
    UPSTREAM_COST,
    comparison_text,
    display_name,
    estimate_text,
    group_columns_text,
    period_text,
    unattributed_label,
    unattributed_text,
)
from lumos.model.money import (
    MICRO,
    digits_of,
    format_money,
    micros,
    round_amount,
    round_balanced,
    round_balanced_by,
)
from lumos.rendering import document as html
from lumos.rendering.charts import Bar, FormatMoney, bars, columns, shorten_name, sort_parts
from lumos.rendering.document import TableRow, Tile
from lumos.rendering.flow import FlowBand, FlowNode, flow

_MAX_BARS: Final = 12

_MAX_NAME_LENGTH: Final = 60
_FLOW_LEGEND: Final = (
    ("spent", "own cost and the jobs that write it"),
    ("whole", "upstream cost"),
    ("kept", "retained: not passed on downstream"),
    ("unneeded", "retained and unused: no use is known"),
)
_EQUAL_SPLIT: Final = "split equally, no usage data"
_NO_UNLISTED_COSTS: Final = UnlistedCosts()


def spend_page(
    ledger: CostLedger, top: CostTopReport, teams: CostByReport, trend: CostTrendReport
) -> str:
    """The page on the total spend."""
    money = _money(top, top.spent)
    types = sort_parts(name for row in top.datasets for name in row.by_type)
    content = [
        html.tiles(_spend_tiles(ledger, top, trend.trends, money)),
        _flow_section(
            "Cost flow through lineage",
            "Upstream datasets are on the left, the final ones on the right. The height of a bar "
            "is the total cost of a dataset; a band is the cost that it passes on downstream.",
            *spend_flow(ledger),
            money,
        ),
        html.side_by_side(
            html.section(
                "Most expensive datasets",
                "Retained cost, including everything upstream.",
                bars(_top_bars(top), types, money, label="Datasets by retained cost"),
                html.parts_legend(types),
            ),
            _trend_section("Trend", "Total spend by month.", trend, money),
        ),
        html.section(
            "Cost by team",
            group_columns_text("team"),
            _team_table(teams, money),
        ),
        html.section(
            "Cost by dataset and job",
            f"{OWN_COST} {TOTAL_COST} {RETAINED_COST}",
            _top_table(top, money),
        ),
        *_remarks(top, top.spent, money),
    ]
    return _page("Cost of all datasets", top, content)


def dataset_page(ledger: CostLedger, report: CostReport, trend: CostTrendReport | None) -> str:
    """The page on one dataset."""
    money = _money(report, report.summary.total_cost)
    node = ledger.node_by_urn[report.dataset]
    breakdown = report.breakdown
    types = sort_parts(breakdown.by_type)
    upstream = [
        Bar(
            display_name(each.name, each.kind),
            micros(each.cost),
            {k: micros(v) for k, v in each.by_type.items()},
        )
        for each in breakdown.by_upstream
    ]
    teams = [
        Bar(name, micros(each), {"": micros(each)}) for name, each in breakdown.by_team.items()
    ]
    side = [
        html.section(
            "Cost by team",
            "By the owner of the datasets and jobs that cause the cost.",
            bars(_round_bars(_limit_rows(teams), report), [""], money, label="Cost by team"),
        )
    ]
    if trend is not None:
        side.append(_trend_section("Trend", "Total cost by month.", trend, money))
    content = [
        html.tiles(_dataset_tiles(report, money)),
        _flow_section(
            "Cost flow from upstream",
            "The height of a bar is the part of this total cost that comes through that dataset.",
            *flow_to(ledger, node),
            money,
        ),
        html.side_by_side(
            html.section(
                "Cost by upstream dataset or job",
                "The dataset itself and everything upstream.",
                bars(
                    _round_bars(_limit_rows(upstream, breakdown.others), report),
                    types,
                    money,
                    label="Cost by upstream dataset",
                ),
                html.parts_legend(types),
            ),
            html.stack(*side),
        ),
        *(
            [html.section("Potential savings", "", html.bullet_list(report.optimization))]
            if report.optimization
            else []
        ),
        *_remarks(report, report.summary.total_cost, money),
    ]
    about = f"{report.dataset}  ·  team {report.team}"
    return _page(f"Cost of {display_name(report.name, report.kind)}", report, content, about=about)


def _page(title: str, report: CostReportHeader, content: Sequence[str], *, about: str = "") -> str:
    subtitle = f"{period_text(report)}, in {report.currency}, method {report.method}"
    if report.what_if is not None:
        title = f"{title} (what-if)"
        subtitle = f"What if: {'; '.join(report.what_if.changes)}  ·  {subtitle}"
    return html.page(
        title=title,
        subtitle=f"{about}  ·  {subtitle}" if about else subtitle,
        footer="Written by Lumos. Own and retained costs add up to the cent.",
        content=content,
    )


def _money(report: CostReportHeader, total: Decimal) -> FormatMoney:
    digits = _digits(report.currency, micros(total))
    return lambda units: format_money(units, report.currency, digits)


def _flow_section(
    heading: str,
    explanation: str,
    nodes: Sequence[FlowNode],
    bands: Sequence[FlowBand],
    money: FormatMoney,
) -> str:
    if not bands:
        return html.section(heading, "No cost flows along lineage in this period.")
    diagram = flow(nodes, bands, money)
    used_colours = [(name, text) for name, text in _FLOW_LEGEND if f'class="{name}"' in diagram]
    return html.section(heading, explanation, diagram, html.legend(used_colours))


def _spend_tiles(
    ledger: CostLedger, top: CostTopReport, trends: CostTrends, money: FormatMoney
) -> list[Tile]:
    spent = micros(top.spent)
    unattributed = sum(map(micros, top.beside.values()))
    unneeded = int(ledger.own[~ledger.needed].sum())
    share = _percent(Decimal(unneeded), Decimal(spent))
    unattributed_names = ", ".join(unattributed_label(name).strip("()") for name in top.beside)
    most_expensive = top.datasets[0] if top.datasets else None
    return [
        Tile("Total spend", money(spent), _period_unit(top)),
        _change_tile(top, trends, money),
        Tile(
            "Most expensive",
            money(micros(most_expensive.retained)) if most_expensive else "-",
            shorten_name(most_expensive.name, _MAX_NAME_LENGTH) if most_expensive else "",
        ),
        Tile("Unused", money(unneeded), f"{share} of total spend has no known use"),
        Tile("Not attributed", money(unattributed), unattributed_names or "all cost is attributed"),
        Tile("Estimated", _percent(top.assumed, top.spent), _EQUAL_SPLIT),
    ]


def _dataset_tiles(report: CostReport, money: FormatMoney) -> list[Tile]:
    summary = report.summary
    total = micros(summary.total_cost)
    parts = [summary.own_cost, summary.jobs_cost, summary.attributed_cost]
    own, jobs, attributed = _rounded_amounts([micros(each) for each in parts], report, 2)
    return [
        Tile("Total cost", money(total), _period_unit(report)),
        Tile("Own cost", money(own), f"the {report.kind} itself"),
        *([Tile("Job cost", money(jobs), JOB_COST)] if jobs else []),
        Tile("Upstream cost", money(attributed), UPSTREAM_COST),
        _change_tile(report, report.trends, money),
        Tile("Estimated", _percent(report.assumed, summary.total_cost), _EQUAL_SPLIT),
    ]


def _period_unit(report: CostReportHeader) -> str:
    return "per month" if report.is_monthly else "in the period"


def _change_tile(report: CostReportHeader, trends: CostTrends, money: FormatMoney) -> Tile:
    """The change since the last month or, in a what-if report, the effect of its assumptions."""
    what_if = report.what_if
    if what_if is None:
        return _trend_tile(trends, money)
    digits = _digits(report.currency, micros(what_if.after))
    before, after = (round_amount(micros(each), digits) for each in (what_if.before, what_if.after))
    sign, tone = ("+", "up") if after > before else ("", "down" if after < before else "")
    share = _percent(Decimal(after - before), Decimal(abs(before)))
    note = f"{sign}{share} of the current {money(before)}"
    return Tile("What-if change", f"{sign}{money(after - before)}", note, tone)


def _trend_tile(trends: CostTrends, money: FormatMoney) -> Tile:
    comparison = trends.last_month
    if comparison is None or comparison.percent is None:
        reason = "" if comparison is None else comparison_text(comparison)
        return Tile("vs last month", "-", reason or "not recorded yet")
    tone = "up" if comparison.percent > 0 else "down" if comparison.percent < 0 else ""
    quarter = trends.vs_last_quarter
    quarter_text = "" if quarter is None else f", {quarter:+.0f}% vs last quarter"
    note = f"{money(micros(comparison.cost))} in {comparison.periods[0]}{quarter_text}"
    return Tile("vs last month", f"{comparison.percent:+.0f}%", note, tone)


def _top_bars(top: CostTopReport) -> list[Bar]:
    """The retained cost of the first rows, divided among the cost types like their totals."""
    bars_of_rows = []
    for row in top.datasets[:_MAX_BARS]:
        total = sum(row.by_type.values(), Decimal(0))
        parts = {
            name: round(micros(row.retained) * amount / total) if total else 0
            for name, amount in row.by_type.items()
        }
        bars_of_rows.append(Bar(row.name, micros(row.retained), parts if row.retained > 0 else {}))
    return bars_of_rows


def _limit_rows(rows: Sequence[Bar], unlisted: UnlistedCosts = _NO_UNLISTED_COSTS) -> list[Bar]:
    """The first rows, and a row for the sum of all others."""
    if len(rows) <= _MAX_BARS:
        return list(rows)
    others = rows[_MAX_BARS - 1 :]
    parts: dict[str, int] = {}
    for row in others:
        for name, amount in row.parts.items():
            parts[name] = parts.get(name, 0) + amount
    amount = sum(row.amount for row in others) + micros(unlisted.cost)
    return [*rows[: _MAX_BARS - 1], Bar(f"{len(others) + unlisted.count:,} others", amount, parts)]


def _round_bars(rows: Sequence[Bar], report: CostReportHeader) -> list[Bar]:
    others_index = len(rows) - 1 if len(rows) == _MAX_BARS else None
    amounts = _rounded_amounts([row.amount for row in rows], report, others_index)
    return [row._replace(amount=amount) for row, amount in zip(rows, amounts, strict=True)]


def _trend_section(
    heading: str, explanation: str, trend: CostTrendReport, money: FormatMoney
) -> str:
    before = [] if trend.before is None else [trend.before]
    points = (*trend.points[-11 + len(before) :], *before, trend.now)
    types = sort_parts(name for point in points for name in point.by_type)
    rows = [
        Bar(
            _point_name(point, trend),
            micros(point.monthly),
            {
                name: round(micros(amount) * point.monthly / point.cost) if point.cost else 0
                for name, amount in point.by_type.items()
            },
            is_current=point.recorded_at is None,
        )
        for point in points
    ]
    hint = "" if trend.points else f" {NO_RECORDS}"
    if not trend.is_monthly:
        hint += " The requested period is shown as the cost of one month."
    chart = columns(rows, types, money, label="Cost by month")
    return html.section(heading, explanation + hint, chart, html.parts_legend(types))


def _point_name(point: TrendPoint, trend: CostTrendReport) -> str:
    if point.recorded_at is not None:
        return point.period
    if trend.what_if is not None and point is trend.now:
        return "what-if"
    if trend.is_recent:
        return "last 30 days"
    return trend.period if ".." not in trend.period else "period"


def _team_table(teams: CostByReport, money: FormatMoney) -> str:
    unattributed = [(name, micros(amount)) for name, amount in teams.beside.items()]
    unattributed_amounts = [amount for _, amount in unattributed]
    own = _rounded_amounts(
        [*(micros(each.own) for each in teams.groups), *unattributed_amounts], teams
    )
    retained = _rounded_amounts(
        [*(micros(each.retained) for each in teams.groups), *unattributed_amounts], teams
    )
    names = [(each.name, f"{each.datasets:,}", "") for each in teams.groups]
    names += [(unattributed_text(name), "", "beside") for name, _ in unattributed]
    shares = [
        _percent(Decimal(retained_cost), Decimal(sum(retained))) for retained_cost in retained
    ]
    rows = [
        TableRow((name, count, money(own_cost), money(retained_cost), share), tone)
        for (name, count, tone), own_cost, retained_cost, share in zip(
            names, own, retained, shares, strict=True
        )
    ]
    rows.append(TableRow(("Total spend", "", money(sum(own)), money(sum(retained)), ""), "sum"))
    head = ("Team", "Datasets", "Own cost", "Retained cost", "Share")
    return html.table(head, rows, numbers=head[1:])


def _top_table(top: CostTopReport, money: FormatMoney) -> str:
    listed, others = top.displayed_rows
    unattributed = [(name, micros(amount)) for name, amount in top.beside.items()]
    unattributed_amounts = [amount for _, amount in unattributed]
    others_row = len(listed)
    own = _rounded_amounts(
        [*(micros(each.own) for each in listed), micros(others.own), *unattributed_amounts],
        top,
        others_row,
    )
    retained = _rounded_amounts(
        [
            *(micros(each.retained) for each in listed),
            micros(others.retained),
            *unattributed_amounts,
        ],
        top,
        others_row,
    )
    rows = [
        TableRow(
            (
                display_name(each.name, each.kind),
                each.team,
                money(own_cost),
                _total(each, retained_cost, money),
                money(retained_cost),
            )
        )
        for each, own_cost, retained_cost in zip(listed, own, retained, strict=False)
    ]
    if others.count:
        name = f"{others.count:,} others"
        rows.append(
            TableRow((name, "", money(own[others_row]), "", money(retained[others_row])), "beside")
        )
    rows += [
        TableRow(
            (
                unattributed_label(name),
                NOT_ATTRIBUTED[name][1],
                money(own_cost),
                "",
                money(retained_cost),
            ),
            "beside",
        )
        for (name, _), own_cost, retained_cost in zip(
            unattributed, own[others_row + 1 :], retained[others_row + 1 :], strict=True
        )
    ]
    rows.append(TableRow(("Total spend", "", money(sum(own)), "", money(sum(retained))), "sum"))
    head = ("Dataset or job", "Team", "Own cost", "Total cost", "Retained cost")
    return html.table(head, rows, numbers=head[2:])


def _total(row: CostRow, retained_cost: int, money: FormatMoney) -> str:
    """The total cost as text; if it equals the retained cost, both are rounded to the same text."""
    return money(retained_cost if row.total == row.retained else micros(row.total))


def _rounded_amounts(
    amounts: Sequence[int], report: CostReportHeader, absorbing_index: int | None = None
) -> list[int]:
    """Rounded amounts that add up; the one at `absorbing_index` includes rounding differences."""
    digits = _digits(report.currency, sum(amounts))
    return (
        round_balanced(amounts, digits)
        if absorbing_index is None
        else round_balanced_by(amounts, digits, absorbing_index)
    )


def _digits(currency: str, total: int) -> int:
    """The number of decimals: four for amounts below 1, for which cents are too coarse."""
    return 4 if 0 < abs(total) < MICRO else digits_of(currency)


def _remarks(report: CostReportHeader, total: Decimal, money: FormatMoney) -> list[str]:
    notes = list(report.remarks)
    if report.assumed:
        share = _percent(report.assumed, total)
        notes.insert(0, estimate_text(money(micros(report.assumed)), share))
    if report.what_if is not None:
        what_if = report.what_if
        before, after = money(micros(what_if.before)), money(micros(what_if.after))
        notes.insert(0, f"What if {'; '.join(what_if.changes)}: {before} before, {after} after.")
    if not notes:
        return []
    return [html.section("Notes", "", html.bullet_list(notes), tone="remarks")]


def _percent(amount: Decimal, total: Decimal) -> str:
    share = round(float(amount / total) * 100) if total else 0
    return f"{share}%"


# A diagram with more nodes is unreadable.
MAX_FLOW_NODES: Final = 22


def spend_flow(
    ledger: CostLedger, *, max_nodes: int = MAX_FLOW_NODES
) -> tuple[list[FlowNode], list[FlowBand]]:
    """The cost flow through the most expensive datasets, as nodes and bands."""
    retained = ledger.retained.astype(np.float64)
    return _flow(ledger, np.ones((len(ledger.graph.types), 1)), retained, max_nodes)


def flow_to(
    ledger: CostLedger, node: int, *, max_nodes: int = MAX_FLOW_NODES
) -> tuple[list[FlowNode], list[FlowBand]]:
    """The cost flow from upstream into one dataset, as nodes and bands."""
    contributions = ledger.contributions_to(node)
    arriving = np.zeros(ledger.attribution.loaded.shape)
    # In a cycle, cost returns to the node, so its own reach exceeds 1; count only first arrivals.
    own_reach = contributions.reach[:, contributions.nodes == node]
    arriving[:, contributions.nodes] = contributions.reach / np.where(own_reach > 0, own_reach, 1)
    retained = np.zeros(ledger.graph.nodes)
    retained[node] = ledger.retained[node]
    return _flow(ledger, arriving, retained, max_nodes)


def _flow(
    ledger: CostLedger, arriving: Floats, retained: Floats, max_nodes: int
) -> tuple[list[FlowNode], list[FlowBand]]:
    """The most expensive nodes and the flows between them.

    `arriving` ([k, n]) is the share of each node's cost to include, `retained` ([n]) the cost that
    each node retains. Jobs are merged into their outputs: cost flows directly from the inputs of a
    job to its outputs, and the own cost of the job is added to that of its outputs.
    """
    graph, shares = ledger.graph, ledger.attribution.shares.values
    totals = (ledger.attribution.loaded * arriving).sum(axis=0)
    own = (graph.costs * arriving).sum(axis=0)
    arriving_by_type = np.broadcast_to(arriving, ledger.attribution.loaded.shape)
    edges = np.flatnonzero(graph.upstream != graph.downstream)
    upstream, downstream = graph.upstream[edges], graph.downstream[edges]
    flows = np.zeros(len(edges))
    for row in range(len(graph.types)):
        loaded = ledger.attribution.loaded[row]
        flows += loaded[upstream] * shares[row, edges] * arriving_by_type[row, downstream]
    # Jobs that retain cost or that read from or write to other merged jobs stay separate nodes.
    is_merged_job = graph.is_job & (retained < 1)
    is_between_jobs = is_merged_job[upstream] & is_merged_job[downstream]
    is_merged_job[upstream[is_between_jobs]] = False
    is_merged_job[downstream[is_between_jobs]] = False
    candidates = np.flatnonzero(~is_merged_job & (totals > 0))
    order = candidates[np.lexsort((candidates, -totals[candidates]))]
    listed = set(map(int, order[:max_nodes]))
    is_adjacent = np.isin(upstream, list(listed)) | np.isin(downstream, list(listed))
    incoming: dict[int, list[tuple[int, float]]] = defaultdict(list)
    outgoing: dict[int, list[tuple[int, float]]] = defaultdict(list)
    bands: dict[tuple[int, int], float] = defaultdict(float)
    direct = defaultdict(float, {node: float(own[node]) for node in listed})
    for source, target, amount in zip(
        upstream[is_adjacent], downstream[is_adjacent], flows[is_adjacent], strict=True
    ):
        if is_merged_job[target]:
            incoming[int(target)].append((int(source), float(amount)))
        elif is_merged_job[source]:
            outgoing[int(source)].append((int(target), float(amount)))
        elif source in listed and target in listed:
            bands[int(source), int(target)] += float(amount)
    for job, outputs in outgoing.items():
        if totals[job] <= 0:
            continue
        for target, amount in outputs:
            share = amount / float(totals[job])
            direct[target] += float(own[job]) * share
            for source, arriving_amount in incoming.get(job, ()):
                bands[source, target] += arriving_amount * share
    flow_nodes = [
        FlowNode(
            key=ledger.urn(node),
            name=ledger.name(node),
            team=ledger.team(node),
            total=round(float(totals[node])),
            direct=round(direct[node]),
            retained=round(float(retained[node])),
            unneeded=not ledger.needed[node],
        )
        for node in sorted(listed)
    ]
    return flow_nodes, [
        FlowBand(ledger.urn(source), ledger.urn(target), round(each))
        for (source, target), each in bands.items()
    ]
