"""How Hadoop's file system is reached: name nodes in turns, tokens, Kerberos and gateways.

Kerberos is shown by a recorded exchange: no server here gives real tickets.
"""

import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from hdfs_server import REST, TICKET, TOKEN, HdfsServer, error
from http_server import BROKEN_OFF, Request, Response
from lumos.config.secret import Secret
from lumos.config.sources import HdfsSourceSettings
from lumos.errors import MisuseError
from lumos.sources import SourceNotUsable
from lumos.sources.addresses import access_of, canonical_address, roots_of, section_of
from lumos.sources.hdfs import HdfsSource as Source
from lumos.storage import KeyRange, ListedFile, ListingProblem
from lumos.storage.errors import NoCredentials, StorageBusy
from lumos.storage.hdfs import HdfsAccess, HdfsStorage, kerberos
from lumos.storage.hdfs.access import HadoopSite
from lumos.storage.hdfs.kerberos import with_token
from lumos.storage.interface import TableRoot
from storage_folders import BRIEF

ROOT = "hdfs://cluster/lake"
FILES = {"/lake/a.csv": b"data"}


@pytest.fixture(autouse=True)
def no_tokens_are_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("HADOOP_USER_NAME", "HADOOP_CONF_DIR", "HADOOP_HOME"):
        monkeypatch.delenv(name, raising=False)
    yield
    kerberos._tokens.clear()


def storage_at(*servers: HdfsServer, **facts: object) -> HdfsStorage:
    access = HdfsAccess(
        urls=tuple(server.url for server in servers),
        nameservice="cluster",
        **facts,  # type: ignore[arg-type]
    )
    return HdfsStorage(access, environment={}, retries=BRIEF)


def used(storage: HdfsStorage) -> None:
    """Lists, reads, writes and removes."""
    assert storage.files(ROOT) == ["a.csv"]
    assert storage.read(f"{ROOT}/a.csv") == b"data"
    for data in (b"more", b"else"):
        storage.write(f"{ROOT}/state/b %+ü.csv", data)
        assert storage.read(f"{ROOT}/state/b %+ü.csv") == data
    assert storage.files(f"{ROOT}/state") == ["b %+ü.csv"]
    storage.discard([f"{ROOT}/state/b %+ü.csv"])
    assert storage.files(f"{ROOT}/state") == []


# Name nodes


def test_the_active_one_of_two_name_nodes_is_found_and_kept() -> None:
    with HdfsServer(dict(FILES), standby=True) as first, HdfsServer(dict(FILES)) as second:
        storage = storage_at(first, second)
        used(storage)
        assert len(first.requests) == 1
        first.standby, second.standby = False, True
        assert storage.read(f"{ROOT}/a.csv") == b"data"
        assert storage.read(f"{ROOT}/a.csv") == b"data"


def test_a_name_node_that_is_gone_is_passed_over() -> None:
    with HdfsServer(dict(FILES)) as gone:
        gone.answer = lambda _request: BROKEN_OFF
        with HdfsServer(dict(FILES)) as there:
            used(storage_at(gone, there))


def test_while_no_name_node_is_active_it_is_waited_for() -> None:
    with HdfsServer(dict(FILES), standby=True) as first, HdfsServer({}, standby=True) as second:
        storage = storage_at(first, second)
        with pytest.raises(StorageBusy, match="state standby"):
            storage.read(f"{ROOT}/a.csv")
        assert len(first.requests) == len(second.requests) == BRIEF.tries


def test_without_addresses_the_usual_port_of_the_name_node_is_asked() -> None:
    assert HdfsAccess().bases("nn.example.com:8020") == (f"http://nn.example.com:9870{REST}",)
    gateway = HdfsAccess(urls=("https://knox:8443/gateway/lake/webhdfs/v1/", "http://nn:9870"))
    assert gateway.bases("other") == (f"http://other:9870{REST}",)
    assert gateway.bases("knox") == (
        f"https://knox:8443/gateway/lake{REST}",
        f"http://nn:9870{REST}",
    )


