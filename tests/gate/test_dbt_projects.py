"""What the gate says about changes of dbt projects, with macros and new models."""

from pathlib import Path

import pytest

from gate.sample import SampleRepository, findings

FILES: dict[str, str | None] = {
    "dbt/macros/checks.sql": "{% macro check_name() %}'valid'{% endmacro %}\n"
    "{% macro count_if(column, value=0) %}\n"
    "    -- counts rows\n"
    "    SUM(CASE WHEN COALESCE({{ column }}, 0) = {{ value }} THEN 1 END)\n"
    "{% endmacro %}\n",
    "dbt/models/stops.sql": "select stop_id, zone, kind, price from {{ source('gtfs', 'stops') }}\n",
    "dbt/models/zones.sql": "select zone_id, label from {{ source('gtfs', 'zones') }}\n",
    "dbt/models/checks.sql": "select\n"
    "    {{ check_name() }} as name,\n"
    "    s.stop_id,\n"
    "    z.label\n"
    "from {{ ref('stops') }} s join {{ ref('zones') }} z on z.zone_id = s.zone\n",
    "dbt/models/kinds.sql": "select zone, {{ count_if('kind', value=2) }} as kinds\n"
    "from {{ ref('stops') }} group by zone\n",
    "dbt/models/keys.sql": "select\n"
    "    {{ dbt_utils.generate_surrogate_key(['s.stop_id', 's.price']) }} as key\n"
    "from {{ ref('stops') }} s\n",
    "dbt/models/loose.sql": "select {{ unknown_macro() }} as x, z.label\n"
    "from {{ ref('stops') }} s join {{ ref('zones') }} z on z.zone_id = s.zone\n",
}


@pytest.fixture
def repository(workplace: Path) -> SampleRepository:
    return SampleRepository(workplace, dict(FILES))


def stops(columns: str) -> dict[str, str | None]:
    source = "{{ source('gtfs', 'stops') }}"
    return {"dbt/models/stops.sql": f"select {columns} from {source}\n"}


def test_a_macro_of_the_project_reads_the_columns_that_its_arguments_name(
    repository: SampleRepository,
) -> None:
    repository.commit(stops("stop_id, zone, price"))
    errors = [each for each in repository.check().findings if each.level == "error"]
    assert [(each.path, each.affected) for each in errors] == [("kind", "kinds")]
    assert errors[0].used is not None
    assert (errors[0].used.file, errors[0].used.line) == ("dbt/models/kinds.sql", 1)


def test_a_surrogate_key_reads_the_columns_that_it_lists(repository: SampleRepository) -> None:
    repository.commit(stops("stop_id, zone, kind"))
    errors = [each for each in repository.check().findings if each.level == "error"]
    assert [(each.path, each.affected) for each in errors] == [("price", "keys")]


def test_a_macro_without_columns_is_no_doubt(repository: SampleRepository) -> None:
    repository.commit(stops("stop_id, zone, price"))
    affected = {each.affected for each in repository.check().findings}
    assert "checks" not in affected


def test_an_unknown_macro_may_read_a_removed_column_but_not_an_added_one(
    repository: SampleRepository,
) -> None:
    repository.commit(stops("stop_id, zone, price"))
    assert ("warning", "stops.kind", "loose") in findings(repository.check())
    repository.commit(stops("stop_id, zone, kind, price, level"))
    assert findings(repository.check()) == [("note", "stops.level", None)]


def test_a_changed_macro_counts_as_it_is_on_each_side(repository: SampleRepository) -> None:
    text = (FILES["dbt/macros/checks.sql"] or "").replace("{{ column }}", "zone")
    repository.commit(stops("stop_id, zone, price") | {"dbt/macros/checks.sql": text})
    # The reader is not part of the change: it is judged with the macro of the merge base.
    assert ("error", "stops.kind", "kinds") in findings(repository.check())


def test_a_new_model_loses_nothing_that_it_selects_with_a_star(
    repository: SampleRepository,
) -> None:
    new = {"dbt/models/copy.sql": "select * from {{ ref('zones') }}\n"}
    zones = {"dbt/models/zones.sql": "select zone_id from {{ source('gtfs', 'zones') }}\n"}
    repository.commit(new | zones)
    assert "copy" not in {each.affected for each in repository.check().findings}


