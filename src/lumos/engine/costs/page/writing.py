"""The page on costs: figures to see first, how cost flows, who carries most, how it went."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final

from lumos.engine.costs.books import Books
from lumos.engine.costs.page.drawing import document as drawn
from lumos.engine.costs.page.drawing.charts import Bar, bars, columns, in_order
from lumos.engine.costs.page.drawing.document import Row, Tile
from lumos.engine.costs.page.drawing.flow import Band, Stop, flow
from lumos.engine.costs.page.drawing.svg import shortened
from lumos.engine.costs.page.flow import estate_flow, flow_to
from lumos.engine.costs.reports import (
    ByReport,
    CostAnswer,
    CostReport,
    CostRow,
    Rest,
    TopReport,
    TrendPoint,
    TrendReport,
    Trends,
    Upstream,
)
from lumos.model.money import MICRO, balanced, balanced_by, digits_of, micros, rounded, written

_BARS: Final = 12
_TABLE: Final = 40
_LONGEST: Final = 60
_FLOW_KEY: Final = (
    ("spent", "spent here: its storage and the jobs that write it"),
    ("whole", "carried from upstream"),
    ("kept", "stays here: no reader carries it on"),
    ("unneeded", "stays here, and nobody is known to need it"),
)
_EQUALLY: Final = "shared equally, for want of usage"
_NONE: Final = Rest()
_WORDS: Final = {
    "__unallocated__": "belongs to no dataset",
    "__idle__": "paid for and not used",
    "__shared__": "for all alike",
    "__adjustment__": "credits and corrections",
}

Money = Callable[[int], str]


def estate_page(books: Books, top: TopReport, teams: ByReport, trend: TrendReport) -> str:
    """The page on all that was spent."""
    money = _money(top, top.spent)
    types = in_order(name for row in top.datasets for name in row.by_type)
    content = [
        drawn.tiles(_estate_tiles(books, top, trend.trends, money)),
        _flow_section(
            "How cost flows through lineage",
            "From what it is made of, at the left, to what it ends in. The height of a bar is what "
            "the dataset costs through everything upstream; a band is what a reader carries of it.",
            *estate_flow(books),
            money,
        ),
        drawn.side_by_side(
            drawn.section(
                "What costs most",
                "What each dataset costs in the end, through everything upstream of it.",
                bars(_top_bars(top), types, money, label="Datasets that retain most"),
                drawn.key(types),
            ),
            _trend_section("How it went", "All that was spent, by month.", trend, money),
        ),
        drawn.section(
            "Whose it is",
            "Own is spent on what a team has. Retained is what its outputs carry in the end, "
            "whoever owns what they are made from. Both add up to what was spent.",
            _team_table(teams, money),
        ),
        drawn.section(
            "The figures",
            "Totals overlap, since what is upstream is part of them; they are never added up.",
            _top_table(top, money),
        ),
        *_remarks(top, top.spent, money),
    ]
    title = "What data costs" if top.what_if is None else "What data would cost"
    return _page(title, top, content)


def dataset_page(books: Books, report: CostReport, trend: TrendReport | None) -> str:
    """The page on one dataset."""
    money = _money(report, report.summary.total_cost)
    node = books.places[report.dataset]
    breakdown = report.breakdown
    types = in_order(breakdown.by_type)
    upstream = [
        Bar(_named(each), micros(each.cost), {k: micros(v) for k, v in each.by_type.items()})
        for each in breakdown.by_upstream
    ]
    teams = [
        Bar(name, micros(each), {"": micros(each)}) for name, each in breakdown.by_team.items()
    ]
    side = [
        drawn.section(
            "Whose datasets and jobs cause it",
            "",
            bars(_balanced(_cut(teams), report), [""], money, label="Cost by team"),
        )
    ]
    if trend is not None:
        side.append(_trend_section("How it went", "Its total, by month.", trend, money))
    content = [
        drawn.tiles(_dataset_tiles(report, money)),
        _flow_section(
            "How its cost comes together",
            "Only what arrives here: the height of a bar is the part of this dataset's cost that "
            "comes through the bar.",
            *flow_to(books, node),
            money,
        ),
        drawn.side_by_side(
            drawn.section(
                "Where it was spent",
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
            [drawn.section("What could be saved", "", drawn.listed(report.optimization))]
            if report.optimization
            else []
        ),
        *_remarks(report, report.summary.total_cost, money),
    ]
    about = f"{report.dataset}  ·  team {report.team}"
    costs = "costs" if report.what_if is None else "would cost"
    return _page(f"What {report.name} {costs}", report, content, about=about)


def _page(title: str, report: CostAnswer, content: Sequence[str], *, about: str = "") -> str:
    days = f"{report.first_day} to {report.last_day}"
    months = ", as one month" if report.is_monthly and report.period != report.period[:7] else ""
    subtitle = f"{days}{months}, in {report.currency}, shared by {report.method}"
    if report.what_if is not None:
        subtitle = f"Supposed: {'; '.join(report.what_if.changes)}  ·  {subtitle}"
    return drawn.page(
        title=title,
        subtitle=f"{about}  ·  {subtitle}" if about else subtitle,
        footer="Made by Lumos. Rows of tables add up to the cent.",
        content=content,
    )


def _money(report: CostAnswer, whole: Decimal) -> Money:
    digits = _digits(report.currency, micros(whole))
    return lambda units: written(units, report.currency, digits)


def _flow_section(
    heading: str, explanation: str, stops: Sequence[Stop], bands: Sequence[Band], money: Money
) -> str:
    if not bands:
        return drawn.section(heading, "Nothing carries a cost of something else.")
    picture = flow(stops, bands, money)
    met = [(name, words) for name, words in _FLOW_KEY if f'class="{name}"' in picture]
    return drawn.section(heading, explanation, picture, drawn.named_key(met))


def _estate_tiles(books: Books, top: TopReport, trends: Trends, money: Money) -> list[Tile]:
    spent = micros(top.spent)
    beside = sum(map(micros, top.beside.values()))
    unneeded = int(books.own[~books.needed].sum())
    share = _percent(Decimal(unneeded), Decimal(spent))
    which = ", ".join(map(_words, top.beside))
    dearest = top.datasets[0] if top.datasets else None
    return [
        Tile(_supposed("Spent", top), money(spent), _how_long(top)),
        _change_tile(top, trends, money),
        Tile(
            "Costs most",
            money(micros(dearest.retained)) if dearest else "-",
            shortened(dearest.name, _LONGEST) if dearest else "",
        ),
        Tile("Nobody needs", money(unneeded), f"{share} of all, as far as reads are known"),
        Tile("Beside lineage", money(beside), which or "nothing"),
        Tile("Assumed", _percent(top.assumed, top.spent), _EQUALLY),
    ]


def _dataset_tiles(report: CostReport, money: Money) -> list[Tile]:
    summary = report.summary
    whole = micros(summary.total_cost)
    parts = [micros(summary.direct_cost), micros(summary.attributed_cost)]
    direct, attributed = _shown(parts, report, 1)
    return [
        Tile(_supposed("Total", report), money(whole), _how_long(report)),
        Tile("Direct", money(direct), "its own and the jobs that write it"),
        Tile("Attributed", money(attributed), "from everything upstream"),
        _change_tile(report, report.trends, money),
        Tile("Assumed", _percent(report.assumed, summary.total_cost), _EQUALLY),
    ]


def _supposed(what: str, report: CostAnswer) -> str:
    return what if report.what_if is None else f"{what}, supposed"


def _how_long(report: CostAnswer) -> str:
    return "a month" if report.is_monthly else "in the period"


def _change_tile(report: CostAnswer, trends: Trends, money: Money) -> Tile:
    """What a supposition does; what it would be is not held against months that were."""
    supposed = report.what_if
    if supposed is None:
        return _trend_tile(trends, money)
    digits = _digits(report.currency, micros(supposed.after))
    before, after = (rounded(micros(each), digits) for each in (supposed.before, supposed.after))
    sign, tone = ("+", "up") if after > before else ("", "down" if after < before else "")
    share = _percent(Decimal(after - before), Decimal(abs(before)))
    note = f"{sign}{share} of {money(before)} as it is"
    return Tile("Change", f"{sign}{money(after - before)}", note, tone)


def _trend_tile(trends: Trends, money: Money) -> Tile:
    compared = trends.last_month
    if compared is None or compared.percent is None:
        return Tile("Against last month", "-", "not recorded yet")
    tone = "up" if compared.percent > 0 else "down" if compared.percent < 0 else ""
    quarter = trends.vs_last_quarter
    more = "" if quarter is None else f", {quarter:+.0f}% against last quarter"
    note = f"{money(micros(compared.cost))} in {compared.periods[0]}{more}"
    return Tile("Against last month", f"{compared.percent:+.0f}%", note, tone)


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


def _named(each: Upstream) -> str:
    return f"{each.name} (job)" if each.kind == "job" else each.name


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
    hint = "" if trend.points else " Earlier months are kept by: lumos cost record"
    if not trend.is_monthly:
        hint += " The period asked for is told as one month."
    picture = columns(rows, types, money, label="Cost by month")
    return drawn.section(heading, explanation + hint, picture, drawn.key(types))


def _point_name(point: TrendPoint, trend: TrendReport) -> str:
    if point.recorded_at is not None:
        return point.period
    if trend.what_if is not None and point is trend.now:
        return "supposed"
    if trend.is_recent:
        return "now"
    return trend.period if ".." not in trend.period else "as asked"


def _team_table(teams: ByReport, money: Money) -> str:
    beside = [(name, micros(amount)) for name, amount in teams.beside.items()]
    rest = [amount for _, amount in beside]
    own = _shown([*(micros(each.own) for each in teams.groups), *rest], teams)
    kept = _shown([*(micros(each.retained) for each in teams.groups), *rest], teams)
    names = [(each.name, f"{each.datasets:,}", "") for each in teams.groups]
    names += [(f"{name}: {_WORDS[name]}", "", "beside") for name, _ in beside]
    shares = [_percent(Decimal(stays), Decimal(sum(kept))) for stays in kept]
    rows = [
        Row((name, count, money(mine), money(stays), share), tone)
        for (name, count, tone), mine, stays, share in zip(names, own, kept, shares, strict=True)
    ]
    rows.append(Row(("", "", money(sum(own)), money(sum(kept)), ""), "sum"))
    head = ("Team", "Datasets", "Own", "Retained", "Share")
    return drawn.table(head, rows, numbers=head[1:])


def _top_table(top: TopReport, money: Money) -> str:
    listed = top.datasets[:_TABLE]
    hidden = top.datasets[_TABLE:]
    others = (
        sum((each.own for each in hidden), top.others.own),
        sum((each.retained for each in hidden), top.others.retained),
    )
    count = len(hidden) + top.others.count
    beside = [(name, micros(amount)) for name, amount in top.beside.items()]
    rest = [amount for _, amount in beside]
    place = len(listed)
    own = _shown([*(micros(each.own) for each in listed), micros(others[0]), *rest], top, place)
    kept = _shown(
        [*(micros(each.retained) for each in listed), micros(others[1]), *rest], top, place
    )
    rows = [
        Row((each.name, each.team, money(mine), _total(each, stays, money), money(stays)))
        for each, mine, stays in zip(listed, own, kept, strict=False)
    ]
    if count:
        rows.append(
            Row((f"{count:,} others", "", money(own[place]), "", money(kept[place])), "beside")
        )
    rows += [
        Row((name, _WORDS[name], money(mine), "", money(stays)), "beside")
        for (name, _), mine, stays in zip(beside, own[place + 1 :], kept[place + 1 :], strict=True)
    ]
    rows.append(Row(("", "", money(sum(own)), "", money(sum(kept))), "sum"))
    head = ("Dataset", "Team", "Own", "Total", "Retained")
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
    told = list(report.remarks)
    if report.assumed:
        told.insert(
            0,
            f"{money(micros(report.assumed))} ({_percent(report.assumed, whole)}) rest on "
            "assumptions: it is not known who read how much there, so readers share equally.",
        )
    if report.what_if is not None:
        supposed = report.what_if
        before, after = money(micros(supposed.before)), money(micros(supposed.after))
        changes = "; ".join(supposed.changes)
        told.insert(0, f"Supposed: {changes}. {before} without that, {after} with it.")
    if not told:
        return []
    return [drawn.section("To be kept in mind", "", drawn.listed(told), tone="remarks")]


def _words(name: str) -> str:
    return name.strip("_")


def _percent(amount: Decimal, whole: Decimal) -> str:
    share = round(float(amount / whole) * 100) if whole else 0
    return f"{share}%"
