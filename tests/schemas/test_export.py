"""Schemas as text files: their names, what stands in them, and folders of them."""

import re
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lumos import Lumos
from lumos.errors import LumosError, MisuseError
from lumos.model.schema import parse_schema
from lumos.model.urn import Urn
from lumos.schemas.diff_inputs import NotComparable
from lumos.schemas.export import (
    RecordedUrn,
    align_urns,
    export_schemas,
    file_paths_of,
    is_same_dataset,
    portable_urns,
)
from lumos.schemas.files import (
    DatasetSchema,
    UnreadableSchema,
    file_path_of,
    read_folders,
    read_schema,
    schema_file_text,
)
from lumos.schemas.service import Schemas
from lumos.store import NoStore, Store
from recorded_lake import RecordedLake

SEGMENTS = st.one_of(
    st.sampled_from(["", ".", "..", ".git", "a.schema", "a", "A", "x" * 300, "CON", "-x", "a/b"]),
    st.text(max_size=12),
)
URNS = st.builds(
    Urn.of,
    st.sampled_from(["s3", "file", "snowflake"]),
    st.lists(SEGMENTS, min_size=1, max_size=4).filter(lambda path: any(path)),
    instance=st.sampled_from(["", "eu", "../x"]),
    environment=st.sampled_from(["", "DEV"]),
)


def described(urn: str, text: str = "id INT64 NOT NULL\n", version: str = "1.0.0") -> DatasetSchema:
    return DatasetSchema(urn=urn, schema=parse_schema(text), version=version, format="parquet")


@given(URNS)
@example(Urn.of("file", ["..", "..", "etc", "passwd"]))
@example(Urn.of("file", [".git", "config"]))
def test_no_name_leads_out_of_the_folder_or_hides(urn: Urn) -> None:
    place = file_path_of(urn)
    assert not place.is_absolute()
    assert place.suffix == ".schema"
    assert all(part and not part.startswith(".") for part in place.parts)
    assert all(len(part.encode()) < 255 for part in place.parts)
    assert not any(set('\\:*?"<>|\0\n') & set(part) for part in place.parts)


@given(st.lists(URNS, min_size=2, max_size=6, unique_by=str))
def test_different_datasets_have_different_files_on_every_disk(urns: list[Urn]) -> None:
    places = [str(place).casefold() for place in file_paths_of(map(str, urns)).values()]
    assert len(set(places)) == len(urns)
    # No file is the folder of another one.
    parents = {str(parent) for place in places for parent in PurePosixPath(place).parents}
    assert parents.isdisjoint(places)


@given(URNS, st.sampled_from(["id INT64", "`odd ``name` STRING COMMENT 'it''s\n# two lines'"]))
def test_a_file_names_its_dataset_version_and_format(urn: Urn, text: str) -> None:
    whole = described(str(urn), text)
    data = schema_file_text(whole).encode("utf-8", "surrogatepass")
    assert read_schema("x.schema", data, default_name="x") == whole


def test_names_are_readable_where_they_are_plain() -> None:
    urn = Urn.parse("lumos://s3@eu/data-lake/raw/events/dt=x?env=DEV")
    assert str(file_path_of(urn)) == "DEV/s3@eu/data-lake/raw/events/dt=x.schema"


def test_an_export_writes_what_changed_and_removes_what_is_gone(tmp_path: Path) -> None:
    orders, users = "lumos://s3/lake/sales/orders", "lumos://s3/lake/users"
    first = export_schemas([described(orders), described(users)], tmp_path)
    assert (first.datasets, first.written, first.removed) == (
        2, ("s3/lake/sales/orders.schema", "s3/lake/users.schema"), (),
    )  # fmt: skip
    assert (tmp_path / "s3/lake/users.schema").read_text() == (
        "# urn: lumos://s3/lake/users\n# version: 1.0.0\n# format: parquet\n"
        "# written by: lumos schema export\nid INT64 NOT NULL\n"
    )
    assert read_folders(tmp_path, tmp_path / "none")[0].keys() == {orders, users}
    again = export_schemas([described(orders), described(users)], tmp_path)
    assert (again.written, again.removed) == ((), ())
    less = export_schemas([described(users, version="1.0.1")], tmp_path)
    assert less.written == ("s3/lake/users.schema",)
    assert less.removed == ("s3/lake/sales/orders.schema",)
    assert not (tmp_path / "s3/lake/sales").exists()


