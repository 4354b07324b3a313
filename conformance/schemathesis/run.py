"""Schemathesis asks a vault what its own description allows, and much that it does not allow.

Every operation, from examples, boundary values, random values and the answers to earlier requests.
The same seed against a new vault asks the same again.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from dictionary import APPLICATIONS, INTENTS, SESSIONS, TOKENS
from vault import ask

HERE = Path(__file__).parent
SDK = f"schemathesis {version('schemathesis')}"

# Schemathesis ends with this code when it finished and something failed.
FAILED = 1


def main() -> int:
    arguments = parse()
    print(f"schemathesis: seed {arguments.seed}, {arguments.cases} cases at random per operation")
    os.environ["SEEDED"] = json.dumps(seed_tenant())
    with tempfile.TemporaryDirectory() as folder:
        report, answers = Path(folder, "report.json"), Path(folder, "answers.json")
        try:
            code = run(arguments, report, answers)
        except subprocess.TimeoutExpired:
            print(f"schemathesis: not done after {arguments.seconds} s, and stopped")
            return 2
        rows = summarize(json.loads(report.read_text()), json.loads(answers.read_text()))
    record(rows)
    is_well = all(row["result"] == "ok" for row in rows)
    # A failure that no row tells of must not get lost.
    return code if code or is_well else FAILED


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=40, help="random ones, per operation")
    parser.add_argument("--seconds", type=int, default=300, help="stop and fail after this long")
    return parser.parse_args()


def seed_tenant() -> dict:
    """Lists have several pages, searches find something, examples refer to what exists."""
    for token in TOKENS:
        ask("POST", "tokens", "BT_PVT_API_KEY", token)
    made = [ask("POST", "token-intents", "BT_PVT_API_KEY", intent) for intent in INTENTS]
    managed = [ask("POST", "applications", "BT_MGT_API_KEY", one) for one in APPLICATIONS]
    members = ask("GET", "tenants/self/members", "BT_MGT_API_KEY")
    keys = ["BT_PVT_API_KEY", "BT_PUB_API_KEY", "BT_MGT_API_KEY"]
    return {
        "intents": [intent["id"] for intent in made],
        "applications": [application["id"] for application in managed],
        "keys": [[application["id"], application["keys"][0]["id"]] for application in managed],
        "nonces": [ask("POST", "sessions", "BT_PUB_API_KEY")["nonce"] for _ in range(SESSIONS)],
        "members": [member["id"] for member in members["data"]],
        "own_applications": [ask("GET", "applications/key", key)["id"] for key in keys],
        "quotas": ask("GET", "tenants/self/quotas", "BT_MGT_API_KEY"),
    }


def run(arguments, report: Path, answers: Path) -> int:
    command = [
        Path(sys.executable).with_name("schemathesis"),
        "--config-file",
        HERE / "schemathesis.toml",
        "--no-color",
        "run",
        os.environ["BT_API_URL"] + "/openapi.json",
        f"--seed={arguments.seed}",
        f"--max-examples={arguments.cases}",
        "--report=json",
        f"--report-json-path={report}",
    ]
    environment = {**os.environ, "ANSWERS_FILE": str(answers), "PYTHONPATH": str(HERE)}
    # A place of its own for what it leaves behind.
    folder = report.parent
    process = subprocess.run(command, cwd=folder, env=environment, timeout=arguments.seconds)
    return process.returncode


def summarize(report: dict, answers: list) -> list:
    """One row for each operation: how many requests, how they were answered, whether it is well."""
    failed = {label: set() for label, _, _, _ in answers}
    for failure in report["failures"]:
        for label in failure["operations"]:
            failed.setdefault(label, set()).add(failure["title"])
    for error in report["errors"]:
        failed.setdefault(error.get("operation") or "schemathesis", set()).add("not tested")
    if report["operations"]["tested"] != report["operations"]["selected"]:
        failed.setdefault("schemathesis", set()).add("did not test every operation")
    rows = []
    for label in sorted(failed):
        tried = told([row[1:] for row in answers if row[0] == label])
        row = {"sdk": SDK, "method": label, "tried": tried, "result": "ok"}
        if failed[label]:
            row |= {"result": "FAILED", "why": "; ".join(sorted(failed[label]))}
        rows.append(row)
    return rows


def told(answers: list) -> str:
    """How many requests reached a 2xx, by chance and out of the dictionary; then all statuses."""
    words = []
    for name, is_looked_up in [("by chance", False), ("looked up", True)]:
        counts = [(status, count) for other, status, count in answers if other == is_looked_up]
        if counts:
            well = sum(count for status, count in counts if 200 <= status < 300)
            words.append(f"{name} {well} of {sum(count for _, count in counts)} well")
    statuses = collections.Counter()
    for _, status, count in answers:
        statuses[status] += count
    counted = ", ".join(f"{count} × {status}" for status, count in sorted(statuses.items()))
    return f"{', '.join(words)} ({counted})"


def record(rows: list):
    path = os.environ.get("CONFORMANCE_REPORT")
    for row in rows:
        print(f"{row['method']:24} {row['tried']} {row.get('why', '')}")
        if path:
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())
