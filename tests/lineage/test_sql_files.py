"""Files of SQL as reporters."""

from time import monotonic, process_time

import pytest

from lumos.annotations.owner_names import OwnerOfUnknownKind
from lumos.config.sql_names import NameTemplate
from lumos.errors import MisuseError
from lumos.lineage.reported_lineage import ReportedLineage, TableName
from lumos.lineage.sql import analyse
from lumos.lineage.sql.templates import read_macros, render_template
from lumos.lineage.sql_files import (
    ProjectMacros,
    SqlFile,
    UnreadableSql,
    create_statement,
    model_name,
    parse_sql_file,
    read_sql,
    report_sql_file,
    tables_in_from,
)
from lumos.model.lineage import UNKNOWN_NAME

COLUMNS = {("orders",): ["id", "customer_id", "amount"], ("raw", "events"): ["id", "at"]}


def reported(text: str, name: str = "models/customers.sql") -> ReportedLineage:
    file = parse_sql_file(text, name=name)
    sql = create_statement(file, None) or file.sql
    return report_sql_file(file, analyse(sql, columns=COLUMNS.get, file=name))


def ends(found: ReportedLineage) -> set[tuple[str, str]]:
    return {
        (".".join(edge.upstream.parts), ".".join(edge.downstream.parts)) for edge in found.edges
    }


def test_a_file_of_statements_reports_its_tables_with_file_and_line():
    found = reported(
        "-- nothing\nCREATE TABLE totals AS\nSELECT id, amount FROM orders;\nINSERT INTO log SELECT id FROM totals;"
    )
    assert found.reporter == "sql:models/customers.sql"
    assert ends(found) == {("orders", "totals"), ("totals", "log")}
    mapping = next(
        each for edge in found.edges for each in edge.columns if each.downstream == "amount"
    )
    assert (mapping.upstream, mapping.file, mapping.line) == ("amount", "models/customers.sql", 3)


def test_a_file_that_is_only_a_query_makes_the_table_it_is_named_after():
    found = reported(
        "{{ config(materialized='table') }}\n"
        "-- Customer lifetime value calculation\n"
        "-- Owner: analytics-team\n"
        "-- SLA: Updated daily by 6am UTC\n"
        "SELECT customer_id, SUM(amount) AS lifetime_value FROM orders GROUP BY customer_id",
        name="models/Customer_Value.sql",
    )
    (edge,) = found.edges
    assert edge.downstream == TableName(parts=("customer_value",))
    assert {(each.upstream, each.downstream) for each in edge.columns} == {
        ("customer_id", "customer_id"), ("amount", "lifetime_value"),
    }  # fmt: skip
    (annotations,) = found.annotations
    assert annotations.dataset == TableName(parts=("customer_value",))
    assert annotations.description == "Customer lifetime value calculation"
    assert annotations.owners == (OwnerOfUnknownKind(name="analytics-team"),)
    assert annotations.properties == {"sla": "Updated daily by 6am UTC"}


@pytest.mark.parametrize(
    ("text", "dialect", "start"),
    [
        ("select 1", None, 'CREATE TABLE "a"."b" AS select'),
        (
            "-- note\nwith x as (select 1) select * from x;\n",
            "bigquery",
            "CREATE TABLE `a`.`b` AS -- note\nwith",
        ),
        ("with x as (select 1) insert into y select * from x", None, None),
        ("select * into y from x", "tsql", None),
        ("insert into y select 1", None, None),
        ("create table x as select 1", None, None),
        ("select 1; select 2", None, None),
        ("select 'open", None, None),
        ("", None, None),
    ],
)
def test_only_a_single_query_is_a_model(text, dialect, start):
    made = create_statement(parse_sql_file(text, name="x/A.b.sql"), dialect)
    assert made is start or made.startswith(start)


@pytest.mark.parametrize(
    ("file", "name", "path"),
    [
        ("models/Orders.sql", "orders", "models.orders"),
        ("models/raw.orders.sql", "raw.orders", "models.raw.orders"),
        ("models/orders.hql", "orders", "models.orders"),
        ("sales/orders/query.sql", "orders", "sales.orders"),
        ("sales.orders/Main.sql", "sales.orders", "sales.orders"),
        ("a/b/c/d/x.sql", "x", "a.b.c.d.x"),
        ("query.sql", "query", "query"),
        ("/home/ann/sql/x.sql", "x", "home.ann.sql.x"),
        ("git.io/shop/repo//query.sql", "query", "git.io.shop.repo.query"),
        ("git.io/shop/repo//a/x/query.sql", "x", "git.io.shop.repo.a.x"),
    ],
)
def test_a_model_is_named_after_its_own_path(file, name, path):
    found = model_name(file)
    assert (".".join(found.name), ".".join(found.path)) == (name, path)
    assert {found.name, found.path} <= set(found.possible_names)


