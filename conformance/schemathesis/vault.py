"""Requests beside those of Schemathesis: to make things, and to put them right again."""

import json
import os
import urllib.request


def ask(method: str, path: str, key: str, body=None):
    """What the vault answers to whoever has the key in this variable of the environment."""
    request = urllib.request.Request(
        f"{os.environ['BT_API_URL']}/{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"BT-API-KEY": os.environ[key], "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)
