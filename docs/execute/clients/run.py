"""Runs samples of the Python client. Reads one JSON line per sample, with `file` and `environment`, and writes one per
result: the last request and response of the sample, and what it printed."""

import contextlib
import io
import json
import os
import sys

import httpx

last = {}
real_send = httpx.Client.send


def send(self, request, **options):
    response = real_send(self, request, **options)
    response.read()
    last.update(
        path=request.url.path,
        sent=request.read().decode(),
        status=str(response.status_code),
        body=response.content.decode(errors="replace"),
    )
    return response


httpx.Client.send = send

for line in sys.stdin:
    sample = json.loads(line)
    os.environ.update(sample["environment"])
    last.clear()
    printed = io.StringIO()
    error = None
    try:
        with open(sample["file"]) as file, contextlib.redirect_stdout(printed):
            exec(compile(file.read(), sample["file"], "exec"), {"__name__": "__main__"})
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    print(json.dumps({**last, "printed": printed.getvalue(), "error": error}), flush=True)
