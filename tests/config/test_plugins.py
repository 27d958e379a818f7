"""Plug-ins found by name, installed or registered while the process runs."""

import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from lumos import plugins
from lumos.errors import LumosError, MissingDependency, UnknownName
from lumos.plugins import BrokenPlugin

GROUP = "lumos.tests"
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a package with entry points on the path, as an installer would."""

    def installed(package: str, entry_points: dict[str, str], **modules: str) -> None:
        folder = tmp_path / package
        metadata = folder / f"{package.replace('-', '_')}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
        )
        lines = [f"{name} = {value}" for name, value in entry_points.items()]
        (metadata / "entry_points.txt").write_text(f"[{GROUP}]\n" + "\n".join(lines) + "\n")
        for module, code in modules.items():
            (folder / f"{module}.py").write_text(code)
            monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.syspath_prepend(folder)

    return installed


def test_an_installed_plugin_is_found_and_imported_only_then(install: Install) -> None:
    install("shore", {"gulls": "gulls_plugin:Gulls"}, gulls_plugin="class Gulls: pass")
    assert plugins.names(GROUP) == {"gulls"}
    assert "gulls_plugin" not in sys.modules
    assert plugins.find(GROUP, "gulls", "source").__name__ == "Gulls"  # type: ignore[attr-defined]
    assert version("shore") == "1.0"


def test_an_unknown_name_is_reported_with_what_is_installed(install: Install) -> None:
    install("shore", {"kafka": "x:y", "postgres": "x:y", "s3": "x:y"})
    with pytest.raises(UnknownName) as caught:
        plugins.find(GROUP, "postgers", "source")
    assert str(caught.value) == (
        "No source named 'postgers'. Installed: kafka, postgres, s3. Did you mean 'postgres'?"
    )


def test_a_registered_plugin_wins_and_can_be_forgotten(install: Install) -> None:
    install("shore", {"gulls": "gulls_plugin:GULLS"}, gulls_plugin="GULLS = 'installed'")
    plugins.register(GROUP, "gulls", "registered")
    plugins.register(GROUP, "crabs", "new")
    assert plugins.names(GROUP) == {"gulls", "crabs"}
    assert plugins.find(GROUP, "gulls", "source") == "registered"
    plugins.unregister(GROUP, "gulls")
    plugins.unregister(GROUP, "crabs")
    plugins.unregister(GROUP, "never there")
    assert plugins.names(GROUP) == {"gulls"}
    assert plugins.find(GROUP, "gulls", "source") == "installed"


def test_a_group_without_plugins_is_empty() -> None:
    assert plugins.names("lumos.nothing") == set()
    with pytest.raises(UnknownName, match=r"^No platform named 'x'\.$"):
        plugins.find("lumos.nothing", "x", "platform")


def test_our_own_plugin_names_the_extra_that_brings_its_library(install: Install) -> None:
    install("lumos", {"gulls": "gulls_plugin:X"}, gulls_plugin="import no_such_library.part")
    with pytest.raises(MissingDependency) as caught:
        plugins.find(GROUP, "gulls", "source")
    assert str(caught.value) == (
        "The source 'gulls' needs no_such_library: pip install 'lumos[gulls]'"
    )


@pytest.mark.parametrize(
    ("target", "code", "problem"),
    [
        (
            "gulls_plugin:X",
            "import no_such_library",
            "needs the module 'no_such_library', which is not installed.",
        ),
        (
            "absent_plugin.part:X",
            "",
            "points to the module 'absent_plugin.part', which does not exist. Reinstall it.",
        ),
        ("gulls_plugin:X", "from json import no_such_name", "cannot be imported: "),
        ("gulls_plugin:X", "", "cannot be imported: module 'gulls_plugin' has no attribute 'X'."),
    ],
)
def test_a_plugin_that_cannot_be_imported_is_named(
    install: Install, target: str, code: str, problem: str
) -> None:
    install("shore-birds", {"gulls": target}, gulls_plugin=code)
    with pytest.raises(BrokenPlugin) as caught:
        plugins.find(GROUP, "gulls", "source")
    assert str(caught.value).startswith(
        f"The source 'gulls' of the package 'shore-birds' {problem}"
    )
    assert (caught.value.name, caught.value.package) == ("gulls", "shore-birds")


def test_two_packages_with_one_name_are_distinguished(install: Install) -> None:
    install("shore", {"gulls": "a:X"})
    install("cliff", {"gulls": "b:X"})
    with pytest.raises(LumosError, match=r"comes from cliff and shore\. Uninstall all but one"):
        plugins.find(GROUP, "gulls", "source")


def test_what_is_installed_later_into_the_same_folder_is_found(install: Install) -> None:
    install("shore", {"gulls": "x:y"})
    assert plugins.names(GROUP) == {"gulls"}
    beside = Path(sys.path[0]) / "harbour-1.0.dist-info"
    beside.mkdir()
    (beside / "entry_points.txt").write_text(f"[{GROUP}]\ncranes = x:y\n")
    assert plugins.names(GROUP) == {"gulls", "cranes"}
