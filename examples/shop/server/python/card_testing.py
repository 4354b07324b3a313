"""Protection against card testing: criminals try stolen cards where payments cost them nothing."""

import os
import time
from threading import Lock

ATTEMPTS_MAX = int(os.environ.get("ATTEMPTS_MAX", "10"))
PERIOD_SECONDS = 10 * 60

# Times of the attempts by client address. With several servers, keep them in Redis.
attempts: dict[str, list[float]] = {}
lock = Lock()


def is_allowed(address, now=None):
    """Counts an attempt to pay, and returns whether it may go on."""
    since = (now or time.time()) - PERIOD_SECONDS
    with lock:
        for one in [one for one, times in attempts.items() if times[-1] <= since]:
            del attempts[one]
        recent = [at for at in attempts.get(address, []) if at > since]
        if len(recent) >= ATTEMPTS_MAX:
            return False
        attempts[address] = [*recent, since + PERIOD_SECONDS]
        return True


def is_human(_request, _captcha):
    """The place for a CAPTCHA.

    The page sends the result of `window.captcha()` as `captcha`; verify it here with your provider, before the card is
    authenticated and charged.
    """
    return True
