"""Statements that differ in nothing that matters have one normal text."""

import pytest

from lumos.usage.query_log.normalization import normalize


@pytest.mark.parametrize(
    ("statements", "dialect"),
    [
        pytest.param(["select a from t where b = 1", "SELECT a\n  FROM t WHERE b = 22;"], None, id="numbers, case and blanks"),
        pytest.param(["select 'x''y' from t", "select '' from t"], None, id="texts with quotes in them"),
        pytest.param([r"select 'it\'s' from t", "select 'a' from t"], "mysql", id="escaped quotes"),
        pytest.param(["select a from t -- it's why", "/* 'who */ select a /* x */ from t"], None, id="comments"),
        pytest.param(["select a from t # 'x'", "select a from t"], "bigquery", id="comments after a hash"),
        pytest.param(["select a from t where b in (1, 2, 3)", "select a from t where b in (7)"], None, id="lists"),
        pytest.param(["insert into t values (1, 'a'), (2, 'b')", "insert into t values (1, 'c')"], None, id="rows"),
        pytest.param(["select 1e-5, 0xFF, 1.5", "select 2"], None, id="numbers of every kind"),
        pytest.param(["select $1 from t", "select 'x' from t"], "postgres", id="parameters"),
        pytest.param(["select $$it's$$ from t", "select $a$x$a$ from t"], "postgres", id="text between dollars"),
        pytest.param(['select "x" from t', "select 'y' from t"], "bigquery", id="text in double quotes"),
    ],
)  # fmt: skip
def test_these_are_one_statement(statements: list[str], dialect: str | None) -> None:
    assert len({normalize(each, dialect) for each in statements}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("select a from t1", "select a from t2", id="digits in names"),
        pytest.param('select "A" from t', 'select "a" from t', id="the case of quoted names"),
        pytest.param("select a from t", "select b from t", id="columns"),
        pytest.param('select "a 1" from t', 'select "a 2" from t', id="digits in quoted names"),
    ],
)
def test_these_are_not(one: str, other: str) -> None:
    assert normalize(one) != normalize(other)


def test_nothing_of_the_literals_is_left() -> None:
    text = normalize("select * from t where name = 'Ann Smith' and card = 4111111111111111 -- Ann")
    assert text == "select * from t where name = ? and card = ?"


@pytest.mark.parametrize("text", ["", "'", '"', "/*", "--", "$", "$$", "select '", "\0", "é'ü'"])
def test_odd_text_does_no_harm(text: str) -> None:
    for dialect in (None, "bigquery", "snowflake"):
        assert isinstance(normalize(text, dialect), str)