def test_an_export_leaves_files_of_people_alone(tmp_path: Path) -> None:
    gone = described("lumos://s3/lake/gone")
    kept = {
        "plan.schema": "id INT64\n",
        "s3/lake/planned.schema": "# urn: lumos://s3/lake/planned\nid INT64\n",
        "elsewhere.schema": schema_file_text(gone),
        "broken.schema": "\N{BLACK STAR}",
        "README.md": schema_file_text(gone),
    }
    for name, text in kept.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    export_schemas([gone], tmp_path)
    report = export_schemas([], tmp_path)
    assert report.removed == ("s3/lake/gone.schema",)
    found = {
        file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*") if file.is_file()
    }
    assert found == kept.keys()


def test_datasets_that_differ_in_case_only_do_not_overwrite_each_other(tmp_path: Path) -> None:
    urns = ["lumos://s3/lake/Orders", "lumos://s3/lake/orders"]
    export_schemas(map(described, urns), tmp_path)
    assert read_folders(tmp_path, tmp_path / "none")[0].keys() == set(urns)
    alone = export_schemas([described(urns[0])], tmp_path)
    assert len(alone.removed) == 2
    assert alone.written == ("s3/lake/Orders.schema",)


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas/s3").symlink_to(tmp_path / "outside")
    with pytest.raises(MisuseError, match="leads out of"):
        export_schemas([described("lumos://s3/orders")], tmp_path / "schemas")
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_file_is_no_folder_to_export_to(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    with pytest.raises(MisuseError, match="is a file"):
        export_schemas([], tmp_path / "f")


def schemas() -> Schemas:
    def no_store() -> Store:
        raise NoStore("here")

    return Schemas(no_store)


def put(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_two_plain_files_are_compared_under_the_name_of_the_new_one(tmp_path: Path) -> None:
    old = put(tmp_path / "old.schema", "a INT32\nb STRING\n")
    new = put(tmp_path / "new.schema", "a INT64\n")
    report = schemas().diff(old, new)
    (found,) = report.datasets
    assert (found.urn, found.from_version, found.to_version) == ("lumos://schema/new", None, None)
    assert [(change.path, change.consumer.value) for change in found.changes] == [
        ("b", "breaking"),
        ("a", "compatible"),
    ]
    assert (report.summary.datasets, report.summary.changes, report.summary.breaking) == (1, 2, 1)
    assert schemas().diff(old, old).datasets == ()


def test_an_edited_file_shows_what_the_version_will_be(tmp_path: Path) -> None:
    whole = schema_file_text(described("lumos://s3/lake/orders", version="2.3.0"))
    old = put(tmp_path / "old.schema", whole)
    new = put(tmp_path / "new.schema", f"{whole}b STRING\n")
    (found,) = schemas().diff(old, new).datasets
    assert (found.urn, found.from_version, found.to_version) == (
        "lumos://s3/lake/orders", "2.3.0", "2.4.0",
    )  # fmt: skip
    (found,) = schemas().diff(new, put(tmp_path / "plain.schema", "id STRING\n")).datasets
    assert (found.urn, found.to_version) == ("lumos://s3/lake/orders", "3.0.0")


def test_another_dataset_has_its_own_version(tmp_path: Path) -> None:
    old = put(tmp_path / "old.schema", schema_file_text(described("lumos://s3/a", "x INT32\n")))
    new = put(tmp_path / "new.schema", schema_file_text(described("lumos://s3/b", "x STRING\n")))
    (found,) = schemas().diff(old, new).datasets
    assert (found.urn, found.from_version, found.to_version) == ("lumos://s3/b", "1.0.0", "1.0.0")


def test_the_format_in_a_file_decides_the_storage_verdict(tmp_path: Path) -> None:
    def storage(format: str) -> str:
        head = f"# urn: lumos://s3/x\n# format: {format}\n"
        old = put(tmp_path / "old.schema", f"{head}a INT32\n")
        new = put(tmp_path / "new.schema", f"{head}a FLOAT64\n")
        return schemas().diff(old, new).datasets[0].changes[0].storage.value

    assert (storage("avro"), storage("iceberg")) == ("compatible", "breaking")


def test_two_folders_are_compared_by_urn(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    names = ["same", "changed", "gone"]
    export_schemas([described(f"lumos://s3/{name}") for name in names], old)
    export_schemas(
        [described("lumos://s3/same"), described("lumos://s3/new", version="1.0.0")], new
    )
    put(
        new / "moved.schema",
        schema_file_text(described("lumos://s3/changed", "id STRING NOT NULL\n")),
    )
    put(old / "sub/plain.schema", "a INT32\n")
    put(new / "sub/plain.schema", "a INT64\n")
    report = schemas().diff(old, new)
    assert [
        (each.urn, each.from_version, each.to_version, [row.rule for row in each.changes])
        for each in report.datasets
    ] == [
        ("lumos://s3/changed", "1.0.0", "2.0.0", ["scalar-to-string"]),
        ("lumos://s3/gone", "1.0.0", None, ["dataset-removed"]),
        ("lumos://s3/new", None, "1.0.0", ["dataset-added"]),
        ("lumos://schema/sub/plain", None, None, ["integer-widened"]),
    ]
    gone = report.datasets[1].changes[0]
    assert (gone.kind, gone.path, gone.before, gone.consumer.value) == (
        "removed", "", "1 field", "breaking",
    )  # fmt: skip
    assert (report.summary.datasets, report.summary.breaking) == (4, 2)


@pytest.mark.parametrize(
    ("before", "after", "error", "words"),
    [
        ("none.schema", "a.schema", MisuseError, "There is no file none.schema"),
        ("a.schema", "full", NotComparable, "is a single schema, the other a folder of schemas"),
        ("a.schema", "nothing", NoStore, "There is no store at here"),
        ("a.schema", "empty", NotComparable, "contains no file that ends in .schema"),
        ("s.json", "s.json", NotComparable, "is neither a schema file (*.schema) nor a snapshot"),
        ("p.parquet", "a.schema", NotComparable, "lumos schema predict DATASET p.parquet"),
        ("bad.schema", "a.schema", UnreadableSchema, "bad.schema:2:3: no type named 'INTEGER'"),
        ("twice", "full", UnreadableSchema, "lumos://s3/x is also in twice"),
        ("urn.schema", "a.schema", UnreadableSchema, "urn.schema:2: 'nonsense' is not a dataset URN"),
        ("version.schema", "a.schema", UnreadableSchema, "version.schema:1: 'two' is not a schema version"),
    ],
)  # fmt: skip
def test_sides_that_cannot_be_compared_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: str,
    after: str,
    error: type[LumosError],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "a.schema", "a INT32\n")
    put(tmp_path / "full/a.schema", "a INT32\n")
    (tmp_path / "empty").mkdir()
    put(tmp_path / "s.json", "{}")
    put(tmp_path / "p.parquet", "PAR1")
    put(tmp_path / "bad.schema", "a INT32\nb INTEGER\n")
    put(tmp_path / "twice/a.schema", "# urn: lumos://s3/x\na INT32\n")
    put(tmp_path / "twice/b.schema", "# urn: lumos://s3/x\na INT64\n")
    put(tmp_path / "urn.schema", "# about\n# urn: nonsense\na INT32\n")
    put(tmp_path / "version.schema", "# version: two\na INT32\n")
    with pytest.raises(error) as found:
        schemas().diff(before, after)
    assert words in str(found.value)


ORDERS = "# urn: lumos://s3/lake/orders\n"


def _files(folder: Path, **texts: str) -> Path:
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name}.schema").write_text(text)
    return folder


@pytest.mark.parametrize("spelled", ["orders", "%6Frders", "orders?env=PROD"])
def test_a_second_file_of_a_dataset_is_refused_beside_one_that_did_not_change(
    tmp_path: Path, spelled: str
) -> None:
    same = f"# urn: lumos://s3/lake/{spelled}\na INT64\nb INT64\n"
    before = _files(tmp_path / "d1", orders=same)
    after = _files(tmp_path / "d2", orders=same, orders_v2=f"{ORDERS}a INT64\n")
    with pytest.raises(UnreadableSchema, match=r"orders_v2\.schema: .*orders is also in .*orders"):
        read_folders(before, after)


def test_a_format_is_known_in_any_case() -> None:
    assert read_schema("x", b"# format: AVRO\na INT64\n", default_name="x").format == "avro"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("# format: avroo\na INT64\n", r"x:1: .*avro, csv.*'avro'", id="format"),
        pytest.param(
            f"{ORDERS}{ORDERS}a INT64\n", r"x:2: '# urn:' is defined twice", id="two URNs"
        ),
        pytest.param(f"a INT64\n{ORDERS}", r"x:2: .*before the first field", id="late URN"),
    ],
)
def test_a_header_that_is_not_clear_is_refused_with_its_line(text: str, problem: str) -> None:
    with pytest.raises(UnreadableSchema, match=problem):
        read_schema("x", text.encode(), default_name="x")


