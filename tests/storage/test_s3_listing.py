"""Listing buckets: every key once, in parts, with few requests."""

from collections.abc import Iterable

import pytest

from lumos.storage import KeyRange, ListedFile, ListingItem, ListingProblem, TableRoot
from lumos.storage.s3 import S3Access, S3Storage
from s3_server import Request, Response, S3Server, error

KEYS = {"key-id": "a secret/with+signs="}


def storage_at(server: S3Server) -> S3Storage:
    (key_id, secret), *_ = KEYS.items()
    access = S3Access(endpoint_url=server.url, access_key_id=key_id, secret_access_key=secret)
    return S3Storage(access)


def serving(keys: Iterable[str], **options: object) -> S3Server:
    return S3Server({"lake": dict.fromkeys(keys, b"data")}, **options)  # type: ignore[arg-type]


def keys_of(listings: Iterable[ListingItem]) -> list[str]:
    return [
        listing.path.removeprefix("s3://lake/")
        for listing in listings
        if not isinstance(listing, TableRoot)
    ]


def all_keys(storage: S3Storage, root: str, *, parts: int) -> list[str]:
    met, stretches = storage.split(root, parts=parts)
    return keys_of([*met, *(each for stretch in stretches for each in storage.walk(stretch))])


ODD_KEYS = [
    "a b.csv", " lead.csv", "trail /x.csv", "ü/é.csv", "e\u0301.csv", "\U0001f600.csv", "a%2Fb.csv",
    "100%.csv", "dt=2024-01-01/x.csv", "a+b&c=d.csv", "a?b#c.csv", "a<b>c.csv", "back\\slash.csv",
    "{curly}[square]^`|~.csv", "'single'\"double\".csv", "double//slash.csv", "/leading.csv",
    "line\nbreak.csv", "tab\tstop.csv", "bell\x07.csv", "a//b//c.csv", "*.csv",
]  # fmt: skip


@pytest.mark.parametrize("key", ODD_KEYS)
def test_any_key_is_listed_and_opened_by_its_own_name(key: str) -> None:
    with S3Server({"lake": {key: key.encode()}}, keys=KEYS) as server:
        storage = storage_at(server)
        (listed,) = storage.walk(KeyRange("s3://lake"))
        assert isinstance(listed, ListedFile)
        assert listed.path == f"s3://lake/{key}"
        with storage.open(listed.path, size=listed.size) as file:
            assert file.head(1000) == key.encode()


def test_markers_scratch_space_and_hidden_keys_are_not_listed() -> None:
    data = ["raw/a.csv", "raw/sub/b.csv", "raw/_year=2024/e.csv", "raw/.dt=1/f.csv"]
    not_data = ["raw/_SUCCESS", "raw/.a.csv.crc", "raw/_temporary/0/c.csv", "raw/sub/.x/d.csv",
                "raw/_temporary/t/_delta_log/0.json"]  # fmt: skip
    markers = {"raw/": b"", "raw/sub/": b"", "raw/old_$folder$": b""}
    with S3Server({"lake": dict.fromkeys([*data, *not_data], b"1") | markers}) as server:
        assert sorted(all_keys(storage_at(server), "s3://lake/raw", parts=4)) == sorted(data)


def test_what_lies_above_the_root_hides_nothing() -> None:
    with serving(["_landing/.tmp/a.csv"]) as server:
        assert all_keys(storage_at(server), "s3://lake/_landing/.tmp", parts=4) == [
            "_landing/.tmp/a.csv"
        ]


def test_a_root_is_a_folder_and_not_the_beginning_of_names() -> None:
    with serving(["raw/ev/a.csv", "raw/events/b.csv", "raw/ev.csv"]) as server:
        assert all_keys(storage_at(server), "s3://lake/raw/ev", parts=4) == ["raw/ev/a.csv"]


def test_a_single_key_is_a_root_too() -> None:
    with serving(["raw/a.csv", "raw/a.csv.bak"]) as server:
        met, stretches = storage_at(server).split("s3://lake/raw/a.csv", parts=4)
        assert (keys_of(met), stretches) == (["raw/a.csv"], [])


def test_what_is_listed_carries_size_time_and_etag() -> None:
    with S3Server({"lake": {"a.csv": b"12345"}}) as server:
        (listed,) = storage_at(server).walk(KeyRange("s3://lake"))
        assert isinstance(listed, ListedFile)
        assert (listed.size, listed.modified) == (5, 1_700_000_000_000_000)
        assert listed.etag == "827ccb0eea8a706c4c34a16891f84e7b"


