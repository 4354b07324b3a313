"""Clients for each of the vault's keys, and a row in the report for each test."""

import json
import os
from importlib.metadata import version

import pytest

from vault import MANAGEMENT_KEY, PRIVATE_KEY, PUBLIC_KEY, Vault


@pytest.fixture
def vault() -> Vault:
    """Creates and reads everything, unmasked on reading. New for each test: it keeps headers."""
    return Vault(PRIVATE_KEY)


@pytest.fixture
def browser() -> Vault:
    """Creates and updates only."""
    return Vault(PUBLIC_KEY)


@pytest.fixture
def management() -> Vault:
    """Administers; has nothing to do with tokens."""
    return Vault(MANAGEMENT_KEY)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    path = os.environ.get("CONFORMANCE_REPORT")
    # A test that cannot be set up has no call of its own to report.
    if not path or not (report.when == "call" or report.failed):
        return
    row = {
        "sdk": f"python-legacy {version('basistheory')}",
        "method": item.get_closest_marker("calls").args[0],
        "tried": sentence(item),
        "result": "ok" if report.passed else "FAILED",
    }
    if row["result"] == "FAILED":
        row["why"] = call.excinfo.exconly() if call.excinfo else "it should have failed"
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")


def sentence(item) -> str:
    words = item.originalname.removeprefix("test_").replace("_", " ")
    callspec = getattr(item, "callspec", None)
    return f"{words}: {callspec.id}" if callspec else words