def test_an_older_server_lists_folders_at_once_and_a_gateway_serves_by_itself() -> None:
    with HdfsServer(dict(FILES), is_gateway=True) as server:
        storage = storage_at(server, user="reader")
        used(storage)
        assert [each.path for each in storage.entries(ROOT, after="a")] == [f"{ROOT}/a.csv"]
        listed = [each.query["op"] for each in server.requests if "LIST" in each.query["op"]]
        assert listed.count("LISTSTATUS_BATCH") == 1


def test_a_data_node_that_cannot_be_reached_is_named_with_the_next_step() -> None:
    with HdfsServer(dict(FILES)) as server:
        server.data_node = "http://127.0.0.1:1/webhdfs/v1"
        storage = storage_at(server, token=TOKEN)
        with pytest.raises(ConnectionError) as silent:
            storage.read(f"{ROOT}/a.csv")
    reported = str(silent.value)
    assert reported.startswith("the data node 127.0.0.1:1 with /lake/a.csv does not respond")
    assert "HttpFS" in reported
    assert "hush" not in reported


def test_what_is_no_webhdfs_is_said_so() -> None:
    with HdfsServer(answer=lambda _request: Response(200, b"<html/>")) as server:
        (listing,) = storage_at(server).walk(KeyRange(ROOT))
    assert isinstance(listing, ListingProblem)
    assert "is not from WebHDFS" in listing.reason


# Who asks


def test_the_user_is_named_and_a_token_stands_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with HdfsServer(dict(FILES)) as server:
        used(storage_at(server, user="reader"))
        assert {request.query.get("user.name") for request in server.requests} == {"reader"}
        server.requests.clear()
        used(storage_at(server, user="reader", token=TOKEN))
        assert {request.query.get("user.name") for request in server.requests} == {None}
        assert {request.query.get("delegation") for request in server.requests} == {TOKEN}
    monkeypatch.setenv("HADOOP_USER_NAME", "etl")
    assert HdfsAccess().resolve().user == "etl"
    assert HdfsAccess(token=TOKEN).resolve().user == ""


def test_denied_access_is_reported_and_a_token_grants_it() -> None:
    with HdfsServer(dict(FILES), secure=True) as server:
        with pytest.raises(PermissionError, match="a login is required"):
            storage_at(server).read(f"{ROOT}/a.csv")
        with pytest.raises(PermissionError, match="InvalidToken") as refused:
            storage_at(server, token="hush-hush-other").read(f"{ROOT}/a.csv")
        assert "hush" not in str(refused.value)
        used(storage_at(server, token=TOKEN))


def test_kerberos_is_shown_once_and_executors_are_given_a_token() -> None:
    asked: list[str] = []

    def ticket(host: str) -> bytes:
        asked.append(host)
        return TICKET

    with HdfsServer(dict(FILES), secure=True) as server:
        access = HdfsAccess(urls=(server.url,), nameservice="cluster", kerberos=True)
        carried = with_token(access, "cluster", ticket)
        assert with_token(access, "cluster", ticket) == carried
        assert asked == ["127.0.0.1"]
        assert carried.token == server.tokens[0]
        assert "hush" not in f"{carried!r}"
        there = pickle.loads(pickle.dumps(carried))
        used(HdfsStorage(there, environment={}, retries=BRIEF))
        reported = [request.headers.get("authorization", "") for request in server.requests]
        assert sum(each != "" for each in reported) == 1
        kerberos.cancel_all()
        assert server.tokens == []


def test_a_token_is_asked_for_anew_after_half_its_life(monkeypatch: pytest.MonkeyPatch) -> None:
    with HdfsServer(dict(FILES), secure=True) as server:
        access = HdfsAccess(urls=(server.url,), kerberos=True)
        first = with_token(access, "127.0.0.1", lambda _host: TICKET)
        monkeypatch.setattr(kerberos, "_VALID_SECONDS", -1.0)
        second = with_token(access, "127.0.0.1", lambda _host: TICKET)
    assert first.token != second.token


