"""What this vault does not do: each method of it is refused with a whole problem, and all others are known."""

import ast
import inspect
import textwrap

import pytest
from basis_theory import BasisTheory
from basis_theory.core.api_error import ApiError

from methods import methods, note, unsupported
from vault import BASE_URL, NO_SUCH_PATH, PRIVATE_KEY, problem

NOT_SUPPORTED = (404, 410, 501)

ALL = methods(BasisTheory(api_key=PRIVATE_KEY, base_url=BASE_URL))
REFUSED = [
    pytest.param(method, member, id=f"{unsupported(method)} ({method})", marks=pytest.mark.calls(method))
    for method, member in ALL
    if unsupported(method)
]


@pytest.fixture(scope="module", autouse=True)
def all_methods():
    """What is here and what is not, for the table of all methods."""
    for method, _ in ALL:
        note(method=method)


def example(member) -> str:
    """The client's own documentation shows one call of each method; who calls is left out."""
    shown = inspect.getdoc(member).partition("Examples\n--------\n")[2]
    lines = ast.parse(textwrap.dedent(shown)).body
    # Lists are shown with a loop over them.
    kept = [line for line in lines if not isinstance(line, ast.For) and not is_client(line)]
    return ast.unparse(ast.Module(kept, []))


def is_client(line) -> bool:
    return isinstance(line, ast.Assign) and line.targets[0].id == "client"


@pytest.mark.parametrize(("method", "member"), REFUSED)
def test_is_refused(vault, method, member):
    with pytest.raises(ApiError) as caught:
        exec(example(member), {"client": vault})

    error = caught.value
    assert error.status_code in NOT_SUPPORTED, error
    assert problem(error, "status") == error.status_code
    assert isinstance(problem(error, "title"), str)
    assert (problem(error, "detail") == NO_SUCH_PATH) == (error.status_code == 404)
    assert error.headers["content-type"].startswith("application/problem+json")