def test_tables_behind_from_and_join_are_found_without_parsing():
    sql = "select a.b from `Shop.Sales.orders` o join crm.`users` using (id) join [x].[y] join z"
    assert tables_in_from(sql) == {
        ("shop", "sales", "orders"), ("crm", "users"), ("x", "y"), ("z",),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("template", "file", "name"),
    [
        ("{schema}/{table}/*.sql", "sql/Sales/orders/query.sql", "sales.orders"),
        ("{database}/{schema}/{table}/*.sql", "x/shop/sales/orders/query.sql", "shop.sales.orders"),
        ("sql/{schema}/**/{table}.sql", "sql/sales/2024/eu/orders.sql", "sales.orders"),
        ("sql/{schema}/**/{table}.sql", "sql/sales/orders.sql", "sales.orders"),
        ("{schema}/{schema}.{table}.sql", "sales/sales.orders.sql", "sales.orders"),
        ("{schema}__{table}.sql", "models/sales__orders.sql", "sales.orders"),
        ("{table}_v?.sql", "models/orders_v?.sql", "orders"),
        ("jobs/{schema}/{table}.sql", "models/sales/orders.sql", "orders"),
    ],
)
def test_a_template_names_models_and_others_keep_their_default(template, file, name):
    assert ".".join(model_name(file, NameTemplate(template)).name) == name


@pytest.mark.parametrize(
    "template", ["", "{schema}/*.sql", "{tabel}.sql", "{table", "{table}{table}"]
)
def test_a_template_without_a_table_or_with_unknown_parts_is_refused(template):
    with pytest.raises(MisuseError, match=r"\{schema\}/\{table\}/\*\.sql"):
        NameTemplate(template)


def test_several_queries_are_no_model():
    found = reported("SELECT id FROM orders;\nSELECT id FROM raw.events")
    assert (found.edges, found.annotations) == ((), ())


def test_of_several_tables_each_has_its_own_comment_and_the_files_owner():
    found = reported(
        "-- The nightly load.\n-- Owner: platform-team\n\n"
        "-- All totals\nCREATE TABLE totals AS SELECT id FROM orders;\n\n"
        "-- SLA: hourly\n-- Owner: jane\nCREATE TABLE log AS SELECT id FROM orders;"
    )
    annotations = {each.dataset.parts[0]: each for each in found.annotations}
    assert annotations["totals"].description == "All totals"
    assert annotations["totals"].owners == (OwnerOfUnknownKind(name="platform-team"),)
    assert annotations["log"].description is None
    assert (annotations["log"].owners, annotations["log"].properties) == (
        (OwnerOfUnknownKind(name="jane"),),
        {"sla": "hourly"},
    )


@pytest.mark.parametrize(
    ("template", "plain"),
    [
        ("select * from {{ ref('orders') }}", "select * from orders"),
        ("select * from {{ ref('pkg', 'orders') }}", "select * from orders"),
        ('select * from {{ref("orders", v=2)}}', "select * from orders"),
        ("select * from {{ source('raw', 'events') }}", "select * from raw.events"),
        ("{# a\nb #}select 1", "\nselect 1"),
        ("{{ config(\n  a=1\n) }}select 1", "\n\nselect 1"),
        ("a {% if is_incremental() %}\nwhere b{% endif %} c", "a \n c"),
        ("a {% if is_incremental() %}b{% else %}c{% endif %}", "a c"),
        ("a {% if not is_incremental() %}b{% else %}c{% endif %}", "a b"),
        ("a {% if x %}b{% elif y %}c{% else %}d{% endif %}", "a b"),
        ("{% macro f(a) %}select {{ a }}{% endmacro %}select 1", "select 1"),
        ("{% set x = 1 %}{% set y %}no{% endset %}select 1", "select 1"),
        ("{%- for x in xs -%}a{%- endfor -%}", "a"),
        ("from {{ this }}", 'from "t"'),
        ("{{ var('days', '7') }}", "7"),
        ("{% snapshot s %}select 1{% endsnapshot %}", "select 1"),
        ("select {{ star(ref('a')) }}", f"select {UNKNOWN_NAME}"),
    ],
)
def test_templates_become_plain_sql_line_by_line(template, plain):
    assert render_template(template, this='"t"').text == plain


