"""What the tests of the configuration share."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from lumos import plugins
from lumos.config import Settings, load

Load = Callable[..., Settings]


@pytest.fixture
def load_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Loads a text as the lumos.yaml of the current folder."""
    monkeypatch.chdir(tmp_path)

    def loaded(
        text: str,
        *,
        environment: Mapping[str, str] = {},
        overrides: Mapping[str, object] = {},
    ) -> Settings:
        Path("lumos.yaml").write_text(text, encoding="utf-8")
        return load(Path("lumos.yaml"), environment=environment, overrides=overrides)

    return loaded


@pytest.fixture(params=["C", "Python"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both of PyYAML's parsers, since not every machine has the fast one."""
    if request.param == "Python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)


@pytest.fixture
def registered() -> Iterator[None]:
    """A source `buoys` and a platform `shipyard`, as another package would bring them."""
    plugins.register(plugins.SOURCES, "buoys", object())
    plugins.register(plugins.PLATFORMS, "shipyard", object())
    yield
    plugins.unregister(plugins.SOURCES, "buoys")
    plugins.unregister(plugins.PLATFORMS, "shipyard")