def test_the_standby_is_passed_over_when_a_token_is_asked_for() -> None:
    with HdfsServer(standby=True) as first, HdfsServer(secure=True) as second:
        access = HdfsAccess(urls=(first.url, second.url), nameservice="cluster", kerberos=True)
        assert with_token(access, "cluster", lambda _host: TICKET).token == second.tokens[0]


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(NoCredentials, match=r"pip install 'lumos\[kerberos\]'"):
        with_token(HdfsAccess(urls=("http://nn:9870",), kerberos=True))


def test_a_ticket_is_asked_for_as_gssapi_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class GSSError(Exception):
        pass

    class Context:
        def __init__(self, name: str, usage: str) -> None:
            if "closed" in name:
                raise GSSError("Major: no credentials\nMinor: none")
            assert (name, usage) == ("HTTP@127.0.0.1 as a service", "initiate")

        def step(self) -> bytes:
            return TICKET

    fake = SimpleNamespace(
        Name=lambda text, kind: f"{text} as a {kind}",
        NameType=SimpleNamespace(hostbased_service="service"),
        SecurityContext=Context,
        exceptions=SimpleNamespace(GSSError=GSSError),
    )
    monkeypatch.setitem(sys.modules, "gssapi", fake)
    with HdfsServer(secure=True) as server:
        assert with_token(HdfsAccess(urls=(server.url,), kerberos=True)).token == server.tokens[0]
    with pytest.raises(
        NoCredentials, match="Kerberos returned no ticket for closed: Major: no cred"
    ):
        with_token(HdfsAccess(urls=("http://closed:9870",), kerberos=True))


# What only Hadoop has


def test_a_file_that_is_written_anew_is_another_one() -> None:
    with HdfsServer() as server:
        storage = storage_at(server)
        server.put("/lake/a.csv", b"1")
        (before,) = storage.walk(KeyRange(ROOT))
        server.put("/lake/a.csv", b"2")
        (after,) = storage.walk(KeyRange(ROOT))
    assert isinstance(before, ListedFile)
    assert isinstance(after, ListedFile)
    assert before.modified == after.modified == 1_700_000_000_123_000
    assert before.etag != after.etag


def test_a_table_with_many_files_is_known_by_its_log_all_the_same() -> None:
    files = {f"/lake/t/{number:03}.parquet": b"1" for number in range(40)}
    with HdfsServer({**files, "/lake/t/_delta_log/0.json": b"{}"}, page=7) as server:
        storage = storage_at(server)
        assert list(storage.walk(KeyRange(ROOT))) == [TableRoot(f"{ROOT}/t", "delta")]
        plain = [each.path for each in storage.walk(KeyRange(ROOT), tables=False)]
    assert plain == [f"hdfs://cluster{path}" for path in files]


def test_a_folder_that_must_not_be_listed_is_reported_and_others_are_found() -> None:
    def closed(request: Request) -> Response | None:
        if not request.path.endswith("/closed"):
            return None
        return error(
            403, "AccessControlException", "Permission denied: user=x, access=READ_EXECUTE"
        )

    with HdfsServer({**FILES, "/lake/closed/b.csv": b"1"}, answer=closed) as server:
        listings = list(storage_at(server).walk(KeyRange(ROOT)))
    (reported,) = (each for each in listings if isinstance(each, ListingProblem))
    assert (reported.path, reported.code) == (f"{ROOT}/closed", "permission_denied")
    assert [each.path for each in listings if isinstance(each, ListedFile)] == [f"{ROOT}/a.csv"]


# Sections and addresses

SECTION = HdfsSourceSettings(
    paths=("/lake", "hdfs://cluster:8020/raw/"), urls=("http://a:9870", "http://b:9870"),
    nameservice="cluster", user="reader",
)  # fmt: skip


