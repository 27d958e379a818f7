"""The example of the founding documents in a store: raw_events to ml_predictions, 8,200 a month."""

from datetime import UTC, datetime
from pathlib import Path

from lumos import Lumos
from lumos.cost.service import Costs
from lumos.model.dataset import Documentation, Governance, Owner, Ownership
from lumos.model.schema import parse_schema
from lumos.store import KnownDataset, Store

NOW = datetime(2024, 3, 10, 12, tzinfo=UTC)
DATASETS = {
    "raw/raw_events": ("data-engineering", "events", ("bronze",)),
    "core/cleaned_events": ("data-engineering", "events", ("silver",)),
    "core/event_metrics": ("analytics", "reporting", ("gold", "kpi")),
    "ml/feature_store": ("ml-platform", "ml", ("gold",)),
    "ml/ml_predictions": ("ml-platform", "ml", ()),
}
EDGES = (
    ("raw/raw_events", "core/cleaned_events"),
    ("raw/raw_events", "core/event_metrics"),
    ("core/cleaned_events", "ml/feature_store"),
    ("ml/feature_store", "ml/ml_predictions"),
)
CONFIGURATION = """\
cost_calculation:
  currency: USD
  overrides:
    - {dataset: raw_events, costs: {storage: 500}}
    - {dataset: cleaned_events, costs: {compute: 3000}}
    - {dataset: event_metrics, costs: {compute: 1000}}
    - {dataset: feature_store, costs: {compute: 2000, storage: 200}}
    - {dataset: ml_predictions, costs: {compute: 1500}}
  allocations:
    - {from: raw_events, to: cleaned_events, share: 0.6}
    - {from: raw_events, to: event_metrics, share: 0.4}
    - {from: cleaned_events, to: feature_store, shares: {compute: 0.6, storage: 1.0}}
  features:
    predictions: {datasets: [ml_predictions, feature_store]}
    everything: {patterns: ["core/*", "ml/*"], tags: [bronze]}
"""
UNATTRIBUTED = """\
  idle: {cluster: 120.50}
  shared: {catalog: 80.25}
  adjustments: {credit: -30.10}
"""


def urn(name: str) -> str:
    return f"lumos://s3/lake/{name}"


def write_example(
    folder: Path,
    *,
    unattributed: bool = False,
    more: str = "",
    stored: dict[str, object] | None = None,
) -> Lumos:
    """Lumos with lumos.yaml and a store of the example in a folder, or else where it is `stored`."""
    (folder / "lumos.yaml").write_text(
        CONFIGURATION + (UNATTRIBUTED if unattributed else "") + more
    )
    lumos = Lumos(folder / "lumos.yaml", environment={}, overrides=stored)
    fill(lumos)
    lumos.cost = Costs(lumos.settings, lumos._store.open, clock=lambda: NOW)
    return lumos


def fill(lumos: Lumos) -> None:
    store = Store.open(lumos.database, create=True)
    with store.transaction() as transaction:
        for name, (team, domain, tags) in DATASETS.items():
            hash = transaction.save_schema(parse_schema("id INT64"))
            transaction.save(
                KnownDataset(
                    urn=urn(name), name=name.rpartition("/")[2], platform="s3", format="parquet",
                    source="s3", state="live", cloud_version="S-1", schema_version="1.0.0",
                    schema_hash=hash, fingerprint="f" * 32, content="1", created_at=NOW,
                    updated_at=NOW,
                )
            )  # fmt: skip
            owners = Ownership(owners=(Owner(name=team, kind="group"),))
            words = {
                "ownership": owners,
                "documentation": Documentation(domain=domain),
                "governance": Governance(tags=tags),
            }
            transaction.save_aspects(urn(name), words, writer="user", at=NOW)
    for upstream, downstream in EDGES:
        lumos.lineage.add(urn(upstream), urn(downstream))
