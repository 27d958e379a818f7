"""Sending through apprise, and what a failure may say."""

import logging
import socket
import sys

import pytest

from lumos.config import Secret
from lumos.errors import MissingDependency
from lumos.model.notification import Notification
from lumos.notifications.channels import AppriseChannel
from webhook import webhook

HUSH = "hush-hush-token"


def message(**facts: object) -> Notification:
    defaults: dict[str, object] = {
        "event_id": "e1",
        "channel": "chat",
        "urn": "lumos://file/lake/orders",
        "title": "orders 2.0.0: breaking",
        "body": "- Removed <b>discount</b> & *co* {{x}} \\n (breaking)",
    }
    return Notification(**{**defaults, **facts})  # type: ignore[arg-type]


@pytest.mark.parametrize(("urgent", "type"), [(True, "warning"), (False, "info")])
def test_a_message_arrives_word_for_word(urgent: bool, type: str) -> None:
    with webhook() as hook:
        assert AppriseChannel(Secret(hook.address())).send(message(urgent=urgent)) is None
        (received,) = hook.received
    assert (received["title"], received["message"]) == (message().title, message().body)
    assert received["type"] == type


def test_services_have_half_a_minute_unless_the_address_says_otherwise() -> None:
    (usual,) = AppriseChannel(Secret("json://127.0.0.1"))._apprise
    assert usual.request_timeout == (30, 30)
    (own,) = AppriseChannel(Secret("json://127.0.0.1?rto=5&cto=2"))._apprise
    assert own.request_timeout == (2, 5)


def test_a_service_that_takes_a_message_and_says_nothing_is_distinguished_from_one_that_is_not_there() -> (
    None
):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        channel = AppriseChannel(Secret(f"json://127.0.0.1:{port}/x?rto=0.2"))
        problem = channel.send(message(body="error=404 Connection"))
    assert problem == "the service did not answer within 30 seconds"


@pytest.mark.parametrize(
    ("facts", "arrives"),
    [
        ({"body": ""}, "orders 2.0.0: breaking"),
        ({"body": "", "title": ""}, "lumos://file/lake/orders changed."),
    ],
)
def test_a_message_without_words_arrives_all_the_same(facts: dict[str, str], arrives: str) -> None:
    with webhook() as hook:
        assert AppriseChannel(Secret(hook.address())).send(message(**facts)) is None
        assert hook.received[0]["message"] == arrives


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        (f"json://127.0.0.1:{{}}/{HUSH}", "the service cannot be reached"),
        (f"nonsense://{HUSH}", "apprise cannot parse its address"),
        (HUSH, "apprise cannot parse its address"),
        (f"slack://{HUSH}", "apprise cannot parse its address"),
        (
            f"mailto://user:{HUSH}@b.example:{{}}?smtp=127.0.0.1&to=a@b.example",
            "the service cannot be reached",
        ),
    ],
)
def test_a_failure_says_what_is_wrong_and_nothing_logs_the_address(
    address: str, problem: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.NOTSET)
    channel = AppriseChannel(Secret(address.format(free_port())))
    reason = channel.send(message())
    assert reason == problem
    printed = capfd.readouterr()
    assert HUSH not in f"{caplog.text}{printed.out}{printed.err}{channel!r}"


@pytest.mark.parametrize("status", [401, 404, 429, 500, 503])
def test_a_service_that_refuses_is_quoted_by_its_status_alone(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.NOTSET)
    with webhook() as hook:
        hook.status = status
        problem = AppriseChannel(Secret(hook.address(HUSH))).send(message())
        assert problem == f"the service answered {status}"
        hook.status = 200
        assert AppriseChannel(Secret(hook.address(HUSH))).send(message()) is None
    assert HUSH not in caplog.text


def test_without_apprise_the_way_to_install_it_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(MissingDependency, match=r"pip install 'lumos\[notify\]'"):
        AppriseChannel(Secret("json://127.0.0.1"))