def test_paths_are_known_by_the_name_of_the_file_system() -> None:
    assert roots_of(SECTION) == ["hdfs://cluster/lake", "hdfs://cluster/raw"]
    assert roots_of(HdfsSourceSettings(paths=("/",), urls=("http://nn.example.com:9870",))) == [
        "hdfs://nn.example.com"
    ]
    assert canonical_address("hdfs://nn:8020/lake/", []) == "hdfs://nn/lake"
    assert canonical_address("webhdfs://nn:9870/lake", []) == "hdfs://nn/lake"
    assert canonical_address("hdfs:///lake", [SECTION]) == "hdfs://cluster/lake"
    with pytest.raises(MisuseError, match="has no name node"):
        canonical_address("hdfs:///lake", [])
    urn = Source(SECTION).urn("hdfs://cluster/lake/a b", environment="PROD")
    assert str(urn) == "lumos://hdfs/cluster/lake/a%20b"


def test_an_address_is_reached_as_the_configured_source_of_its_file_system() -> None:
    assert section_of("hdfs://cluster/other", [SECTION]) == HdfsSourceSettings(
        paths=("/other",), urls=SECTION.urls, nameservice="cluster", user="reader"
    )
    assert access_of("hdfs://cluster/state", [SECTION]) == HdfsAccess.of(SECTION)
    alone = HdfsSourceSettings(paths=("/lake",), urls=("https://nn:9871",), nameservice="nn")
    assert section_of("swebhdfs://nn:9871/lake", [SECTION]) == alone
    assert access_of("hdfs://nn:8020/state", []) == HdfsAccess(nameservice="nn")


SITE = """<configuration>
  <property><name>fs.defaultFS</name><value>hdfs://harbour</value></property>
  <property><name>dfs.ha.namenodes.harbour</name><value>nn1, nn2</value></property>
  <property><name>dfs.namenode.http-address.harbour.nn1</name><value>one:9870</value></property>
  <property><name>dfs.namenode.http-address.harbour.nn2</name><value>two:50070</value></property>
  <property><name>dfs.namenode.https-address.harbour.nn1</name><value>one:9871</value></property>
  <property><name>dfs.namenode.http-address</name><value>0.0.0.0:9870</value></property>
</configuration>"""


def test_hadoops_own_configuration_names_the_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hdfs-site.xml").write_text(SITE)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    section = HdfsSourceSettings(paths=("/data/lake",))
    assert (
        roots_of(section)
        == [canonical_address("hdfs:///data/lake")]
        == ["hdfs://harbour/data/lake"]
    )
    urls = ("http://one:9870", "http://two:50070")
    reported = HdfsAccess(urls=urls, nameservice="harbour")
    assert access_of("hdfs://harbour/state", [section]) == reported
    assert access_of("hdfs://harbour/state", []) == reported
    assert access_of("hdfs://elsewhere/state", []) == HdfsAccess(nameservice="elsewhere")
    site = HadoopSite.of({"HADOOP_CONF_DIR": str(tmp_path)})
    secure = HadoopSite({**site.properties, "dfs.http.policy": "HTTPS_ONLY"})
    assert secure.urls("harbour") == ("https://one:9871",)
    alone = HadoopSite(
        {"fs.defaultFS": "hdfs://nn:8020", "dfs.namenode.http-address": "0.0.0.0:9870"}
    )
    assert alone.urls("nn") == ("http://nn:9870",)
    (tmp_path / "core-site.xml").write_text("<cut")
    assert HadoopSite.of({"HADOOP_CONF_DIR": str(tmp_path)}) == site
    home = tmp_path / "home/etc/hadoop"
    home.mkdir(parents=True)
    (home / "core-site.xml").write_text(SITE)
    assert HadoopSite.of({"HADOOP_HOME": str(tmp_path / "home")}).authority == "harbour"


def test_several_addresses_need_a_name_for_all_of_them() -> None:
    with pytest.raises(MisuseError, match="needs a 'nameservice'"):
        HdfsSourceSettings(paths=("/lake",), urls=("http://a:9870", "http://b:9870"))


