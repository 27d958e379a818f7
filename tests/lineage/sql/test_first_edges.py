from lumos.lineage.sql import analyse


def test_an_insert_with_a_column_list_maps_by_position() -> None:
    script = analyse("INSERT INTO mart.t (p, q) SELECT a, b + 1 FROM raw.s WHERE c > 1")

    direct = [(edge.from_column, edge.to_column) for edge in script.edges if edge.usage is None]
    assert direct == [("a", "p"), ("b", "q")]
    assert [edge.expression for edge in script.edges if edge.usage] == ["WHERE c > 1"]
