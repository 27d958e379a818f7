"""Columns of TPC-H and TPC-DS that get another type: Lumos's verdicts beside those of two engines.

Every query is bound by Spark and by DuckDB with the old and the new type of each column that it
names. `unsafe` is what Lumos calls compatible although the query fails or its result gets types
that Lumos does not tell; `false_alarms` are the verdicts other than compatible among the pairs of
retype and query that the engine accepts with the same types of the result.
"""

import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

_TESTS = Path(__file__).parents[1] / "tests"


def measure() -> dict[str, Any]:
    """Figures for all retypes that keep every value, and for those that do not."""
    import duckdb

    from lumos.spark.session import spark_session

    sys.path.insert(0, str(_TESTS))
    tpc = import_module("impact.tpc_retypes")
    found: dict[str, Any] = {}
    with spark_session(master="local[2]", settings={}) as session:
        for engine in (tpc.DuckdbEngine(duckdb.connect()), tpc.SparkEngine(session)):
            for name, is_widening in (("widening", True), ("other", False)):
                changes = [
                    each
                    for benchmark in ("tpc-h", "tpc-ds")
                    for each in tpc.all_retypes(benchmark, widening=is_widening)
                ]
                found[f"{engine.dialect} {name}"] = _figures(tpc.outcomes(engine, changes))
    return found


def _figures(outcomes: Iterable[Any]) -> dict[str, Any]:
    outcomes = list(outcomes)
    kept = [each for each in outcomes if each.is_kept]
    alarms = sum(each.is_false_alarm for each in kept)
    return {
        "pairs": len(outcomes),
        "fail": sum(each.fails for each in outcomes),
        "change": sum(bool(each.changed) for each in outcomes),
        "unsafe": sum(each.is_unsafe for each in outcomes),
        "keep": len(kept),
        "false_alarms": alarms,
        "share": round(alarms / len(kept), 4) if kept else 0.0,
    }