def test_a_new_model_that_names_a_removed_column_breaks(repository: SampleRepository) -> None:
    new = {"dbt/models/copy.sql": "select label from {{ ref('zones') }}\n"}
    zones = {"dbt/models/zones.sql": "select zone_id from {{ source('gtfs', 'zones') }}\n"}
    repository.commit(new | zones)
    assert ("error", "zones.label", "copy") in findings(repository.check())


@pytest.mark.parametrize(
    ("columns", "breaks"),
    [
        pytest.param("zone_id, label, price", False, id="the branches agree afterwards"),
        pytest.param("zone_id, label, price, extra", True, id="they still differ"),
    ],
)
def test_columns_that_make_the_branches_of_a_union_agree_break_nothing(
    workplace: Path, columns: str, breaks: bool
) -> None:
    union = "select * from {{ ref('one') }} union all select * from {{ ref('two') }}\n"
    repository = SampleRepository(
        workplace,
        {
            "models/one.sql": "select zone_id, label from raw_one\n",
            "models/two.sql": "select zone_id, label, price from raw_two\n",
            "models/both.sql": f"with u as ({union}) select zone_id from u\n",
        },
    )
    repository.commit({"models/one.sql": f"select {columns} from raw_one\n"})
    levels = {each.level for each in repository.check().findings if each.affected == "both"}
    assert ("error" in levels) is breaks


def test_columns_documented_twice_are_compared(repository: SampleRepository) -> None:
    text = "models:\n- name: stops\n  columns:\n  - {name: zone, data_type: %s}\n" + (
        "  - {name: kind, description: a}\n  - {name: kind, description: b}\n"
    )
    repository.change_main({"dbt/models/schema.yml": text % "string"})
    repository.commit({"dbt/models/schema.yml": text % "int"})
    report = repository.check()
    assert not report.remarks
    assert {each.path for each in report.findings} == {"zone"}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        pytest.param("select 1 as a\n", "b", id="a column is removed"),
        pytest.param(None, "", id="the model is removed"),
    ],
)
def test_a_model_without_lineage_is_reported_too(
    repository: SampleRepository, text: str | None, path: str
) -> None:
    repository.change_main({"dbt/models/constants.sql": "select 1 as a, 2 as b\n"})
    repository.commit({"dbt/models/constants.sql": text})
    report = repository.check()
    assert [(each.dataset, each.path, each.category) for each in report.findings] == [
        ("constants", path, "unread")
    ]


BIGQUERY = "shop:\n  target: dev\n  outputs:\n    dev: &dev\n      type: bigquery\n      schema: \"{{ env_var('S') }}\"\n"
YEARS = "select regexp_extract(name, r'_(\\d+)') as year, name from {{ source('gtfs', 'years') }}\n"
YEARLY = "select year, name from {{ ref('years') }}\n"


def test_the_dialect_is_that_of_the_dbt_profile(workplace: Path) -> None:
    files = {
        "dbt/profiles.yml": BIGQUERY,
        "dbt/models/years.sql": YEARS,
        "dbt/models/yearly.sql": YEARLY,
    }
    repository = SampleRepository(workplace, dict(files))
    repository.commit({"dbt/models/years.sql": YEARS.replace(", name from", " from")})
    errors = [each for each in repository.check().findings if each.level == "error"]
    assert [(each.path, each.affected) for each in errors] == [("name", "yearly")]


def test_a_model_that_can_no_longer_be_parsed_is_not_removed(workplace: Path) -> None:
    base = "select name as year, name from {{ source('gtfs', 'years') }}\n"
    repository = SampleRepository(
        workplace, {"dbt/models/years.sql": base, "dbt/models/yearly.sql": YEARLY}
    )
    repository.commit({"dbt/models/years.sql": base.replace(" from", " from from where where")})
    report = repository.check()
    assert not any("was removed" in each.message for each in report.findings), report.findings


STAR = {
    "models/stops.sql": "select stop_id, zone, kind from {{ source('gtfs', 'stops') }}\n",
    "models/copy.sql": "with s as (select * from {{ ref('stops') }}) select s.* from s\n",
    "models/zones.sql": "select zone from {{ ref('copy') }}\n",
}


