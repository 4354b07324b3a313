"""Which methods the client has, and what each call of one became: a request and its answer."""

import contextvars
import functools
import inspect
import json
import os
import urllib.parse
from importlib.metadata import version
from pathlib import Path

import httpx

SDK = f"python {version('BasisTheoryClient')}"

UNSUPPORTED = json.loads((Path(__file__).parent.parent / "unsupported.json").read_text())

call = contextvars.ContextVar("call", default=None)


def is_part(member) -> bool:
    """Whether this is a part of the client, such as `client.tenants.members`."""
    return type(member).__module__.startswith("basis_theory.") and hasattr(member, "_raw_client")


class Noted:
    """The client, with every call of a method noted; it behaves as before."""

    def __init__(self, client, path=()):
        self._client = client
        self._path = path

    def __getattr__(self, name):
        member = getattr(self._client, name)
        if name == "with_raw_response":
            return Noted(member, self._path)
        path = (*self._path, name)
        if inspect.ismethod(member):
            return functools.partial(self._call, ".".join(path), member)
        return Noted(member, path) if is_part(member) else member

    @staticmethod
    def _call(method, member, *given, **named):
        bound = inspect.signature(member).bind_partial(*given, **named)
        context = contextvars.copy_context()
        context.run(call.set, (method, bound.arguments))
        result = context.run(member, *given, **named)
        # What is read in pieces is asked for with the first of them.
        return context.run(list, result) if inspect.isgenerator(result) else result


def transport() -> httpx.Client:
    """What the client itself would make, and a look at each answer."""
    hooks = {"response": [note_answer]}
    return httpx.Client(timeout=60, follow_redirects=True, event_hooks=hooks)


def note_answer(response: httpx.Response):
    if call.get():
        method, given = call.get()
        path = template(response.request.url.raw_path.decode(), given)
        request = f"{response.request.method} {path}"
        note(method=method, request=request, status=response.status_code)


def methods(client, path=()) -> list:
    """The names of all methods, by reflection over the client and its parts."""
    found = []
    for name in dir(client):
        if name.startswith("_") or name == "with_raw_response":
            continue
        member = getattr(client, name)
        if inspect.ismethod(member):
            found.append((".".join((*path, name)), member))
        elif is_part(member):
            found += methods(member, (*path, name))
    return found


def unsupported(method: str):
    """Why a method is not for this vault, or nothing if it is."""
    for row in UNSUPPORTED:
        meant = row["methods"]
        if method == meant or (meant.endswith(".*") and method.startswith(meant[:-1])):
            return row["reason"]
    return None


def note(**line):
    """A line for the table of all methods."""
    path = os.environ.get("CONFORMANCE_METHODS")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"sdk": SDK, **line}) + "\n")


def template(path: str, given: dict) -> str:
    """`/applications/8d0c…` was asked for with an id: `/applications/{id}`."""
    names = {value: name for name, value in given.items() if isinstance(value, str) and value}
    segments = path.partition("?")[0].split("/")
    unquoted = [urllib.parse.unquote(segment) for segment in segments]
    return "/".join(
        "{" + names[plain] + "}" if plain in names else segment
        for plain, segment in zip(unquoted, segments)
    )
