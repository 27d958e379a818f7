"""A sample repository of a shop: schemas, migrations, dbt models, contracts and a policy."""

import json
import subprocess
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from lumos import Lumos
from lumos.cli.main import app
from lumos.gate.reports import GateReport

USERS = "# urn: lumos://s3/lake/users\nuser_id STRING\nemail STRING\nnickname STRING\n"
ORDERS = """# urn: lumos://s3/lake/orders
order_id INT64 NOT NULL KEY
user_id STRING
amount DECIMAL(10,2)
status ENUM('new','paid')
day DATE PARTITION
"""
CUSTOMER_360 = """-- owner: analytics-team
select u.user_id, u.email, count(*) as orders, sum(o.amount) as total
from users u
join orders o on o.user_id = u.user_id
group by 1, 2
"""
REPORT = "select email, orders\nfrom customer_360\nwhere orders > 1\n"
PAID = "select order_id, amount\nfrom orders\nwhere status = 'paid' and day = current_date\n"
MIRROR = "insert into orders_mirror\nselect * from orders;\n"
FILES: dict[str, str | None] = {
    "schemas/users.schema": USERS,
    "schemas/orders.schema": ORDERS,
    "models/customer_360.sql": CUSTOMER_360,
    "models/report.sql": REPORT,
    "models/paid.sql": PAID,
}


class SampleRepository:
    """A git repository with a branch `main` and a branch `change`, which is checked out."""

    def __init__(self, folder: Path, files: dict[str, str | None] | None = None) -> None:
        self.folder = folder
        self.git("init", "-q", "-b", "main")
        self.commit(FILES if files is None else files)
        self.git("checkout", "-q", "-b", "change")

    def git(self, *arguments: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com",
                   "-c", "protocol.file.allow=always", *arguments]  # fmt: skip
        done = subprocess.run(command, cwd=self.folder, check=True, capture_output=True, text=True)
        return done.stdout

    def commit(self, files: dict[str, str | None]) -> None:
        for name, text in files.items():
            file = self.folder / name
            if text is None:
                file.unlink()
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "-q", "--allow-empty", "-m", "change")

    def change_main(self, files: dict[str, str | None]) -> None:
        """Commit to main, and start the branch `change` again from there."""
        self.git("checkout", "-q", "main")
        self.commit(files)
        self.git("checkout", "-q", "-B", "change")

    def check(self, base: str = "main", **options: Any) -> GateReport:
        return Lumos(environment={}).gate.check(base, **options)


def findings(report: GateReport) -> list[tuple[str, str, str | None]]:
    return [(each.level, f"{each.dataset}.{each.path}", each.affected) for each in report.findings]


def code(report: GateReport, *, strict: bool = False) -> int:
    return report.exit_code(strict=strict, warn_only=False)


def run_gate(*arguments: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the JSON of the command."""
    result = CliRunner().invoke(app, ["gate", "--base", "main", "--json", *arguments])
    return result.exit_code, json.loads(result.stdout)