def test_a_urn_behind_an_empty_line_counts_and_one_in_a_comment_of_a_field_does_not() -> None:
    text = f"# mine\n\n{ORDERS}a INT64 COMMENT 'see\n# urn: lumos://s3/other'\n"
    assert read_schema("x", text.encode(), default_name="x").urn == "lumos://s3/lake/orders"


def test_a_format_that_no_rule_knows_is_not_written() -> None:
    odd = DatasetSchema(urn="lumos://s3/a", schema=parse_schema("a INT64"), format="protobuf")
    assert "format" not in schema_file_text(odd)


def test_a_file_called_like_the_ending_alone_is_a_schema(tmp_path: Path) -> None:
    for name in ("d1", "d2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".schema").write_text(f"a INT64 COMMENT '{name}'\n")
    before, after = read_folders(tmp_path / "d1", tmp_path / "d2")
    assert list(before) == list(after) == ["lumos://schema/.schema"]


def test_a_folder_called_like_a_file_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "x.schema").mkdir()
    with pytest.raises(NotComparable, match="contains no file"):
        Schemas(_no_store).diff(tmp_path / "x.schema", tmp_path / "x.schema")


def _no_store() -> Store:
    raise NoStore("nowhere")


def test_an_export_says_which_files_of_people_it_replaced(tmp_path: Path) -> None:
    place = tmp_path / "s3/lake/orders.schema"
    place.parent.mkdir(parents=True)
    place.write_text("# mine\nid INT64\n")
    report = export_schemas([described("lumos://s3/lake/orders")], tmp_path)
    assert report.replaced == ("s3/lake/orders.schema",)
    assert (
        export_schemas([described("lumos://s3/lake/orders", "id INT32\n")], tmp_path).replaced == ()
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a ENUM()", "x:1:8: the brackets are empty"),
        ("a UNION<>", "x:1:9: the brackets are empty"),
        ("a ENUM('x','y','x')", "x:1:16: 'x' is listed twice"),
        ("a UNION<INT64, STRING, INT64>", "x:1:24: 'INT64' is listed twice"),
        ("a INT64\nb STRUCT<\n  n: INT64,\n  n: STRING>", "x:4:3: the field 'b.n' is listed twice"),
        ("a ARRAY<INT64\nb INT64", "x:1:8: this '<' is not closed"),
        ("a DECIMAL(9,2\nb INT64", "x:1:10: this '(' is not closed"),
        ("a INT64 COMMENT 'x\nb INT64", "x:1:17: this text has no closing quote"),
        ("`a INT64\nb INT64", "x:1:1: this name has no closing backtick"),
        ("größe INT64", "x:1:3: unexpected 'ö'; put a name .* `backticks`"),
        ("a-b INT64", "x:1:2: unexpected '-'; put a name .* `backticks`"),
        ("a.b INT64", "x:1:2: unexpected '.'; put a name .* `backticks`"),
    ],
)
def test_text_that_no_person_means_is_refused_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(UnreadableSchema) as refused:
        read_schema("x", text.encode(), default_name="x")
    assert re.search(problem.replace("(", r"\("), str(refused.value)), refused.value


