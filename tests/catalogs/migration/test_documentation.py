"""The examples in docs/PLATFORM_MIGRATION.md and docs/WRITING_AN_ADAPTER.md work."""

import re
from pathlib import Path
from typing import Any

from lumos import Lumos, plugins
from lumos.catalogs.migration.mapping import Mapping
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Governance
from snapshots.stores import fill

DOCS = Path(__file__).parents[3] / "docs"


def blocks(language: str, page: str = "PLATFORM_MIGRATION") -> list[str]:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_mappings_of_the_page_are_read(workplace: Path) -> None:
    found = [text for text in blocks("yaml") if "# mapping.yaml" in text]
    assert len(found) == 2
    for text in found:
        (workplace / "mapping.yaml").write_text(text, encoding="utf-8")
        assert not Mapping.read(workplace / "mapping.yaml").is_empty


def test_the_configurations_of_the_page_are_valid(workplace: Path, monkeypatch: Any) -> None:
    for name in ("OM_TOKEN", "DH_TOKEN", "SNOWFLAKE_ACCOUNT"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("SHOP_DATABASE", "postgresql://db.example/shop")
    found = [text for text in blocks("yaml") if "lumos_config" in text]
    assert len(found) == 3
    for text in found:
        (workplace / "lumos.yaml").write_text(text, encoding="utf-8")
        assert Lumos().settings.platform in ("datahub", "openmetadata")


def test_the_adapter_of_the_page_is_one(workplace: Path) -> None:
    python = blocks("python", "WRITING_AN_ADAPTER")
    (text,) = (text for text in python if "class Notebook" in text)
    scope: dict[str, Any] = {}
    exec(text, scope)
    notebook = scope["Notebook"](None)
    plugins.register(plugins.PLATFORMS, "notebook", lambda _settings: notebook)
    try:
        entry = CatalogEntry(
            urn="lumos://s3/lake/a", name="a", platform="s3", governance=Governance(tags=("x",))
        )
        lumos = Lumos(overrides={"storage.path": str(workplace / "lumos.db")})
        fill(lumos, {"datasets": [entry]})
        assert lumos.migration.migrate("local", "notebook").is_whole
        assert [each.governance for each in notebook.export()] == [entry.governance]
        lumos.migration.roll_back("local", "notebook")
        assert list(notebook.export()) == []
    finally:
        plugins.unregister(plugins.PLATFORMS, "notebook")
