"""Which SQL is read for a change, and that reading less changes no verdict."""

from pathlib import Path

import pytest

from gate.sample import SampleRepository
from lumos.gate import judgement
from lumos.gate.relevance import SqlRelevance

FILES = {
    "staging/users.sql": "select id, email from raw.people",
    "marts/mails.sql": "select email from {{ ref('users') }} join countries using (id)",
    "marts/report.sql": "select count(*) as mails from mails",
    "marts/other.sql": "select id from orders",
    "marts/countries.sql": "select * from lands",
    "lands.sql": "create view geo.lands as select 1 as id",
    "load.sql": "insert /* daily */ into orders select * from shop.carts",
    "quoted.sql": 'create table "a b"."c d" as select id from carts',
    "reads_quoted.sql": 'select id from "c d"',
    "templated.sql": "insert into {{ target.schema }}.{{ ref('visits') }} select * from clicks",
    "visitors.sql": "select * from visits",
    "migrations/1_a.sql": "create table carts (id int)",
    "migrations/2_b.sql": "alter table clients add column name text",
}


def relevant(*names: str, changed: tuple[str, ...] = ()) -> set[str]:
    texts = [(path, text.encode()) for path, text in FILES.items()]
    return set(SqlRelevance(texts, names, changed_files=changed).files)


@pytest.mark.parametrize(
    ("names", "files"),
    [
        pytest.param((), set(), id="nothing changes"),
        pytest.param(
            ("people",),
            {
                "staging/users.sql", "marts/mails.sql", "marts/report.sql", "marts/countries.sql",
                "lands.sql",
            },
            id="readers, their readers, and what these read",
        ),
        pytest.param(("PEOPLE.parquet",), {"staging/users.sql", "marts/mails.sql", "marts/report.sql", "marts/countries.sql", "lands.sql"}, id="case and extension"),
        pytest.param(
            ("carts",),
            {
                "load.sql", "marts/other.sql", "quoted.sql", "reads_quoted.sql",
                "migrations/1_a.sql", "migrations/2_b.sql",
            },
            id="inserts, quoted names and migrations",
        ),
        pytest.param(("clicks",), {"templated.sql", "visitors.sql"}, id="written by a template"),
        pytest.param(("unheard_of",), set(), id="unread"),
    ],
)  # fmt: skip
def test_files_are_relevant_by_the_names_in_them(names: tuple[str, ...], files: set[str]) -> None:
    assert relevant(*names) == files


def test_a_changed_file_is_relevant_but_not_what_it_reads_if_no_columns_change() -> None:
    assert relevant(changed=("marts/countries.sql",)) == {"marts/countries.sql"}


def test_sentences_in_comments_and_keywords_create_no_tables() -> None:
    texts = {
        "ids.sql": "-- one table is for the people\nselect id from people",
        "nulls.sql": "/* one view for all */ select 1 as id where id is null",
        "load.sql": "insert into t values ('-- no comment') on conflict do update set id = 1",
        "fix.sql": "update t set id = 2; select '--', 1; create table made as select 1 as id",
        "read.sql": "select id from made",
    }
    found = [(path, text.encode()) for path, text in texts.items()]
    assert SqlRelevance(found, ["people"], changed_files=()).files == {"ids.sql"}
    files = SqlRelevance(found, ["t"], changed_files=()).files
    assert files == {"load.sql", "fix.sql", "read.sql"}


CHANGES: dict[str, dict[str, str | None]] = {
    "dropped": {"schemas/people.schema": "id INT64\n"},
    "model": {"staging/users.sql": "select id from people"},
    "deleted": {"marts/mails.sql": None},
    "unread": {"schemas/lonely.schema": "id INT64\n"},
    "star": {"lands.sql": "create view lands as select 1 as no"},
}


@pytest.mark.parametrize("name", CHANGES)
def test_reading_less_changes_no_report(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    schemas = {
        "schemas/people.schema": "id INT64\nemail STRING\n",
        "schemas/lonely.schema": "id INT64\nemail STRING\n",
        "schemas/shop/orders.schema": "id INT64\n",
    }
    repository = SampleRepository(workplace, {**FILES, **schemas})
    repository.commit(CHANGES[name])
    less = repository.check()
    for file in (repository.folder / ".git/lumos/gate").iterdir():
        file.unlink()
    monkeypatch.setattr(judgement, "_has_name_rules", lambda _: True)
    assert repository.check() == less
    assert less.findings
