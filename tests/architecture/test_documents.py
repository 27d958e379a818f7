"""Documents that must stay true."""

import runpy
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


def test_the_page_on_commands_is_what_help_says() -> None:
    written = runpy.run_path(str(PROJECT / "scripts/write_cli_page.py"))["page"]()
    assert (PROJECT / "docs/cli.md").read_text(encoding="utf-8") == written, "run: make docs"


def test_the_version_is_the_same_everywhere() -> None:
    import lumos

    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == lumos.__version__
    assert f"## {lumos.__version__}" in (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_links_inside_the_project_lead_somewhere(name: str) -> None:
    import re

    text = (PROJECT / name).read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!http)([^)#]+)", text)
    assert [target for target in targets if not (PROJECT / target).exists()] == []


def test_every_package_is_on_the_map() -> None:
    text = (PROJECT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    packages = {path.parent.name for path in (PROJECT / "src/lumos").glob("*/__init__.py")}
    assert {name for name in packages if f"`{name}`" not in text} == set()


def test_the_lock_names_no_host() -> None:
    assert "://" not in (PROJECT / "requirements.lock").read_text(encoding="utf-8")