def test_a_column_that_is_only_passed_on_by_a_star_is_unread(workplace: Path) -> None:
    repository = SampleRepository(workplace, dict(STAR))
    source = "{{ source('gtfs', 'stops') }}"
    repository.commit({"models/stops.sql": f"select stop_id, zone from {source}\n"})
    (finding,) = repository.check().findings
    assert (finding.path, finding.category, finding.affected) == ("kind", "unread", None)
    assert "models that lose it too, since they use SELECT *: copy" in finding.message


def test_what_reads_a_column_after_a_star_breaks(workplace: Path) -> None:
    repository = SampleRepository(workplace, dict(STAR))
    repository.commit({"models/stops.sql": "select stop_id from {{ source('gtfs', 'stops') }}\n"})
    assert findings(repository.check()) == [
        ("error", "stops.zone", "zones"),
        ("note", "stops.kind", None),
    ]


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"copy.schema": "stop_id INT64\nzone STRING\nkind STRING\n"}, id="declared"),
        pytest.param({"models/copy.sql": "insert into t select * from stops\n"}, id="insert"),
        pytest.param({"models/copy.sql": "select * from stops union all select 1, 2, 3\n"}, id="union"),
        pytest.param({"models/copy.sql": "select * except (kind) from stops\n"}, id="except"),
    ],
)  # fmt: skip
def test_a_star_breaks_if_something_requires_the_column(
    workplace: Path, files: dict[str, str | None]
) -> None:
    repository = SampleRepository(workplace, STAR | {"models/zones.sql": "select 1 as a\n"} | files)
    source = "{{ source('gtfs', 'stops') }}"
    repository.commit({"models/stops.sql": f"select stop_id, zone from {source}\n"})
    assert [each.level for each in repository.check().findings] == ["error"]


@pytest.mark.parametrize(
    "call",
    [
        "dbt_utils.date_spine(datepart='day', start_date=\"date '2020-01-01'\", end_date='x')",
        "dbt.date_spine('day', \"'\" ~ first ~ \"'\", last)",
    ],
)
def test_the_column_of_a_date_spine_is_known(workplace: Path, call: str) -> None:
    spine = "with days as ({{ %s }}) select days.date_day, s.stop_id from days cross join {{ ref('stops') }} s\n"
    repository = SampleRepository(workplace, STAR | {"models/days.sql": spine % call})
    source = "{{ source('gtfs', 'stops') }}"
    repository.commit({"models/stops.sql": f"select stop_id, zone from {source}\n"})
    report = repository.check()
    assert "days" not in {each.affected for each in report.findings}
    assert {each.category for each in report.findings} == {"unread"}


def test_a_model_with_a_new_syntax_error_is_undetermined_and_keeps_no_earlier_readers(
    repository: SampleRepository,
) -> None:
    """Seen in a public repository: the change dropped a CTE and a closing bracket with it."""
    repository.change_main(
        {
            "dbt/models/both.sql": "with z as (select * from {{ ref('zones') }}),\n"
            "a as (select s.stop_id, z.label from {{ ref('stops') }} s join z on z.zone_id = s.zone)\n"
            "select * from a\n",
            "dbt/models/below.sql": "select label from {{ ref('both') }}\n",
        }
    )
    repository.commit(
        {
            "dbt/models/zones.sql": None,
            "dbt/models/checks.sql": None,
            "dbt/models/loose.sql": None,
            "dbt/models/both.sql": "with a as (select s.stop_id from {{ ref('stops') }} s\n"
            "select * from a\n",
        }
    )
    report = repository.check()
    assert report.verdict == "undetermined"
    found = [each for each in report.findings if each.category == "undetermined"]
    assert [(each.dataset, each.rule, each.affected) for each in found] == [
        ("both", "unparsed", None)
    ]
    assert "cannot be parsed any more (line 2: " in found[0].message
    assert found[0].declared is not None
    assert found[0].declared.file == "dbt/models/both.sql"
    zones = [each for each in report.findings if each.dataset == "zones"]
    assert [each.category for each in zones] == ["unread"]