LAYOUTS = {
    "flat and numbered": [f"raw/part-{number:07d}.parquet" for number in range(12_000)],
    "flat without padding": [f"raw/file_{number}.csv" for number in range(12_000)],
    "flat with hashes": [f"raw/{number * 2654435761 % 2**32:08x}" for number in range(12_000)],
    "many folders": [f"raw/t{table:03d}/dt=1/{file}" for table in range(200) for file in range(50)],
    "crowded with folders": [f"raw/id={number}/x.csv" for number in range(5_000)],
    "deep and narrow": [f"raw/a/b/c/d/e/f/part-{number:05d}" for number in range(10_000)],
    "one folder holds nearly all": [
        *(f"raw/d{number:02d}/x.csv" for number in range(60)),
        *(f"raw/d30/deep/part-{number:06d}" for number in range(25_000)),
    ],
    "a few": [f"raw/{number}.csv" for number in range(900)],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("parts", [1, pytest.param(8, marks=pytest.mark.slow), 16])
def test_every_key_is_listed_once_with_few_requests(layout: str, parts: int) -> None:
    keys = LAYOUTS[layout]
    with serving(keys) as server:
        assert sorted(all_keys(storage_at(server), "s3://lake/raw", parts=parts)) == sorted(keys)
        # A page for every thousand keys, one more where a range ends, and those that divide.
        assert len(server.requests) <= len(keys) / 1000 + 4 * parts + (16 * parts + 80) + 170


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name.startswith("flat")])
def test_one_flat_prefix_becomes_many_stretches(layout: str) -> None:
    keys = LAYOUTS[layout]
    with serving(keys) as server:
        storage = storage_at(server)
        met, stretches = storage.split("s3://lake/raw", parts=16)
        asked = len(server.requests)
        sizes = [len(list(storage.walk(stretch))) for stretch in stretches]
    assert (met, sum(sizes)) == ([], len(keys))
    assert len(stretches) >= 12
    assert max(sizes) <= len(keys) / 4
    assert asked <= 100


def test_a_small_root_costs_one_request() -> None:
    with serving(LAYOUTS["a few"]) as server:
        storage_at(server).split("s3://lake/raw", parts=16)
        assert len(server.requests) == 1


def test_a_long_stretch_is_listed_from_several_places_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lumos.storage.objects.key_ranges._MAX_SEQUENTIAL_PAGES", 2)
    keys = sorted(LAYOUTS["flat and numbered"])
    with serving(keys) as server:
        storage = storage_at(server)
        within = KeyRange("s3://lake/raw", f"s3://lake/{keys[1_500]}", f"s3://lake/{keys[10_300]}")
        found = sorted(keys_of(storage.walk(within)))
        tokens = {request.query.get("start-after") for request in server.requests}
    assert found == keys[1_501:10_301]
    assert len(tokens) > 8


def test_a_new_folder_leaves_most_stretches_as_they_were() -> None:
    keys = LAYOUTS["many folders"]
    with serving(keys) as before, serving([*keys, "raw/t100b/dt=1/1"]) as after:
        _, old = storage_at(before).split("s3://lake/raw", parts=16)
        _, new = storage_at(after).split("s3://lake/raw", parts=16)
    assert len(set(old) - set(new)) <= 2


def test_a_shallow_listing_leaves_out_what_lies_in_folders_below() -> None:
    direct = [f"raw/{number:04d}.csv" for number in range(1_500)]
    with serving([*direct, *(f"raw/0700/{number}" for number in range(3_000))]) as server:
        storage = storage_at(server)
        met, stretches = storage.split("s3://lake/raw", parts=8, deep=False)
        found = [*met, *(each for stretch in stretches for each in storage.walk(stretch))]
        assert sorted(keys_of(found)) == direct
        assert len(server.requests) <= 4


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (error(403, "AccessDenied", "Access Denied"), "permission_denied"),
        (error(404, "NoSuchBucket", "The specified bucket does not exist"), "not_listed"),
    ],
)
def test_a_place_that_cannot_be_listed_is_reported(answer: Response, code: str) -> None:
    with serving(["a.csv"], answer=lambda _request: answer) as server:
        storage = storage_at(server)
        (met,), stretches = storage.split("s3://lake/raw", parts=4)
        (walked,) = storage.walk(KeyRange("s3://lake/raw"))
    assert stretches == []
    assert met == walked
    assert isinstance(met, ListingProblem)
    assert (met.path, met.code) == ("s3://lake/raw", code)


def test_an_interrupted_listing_ends_with_a_problem() -> None:
    def broken(request: Request) -> Response | None:
        is_later = "continuation-token" in request.query
        return error(403, "AccessDenied", "Access Denied") if is_later else None

    with serving([f"{number:04d}" for number in range(2_000)], answer=broken) as server:
        found = list(storage_at(server).walk(KeyRange("s3://lake")))
    assert [isinstance(each, ListingProblem) for each in found] == [*[False] * 1000, True]


def test_the_region_in_which_a_bucket_lies_is_learnt_from_the_answer() -> None:
    def elsewhere(request: Request) -> Response | None:
        if "/eu-west-3/s3/" in request.headers["authorization"]:
            return None
        moved = {"x-amz-bucket-region": "eu-west-3"}
        return error(301, "PermanentRedirect", "Use another endpoint", **moved)

    with S3Server({"lake": {"a.csv": b"1"}}, answer=elsewhere, keys=KEYS) as server:
        storage = storage_at(server)
        assert keys_of(storage.walk(KeyRange("s3://lake"))) == ["a.csv"]
        assert storage.read("s3://lake/a.csv") == b"1"
        assert storage.bucket("lake").region == "eu-west-3"
