"""Names between Lumos and DataHub: nothing is lost in either direction."""

import json
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from catalogs.datahub_samples import proposal
from examples import examples
from lumos.catalogs.datahub import names
from lumos.catalogs.datahub.file_platform import DatahubFile
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Lineage, UpstreamEdge
from lumos.model.lineage import ColumnMapping
from lumos.model.urn import Urn

ODD = (
    "", " ", "a.b", "a/b", "a,b", "(", ")", "()", "a(b),c", "%", "%25", "%2C", "%252C", "%2E", "%2F",
    "%40", "%2540", "@", "?env=DEV", "%3Fenv=DEV", "%253Fenv=X", "Größe", "名前", "🦆", '"', "'", "`",
    "\\", "\n", "\x00", "␟", "%E2%90%9F", "\ud800", "%ED%A0%80", "UPPER", "Mixed", "[type=int]", "urn:li:tag:x",
    "day=2024-01-01 00%3A00", "100%", "%%28",
)  # fmt: skip
TEXTS = (
    st.sampled_from(ODD)
    | st.text(max_size=8)
    | st.text(alphabet="%234580CEFenv=?A.,/@(", max_size=9)
)
PLATFORMS = st.sampled_from(("s3", "snowflake", "kafka", "postgres", "file", "datahub", "x-y_z+1"))
ENVIRONMENTS = st.sampled_from(("", "DEV", "NON_PROD", "STAGING7", "A-B"))
URNS = st.builds(
    lambda platform, path, instance, environment: Urn.of(
        platform, path, instance=instance, environment=environment
    ),
    PLATFORMS,
    st.lists(TEXTS, min_size=1, max_size=4).filter(lambda path: path != [""]),
    st.just("") | TEXTS,
    ENVIRONMENTS,
)


@settings(max_examples=examples(1500))
@given(URNS, st.booleans())
def test_every_urn_of_lumos_comes_back(urn: Urn, explicit_instance: bool) -> None:
    there = names.dataset_urn(urn, explicit_instance=explicit_instance)
    assert names.lumos_urn(there, urn.instance or None) == urn


@settings(max_examples=examples(1500))
@given(URNS, URNS)
def test_two_datasets_never_have_one_name_where_they_are_kept_apart(one: Urn, two: Urn) -> None:
    if one != two:
        assert names.dataset_urn(one, explicit_instance=True) != names.dataset_urn(
            two, explicit_instance=True
        )


@settings(max_examples=examples(1500))
@given(
    platform=PLATFORMS | st.sampled_from(("Mixed", "adlsGen2", "a b", "%")),
    name=TEXTS.filter(bool) | st.lists(TEXTS, min_size=1).map(".".join).filter(bool),
    environment=st.sampled_from(("PROD", "NON_PROD", "prod", "STAGING7", "%")),
    instance=st.none() | TEXTS.filter(bool),
)
@example(platform="s3", name="0.", environment="PROD", instance="0")
def test_every_urn_of_datahub_comes_back(
    platform: str, name: str, environment: str, instance: str | None
) -> None:
    urn = f"urn:li:dataset:(urn:li:dataPlatform:{platform},{name},{environment})"
    read = names.lumos_urn(urn, instance)
    assert read is not None
    assert Urn.parse(str(read)) == read
    assert urn in (names.dataset_urn(read), names.dataset_urn(read, explicit_instance=True))


@given(TEXTS.filter(bool))
def test_names_of_tags_and_people_come_back(name: str) -> None:
    urn = names.entity_urn("tag", name)
    assert names.entity_name("tag", urn) == name
    assert not set(urn) & set("(),␟")
    assert names.entity_name("corpuser", urn) is None


@given(TEXTS, TEXTS)
def test_names_of_fields_come_back(dataset: str, path: str) -> None:
    parent = names.dataset_urn(Urn.of("s3", ["a", dataset]))
    assert names.field_name(names.field_urn(parent, path)) == (parent, path)


@pytest.mark.parametrize(
    ("lumos", "datahub"),
    [
        ("lumos://s3/data-lake/raw/events.v2", "(urn:li:dataPlatform:s3,data-lake/raw/events.v2,PROD)"),
        ("lumos://snowflake/FINANCE/Customers", "(urn:li:dataPlatform:snowflake,FINANCE.Customers,PROD)"),
        ("lumos://snowflake@eu/FINANCE/customers?env=DEV", "(urn:li:dataPlatform:snowflake,eu.FINANCE.customers,DEV)"),
        ("lumos://s3@minio/lake/orders", "(urn:li:dataPlatform:s3,minio.lake/orders,PROD)"),
        ("lumos://kafka/events.signup", "(urn:li:dataPlatform:kafka,events.signup,PROD)"),
        ("lumos://postgres/shop/public/a.b", "(urn:li:dataPlatform:postgres,shop.public.a%2Eb,PROD)"),
        ("lumos://s3/lake/sales,%20net%20%28eu%29", "(urn:li:dataPlatform:s3,lake/sales%2C net %28eu%29,PROD)"),
        ("lumos://hive/größe/Ünïcode".replace("ö", "%C3%B6").replace("ß", "%C3%9F").replace("Ü", "%C3%9C").replace("ï", "%C3%AF"),
         "(urn:li:dataPlatform:hive,größe.Ünïcode,PROD)"),
        ("lumos://s3/lake/orders?env=STAGING", "(urn:li:dataPlatform:s3,lake/orders%3Fenv=STAGING,NON_PROD)"),
        ("lumos://datahub/urn:li:dataset:%28urn:li:dataPlatform:adlsGen2,a%2Fb,PROD%29", "(urn:li:dataPlatform:adlsGen2,a/b,PROD)"),
    ],
)  # fmt: skip
def test_names_look_as_datahub_s_own_sources_make_them(lumos: str, datahub: str) -> None:
    urn = Urn.parse(lumos)
    assert names.dataset_urn(urn) == f"urn:li:dataset:{datahub}"
    assert names.lumos_urn(f"urn:li:dataset:{datahub}", urn.instance or None) == urn


