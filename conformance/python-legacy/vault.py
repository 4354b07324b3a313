"""The vault under test, as the retired client reaches it: one object for each part of its API."""

import json
import os
import re
import uuid

import basistheory
import pytest
from basistheory.api.application_keys_api import ApplicationKeysApi
from basistheory.api.application_templates_api import ApplicationTemplatesApi
from basistheory.api.applications_api import ApplicationsApi
from basistheory.api.detokenize_api import DetokenizeApi
from basistheory.api.enrichments_api import EnrichmentsApi
from basistheory.api.logs_api import LogsApi
from basistheory.api.permissions_api import PermissionsApi
from basistheory.api.roles_api import RolesApi
from basistheory.api.sessions_api import SessionsApi
from basistheory.api.tenants_api import TenantsApi
from basistheory.api.tokenize_api import TokenizeApi
from basistheory.api.tokens_api import TokensApi
from basistheory.model.create_token_request import CreateTokenRequest


def required(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise RuntimeError(f"{name} is not set: see conformance/README.md")
    return value


BASE_URL = required("BT_API_URL")
TENANT_ID = required("BT_TENANT_ID")
PRIVATE_KEY = required("BT_PVT_API_KEY")
PUBLIC_KEY = required("BT_PUB_API_KEY")
MANAGEMENT_KEY = required("BT_MGT_API_KEY")

UUID_V4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
INVALID = "One or more validation errors occurred."
# What the vault says about an operation that it does not know at all.
NO_SUCH_PATH = "There is no such path."


class Vault:
    def __init__(self, api_key: str):
        configuration = basistheory.Configuration(host=BASE_URL, api_key=api_key)
        self.client = basistheory.ApiClient(configuration)
        self.tokens = TokensApi(self.client)
        self.tokenize = TokenizeApi(self.client).tokenize
        self.documents = DetokenizeApi(self.client)
        self.applications = ApplicationsApi(self.client)
        self.application_keys = ApplicationKeysApi(self.client)
        self.application_templates = ApplicationTemplatesApi(self.client)
        self.enrichments = EnrichmentsApi(self.client)
        self.logs = LogsApi(self.client)
        self.permissions = PermissionsApi(self.client)
        self.roles = RolesApi(self.client)
        self.sessions = SessionsApi(self.client)
        self.tenants = TenantsApi(self.client)

    def create(self, options=None, **attributes):
        request = CreateTokenRequest(**{"type": "token", "data": "x", **attributes})
        return self.tokens.create(request, **({"request_options": options} if options else {}))

    def detokenize(self, body):
        """The client expects no answer and returns none; it is left to be picked up."""
        assert self.documents.detokenize(body=body) is None
        return self.last_body()

    def last_body(self):
        """The answer as it came, before the client left out what it does not know."""
        return json.loads(self.client.last_response.data)

    def last_header(self, name: str):
        return self.client.last_response.getheader(name)


def own_value() -> str:
    return str(uuid.uuid4())


def ids(page) -> list:
    return [token.id for token in page.data]


def without_security_code(data: dict, sent="123") -> dict:
    """Card data apart from its security code, which is kept for an hour at most, and as text."""
    assert data.get("cvc") in (None, str(sent)), "another code than was sent"
    return {name: value for name, value in data.items() if name != "cvc"}


def refusal(kind: type, status: int, title: str, call, *arguments, **named) -> dict:
    """The problem that `call` ends with, in an error of this very class."""
    with pytest.raises(basistheory.ApiException) as caught:
        call(*arguments, **named)
    error = caught.value
    assert type(error) is kind, error
    assert error.status == status
    assert error.headers["content-type"].startswith("application/problem+json")
    problem = json.loads(error.body)
    assert (problem["status"], problem["title"]) == (status, title)
    assert problem["detail"]
    assert problem["detail"] != NO_SUCH_PATH, "nobody is there to refuse it"
    return problem