HOME = "lumos://file/home/ann/shop"


@pytest.mark.parametrize(
    ("recorded", "exported"),
    [
        pytest.param(
            [RecordedUrn(f"{HOME}/lake/raw/orders", "file:/home/ann/shop/lake")],
            ["lumos://file/raw/orders"],
            id="from the root of the source",
        ),
        pytest.param(
            [RecordedUrn(f"{HOME}/lake", "file:/home/ann/shop/lake")],
            ["lumos://file/lake"],
            id="a root that is a dataset is called after its folder",
        ),
        pytest.param(
            [RecordedUrn(f"{HOME}/lake/orders", "file:/home/ann/shop/lake"),
             RecordedUrn("lumos://file/mnt/archive/orders", "file:/mnt/archive")],
            ["lumos://file/lake/orders", "lumos://file/archive/orders"],
            id="several roots are told apart by their names",
        ),
        pytest.param(
            [RecordedUrn(f"{HOME}/lake/orders", "file:/home/ann/shop/lake"),
             RecordedUrn("lumos://file/mnt/old/lake/orders", "file:/mnt/old/lake")],
            ["lumos://file/shop/lake/orders", "lumos://file/old/lake/orders"],
            id="roots of one name by more of their paths",
        ),
        pytest.param(
            [RecordedUrn(f"{HOME}/lake/orders", "file:/home/ann/shop/lake"),
             RecordedUrn("lumos://file/tmp/x", "file:/tmp", is_live=False)],
            ["lumos://file/orders", "lumos://file/tmp/x"],
            id="a root of which nothing is left does not count",
        ),
        pytest.param(
            [RecordedUrn(f"{HOME}/lake", "file:/home/ann/shop/lake"),
             RecordedUrn(f"{HOME}/lake/lake", "file:/home/ann/shop/lake")],
            [f"{HOME}/lake", f"{HOME}/lake/lake"],
            id="two that would be one keep their paths",
        ),
        pytest.param(
            [RecordedUrn("lumos://s3/lake/raw/orders", "s3:lake/raw"),
             RecordedUrn("lumos://postgres/shop/public/orders", "postgres:shop")],
            ["lumos://s3/lake/raw/orders", "lumos://postgres/shop/public/orders"],
            id="what lies on a server is the same everywhere",
        ),
    ],
)  # fmt: skip
def test_exported_urns_do_not_depend_on_the_checkout(
    recorded: list[RecordedUrn], exported: list[str]
) -> None:
    assert list(portable_urns(recorded).values()) == exported


