"""A bare Litestar application that runs the SQL of `lumos search` and `lumos show`, and no more.

`python -m benchmarks.bare_server CONFIG REQUESTS PORT`: the statements of each request in the file
are recorded once, from Lumos itself; a request then executes them and answers with their rows.
"""

import json
import sys
from pathlib import Path
from typing import Any

import uvicorn
from litestar import Litestar, Response, get
from sqlalchemy import Engine, event

from lumos import Lumos

Statements = list[tuple[str, Any]]


def record(lumos: Lumos, requests: list[list[str]]) -> dict[str, Statements]:
    """The statements of each request, with their parameters."""
    recorded: dict[str, Statements] = {}
    current: Statements = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        current.append((statement, parameters))

    event.listen(lumos.database.engine, "before_cursor_execute", note)
    # The first requests again at the end: the first call of a process reads more.
    for kind, value in [*requests, *requests[:1]]:
        current.clear()
        lumos.search(value) if kind == "search" else lumos.show(value)
        recorded[f"{kind} {value}"] = list(current)
    return recorded


def application(engine: Engine, recorded: dict[str, Statements]) -> Litestar:
    def run(key: str) -> Response[bytes]:
        answer = []
        # The driver's own connections: SQLAlchemy only keeps them.
        connection = engine.raw_connection()
        try:
            cursor = connection.cursor()
            for statement, parameters in recorded[key]:
                cursor.execute(statement, parameters)
                if cursor.description is not None:
                    answer.append([[str(each) for each in row] for row in cursor.fetchall()])
        finally:
            connection.close()
        return Response(json.dumps(answer).encode(), media_type="application/json")

    @get("/api/v1/search", sync_to_thread=True)
    def search(text: str) -> Response[bytes]:
        return run(f"search {text}")

    @get("/api/v1/datasets/show", sync_to_thread=True)
    def show(urn: str) -> Response[bytes]:
        return run(f"show {urn}")

    return Litestar([search, show], openapi_config=None)


def main(config: str, requests: str, port: str) -> None:
    lumos = Lumos(config)
    recorded = record(lumos, json.loads(Path(requests).read_text()))
    app = application(lumos.database.engine, recorded)
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning", access_log=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
