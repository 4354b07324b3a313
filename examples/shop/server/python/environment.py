"""The settings of the shop's server. `cloakroom dev --shop` sets all of them."""

import os

NAMES = [
    "PORT",
    "VAULT_API_URL",
    "VAULT_HOST",
    "VAULT_PUBLIC_KEY",
    "VAULT_PRIVATE_KEY",
    "WEBHOOK_SECRET",
    "PROXY_KEY",
]


def required(name):
    value = os.environ.get(name)
    if not value:
        raise SystemExit(f"the environment variable {name} is not set; see examples/shop/README.md")
    return value


ENVIRONMENT = {name: required(name) for name in NAMES}