def test_what_is_wrong_is_said_in_one_sentence_with_the_next_step() -> None:
    with HdfsServer(dict(FILES), secure=True) as server:

        def reported(**facts: object) -> str:
            settings = {"paths": ("/lake",), "urls": (server.url,), "token": Secret(TOKEN), **facts}
            with pytest.raises(SourceNotUsable) as refused:
                Source(HdfsSourceSettings(**settings)).roots()  # type: ignore[arg-type]
            return str(refused.value)

        where = "hdfs://127.0.0.1"
        assert reported(paths=("/none",)) == f"There is nothing at {where}/none. Check the path."
        assert "Set 'kerberos: true' after kinit" in reported(token=None)
        assert "Get a new one" in reported(token=Secret("other"))
        assert "Set 'url' to its WebHDFS address" in reported(urls=())
        server.answer = lambda _request: error(403, "AccessControlException", "Permission denied")
        assert "Grant the user read and execute" in reported()
        server.answer = lambda _request: Response(200, b"<html/>")
        assert "the address of WebHDFS, not of the file system" in reported()
        assert "does not answer" in reported(urls=("http://127.0.0.1:1",))


# Whose token it is


def test_a_token_is_not_shown_to_another_file_system() -> None:
    with HdfsServer(dict(FILES)) as server:
        storage = storage_at(server, token=TOKEN)
        assert storage.client("cluster")._login == {"delegation": TOKEN}
        assert storage.client("other")._login == {}


def test_each_file_system_gives_a_token_of_its_own() -> None:
    with HdfsServer(dict(FILES), secure=True) as server:
        access = HdfsAccess(urls=(server.url,), nameservice="cluster", kerberos=True)
        mine = with_token(access, "cluster", lambda _host: TICKET)
        with pytest.raises(NoCredentials, match="for other"):
            with_token(access, "other", refused_ticket)
        assert with_token(access, "cluster", refused_ticket) == mine
        assert "hush" not in repr(kerberos._tokens)


def refused_ticket(host: str) -> bytes:
    raise NoCredentials(f"no ticket for {host}")


@pytest.mark.parametrize(
    "facts",
    [
        {"urls": ("http://nn:9870",), "paths": ("/a", "hdfs://other/b")},
        {"urls": ("http://nn:9870",), "paths": ("hdfs://other/b",), "token": Secret(TOKEN)},
        {"paths": ("hdfs://nn/a", "hdfs://other/b"), "token": Secret(TOKEN)},
        {"paths": ("hdfs://nn/a", "hdfs://other/b"), "kerberos": True},
    ],
)
def test_paths_of_another_file_system_want_a_source_of_their_own(facts: dict[str, object]) -> None:
    with pytest.raises(SourceNotUsable, match="hdfs://other/b is not in the file system"):
        Source(HdfsSourceSettings(**facts)).roots()  # type: ignore[arg-type]


def test_a_token_without_an_address_is_for_the_file_system_of_the_paths() -> None:
    section = HdfsSourceSettings(paths=("hdfs://nn:8020/a",), token=Secret(TOKEN))
    assert access_of("hdfs://nn/state", [section]) == HdfsAccess(nameservice="nn", token=TOKEN)
    assert access_of("hdfs://other/state", [section]) == HdfsAccess(nameservice="other")


# Odd addresses and answers


def test_a_host_may_be_a_number_of_ipv6() -> None:
    assert canonical_address("webhdfs://[::1]:9870/lake", []) == "hdfs://[::1]/lake"
    assert HdfsAccess().bases("[::1]") == (f"http://[::1]:9870{REST}",)
    section = section_of("webhdfs://[::1]:1/lake", [])
    assert roots_of(section) == ["hdfs://[::1]/lake"]  # type: ignore[arg-type]
    with pytest.raises(SourceNotUsable, match=r"http://\[::1\]:1 does not answer"):
        Source(section).roots()  # type: ignore[arg-type]
    with pytest.raises(MisuseError):
        canonical_address("hdfs://[::1/lake", [])


