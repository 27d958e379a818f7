"""What holds for every lake: one table never changes another, and no order or division matters.

The lakes are generated. Decisions by columns are kept from scan to scan by design, so the tables of
one lake differ in more than their columns.
"""

from collections.abc import Iterable

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from examples import examples
from lumos.discovery.grouping.datasets import GroupingResult, group_files
from lumos.discovery.grouping.hints import HintMatcher
from lumos.discovery.grouping.state import GroupingState
from lumos.discovery.lake.summaries import FileRow, merge_file_sets, summarise
from lumos.model.schema import Schema

from .lakes import ROOT, schema_of

Files = dict[str, tuple[str, Schema]]
Found = dict[str, frozenset[str]]

_SCHEMAS = [
    schema_of("id:int name at:time"),
    schema_of("id:int name at:time city"),
    schema_of("sku price:float stock:int"),
]
_WORDS = [
    "orders", "Orders", "orders_v1", "orders_v2", "orders_2024", "orders_2024-03", "eu_orders",
    "us_orders", "host01", "host02", "a_log", "b_log", "train", "test", "data", "crm/accounts",
    "straße", "données", "2024-03-01/landing", "shard-3/x", "in", "no",
]  # fmt: skip
_LAYOUTS = [
    "{word}/dt=2024-03-{n:02d}/part-{n:05d}.{ext}",
    "{word}/2024/03/{n:02d}/x{n}.{ext}",
    "2024-03-{n:02d}/{word}/part-0.{ext}",
    "dt=2024-03-{n:02d}/{word}.{ext}",
    "{word}/part-{n}.{ext}",
    "{word}.{ext}",
    "{word}_{n:02d}.{ext}",
    "{word}_2024-03-{n:02d}.{ext}",
    "{word}/3b1f0c1e-1c1a-4b1e-9b0a-0123456789{n:02d}.{ext}",
    "{word}/region=eu/{n}.{ext}",
]


@st.composite
def tables(draw: st.DrawFn) -> Files:
    """The files of one table: one layout, one format, one schema."""
    word, layout = draw(st.sampled_from(_WORDS)), draw(st.sampled_from(_LAYOUTS))
    ext = draw(st.sampled_from(["parquet", "csv"]))
    schema = draw(st.sampled_from(_SCHEMAS))
    numbers = draw(st.sets(st.integers(1, 28), min_size=1, max_size=5))
    # Two formats in one folder are the documented exception: the first has the plain URN.
    word = f"{word}_{ext}"
    paths = (layout.format(word=word, n=number, ext=ext) for number in sorted(numbers))
    return {f"{ROOT}/{path}": (ext, schema) for path in paths}


lakes = st.lists(tables(), min_size=1, max_size=6)


def rows_of(files: Files) -> list[FileRow]:
    return [FileRow(path, 1, 1, "", ext, schema.full) for path, (ext, schema) in files.items()]


def grouped(
    files: Files, before: GroupingState | None = None, *, root: str = ROOT
) -> GroupingResult:
    splits = () if before is None else before.splits
    schemas = {schema.full: schema for _, schema in files.values()}
    places = summarise(rows_of(files), root=root, splits=splits).file_sets
    return group_files(
        places, schemas, hints=HintMatcher((), root=root, splits=splits), before=before
    )


def datasets(files: Files, result: GroupingResult, *, root: str = ROOT) -> Found:
    """The files of each dataset."""
    owner = {
        (place.base, place.pattern, place.format, place.schema_fingerprint): each.dataset
        for each in result.groups
        for place in each.file_sets
    }
    placing = HintMatcher((), root=root, splits=result.state.splits)
    found: dict[str, set[str]] = {}
    for path, (ext, schema) in files.items():
        assignment = HintMatcher((), root=root).assign(path)
        key = (assignment.base, assignment.pattern, ext, schema.full)
        if key not in owner:
            assignment = placing.assign(path)
            key = (assignment.base, assignment.pattern, ext, schema.full)
        if key in owner:
            found.setdefault(owner[key], set()).add(path)
    return {dataset: frozenset(paths) for dataset, paths in found.items()}


def joined(lake: Iterable[Files]) -> Files:
    return {path: file for table in lake for path, file in table.items()}


def without_decisions(result: GroupingResult) -> bool:
    return not result.state.splits


@settings(max_examples=examples(300), deadline=None)
@given(lake=lakes, other=tables())
def test_adding_or_removing_a_table_changes_no_other(lake: list[Files], other: Files) -> None:
    files = joined(lake)
    more = {**other, **files}
    alone, together = grouped(files), grouped(more)
    assume(without_decisions(alone) and without_decisions(together))
    before, after = datasets(files, alone), datasets(more, together)
    for dataset, paths in before.items():
        assert after[dataset] - other.keys() == paths - other.keys()
    # And so it is when the table comes or goes between two scans.
    assert datasets(more, grouped(more, alone.state)) == after
    assert datasets(files, grouped(files, together.state)) == before


@settings(max_examples=examples(200), deadline=None)
@given(lake=lakes, order=st.randoms(use_true_random=False))
def test_neither_the_order_nor_the_division_of_work_matters(lake: list[Files], order) -> None:  # type: ignore[no-untyped-def]
    files = joined(lake)
    expected = datasets(files, grouped(files))
    shuffled = list(files.items())
    order.shuffle(shuffled)
    assert datasets(files, grouped(dict(shuffled))) == expected
    cut = order.randint(0, len(shuffled))
    halves = [
        summarise(rows_of(dict(some)), root=ROOT).file_sets
        for some in (shuffled[:cut], shuffled[cut:])
    ]
    schemas = {schema.full: schema for _, schema in files.values()}
    places = merge_file_sets(place for half in halves for place in half)
    divided = group_files(places, schemas, hints=HintMatcher((), root=ROOT))
    assert datasets(files, divided) == expected


@settings(max_examples=examples(200), deadline=None)
@given(lake=lakes, chosen=st.randoms(use_true_random=False))
def test_a_sub_folder_gives_the_same_datasets_with_its_own_files(lake: list[Files], chosen) -> None:  # type: ignore[no-untyped-def]
    files = joined(lake)
    whole = grouped(files)
    folders = sorted({path.rpartition("/")[0] for path in files} | {ROOT})
    folder = chosen.choice(folders)
    inside = {path: file for path, file in files.items() if path.startswith(f"{folder}/")}
    part = grouped(inside, root=folder)
    assume(without_decisions(whole) and without_decisions(part))
    expected = {
        dataset: paths & inside.keys()
        for dataset, paths in datasets(files, whole).items()
        if paths & inside.keys()
    }
    assert datasets(inside, part, root=folder) == expected


@settings(max_examples=examples(200), deadline=None)
@given(first=lakes, second=lakes)
def test_the_scans_before_do_not_matter(first: list[Files], second: list[Files]) -> None:
    files = joined(second)
    fresh = grouped(files)
    earlier = grouped(joined(first))
    assume(without_decisions(fresh) and without_decisions(earlier))
    assert datasets(files, grouped(files, earlier.state)) == datasets(files, fresh)


@settings(max_examples=examples(200), deadline=None)
@given(lake=lakes)
def test_every_file_is_in_one_dataset_with_a_reason(lake: list[Files]) -> None:
    files = joined(lake)
    result = grouped(files)
    found = datasets(files, result)
    assert sorted(path for paths in found.values() for path in paths) == sorted(files)
    assert all(each.rule.reason and each.location for each in result.groups)
