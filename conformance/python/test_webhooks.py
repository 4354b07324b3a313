"""Webhooks: created, read, replaced and deleted by management keys. A tenant has five at most."""

import contextlib
import uuid

import pytest
from basis_theory import BadRequestError, ForbiddenError, NotFoundError

from vault import INVALID, UUID_V4, refusal

FORBIDDEN = (ForbiddenError, 403, "Forbidden")
NOT_FOUND = (NotFoundError, 404, "Not Found")
WEBHOOK = {
    "name": "Ledger",
    "url": "https://ledger.example.com/hooks",
    "events": ["token.created", "token.deleted"],
}


@contextlib.contextmanager
def created_webhook(management):
    created = management.webhooks.create(**WEBHOOK)
    try:
        yield created
    finally:
        management.webhooks.delete(created.id)


@pytest.mark.calls("webhooks.create", "webhooks.list")
def test_enabled_and_found_by_its_id_and_in_the_list(management):
    with created_webhook(management) as created:
        read = management.webhooks.get(created.id)
        listed = management.webhooks.list()

        assert UUID_V4.fullmatch(created.id)
        assert created.status == "enabled"
        assert (created.url, created.events) == (WEBHOOK["url"], WEBHOOK["events"])
        assert (read.id, read.name, read.url) == (created.id, created.name, created.url)
        assert created.id in [webhook.id for webhook in listed.data]


@pytest.mark.calls("webhooks.get")
def test_an_unknown_one_is_not_found(management):
    refusal(*NOT_FOUND, management.webhooks.get, str(uuid.uuid4()))


@pytest.mark.calls("webhooks.update")
def test_a_change_replaces_everything(management):
    change = {"name": "Books", "url": "https://books.example.com/", "events": ["token.updated"]}
    with created_webhook(management) as created:
        updated = management.webhooks.update(created.id, **change)

        assert (updated.name, updated.url, updated.events) == tuple(change.values())


@pytest.mark.calls("webhooks.delete")
def test_it_is_gone(management):
    created = management.webhooks.create(**WEBHOOK)

    assert management.webhooks.delete(created.id) is None

    refusal(*NOT_FOUND, management.webhooks.get, created.id)


@pytest.mark.calls("webhooks.events.list")
def test_names_of_event_types(management):
    types = management.webhooks.events.list()

    assert {"token.created", "token.deleted", "3ds.session.authenticated"} <= set(types)


@pytest.mark.calls("webhooks.create")
def test_the_spelling_of_the_samples_is_rejected_by_name(management):
    request = {**WEBHOOK, "events": ["token:created"]}

    error = refusal(BadRequestError, 400, INVALID, management.webhooks.create, **request)

    assert list(error.body.errors) == ["events[0]"]


@pytest.mark.calls("webhooks.*")
def test_only_management_keys_see_and_change_them(vault, browser):
    for key in (vault, browser):
        refusal(*FORBIDDEN, key.webhooks.list)
        refusal(*FORBIDDEN, key.webhooks.get, str(uuid.uuid4()))
        refusal(*FORBIDDEN, key.webhooks.events.list)
