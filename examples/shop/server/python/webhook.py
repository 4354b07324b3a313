"""Verifies deliveries of webhooks, as docs/guides/webhooks.md describes."""

import base64
import hashlib
import hmac
import json
import time

from environment import ENVIRONMENT

AGE_MAX_SECONDS = 5 * 60
SECRET = base64.b64decode(ENVIRONMENT["WEBHOOK_SECRET"].removeprefix("whsec_"))


def read_event(headers, body, now=None):
    """The event of a delivery. None if the signature is invalid or older than five minutes."""
    timestamp = headers.get("webhook-timestamp", "")
    signed = f"{headers.get('webhook-id')}.{timestamp}.".encode() + body
    expected = base64.b64encode(hmac.new(SECRET, signed, hashlib.sha256).digest())
    signatures = headers.get("webhook-signature", "").encode().split()
    is_signed = any(hmac.compare_digest(expected, sent.removeprefix(b"v1,")) for sent in signatures)
    is_recent = timestamp.isdecimal() and abs((now or time.time()) - int(timestamp)) <= AGE_MAX_SECONDS
    return json.loads(body)["event"] if is_signed and is_recent else None
