"""Documents that must stay true."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


def test_the_page_on_commands_is_what_help_says() -> None:
    written = runpy.run_path(str(PROJECT / "scripts/write_cli_page.py"))["page"]()
    assert (PROJECT / "docs/cli.md").read_text(encoding="utf-8") == written, "run: make docs"


def test_the_page_on_the_sdk_is_what_the_code_says() -> None:
    written = runpy.run_path(str(PROJECT / "scripts/write_api_page.py"))["page"]()
    assert (PROJECT / "docs/API_REFERENCE.md").read_text(encoding="utf-8") == written, (
        "run: make docs"
    )


def test_the_version_is_the_same_everywhere() -> None:
    import lumos

    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == lumos.__version__
    assert f"## {lumos.__version__}" in (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_readme_names_every_extra_and_no_other() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    table = (PROJECT / "README.md").read_text(encoding="utf-8").partition("| extra | for |")[2]
    named = re.findall(r"^\| `(\w+)` \|", table.partition("\n\n")[0], re.MULTILINE)
    assert sorted(named) == sorted(project["optional-dependencies"])


@pytest.mark.parametrize(
    "page", [*PROJECT.glob("*.md"), *PROJECT.glob("docs/*.md")], ids=lambda page: page.name
)
def test_links_inside_the_project_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    lost = []
    for target in re.findall(r"\]\((?!http)([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        if not file.exists() or (anchor and anchor not in _anchors(file)):
            lost.append(target)
    assert lost == []


def _anchors(page: Path) -> set[str]:
    """The headings of a page as a browser addresses them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


def test_every_package_is_on_the_map() -> None:
    text = (PROJECT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    packages = {path.parent.name for path in (PROJECT / "src/lumos").glob("*/__init__.py")}
    assert {name for name in packages if f"`{name}`" not in text} == set()


def test_the_lock_names_no_host() -> None:
    assert "://" not in (PROJECT / "requirements.lock").read_text(encoding="utf-8")
