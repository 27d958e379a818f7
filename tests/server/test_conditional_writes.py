"""Conditional writes of two servers on one store, at the same time."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from lumos import Lumos
from recorded_lake import RecordedLake
from served_store import client_of

SHOW = "/api/v1/datasets/show?urn=orders"
ROUNDS = 6
WRITERS = 3


def tags(client: Any) -> list[str]:
    governance = client.get(SHOW).json()["dataset"].get("governance") or {}
    return list(governance.get("tags") or ())


def test_of_concurrent_conditional_writes_exactly_one_succeeds(
    seen: RecordedLake, stored: dict[str, object]
) -> None:
    seen.see("orders", "id INT64")
    with ExitStack() as stack:
        # Each has its own application, so that no lock of one process orders the writes.
        clients = [stack.enter_context(client_of(Lumos(overrides=stored))) for _ in range(WRITERS)]
        pool = stack.enter_context(ThreadPoolExecutor(WRITERS))
        for number in range(ROUNDS):
            etag = clients[0].get(SHOW).headers["etag"]
            together = threading.Barrier(WRITERS)

            def write(writer: int, number: int = number, etag: str = etag,
                      together: threading.Barrier = together) -> int:  # fmt: skip
                body = {"dataset": "orders", "names": [f"tag-{number}-{writer}"]}
                together.wait(30)
                answer = clients[writer].put(
                    "/api/v1/annotations/tags", json=body, headers={"If-Match": etag}
                )
                return int(answer.status_code)

            answers = Counter(pool.map(write, range(WRITERS)))
            assert answers == {200: 1, 412: WRITERS - 1}
        assert len(tags(clients[0])) == ROUNDS


def test_a_write_between_the_first_check_and_the_transaction_is_noticed(
    seen: RecordedLake, stored: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen.see("orders", "id INT64")
    served = Lumos(overrides=stored)
    check = served.annotation_writer.check_catalog

    def write_meanwhile() -> None:
        check()
        # In a thread of its own: somebody else, who has no condition.
        other = Lumos(overrides=stored)
        thread = threading.Thread(target=other.annotations.tags.set, args=("orders", "other"))
        thread.start()
        thread.join()

    # Called after the first check, right before the transaction.
    monkeypatch.setattr(served.annotation_writer, "check_catalog", write_meanwhile)
    with client_of(served) as client:
        etag = client.get(SHOW).headers["etag"]
        write = {"json": {"dataset": "orders", "names": ["mine"]}, "headers": {"If-Match": etag}}
        refused = client.put("/api/v1/annotations/tags", **write)
        assert refused.status_code == 412
        assert "orders has changed since you read it" in refused.json()["detail"]
        assert tags(client) == ["other"]
        served.annotation_writer.check_catalog = check
        write["headers"] = {"If-Match": client.get(SHOW).headers["etag"]}
        assert client.put("/api/v1/annotations/tags", **write).status_code == 200
        assert sorted(tags(client)) == ["mine", "other"]


def test_a_conditional_write_answers_with_the_etag_of_the_next_one(
    seen: RecordedLake, stored: dict[str, object]
) -> None:
    seen.see("orders", "id INT64")
    with client_of(Lumos(overrides=stored)) as client:
        etag = client.get(SHOW).headers["etag"]
        for name in ("first", "second", "second"):
            body = {"dataset": "orders", "names": [name]}
            answer = client.put("/api/v1/annotations/tags", json=body, headers={"If-Match": etag})
            assert answer.status_code == 200
            etag = answer.headers["etag"]
            assert etag == client.get(SHOW).headers["etag"]
        assert sorted(tags(client)) == ["first", "second"]
        Lumos(overrides=stored).annotations.tags.set("orders", "other")
        body = {"dataset": "orders", "names": ["third"]}
        refused = client.put("/api/v1/annotations/tags", json=body, headers={"If-Match": etag})
        assert refused.status_code == 412
        assert "etag" not in client.put("/api/v1/annotations/tags", json=body).headers