@pytest.mark.parametrize(
    ("template", "plain"),
    [
        ("select '{{1,2},{3,4}}'", f"select '{UNKNOWN_NAME}'"),
        ("{% if %}\nselect {{ ref('a') }}", f"\nselect {UNKNOWN_NAME}"),
        ("select 1 where a like '{%'", "select 1 where a like '{%'"),
        ("{% test t(model) %}select 1{% endtest %}", "select 1"),
        ("{% do log('x') %}{% endif %}select 1", "select 1"),
        ("{% print ref('a') %} {{ ref('b') }}", "a b"),
    ],
)
def test_what_jinja_does_not_parse_keeps_the_rest_of_the_sql(template, plain):
    assert render_template(template, this='"t"').text == plain


@pytest.mark.parametrize(
    "template",
    [
        "{% for a in range(10**9) %}{% for b in range(10**9) %}x{% endfor %}{% endfor %}",
        "{{ 'x' * 10**12 }}{{ 10**10**10 }}",
        "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
        "{{" * 200_000,
        "{%" * 200_000,
        "{{ x" + "[0]" * 20_000 + " }}",
        "{{ " + "(" * 100_000 + ")" * 100_000 + " }}",
        "{% if x %}" * 20_000 + "{% endif %}" * 20_000,
        "{{ " + "9" * 10_000 + " }}",
        "{{ a }}" * 400_000,
    ],
    ids=["loops", "numbers", "recursion", "open", "tags", "items", "brackets", "nested", "digits",
         "long"],
)  # fmt: skip
def test_a_hostile_template_takes_little_time_and_its_output_does_not_grow(template):
    started = monotonic()
    rendered = render_template(template)
    assert monotonic() - started < 20
    assert len(rendered.text) <= 2 * len(template)


MACROS = read_macros(
    [
        "{% macro cents(column, digits=2) %}\n  -- in cents\n  round({{ column }}, {{ digits }})\n"
        "{% endmacro %}",
        "{% macro latest(table, by=none) %}select * from {{ table }}"
        "{% if by %} order by {{ by }}{% endif %}{% endmacro %}"
        "{% macro outer(x) %}{{ cents(x) }} + {{ other(x) }}{% endmacro %}",
        "{% macro history(table, hide=[], by=none) %}select *"
        "{% if hide or by %} except ({{ hide }}{{ by }}){% endif %} from {{ ref(table) }}"
        "{% endmacro %}",
        "{% macro joined(x) %}array_to_string({{ x }}, '--') -- text\nas {{ x }}{% endmacro %}",
        "{% macro nothing() %}{% set x = 1 %}{% endmacro %}{% macro broken( %}",
    ]
)


@pytest.mark.parametrize(
    ("template", "plain", "gaps"),
    [
        ("select\n{{ cents('a') }},\nb", "select\nround(a, 2),\nb", 0),
        ("select {{ cents('a.b', digits=0) }}", "select round(a.b, 0)", 0),
        ("{{ joined('a') }}", "array_to_string(a, '--') as a", 0),
        ("{{ latest(ref('x')) }}", "select * from x", 0),
        ("{{ latest(source('s', 'x'), 'day') }}", "select * from s.x order by day", 0),
        ("{{ history('x') }}", "select * from x", 0),
        ("{{ outer('a') }}", f"round(a, 2) + {UNKNOWN_NAME}", 1),
        ("{{ cents(columns[0]) }}", f"round({UNKNOWN_NAME}, 2)", 1),
        ("select {{ nothing() }}", f"select {UNKNOWN_NAME}", 1),
        (
            "{{ dbt_utils.generate_surrogate_key(['t.a', 'b']) }}",
            "MD5(CONCAT(CAST(t.a AS VARCHAR), CAST(b AS VARCHAR)))",
            0,
        ),
        ("{{ dbt_utils.generate_surrogate_key(columns) }}", UNKNOWN_NAME, 1),
    ],
)
def test_macros_of_the_project_become_their_text(template, plain, gaps):
    rendered = render_template(template, macros=MACROS)
    assert (rendered.text, len(rendered.gaps)) == (plain, gaps)


