"""Exports of Superset and Metabase, in the layouts that their versions of 2026 write."""

import zipfile
from pathlib import Path

SUPERSET = {
    "metadata.yaml": "version: 1.0.0\ntype: Dashboard\ntimestamp: '2026-01-01T00:00:00+00:00'\n",
    "databases/lake.yaml": """\
database_name: lake
sqlalchemy_uri: awsathena+rest://reader:XXXXXXXXXX@athena.example.com/lake
uuid: 6a0d
version: 1.0.0
""",
    "datasets/lake/orders.yaml": """\
table_name: orders
schema: null
sql: null
uuid: 70a1
metrics:
- metric_name: revenue
  expression: SUM(amount)
columns:
- column_name: amount
  expression: null
- column_name: is_large
  expression: CASE WHEN amount > 100 THEN 1 END
version: 1.0.0
database_uuid: 6a0d
""",
    "datasets/lake/eu_orders.yaml": """\
table_name: eu_orders
schema: null
sql: |-
  SELECT id,
         amount * 1.2 AS gross
  FROM orders
  WHERE country = '{{ current_country }}'
uuid: 70a2
metrics: []
columns: []
version: 1.0.0
database_uuid: 6a0d
""",
    "charts/Revenue_by_day_1.yaml": """\
slice_name: Revenue by day
viz_type: echarts_timeseries_line
params:
  x_axis: day
  metrics:
  - revenue
  adhoc_filters:
  - clause: WHERE
    expressionType: SIMPLE
    operator: IN
    subject: country
uuid: c4a1
version: 1.0.0
dataset_uuid: 70a1
""",
    "charts/EU_gross_2.yaml": """\
slice_name: EU gross
viz_type: big_number_total
params: '{"metric": {"expressionType": "SIMPLE", "aggregate": "SUM", "column": {"column_name": "gross"}}}'
uuid: c4a2
version: 1.0.0
dataset_uuid: 70a2
""",
    "dashboards/Revenue_1.yaml": """\
dashboard_title: Revenue
description: Read by the board
slug: revenue
uuid: da51
position:
  CHART-a:
    type: CHART
    meta: {uuid: c4a1, sliceName: Revenue by day}
  CHART-b:
    type: CHART
    meta: {uuid: c4a2, sliceName: EU gross}
  ROOT_ID: {type: ROOT, children: []}
metadata:
  native_filter_configuration:
  - targets:
    - datasetUuid: 70a1
      column: {name: country}
version: 1.0.0
""",
}
QUESTION = "f1C68pznmrpN1F5xFDj6d"
BUILT = "_DexsxY2EQdmhwMZU4BCs"
DASHBOARD = "Q_jD-f-9clKLFZ2TfUG2h"
METABASE = {
    "databases/lake/lake.yaml": """\
name: lake
engine: athena
serdes/meta:
- id: lake
  model: Database
""",
    "snippets/paid.yaml": """\
name: paid only
content: |-
  country <> 'XX' -- test orders
  AND amount > 0
entity_id: WyQWnT23PF-SfbYLROllJ
serdes/meta:
- id: WyQWnT23PF-SfbYLROllJ
  model: NativeQuerySnippet
""",
    "collections/main/top_customers.yaml": f"""\
name: Top customers
entity_id: {QUESTION}
creator_id: ann@example.com
display: table
dataset_query:
  database: lake
  stages:
  - native: |-
      SELECT id,
             SUM(amount) AS total
      FROM orders
      WHERE country = {{{{country}}}} [[AND {{{{day}}}}]]
        AND {{{{snippet: paid only}}}}
      GROUP BY id
    template-tags:
    - - country
      - name: country
        type: text
    - - day
      - name: day
        type: dimension
    lib/type: mbql.stage/native
  lib/type: mbql/query
serdes/meta:
- id: {QUESTION}
  label: top_customers
  model: Card
type: question
""",
    "collections/main/by_country.yaml": f"""\
name: Orders by country
entity_id: {BUILT}
creator_id: bob@example.com
dataset_query:
  database: lake
  stages:
  - source-table:
    - lake
    - null
    - orders
    aggregation:
    - - sum
      - {{}}
      - - field
        - {{}}
        - - lake
          - null
          - orders
          - amount
    breakout:
    - - field
      - {{}}
      - - lake
        - null
        - orders
        - country
serdes/meta:
- id: {BUILT}
  model: Card
""",
    "collections/main/customers.yaml": f"""\
name: Customers
entity_id: {DASHBOARD}
creator_id: ann@example.com
serdes/meta:
- model: Dashboard
dashcards:
- card_id: {QUESTION}
  series:
  - card_id: {BUILT}
- card_id: null
""",
}


def write_superset(file: Path, **changes: str | None) -> Path:
    """A ZIP file of Superset; `changes` replace files by name without folder and ending."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in SUPERSET.items():
            changed = changes.get(Path(path).stem, content)
            if changed is not None:
                archive.writestr(f"dashboard_export_20260101T000000/{path}", changed)
    return file


def write_metabase(folder: Path, **changes: str | None) -> Path:
    """The serialized files of Metabase; `changes` as above."""
    for path, content in METABASE.items():
        changed = changes.get(Path(path).stem, content)
        if changed is not None:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(changed, encoding="utf-8")
    return folder
