"""lumos doctor looks at every catalog of a configuration."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from lumos import Lumos, plugins
from lumos.catalogs import Connects, Platform
from lumos.doctor import platform_checks
from lumos.errors import CatalogUnreachable
from lumos.model.dataset import Dataset


class Distant(Platform, Connects):
    """A catalog that answers, or not."""

    kind: ClassVar[str] = "distant"
    closed: ClassVar[int] = 0

    def __init__(self, settings: Any) -> None:
        self._answers = settings["answers"]

    def emit(self, dataset: Dataset) -> None:
        raise NotImplementedError(dataset.urn)

    def check(self) -> str:
        if not self._answers:
            raise CatalogUnreachable("distant", "http://far.example", "no such host", ca_file="x")
        return "http://far.example, version 1.3, as robot"

    def close(self) -> None:
        type(self).closed += 1


@pytest.fixture
def distant() -> Iterator[None]:
    plugins.register(plugins.PLATFORMS, "distant", Distant)
    yield
    plugins.unregister(plugins.PLATFORMS, "distant")


def checks(workplace: Path, configuration: str) -> list[tuple[str, str, str]]:
    (workplace / "lumos.yaml").write_text(configuration, encoding="utf-8")
    settings = Lumos().settings
    return [(each.name, each.status, each.found) for each in platform_checks(settings)]


@pytest.mark.usefixtures("distant")
def test_a_catalog_behind_a_network_says_who_it_is(workplace: Path) -> None:
    before = Distant.closed
    configuration = "platform: distant\nplatform_config: {distant: {answers: true}}"
    assert checks(workplace, configuration) == [
        ("platform distant", "ok", "http://far.example, version 1.3, as robot")
    ]
    assert Distant.closed == before + 1


@pytest.mark.usefixtures("distant")
def test_a_catalog_that_does_not_answer_fails_where_it_is_used(workplace: Path) -> None:
    section = "platform_config: {distant: {answers: false}}"
    ((name, status, found),) = checks(workplace, f"platform: distant\n{section}")
    assert (name, status, "no such host" in found) == ("platform distant", "failed", True)
    local, (name, status, _) = checks(workplace, section)
    assert local == ("platform local", "ok", "the store itself")
    assert (name, status) == ("platform distant", "warning")


def test_a_catalog_in_a_file_is_tried(workplace: Path) -> None:
    ((_, status, found),) = checks(workplace, "platform: datahub-file:estate.json")
    assert (status, found) == ("ok", f"{workplace / 'estate.json'} will be created")
    assert not (workplace / "estate.json").exists()
    ((_, status, found),) = checks(workplace, "platform: datahub-file:nowhere/estate.json")
    assert (status, "nowhere" in found) == ("failed", True)


def test_a_catalog_of_a_later_version_is_only_remarked_on(workplace: Path) -> None:
    configuration = "platform_config: {redshift: {host: redshift.example}}"
    local, (name, status, found) = checks(workplace, configuration)
    assert (local[1], name, status) == ("ok", "platform redshift", "warning")
    assert "redshift" in found