@pytest.mark.parametrize(
    "macro",
    [
        "{% macro m(x) %}a{{ m(x) }}{{ m(x) }}{{ m(x) }}{% endmacro %}",
        "{% macro m(x) %}" + "a" * 50_000 + "{{ m(x) }}{{ m(x) }}{% endmacro %}",
    ],
)
def test_hostile_macros_take_little_time_and_their_output_is_limited(macro):
    started = process_time()
    rendered = render_template("{{ m(1) }}" * 100, macros=read_macros([macro]))
    assert process_time() - started < 5
    assert len(rendered.text) < 2_000_000


def test_the_macros_of_a_file_are_those_of_its_project(tmp_path):
    for path, text in {
        "one/macros/deep/m.sql": "{% macro m() %}1{% endmacro %}",
        "two/macros/m.sql": "{% macro m() %}2{% endmacro %}",
        "two/models/a.sql": "",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    projects = ProjectMacros()
    values = [
        render_template("{{ m() }}", macros=projects.of(tmp_path / file)).text
        for file in ("two/models/a.sql", "one/a.sql", "a.sql")
    ]
    assert values == ["2", "1", UNKNOWN_NAME]


def test_what_a_template_hides_is_a_remark_with_its_line():
    found = reported("SELECT id FROM orders\nUNION ALL SELECT id FROM {{ relation_of('a') }}")
    assert ends(found) == {("orders", "customers")}
    (remark,) = [each for each in found.problems if "relation_of" in each.reason]
    assert (remark.line, remark.severity, remark.place) == (2, "remark", "models/customers.sql")


@pytest.mark.parametrize(
    "content",
    ["SELECT 'ä' AS a FROM orders".encode(), b"\xef\xbb\xbfSELECT 'a' AS a FROM orders",
     "SELECT 'ä' AS a FROM orders".encode("latin-1"), "SELECT 'ä' AS a FROM orders".encode("utf-16")],
)  # fmt: skip
def test_files_of_other_encodings_are_read(tmp_path, content):
    (tmp_path / "a.sql").write_bytes(content)
    assert isinstance(found := read_sql(tmp_path / "a.sql", name="a.sql"), SqlFile)
    assert found.sql.startswith("SELECT ")


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(UnreadableSql):
        read_sql(tmp_path / "none.sql", name="none.sql")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("create table a as select id from b", None),
        ("grant select on a to someone;\nvacuum full a;\nset x = 1", None),
        ("create role reader;\ncreate index i on a (id);", None),
        ("create tabel a as select id from b", ()),
        ("create table a as select id from b;\nselect from where", (("a",),)),
    ],
)
def test_what_is_not_understood_leaves_open_what_the_file_says_of_others(text, written):
    file = parse_sql_file(text, name="m.sql")
    found = report_sql_file(file, analyse(file.sql, dialect="postgres")).analysed_targets
    assert (None if found is None else tuple(each.parts for each in found)) == written


def test_the_comment_of_the_first_table_says_nothing_of_the_others():
    found = reported(
        "-- All items\n-- Owner: ann\n-- SLA: hourly\nCREATE TABLE items AS SELECT id FROM orders;\n"
        "CREATE TABLE refunds AS SELECT id FROM orders;"
    )
    assert [(each.dataset.parts, each.owners, each.properties) for each in found.annotations] == [
        (("items",), (OwnerOfUnknownKind(name="ann"),), {"sla": "hourly"})
    ]


def test_the_head_of_a_file_holds_for_its_only_table_whatever_comes_first():
    found = reported(
        "-- Owner: ann\nDROP TABLE IF EXISTS items;\n\nCREATE TABLE items AS SELECT id FROM orders;"
    )
    assert [(each.dataset.parts, each.owners) for each in found.annotations] == [
        (("items",), (OwnerOfUnknownKind(name="ann"),))
    ]


@pytest.mark.parametrize(
    ("text", "columns", "resolved"),
    [
        ("select id, {{ cents('amount') }} as amount from {{ ref('x') }}", 2, 1),
        ("select a, b from {{ macro() }}", 2, 0),
        ("select {{ dbt_utils.star(ref('x')) }} from {{ ref('x') }}", 1, 0),
        ("select id, 1 as k from {{ ref('x') }}", 2, 2),
    ],
)
def test_columns_that_a_template_hides_are_not_resolved(text, columns, resolved):
    found = reported(text).coverage
    assert (found.columns, found.resolved) == (columns, resolved)