@pytest.mark.parametrize(
    "body",
    [
        b"{}", b"[]", b"null", b"7", b'{"FileStatus": {}}', b'{"FileStatus": 1}',
        b'{"FileStatus": {"type": "DIRECTORY"}}', b'{"FileStatus": {"type": "FILE", "length": []}}',
    ],
)  # fmt: skip
def test_json_that_is_no_answer_of_webhdfs_is_said_so(body: bytes) -> None:
    with HdfsServer(answer=lambda _request: Response(200, body)) as server:
        source = Source(HdfsSourceSettings(paths=("/lake",), urls=(server.url,)))
        with pytest.raises(SourceNotUsable, match="is not from WebHDFS"):
            source.roots()
        with pytest.raises(OSError, match="is not from WebHDFS"):
            storage_at(server).client("cluster").new_token("me")


def test_a_listing_of_an_older_server_that_is_none_is_said_so() -> None:
    def answer(request: Request) -> Response:
        return Response(400 if request.query["op"] == "LISTSTATUS_BATCH" else 200, b"{}")

    with HdfsServer(answer=answer) as server:
        (listing,) = storage_at(server).walk(KeyRange(ROOT))
    assert isinstance(listing, ListingProblem)
    assert "is not from WebHDFS" in listing.reason


@pytest.mark.parametrize("location", ["http://[bad/x", ""])
def test_a_redirect_to_nowhere_is_said_so(location: str) -> None:
    with (
        HdfsServer(answer=lambda _request: Response(307, b"", {"Location": location})) as server,
        pytest.raises(OSError, match="is not from WebHDFS"),
    ):
        storage_at(server).read(f"{ROOT}/a.csv")


def test_a_redirect_may_leave_the_host_out() -> None:
    def answer(request: Request) -> Response:
        if request.path.startswith("/gw/"):
            return Response(200, b"data")
        return Response(307, b"", {"Location": f"/gw{request.path}?op=OPEN"})

    with HdfsServer(answer=answer) as server:
        assert storage_at(server).read(f"{ROOT}/a.csv") == b"data"


@pytest.mark.parametrize(
    "again",
    [
        error(404, "FileNotFoundException", "rename source is not found."),
        Response(200, b'{"boolean":false}'),
    ],
)
def test_a_file_stays_written_whose_answer_is_lost(again: Response) -> None:
    renames: list[Request] = []
    with HdfsServer({"/lake/m": b"old"}) as server:

        def answer(request: Request) -> Response | None:
            if request.query.get("op") != "RENAME":
                return None
            renames.append(request)
            if len(renames) > 1:
                return again
            server.answer = None
            server.respond(request)
            server.answer = answer
            return BROKEN_OFF

        server.answer = answer
        storage_at(server).write(f"{ROOT}/m", b"new")
        assert server.files == {"/lake/m": b"new"}


def test_nothing_is_removed_for_a_file_that_is_not_there() -> None:
    with HdfsServer({"/lake/m": b"old"}) as server:
        server.answer = lambda request: (
            Response(200, b'{"boolean":false}') if request.query.get("op") == "RENAME" else None
        )
        with pytest.raises(FileNotFoundError):
            storage_at(server).client("cluster").rename("/lake/gone", "/lake/m", size=7)
        assert server.files == {"/lake/m": b"old"}


def test_a_folder_that_goes_while_it_is_listed_holds_nothing() -> None:
    def gone(request: Request) -> Response | None:
        if not request.path.endswith("/gone"):
            return None
        return error(404, "FileNotFoundException", "File /lake/gone does not exist.")

    with HdfsServer({**FILES, "/lake/gone/b.csv": b"1"}, answer=gone) as server:
        storage = storage_at(server)
        assert [each.path for each in storage.walk(KeyRange(ROOT))] == [f"{ROOT}/a.csv"]
        met, stretches = storage.split(ROOT, parts=8)
        assert ([each.path for each in met], stretches) == ([f"{ROOT}/a.csv"], [])


def test_a_server_that_knows_no_webhdfs_is_no_empty_folder() -> None:
    with HdfsServer(answer=lambda _request: Response(404, b"<html>Not Found</html>")) as server:
        with pytest.raises(SourceNotUsable, match="is not from WebHDFS"):
            Source(HdfsSourceSettings(paths=("/lake",), urls=(server.url,))).roots()
        (listing,), _ = storage_at(server).split(ROOT, parts=4)
    assert isinstance(listing, ListingProblem)
