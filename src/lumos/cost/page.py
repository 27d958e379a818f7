"""The page on costs: key figures, cost flow, most expensive datasets, teams and trend."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final

from lumos.cost.flow import estate_flow, flow_to
from lumos.cost.ledger import Books
from lumos.cost.reports import (
    ByReport,
    CostAnswer,
    CostReport,
    CostRow,
    Rest,
    TopReport,
    TrendPoint,
    TrendReport,
    Trends,
)
from lumos.cost.wording import (
    JOB_COST,
    NO_RECORDS,
    NOT_ATTRIBUTED,
    OWN_COST,
    RETAINED_COST,
    TOTAL_COST,
    UPSTREAM_COST,
    estimated,
    explained,
    grouped_costs,
    label_of,
    named,
    period_of,
)
from lumos.model.money import MICRO, balanced, balanced_by, digits_of, micros, rounded, written
from lumos.rendering import document as drawn
from lumos.rendering.charts import Bar, bars, columns, in_order
from lumos.rendering.document import Row, Tile
from lumos.rendering.flow import Band, Stop, flow
from lumos.rendering.svg import shortened

_BARS: Final = 12

_LONGEST: Final = 60
_FLOW_KEY: Final = (
    ("spent", "own cost and the jobs that write it"),
    ("whole", "upstream cost"),
    ("kept", "retained: not passed on downstream"),
    ("unneeded", "retained and unused: no use is known"),
)
_EQUALLY: Final = "split equally, no usage data"
_NONE: Final = Rest()

Money = Callable[[int], str]


def estate_page(books: Books, top: TopReport, teams: ByReport, trend: TrendReport) -> str:
    """The page on the total spend."""
    money = _money(top, top.spent)
    types = in_order(name for row in top.datasets for name in row.by_type)
    content = [
        drawn.tiles(_estate_tiles(books, top, trend.trends, money)),
        _flow_section(
            "Cost flow through lineage",
            "Upstream datasets are on the left, the final ones on the right. The height of a bar "
            "is the total cost of a dataset; a band is the cost that it passes on downstream.",
            *estate_flow(books),
            money,
        ),
        drawn.side_by_side(
            drawn.section(
                "Most expensive datasets",
                "Retained cost, including everything upstream.",
                bars(_top_bars(top), types, money, label="Datasets by retained cost"),
                drawn.key(types),
            ),
            _trend_section("Trend", "Total spend by month.", trend, money),
        ),
        drawn.section(
            "Cost by team",
            grouped_costs("team"),
            _team_table(teams, money),
        ),
        drawn.section(
            "Cost by dataset and job",
            f"{OWN_COST} {TOTAL_COST} {RETAINED_COST}",
            _top_table(top, money),
        ),
        *_remarks(top, top.spent, money),
    ]
    return _page("Cost of all datasets", top, content)


def dataset_page(books: Books, report: CostReport, trend: TrendReport | None) -> str:
    """The page on one dataset."""
    money = _money(report, report.summary.total_cost)
    node = books.places[report.dataset]
    breakdown = report.breakdown
    types = in_order(breakdown.by_type)
    upstream = [
        Bar(
            named(each.name, each.kind),
            micros(each.cost),
            {k: micros(v) for k, v in each.by_type.items()},
        )
        for each in breakdown.by_upstream
    ]
    teams = [
        Bar(name, micros(each), {"": micros(each)}) for name, each in breakdown.by_team.items()
    ]
    side = [
        drawn.section(
            "Cost by team",
            "By the owner of the datasets and jobs that cause the cost.",
            bars(_balanced(_cut(teams), report), [""], money, label="Cost by team"),
        )
    ]
    if trend is not None:
        side.append(_trend_section("Trend", "Total cost by month.", trend, money))
    content = [
        drawn.tiles(_dataset_tiles(report, money)),
        _flow_section(
            "Cost flow from upstream",
            "The height of a bar is the part of this total cost that comes through that dataset.",
            *flow_to(books, node),
            money,
        ),
        drawn.side_by_side(
            drawn.section(
                "Cost by upstream dataset or job",
                "The dataset itself and everything upstream.",
                bars(
                    _balanced(_cut(upstream, breakdown.others), report),
                    types,
                    money,
                    label="Cost by upstream dataset",
                ),
                drawn.key(types),
            ),
            drawn.stacked(*side),
        ),
        *(
            [drawn.section("Potential savings", "", drawn.listed(report.optimization))]
            if report.optimization
            else []
        ),
        *_remarks(report, report.summary.total_cost, money),
    ]
    about = f"{report.dataset}  ·  team {report.team}"
    return _page(f"Cost of {named(report.name, report.kind)}", report, content, about=about)


def _page(title: str, report: CostAnswer, content: Sequence[str], *, about: str = "") -> str:
    subtitle = f"{period_of(report)}, in {report.currency}, method {report.method}"
    if report.what_if is not None:
        title = f"{title} (what-if)"
        subtitle = f"What if: {'; '.join(report.what_if.changes)}  ·  {subtitle}"
    return drawn.page(
        title=title,
        subtitle=f"{about}  ·  {subtitle}" if about else subtitle,
        footer="Written by Lumos. Own and retained costs add up to the cent.",
        content=content,
    )


def _money(report: CostAnswer, whole: Decimal) -> Money:
    digits = _digits(report.currency, micros(whole))
    return lambda units: written(units, report.currency, digits)


def _flow_section(
    heading: str, explanation: str, stops: Sequence[Stop], bands: Sequence[Band], money: Money
) -> str:
    if not bands:
        return drawn.section(heading, "No cost flows along lineage in this period.")
    picture = flow(stops, bands, money)
    met = [(name, words) for name, words in _FLOW_KEY if f'class="{name}"' in picture]
    return drawn.section(heading, explanation, picture, drawn.named_key(met))


def _estate_tiles(books: Books, top: TopReport, trends: Trends, money: Money) -> list[Tile]:
    spent = micros(top.spent)
    beside = sum(map(micros, top.beside.values()))
    unneeded = int(books.own[~books.needed].sum())
    share = _percent(Decimal(unneeded), Decimal(spent))
    which = ", ".join(label_of(name).strip("()") for name in top.beside)
    dearest = top.datasets[0] if top.datasets else None
    return [
        Tile("Total spend", money(spent), _how_long(top)),
        _change_tile(top, trends, money),
        Tile(
            "Most expensive",
            money(micros(dearest.retained)) if dearest else "-",
            shortened(dearest.name, _LONGEST) if dearest else "",
        ),
        Tile("Unused", money(unneeded), f"{share} of total spend has no known use"),
        Tile("Not attributed", money(beside), which or "all cost is attributed"),
        Tile("Estimated", _percent(top.assumed, top.spent), _EQUALLY),
    ]


def _dataset_tiles(report: CostReport, money: Money) -> list[Tile]:
    summary = report.summary
    whole = micros(summary.total_cost)
    parts = [summary.own_cost, summary.jobs_cost, summary.attributed_cost]
    own, jobs, attributed = _shown([micros(each) for each in parts], report, 2)
    return [
        Tile("Total cost", money(whole), _how_long(report)),
        Tile("Own cost", money(own), f"the {report.kind} itself"),
        *([Tile("Job cost", money(jobs), JOB_COST)] if jobs else []),
        Tile("Upstream cost", money(attributed), UPSTREAM_COST),
        _change_tile(report, report.trends, money),
        Tile("Estimated", _percent(report.assumed, summary.total_cost), _EQUALLY),
    ]


def _how_long(report: CostAnswer) -> str:
    return "per month" if report.is_monthly else "in the period"


def _change_tile(report: CostAnswer, trends: Trends, money: Money) -> Tile:
    """What a what-if changes; it is not compared with recorded months."""
    supposed = report.what_if
    if supposed is None:
        return _trend_tile(trends, money)
    digits = _digits(report.currency, micros(supposed.after))
    before, after = (rounded(micros(each), digits) for each in (supposed.before, supposed.after))
    sign, tone = ("+", "up") if after > before else ("", "down" if after < before else "")
    share = _percent(Decimal(after - before), Decimal(abs(before)))
    note = f"{sign}{share} of the current {money(before)}"
    return Tile("What-if change", f"{sign}{money(after - before)}", note, tone)


def _trend_tile(trends: Trends, money: Money) -> Tile:
    compared = trends.last_month
    if compared is None or compared.percent is None:
        return Tile("vs last month", "-", "not recorded yet")
    tone = "up" if compared.percent > 0 else "down" if compared.percent < 0 else ""
    quarter = trends.vs_last_quarter
    more = "" if quarter is None else f", {quarter:+.0f}% vs last quarter"
    note = f"{money(micros(compared.cost))} in {compared.periods[0]}{more}"
    return Tile("vs last month", f"{compared.percent:+.0f}%", note, tone)


def _top_bars(top: TopReport) -> list[Bar]:
    """Retained cost of the first, in the proportion of the types that a total is made of."""
    found = []
    for row in top.datasets[:_BARS]:
        whole = sum(row.by_type.values(), Decimal(0))
        parts = {
            name: round(micros(row.retained) * amount / whole) if whole else 0
            for name, amount in row.by_type.items()
        }
        found.append(Bar(row.name, micros(row.retained), parts if row.retained > 0 else {}))
    return found


def _cut(rows: Sequence[Bar], unlisted: Rest = _NONE) -> list[Bar]:
    """The first rows, and all others as one."""
    if len(rows) <= _BARS:
        return list(rows)
    rest = rows[_BARS - 1 :]
    parts: dict[str, int] = {}
    for row in rest:
        for name, amount in row.parts.items():
            parts[name] = parts.get(name, 0) + amount
    amount = sum(row.amount for row in rest) + micros(unlisted.cost)
    return [*rows[: _BARS - 1], Bar(f"{len(rest) + unlisted.count:,} others", amount, parts)]


def _balanced(rows: Sequence[Bar], report: CostAnswer) -> list[Bar]:
    rest = len(rows) - 1 if len(rows) == _BARS else None
    amounts = _shown([row.amount for row in rows], report, rest)
    return [row._replace(amount=amount) for row, amount in zip(rows, amounts, strict=True)]


def _trend_section(heading: str, explanation: str, trend: TrendReport, money: Money) -> str:
    before = [] if trend.before is None else [trend.before]
    points = (*trend.points[-11 + len(before) :], *before, trend.now)
    types = in_order(name for point in points for name in point.by_type)
    rows = [
        Bar(
            _point_name(point, trend),
            micros(point.monthly),
            {
                name: round(micros(amount) * point.monthly / point.cost) if point.cost else 0
                for name, amount in point.by_type.items()
            },
            is_now=point.recorded_at is None,
        )
        for point in points
    ]
    hint = "" if trend.points else f" {NO_RECORDS}"
    if not trend.is_monthly:
        hint += " The requested period is shown as the cost of one month."
    picture = columns(rows, types, money, label="Cost by month")
    return drawn.section(heading, explanation + hint, picture, drawn.key(types))


def _point_name(point: TrendPoint, trend: TrendReport) -> str:
    if point.recorded_at is not None:
        return point.period
    if trend.what_if is not None and point is trend.now:
        return "what-if"
    if trend.is_recent:
        return "last 30 days"
    return trend.period if ".." not in trend.period else "period"


def _team_table(teams: ByReport, money: Money) -> str:
    beside = [(name, micros(amount)) for name, amount in teams.beside.items()]
    rest = [amount for _, amount in beside]
    own = _shown([*(micros(each.own) for each in teams.groups), *rest], teams)
    kept = _shown([*(micros(each.retained) for each in teams.groups), *rest], teams)
    names = [(each.name, f"{each.datasets:,}", "") for each in teams.groups]
    names += [(explained(name), "", "beside") for name, _ in beside]
    shares = [_percent(Decimal(stays), Decimal(sum(kept))) for stays in kept]
    rows = [
        Row((name, count, money(mine), money(stays), share), tone)
        for (name, count, tone), mine, stays, share in zip(names, own, kept, shares, strict=True)
    ]
    rows.append(Row(("Total spend", "", money(sum(own)), money(sum(kept)), ""), "sum"))
    head = ("Team", "Datasets", "Own cost", "Retained cost", "Share")
    return drawn.table(head, rows, numbers=head[1:])


def _top_table(top: TopReport, money: Money) -> str:
    listed, others = top.shown
    beside = [(name, micros(amount)) for name, amount in top.beside.items()]
    rest = [amount for _, amount in beside]
    place = len(listed)
    own = _shown([*(micros(each.own) for each in listed), micros(others.own), *rest], top, place)
    kept = _shown(
        [*(micros(each.retained) for each in listed), micros(others.retained), *rest], top, place
    )
    rows = [
        Row(
            (
                named(each.name, each.kind),
                each.team,
                money(mine),
                _total(each, stays, money),
                money(stays),
            )
        )
        for each, mine, stays in zip(listed, own, kept, strict=False)
    ]
    if others.count:
        name = f"{others.count:,} others"
        rows.append(Row((name, "", money(own[place]), "", money(kept[place])), "beside"))
    rows += [
        Row((label_of(name), NOT_ATTRIBUTED[name][1], money(mine), "", money(stays)), "beside")
        for (name, _), mine, stays in zip(beside, own[place + 1 :], kept[place + 1 :], strict=True)
    ]
    rows.append(Row(("Total spend", "", money(sum(own)), "", money(sum(kept))), "sum"))
    head = ("Dataset or job", "Team", "Own cost", "Total cost", "Retained cost")
    return drawn.table(head, rows, numbers=head[2:])


def _total(row: CostRow, stays: int, money: Money) -> str:
    """What nothing reads has one amount, which is not rounded in two ways."""
    return money(stays if row.total == row.retained else micros(row.total))


def _shown(amounts: Sequence[int], report: CostAnswer, rest: int | None = None) -> list[int]:
    """Amounts as they are shown, such that they add up; one may make up for the others."""
    digits = _digits(report.currency, sum(amounts))
    return balanced(amounts, digits) if rest is None else balanced_by(amounts, digits, rest)


def _digits(currency: str, whole: int) -> int:
    """Below one unit of money, cents say nothing."""
    return 4 if 0 < abs(whole) < MICRO else digits_of(currency)


def _remarks(report: CostAnswer, whole: Decimal, money: Money) -> list[str]:
    notes = list(report.remarks)
    if report.assumed:
        share = _percent(report.assumed, whole)
        notes.insert(0, estimated(money(micros(report.assumed)), share))
    if report.what_if is not None:
        supposed = report.what_if
        before, after = money(micros(supposed.before)), money(micros(supposed.after))
        notes.insert(0, f"What if {'; '.join(supposed.changes)}: {before} before, {after} after.")
    if not notes:
        return []
    return [drawn.section("Notes", "", drawn.listed(notes), tone="remarks")]


def _percent(amount: Decimal, whole: Decimal) -> str:
    share = round(float(amount / whole) * 100) if whole else 0
    return f"{share}%"
