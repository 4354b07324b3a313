"""Schemathesis asks a vault what its own description allows, and much that it does not allow.

Every operation, from examples, boundary values, random values and the answers to earlier requests.
The same seed against a new vault asks the same again.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
SDK = f"schemathesis {version('schemathesis')}"

# Schemathesis ends with this code when it finished and something failed.
FAILED = 1

# The description's example for detokenizing names the first of these.
TOKENS = [
    {
        "id": "9a9a8a4c-5d3e-4b2f-8c1d-0e7f6a5b4c3d",
        "type": "card",
        "data": {"number": "4242424242424242", "expiration_month": 12, "expiration_year": 2030},
    },
    {"id": "order 17", "type": "token", "data": {"name": "Ada"}, "metadata": {"order": "1001"}},
    {"type": "bank", "data": {"routing_number": "021000021", "account_number": "00001"}},
    {"type": "social_security_number", "data": "111-22-3333", "containers": ["/a/b/"]},
    *({"type": "token", "data": n, "containers": ["/many/"]} for n in range(25)),
]


def main() -> int:
    arguments = parse()
    print(f"schemathesis: seed {arguments.seed}, {arguments.cases} cases at random per operation")
    seed_tenant()
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


def seed_tenant():
    """Lists have several pages, searches find something, examples refer to what exists."""
    for token in TOKENS:
        request = urllib.request.Request(
            os.environ["BT_API_URL"] + "/tokens",
            data=json.dumps(token).encode(),
            headers={
                "BT-API-KEY": os.environ["BT_PVT_API_KEY"],
                "Content-Type": "application/json",
            },
        )
        urllib.request.urlopen(request, timeout=30).close()


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
    failed = {label: set() for label, _, _ in answers}
    for failure in report["failures"]:
        for label in failure["operations"]:
            failed.setdefault(label, set()).add(failure["title"])
    for error in report["errors"]:
        failed.setdefault(error.get("operation") or "schemathesis", set()).add("not tested")
    if report["operations"]["tested"] != report["operations"]["total"]:
        failed.setdefault("schemathesis", set()).add("did not test every operation")
    rows = []
    for label in sorted(failed):
        counts = {status: count for other, status, count in answers if other == label}
        told = ", ".join(f"{count} × {status}" for status, count in sorted(counts.items()))
        tried = f"{sum(counts.values())} requests: {told}"
        complaints = "; ".join(sorted(failed[label]))
        rows.append(
            {
                "sdk": SDK,
                "method": label,
                "tried": f"{tried}: {complaints}" if complaints else tried,
                "result": "FAILED" if complaints else "ok",
            }
        )
    return rows


def record(rows: list):
    path = os.environ.get("CONFORMANCE_REPORT")
    for row in rows:
        print(f"{row['method']:24} {row['tried']}")
        if path:
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())
