"""Texts of SQL in the order in which tables come to be."""

import random

import pytest

from lumos.lineage.file_reader import sort_by_dependency

CHAIN = {
    "d": "select * from c",
    "c": "create or replace view mart.c as select * from mart.b",
    "b": 'create table if not exists "mart"."b" as select * from a join raw.x',
    "a": "insert into a select 1",
}


@pytest.mark.parametrize("seed", range(5))
def test_tables_are_made_before_they_are_read(seed):
    keys = list(CHAIN)
    random.Random(seed).shuffle(keys)
    assert sort_by_dependency({key: CHAIN[key] for key in keys}) == ["a", "b", "c", "d"]


def test_a_cycle_leaves_the_order_of_other_texts_alone():
    texts = {
        "reader": "create table reader as select * from model",
        "a": "create table a as select * from b",
        "b": "create table b as select * from a",
        "model": "create table model as select * from raw",
    }
    found = sort_by_dependency(texts)
    assert sorted(found) == sorted(texts)
    assert found.index("model") < found.index("reader")