def test_an_older_export_with_whole_paths_is_compared_with_a_new_one() -> None:
    old = {
        urn: described(urn)
        for urn in (f"{HOME}/lake/orders", f"{HOME}/lake/gone", "lumos://s3/x/y")
    }
    new = {
        urn: described(urn) for urn in ("lumos://file/orders", "lumos://file/new", "lumos://s3/y")
    }
    assert {urn: each.urn for urn, each in align_urns(old, new).items()} == {
        urn: urn for urn in ("lumos://file/orders", f"{HOME}/lake/gone", "lumos://s3/x/y")
    }
    assert align_urns(new, old).keys() == {
        f"{HOME}/lake/orders",
        "lumos://file/new",
        "lumos://s3/y",
    }


def test_two_datasets_of_one_name_are_not_taken_for_a_third() -> None:
    old = {urn: described(urn) for urn in ("lumos://file/a/orders", "lumos://file/b/orders")}
    new = {"lumos://file/orders": described("lumos://file/orders")}
    assert align_urns(old, new).keys() == old.keys()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (f"{HOME}/lake/orders", "lumos://file/orders", True),
        ("lumos://file/orders", f"{HOME}/lake/orders", True),
        ("lumos://s3/lake/orders", "lumos://s3/lake/orders", True),
        ("lumos://s3/lake/orders", "lumos://s3/orders", False),
        (f"{HOME}/lake/orders", "lumos://file/orders?env=DEV", False),
        (f"{HOME}/lake/orders", "lumos://file/borders", False),
    ],
)
def test_a_urn_of_an_export_is_known_for_its_dataset(one: str, other: str, same: bool) -> None:
    assert is_same_dataset(one, other) is same


def test_two_checkouts_of_a_lake_export_the_same_files(workplace: Path) -> None:
    trees = []
    for checkout in ("ann/shop", "build/42"):
        lumos = Lumos(overrides={"storage.path": str(workplace / checkout / "lumos.db")})
        RecordedLake(lumos).see_below(f"/{checkout}/lake", ["raw/orders", "users"])
        folder = workplace / checkout / "schemas"
        lumos.schema.export(folder)
        trees.append({
            str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*.schema")
        })  # fmt: skip
    assert trees[0] == trees[1]
    assert trees[0].keys() == {"file/raw/orders.schema", "file/users.schema"}
    assert lumos.schema.export(folder).written == ()


def test_an_export_with_whole_paths_is_moved_and_nothing_differs(workplace: Path) -> None:
    lumos = Lumos()
    RecordedLake(lumos).see_below("/ann/lake", ["orders"])
    whole = [
        DatasetSchema(urn=live.urn, schema=live.schema, version=live.schema_version, format="csv")
        for live in lumos._store.open().schemas.live()
    ]
    export_schemas(whole, workplace / "old")
    export_schemas(whole, workplace / "new")
    moved = lumos.schema.export(workplace / "new")
    assert moved.removed == ("file/ann/lake/orders.schema",)
    assert moved.written == ("file/orders.schema",)
    assert lumos.schema.diff("old", "new").datasets == ()
    assert lumos.schema.diff("orders", "new/file/orders.schema").datasets == ()


def test_the_impact_of_a_changed_export_is_that_on_the_dataset(workplace: Path) -> None:
    lumos = Lumos()
    seen = RecordedLake(lumos)
    seen.see("raw/orders", "id INT64\namount FLOAT64")
    (workplace / "totals.sql").write_text("select sum(amount) as total from raw.orders")
    lumos.lineage.ingest("totals.sql")
    lumos.schema.export("old")
    seen.see("raw/orders", "id INT64")
    lumos.schema.export("new")
    lumos.schema.diff("old", "new", output="changes.json")
    (report,) = lumos.impact.of_changes("changes.json").datasets
    assert report.summary.breaking == 1