def test_what_names_no_dataset_is_none() -> None:
    assert names.lumos_urn("urn:li:chart:(looker,1)") is None
    assert names.field_name("urn:li:dataset:(a,b,c)") is None


COLLIDING = (
    "lumos://snowflake@eu/F/x", "lumos://snowflake/eu/F/x", "lumos://snowflake@eu.F/x",
    "lumos://snowflake@EU/F/x", "lumos://s3@eu/F/x", "lumos://s3/eu.F/x", "lumos://s3/a",
    "lumos://snowflake@eu/F/x?env=STAGING", "lumos://snowflake/eu/F/x?env=STAGING",
)  # fmt: skip


@pytest.mark.parametrize("at_once", [True, False])
@settings(max_examples=examples(120))
@given(
    upstream=st.dictionaries(
        st.sampled_from(COLLIDING),
        st.lists(st.sampled_from(COLLIDING), unique=True, max_size=3),
        min_size=1,
    )
)
def test_edges_keep_targets_and_columns_whatever_else_is_written(
    at_once: bool, upstream: dict[str, list[str]]
) -> None:
    estate = {urn: _made_from(urn, targets) for urn, targets in upstream.items()}
    with TemporaryDirectory() as folder:
        path = f"{folder}/estate.json"
        file = DatahubFile.at(path)
        with file.batch() if at_once else nullcontext():
            for entry in estate.values():
                (file if at_once else DatahubFile.at(path)).put(entry)
        assert {entry.urn: entry for entry in DatahubFile.at(path).export()} == estate
        gone = next(iter(estate))
        DatahubFile.at(path).erase(gone)
        left = {entry.urn: entry for entry in DatahubFile.at(path).export()}
        assert left == {urn: entry for urn, entry in estate.items() if urn != gone}
        DatahubFile.at(path).put(estate[gone])
        assert {entry.urn: entry for entry in DatahubFile.at(path).export()} == estate


def test_datasets_that_are_there_have_the_names_that_edges_lead_to(tmp_path: Path) -> None:
    path = tmp_path / "estate.json"
    urns = COLLIDING[:2]
    file = DatahubFile.at(str(path))
    with file.batch():
        for urn in ("lumos://s3/a", *urns):
            file.put(_made_from(urn, urns if urn == "lumos://s3/a" else ()))
    said = json.loads(path.read_text(encoding="utf-8"))
    there = {change["entityUrn"] for change in said}
    [edges] = [
        change["aspect"]["json"] for change in said if change["aspectName"] == "upstreamLineage"
        and change["aspect"]["json"]["upstreams"]
    ]  # fmt: skip
    assert {edge["dataset"] for edge in edges["upstreams"]} < there
    columns = [names.field_name(urn) for each in edges["fineGrainedLineages"] for urn in each["upstreams"]]  # fmt: skip
    assert [column.dataset for column in columns if column] == [
        edge["dataset"] for edge in edges["upstreams"]
    ]


def test_an_edge_of_datahub_goes_where_datahub_says(tmp_path: Path) -> None:
    """Without a word of Lumos a name means whatever dataset has it, whoever comes later."""
    path = tmp_path / "estate.json"
    name = names.dataset_urn(Urn.parse("lumos://snowflake@eu/F/x"))
    upstream = {"upstreams": [{"dataset": name, "type": "COPY", "auditStamp": {"time": 1, "actor": "urn:li:corpuser:a"}}]}  # fmt: skip
    said = [proposal(names.dataset_urn(Urn.parse("lumos://s3/a")), "upstreamLineage", upstream)]
    path.write_text(json.dumps(said), encoding="utf-8")
    file = DatahubFile.at(str(path))
    assert _targets(file) == ["lumos://snowflake/eu/F/x"]
    file.put(_made_from("lumos://snowflake@eu/F/x", ()))
    assert _targets(DatahubFile.at(str(path))) == ["lumos://snowflake@eu/F/x"]
    assert json.loads(path.read_text(encoding="utf-8"))[:1] == said


def _targets(file: DatahubFile) -> list[str]:
    entry = file.get("lumos://s3/a")
    assert entry is not None
    assert entry.lineage is not None
    return [edge.urn for edge in entry.lineage.upstream]


def _made_from(urn: str, targets: Iterable[str]) -> CatalogEntry:
    """A dataset that takes another column from each of some datasets."""
    edges = (
        UpstreamEdge(urn=each, columns=(ColumnMapping(upstream=f"c{number}", downstream="d"),))
        for number, each in enumerate(targets)
    )
    lineage = Lineage(upstream=tuple(edges))
    return CatalogEntry(urn=urn, name="x", platform=Urn.parse(urn).platform, lineage=lineage)
