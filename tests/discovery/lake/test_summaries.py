"""Sums of files, and sums that are brought up to date."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lumos.discovery.lake.summaries import EarlierSummary, FileRow, FileSummary, summarise

ROOT = "/lake"
FOLDERS = ["", "a/", "a/b/", "a/b/dt=2024-01-01/", "a/b/dt=2024-01-02/", "a/2024/01/", "c d/", "7/"]
NAMES = ["x.csv", "y.csv", "part-0.parquet", "part-1.parquet", "events_20240101.json", "3.csv"]
# Enough names for a crowd in one folder.
MANY = [
    f"crowd/{chr(97 + first)}{chr(97 + second)}word.csv"
    for first in range(26)
    for second in range(9)
]
PATHS = [f"{ROOT}/{folder}{name}" for folder in FOLDERS for name in NAMES] + [
    f"{ROOT}/{path}" for path in MANY
]

rows_of_files = st.builds(
    lambda size, schema, code: FileRow(
        "", size, size * 7, "", None if schema is None else "csv", schema, size, True,
        failed=code is not None, code=code, reason=code,
    ),
    st.integers(0, 5),
    st.sampled_from([None, "one", "two"]),
    st.sampled_from([None, None, None, "corrupt_file"]),
)  # fmt: skip
lakes = st.dictionaries(st.sampled_from(PATHS), rows_of_files, max_size=30)


def listed(lake: dict[str, FileRow]) -> list[FileRow]:
    return [row._replace(path=path) for path, row in sorted(lake.items())]


def contents_of(summary: FileSummary) -> tuple[object, ...]:
    """Everything in a summary, in an order of its own."""
    places = sorted(
        summary.file_sets,
        key=lambda each: (each.base, each.pattern, each.format, each.schema_fingerprint),
    )
    return places, summary.listed, summary.failed, summary.problems


def brought_up_to_date(before: Sequence[FileRow], after: Sequence[FileRow]) -> FileSummary:
    changed = {row.path for row in set(before) ^ set(after)}
    earlier = EarlierSummary(summarise(before, root=ROOT), changed)
    return summarise(after, root=ROOT, earlier=earlier)


@settings(max_examples=examples(300))
@given(before=lakes, after=lakes, crowded=st.booleans())
def test_a_sum_that_is_brought_up_to_date_is_the_sum_made_anew(
    before: dict[str, FileRow], after: dict[str, FileRow], crowded: bool
) -> None:
    crowd = dict.fromkeys(PATHS[-len(MANY) :], FileRow("", 1, 1, "", "csv", "one", 1, True))
    old = listed({**crowd, **before} if crowded else before)
    new = listed({**(crowd if crowded else {}), **before, **after})
    assert contents_of(brought_up_to_date(old, new)) == contents_of(summarise(new, root=ROOT))
    assert contents_of(brought_up_to_date(new, old)) == contents_of(summarise(old, root=ROOT))


def test_what_no_change_touches_is_not_summed_up_again() -> None:
    rows = [FileRow(f"{ROOT}/{name}/x.csv", 1, 1, "", "csv", "one", 1, True) for name in ("a", "b")]
    before = summarise(rows, root=ROOT)
    after = summarise(rows, root=ROOT, earlier=EarlierSummary(before, [rows[0].path]))
    assert [
        place is before.file_sets[1]
        for place in sorted(after.file_sets, key=lambda each: each.base)
    ] == [
        False,
        True,
    ]


def test_more_rows_than_can_be_are_unknown() -> None:
    most = 2**63 - 1
    paths = [f"{ROOT}/a/part-{number}.parquet" for number in range(2)]
    rows = [FileRow(path, 1, 1, "", "parquet", "one", most, True) for path in paths]
    assert [place.row_count for place in summarise(rows[:1], root=ROOT).file_sets] == [most]
    assert [place.row_count for place in summarise(rows, root=ROOT).file_sets] == [None]
