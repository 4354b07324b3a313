"""Clients for each of the vault's keys, and a row in the report for each test."""

import json
import os

import pytest
from basis_theory import BasisTheory

import vault as under_test
from methods import SDK


@pytest.fixture(scope="session")
def vault() -> BasisTheory:
    """Creates and reads everything, unmasked on reading."""
    return under_test.client(under_test.PRIVATE_KEY)


@pytest.fixture(scope="session")
def browser() -> BasisTheory:
    """Creates only."""
    return under_test.client(under_test.PUBLIC_KEY)


@pytest.fixture(scope="session")
def management() -> BasisTheory:
    """Administers; has nothing to do with tokens."""
    return under_test.client(under_test.MANAGEMENT_KEY)


@pytest.fixture(scope="session")
def spare() -> BasisTheory:
    """Administers a tenant that nobody needs."""
    return under_test.client(under_test.SPARE_KEY, base_url=under_test.SPARE_URL)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    path = os.environ.get("CONFORMANCE_REPORT")
    # A test that cannot be set up has no call of its own to report.
    if not path or not (report.when == "call" or report.failed):
        return
    row = {
        "sdk": SDK,
        "method": item.get_closest_marker("calls").args[0],
        "tried": sentence(item),
        "result": result(report),
    }
    if row["result"] == "FAILED":
        row["why"] = call.excinfo.exconly() if call.excinfo else "it should have failed"
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")


def result(report) -> str:
    # What is expected to fail counts as skipped when it does, and as failed when it does not.
    if report.skipped and hasattr(report, "wasxfail"):
        return "not yet"
    return "ok" if report.passed else "FAILED"


def sentence(item) -> str:
    words = item.originalname.removeprefix("test_").replace("_", " ")
    callspec = getattr(item, "callspec", None)
    return f"{words}: {callspec.id}" if callspec else words
