"""A dbt project with exposures, a semantic model, metrics and a saved query.

`python -m lineage.dbt.semantic_project` from tests/ runs dbt and records the parts of its manifest
that the quick tests need.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

RECORDED = Path(__file__).parent / "recorded" / "semantic_manifest.json"
PACKAGES = ("dbt-core<1.12", "dbt-duckdb<1.12")
_FOLDER = Path(__file__).parents[3] / "build" / "dbt"
_SECONDS = 1800
FILES = {
    "dbt_project.yml": "name: shop\nversion: '1.0'\nprofile: shop\nmodel-paths: [models]\n",
    "profiles.yml": """\
shop:
  target: dev
  outputs:
    dev: {type: duckdb, path: shop.duckdb}
""",
    "models/orders.sql": """\
{{ config(materialized='table') }}
select 1 as order_id, 2 as customer_id, 9.5 as amount, 'EU' as region, date '2026-01-01' as placed
""",
    "models/time_spine.sql": """\
select cast(range as date) as date_day
from range(date '2026-01-01', date '2026-02-01', interval 1 day)
""",
    "models/semantics.yml": """\
models:
  - name: time_spine
    time_spine: {standard_granularity_column: date_day}
    columns:
      - {name: date_day, granularity: day}
semantic_models:
  - name: orders
    model: ref('orders')
    defaults: {agg_time_dimension: placed}
    entities:
      - {name: order_id, type: primary}
    dimensions:
      - {name: placed, type: time, type_params: {time_granularity: day}}
      - {name: area, type: categorical, expr: region}
    measures:
      - {name: revenue, agg: sum, expr: amount}
      - {name: order_count, agg: count, expr: order_id}
metrics:
  - name: revenue
    label: Revenue
    type: simple
    type_params: {measure: revenue}
    config: {meta: {owner: finance-team}}
  - name: eu_orders
    label: EU orders
    type: simple
    type_params: {measure: order_count}
    filter: "{{ Dimension('order_id__area') }} = 'EU'"
  - name: average_order
    label: Average order
    type: ratio
    type_params: {numerator: revenue, denominator: eu_orders}
saved_queries:
  - name: revenue_by_day
    query_params:
      metrics: [revenue]
      group_by: ["TimeDimension('metric_time', 'day')"]
exposures:
  - name: weekly
    label: Weekly revenue
    type: dashboard
    maturity: high
    url: https://bi.example.com/7
    description: Read by the board.
    owner: {name: Finance, email: finance@example.com}
    depends_on: [metric('average_order')]
  - name: churn
    type: notebook
    owner: {email: ds@example.com}
    depends_on: [ref('orders')]
""",
}
_SECTIONS = ("nodes", "exposures", "metrics", "semantic_models", "saved_queries")
_KEYS = frozenset(
    [
        "name",
        "resource_type",
        "package_name",
        "database",
        "schema",
        "alias",
        "relation_name",
        "original_file_path",
        "compiled_code",
        "raw_code",
        "language",
        "description",
        "config",
        "owner",
        "url",
        "label",
        "type",
        "maturity",
        "type_params",
        "filter",
        "defaults",
        "measures",
        "dimensions",
        "depends_on",
        "meta",
        "tags",
        "group",
    ]
)


def write_files(folder: Path) -> None:
    for path, content in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content, encoding="utf-8")


def run_dbt(folder: Path) -> Path:
    """The manifest of a run of dbt; skips the test, saying why, where dbt cannot be had."""
    dbt = _FOLDER / "bin" / "dbt"
    if not dbt.exists():
        _run(sys.executable, "-m", "venv", "--clear", str(_FOLDER))
        _run(str(_FOLDER / "bin" / "pip"), "install", "-q", *PACKAGES)
    write_files(folder)
    environment = {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    done = subprocess.run(
        [dbt, "run", "--profiles-dir", "."], cwd=folder, env=environment,
        capture_output=True, text=True, check=False, timeout=_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    return folder / "target" / "manifest.json"


def _run(*command: str) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        pytest.skip(f"dbt cannot be had here: {problem}")
    if done.returncode:
        pytest.skip(f"dbt cannot be had here: {(done.stdout + done.stderr)[-300:]}")


def shortened(manifest: dict[str, Any]) -> dict[str, Any]:
    """The parts of a manifest that are read, without times and paths of the machine."""
    kept: dict[str, Any] = {"metadata": {
        key: manifest["metadata"][key]
        for key in ("dbt_schema_version", "project_name", "adapter_type")
    }}  # fmt: skip
    for section in _SECTIONS:
        kept[section] = {
            id: {key: value for key, value in node.items() if key in _KEYS}
            for id, node in manifest[section].items()
        }
    return kept


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        manifest = json.loads(run_dbt(Path(name)).read_text())
    RECORDED.parent.mkdir(exist_ok=True)
    RECORDED.write_text(json.dumps(shortened(manifest), indent=1, sort_keys=True) + "\n")
