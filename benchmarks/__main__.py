"""`make bench`: runs every measurement, prints it, and writes build/bench.json."""

import argparse
import compileall
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import lumos
from benchmarks import (
    catalog_servers,
    changes,
    cost,
    cost_store,
    discovery,
    discovery_memory,
    discovery_s3,
    emission,
    formats,
    gate,
    impact,
    impact_rehearsal,
    impact_types,
    kafka,
    lineage_gold,
    lineage_graph,
    listing,
    metastores,
    model,
    mongodb,
    mysql,
    postgres,
    profile,
    query_log,
    schema_diff,
    search,
    server,
    site,
    snapshot,
    sql_lineage,
    start,
    table_memory,
    tables,
    watch,
)

MEASUREMENTS: dict[str, Callable[[], dict[str, Any]]] = {
    "catalog_servers": catalog_servers.measure,
    "changes": changes.measure,
    "cost": cost.measure,
    "cost_store": cost_store.measure,
    "discovery_10k": discovery.measure_10k,
    "discovery_40k": discovery.measure_40k,
    "discovery_csv": discovery.measure_csv,
    "discovery_json": discovery.measure_json,
    "discovery_memory": discovery_memory.measure,
    "discovery_rescan": discovery.measure_rescan,
    "discovery_s3": discovery_s3.measure,
    "emission": emission.measure,
    "formats": formats.measure,
    "gate": gate.measure,
    "impact": impact.measure,
    "impact_rehearsal": impact_rehearsal.measure,
    "impact_types": impact_types.measure,
    "kafka": kafka.measure,
    "lineage_gold": lineage_gold.measure,
    "lineage_graph": lineage_graph.measure,
    "listing": listing.measure,
    "metastores": metastores.measure,
    "model": model.measure,
    "mongodb": mongodb.measure,
    "mysql": mysql.measure,
    "postgres": postgres.measure,
    "profile": profile.measure,
    "query_log": query_log.measure,
    "schema_diff": schema_diff.measure,
    "search": search.measure,
    "server": server.measure,
    "site": site.measure,
    "snapshot": snapshot.measure,
    "sql_lineage": sql_lineage.measure,
    "spark_start": start.measure_spark,
    "start": start.measure,
    "table_memory": table_memory.measure,
    "tables": tables.measure,
    "watch": watch.measure,
    "watch_backlog": watch.measure_backlog,
    "watch_events": watch.measure_events,
    "watch_flood": watch.measure_flood,
    "web": site.measure_server,
}


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    return {
        "python": platform.python_version(),
        "java": (java.stderr or "none").splitlines()[0],
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        # What others did on it before.
        "load": round(os.getloadavg()[0], 1),
    }


def _wanted() -> list[str]:
    """The measurements that are named on the command line, or all."""
    width = max(map(len, MEASUREMENTS))
    told = "\n".join(
        f"  {name:{width}}  {_described(measure)}" for name, measure in MEASUREMENTS.items()
    )
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measures, prints the figures and the machine, and writes build/bench.json.",
        epilog=f"measurements:\n{told}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a measurement; all if none")
    names: list[str] = parser.parse_args().names
    if unknown := [name for name in names if name not in MEASUREMENTS]:
        parser.error(f"no measurement '{unknown[0]}'; there are {', '.join(MEASUREMENTS)}")
    return names or list(MEASUREMENTS)


def _described(measure: Callable[[], dict[str, Any]]) -> str:
    """The first line of its module, or of its own where the module has several."""
    is_only = measure.__name__ == "measure"
    text = sys.modules[measure.__module__].__doc__ if is_only else measure.__doc__
    return (text or "").partition("\n")[0]


def main() -> None:
    """Runs the measurements named on the command line, or all."""
    wanted = _wanted()
    # Installed packages, Lumos and its peers alike, have bytecode; a checkout may have none.
    compileall.compile_dir(Path(lumos.__file__).parent, quiet=1)
    results: dict[str, Any] = {
        "format_version": "1.0",
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
    }
    for name in wanted:
        sys.stderr.write(f"measuring {name} ...\n")
        results[name] = MEASUREMENTS[name]()
    file = Path("build/bench.json")
    file.parent.mkdir(exist_ok=True)
    text = json.dumps(results, indent=2)
    file.write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(text + f"\nWrote {file}\n")


if __name__ == "__main__":
    main()
