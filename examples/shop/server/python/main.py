"""The shop's server: its page, its orders, and the endpoint of its webhook."""

import json
import re
import sys
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import orders
from card_testing import is_allowed, is_human
from environment import ENVIRONMENT
from webhook import read_event

BODY_BYTES_MAX = 65_536
DISCARDED_BYTES_MAX = 1_048_576
TIMEOUT_SECONDS = 60
VAULT = f"https://{ENVIRONMENT['VAULT_HOST']}"

# The page may load the script of web elements and frames from the vault, and nothing from anywhere else.
POLICY = [
    "default-src 'none'",
    f"script-src 'self' {VAULT}/web-elements/",
    f"frame-src {VAULT}",
    f"connect-src 'self' {VAULT}",
    "style-src 'self'",
    # The official 3-D Secure package hides its frames with a style attribute.
    "style-src-attr 'unsafe-inline'",
    "img-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
]
HEADERS = {
    "Content-Security-Policy": "; ".join(POLICY),
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

SHOP = Path(__file__).parents[2]
SETTINGS = {
    "public_key": ENVIRONMENT["VAULT_PUBLIC_KEY"],
    "vault_host": ENVIRONMENT["VAULT_HOST"],
    "item": orders.ITEM,
}
PACKAGES = "node_modules/@basis-theory"
FILES = {
    "/": ("text/html; charset=utf-8", (SHOP / "page/index.html").read_bytes()),
    "/checkout.css": ("text/css; charset=utf-8", (SHOP / "page/checkout.css").read_bytes()),
    "/checkout.js": ("text/javascript; charset=utf-8", (SHOP / "page/checkout.js").read_bytes()),
    "/icon.svg": ("image/svg+xml", (SHOP / "page/icon.svg").read_bytes()),
    "/coat.svg": ("image/svg+xml", (SHOP / "page/coat.svg").read_bytes()),
    "/web-elements.js": (
        "text/javascript; charset=utf-8",
        (SHOP / PACKAGES / "web-elements/dist/bundle/index.js").read_bytes(),
    ),
    "/web-threeds.js": (
        "text/javascript; charset=utf-8",
        (SHOP / PACKAGES / "web-threeds/dist/bundle/index.js").read_bytes(),
    ),
    "/settings.json": ("application/json", json.dumps(SETTINGS).encode()),
}


class Rejection(Exception):
    """An error that is returned to the page."""

    def __init__(self, status, code):
        super().__init__(code)
        self.status = status
        self.code = code


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = TIMEOUT_SECONDS

    def do_GET(self):
        self.respond()

    def do_POST(self):
        self.respond()

    def respond(self):
        try:
            status, media_type, body = self.route()
        except Rejection as rejection:
            # The rest of the body is not read, so the connection cannot be used again.
            self.close_connection = True
            status, media_type, body = as_json(rejection.status, {"error": rejection.code})
        except Exception:
            self.close_connection = True
            traceback.print_exc()
            status, media_type, body = as_json(500, {"error": "failed"})
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        if media_type:
            self.send_header("Content-Type", media_type)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def route(self):
        self.reject_unread_bodies()
        path = urlsplit(self.path).path
        for method, pattern, handler in ROUTES:
            match = self.command == method and re.fullmatch(pattern, path)
            if match:
                return handler(self, match[1])
        raise Rejection(404, "not_found")

    def reject_unread_bodies(self):
        """A body that no handler reads would be parsed as the next request of the connection."""
        lengths = self.headers.get_all("Content-Length", [])
        has_body = self.command == "GET" and lengths not in ([], ["0"])
        if "Transfer-Encoding" in self.headers or len(lengths) > 1 or has_body:
            raise Rejection(400, "invalid")

    def file(self, path):
        if path not in FILES:
            raise Rejection(404, "not_found")
        return 200, *FILES[path]

    def place_order(self, _):
        # Behind a load balancer, take the address from the header that the load balancer sets.
        if not is_allowed(self.client_address[0]):
            raise Rejection(429, "too_many_attempts")
        body = self.read_json()
        if not is_human(self, body.get("captcha")):
            raise Rejection(403, "not_human")
        order = orders.place(body)
        if not order:
            raise Rejection(400, "invalid")
        return as_json(200, orders.view(order))

    def find_order(self, order_id):
        return as_json(200, orders.view(find(order_id)))

    def complete_challenge(self, order_id):
        self.read_body()
        return as_json(200, orders.view(orders.complete_challenge(find(order_id))))

    def webhook(self, _):
        event = read_event(self.headers, self.read_body())
        if not event:
            raise Rejection(401, "invalid_signature")
        if event["type"] == "token.created":
            metadata = event["data"]["token"].get("metadata") or {}
            orders.mark_card_saved(metadata.get("order_id"))
        return 204, None, b""

    def read_json(self):
        try:
            body = json.loads(self.read_body())
        except ValueError:
            raise Rejection(400, "invalid") from None
        return body if isinstance(body, dict) else {}

    def read_body(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise Rejection(411, "invalid")
        if int(length) > BODY_BYTES_MAX:
            # A client reads the response only after it has sent its body.
            self.rfile.read(min(int(length), DISCARDED_BYTES_MAX))
            raise Rejection(413, "invalid")
        return self.rfile.read(int(length))

    def log_request(self, code="-", size="-"):
        # Without the query, which could contain anything.
        print(self.command, self.path.split("?")[0], int(code), file=sys.stderr, flush=True)

    def log_message(self, format, *args):
        """Logs nothing else: messages of the base class contain the request line."""


ROUTES = [
    ("POST", r"/orders()", Handler.place_order),
    ("GET", r"/orders/([^/]+)", Handler.find_order),
    ("POST", r"/orders/([^/]+)/challenge", Handler.complete_challenge),
    ("POST", r"/webhooks()", Handler.webhook),
    ("GET", r"(.*)", Handler.file),
]


def find(order_id):
    order = orders.find(order_id)
    if not order:
        raise Rejection(404, "not_found")
    return order


def as_json(status, value):
    return status, "application/json", json.dumps(value).encode()


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(ENVIRONMENT["PORT"])), Handler).serve_forever()
