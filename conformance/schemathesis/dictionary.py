"""What chance hardly ever writes: tokens that keep their type's rules, expressions, references.

`TOKENS` exist before the first request, under names of their own, so that a path, an expression and a
search can mean them. What is drawn here is mostly, not always, what the vault accepts.
"""

import json
import os

from hypothesis import strategies as st
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation.meta import TestPhase

# The description's example for detokenizing names it.
CARD = "9a9a8a4c-5d3e-4b2f-8c1d-0e7f6a5b4c3d"
PERSON = "order 17"
ACCOUNT = "an account"
NUMBER = "111-22-3333 of someone@example.com"
# Only these are deleted by name; the others are there until the end.
DOOMED = [f"doomed {n}" for n in range(40)]

TOKENS = [
    {
        "id": CARD,
        "type": "card",
        "data": {"number": "4242424242424242", "expiration_month": 12, "expiration_year": 2030},
    },
    {
        "id": PERSON,
        "type": "token",
        "data": {"name": "Ada", "tags": ["a", {"b": [1, 2]}], "age": 36, "none": None},
        "metadata": {"order": "1001", "Kind": "Person"},
        "search_indexes": ["{{ data.name }}", "{{ data.age }}"],
        "mask": {"name": "{{ data.name | reveal: 1 }}", "age": "{{ data.age }}"},
    },
    {
        "id": ACCOUNT,
        "type": "bank",
        "data": {"routing_number": "021000021", "account_number": "00001"},
    },
    {
        "id": NUMBER,
        "type": "social_security_number",
        "data": "111-22-3333",
        "containers": ["/a/b/"],
        "search_indexes": ["{{ data }}", "{{ data | last4 }}"],
    },
    *({"type": "token", "data": n, "containers": ["/many/"]} for n in range(25)),
    *({"id": id, "type": "token", "data": id, "containers": ["/doomed/"]} for id in DOOMED),
]

# These have no names of their own: how they are called is known when they are made.
INTENTS = [{"type": "card", "data": {"number": "4242424242424242"}}] * 60
APPLICATIONS = [{"name": "Known", "type": "private", "permissions": ["token:use"]}] * 20
SESSIONS = 30
NAMES_SEEDED = ["intents", "applications", "members", "nonces"]
NOTHING_SEEDED = {**dict.fromkeys(NAMES_SEEDED, ["-"]), "keys": [["-", "-"]]}
SEEDED = json.loads(os.environ.get("SEEDED", "null")) or NOTHING_SEEDED
UNKNOWN = "00000000-0000-4000-8000-000000000000"

LASTING = [CARD, PERSON, ACCOUNT, NUMBER]
STRANGE = [UNKNOWN, "not there", "naïve ☃", "a" * 400]
IDS = st.sampled_from(LASTING * 3 + STRANGE)

# Behind a reference to the data of a token.
DATA_FILTERS = [
    "",
    "",
    " | json: '$.number'",
    ' | json: "$.name"',
    " | json: '$.tags[-1:].b[0]'",
    " | json: '$..b'",
    " | json: '$.tags[*]'",
    " | json: '$['",
    " | json: '$.number' | reveal_last: 4",
    " | json: '$.number' | card_mask: true, true, '#'",
    " | json: '$.age' | plus: 1 | pad_left: 6, '0'",
    " | json: '$.account_number' | append: ' ' | strip | upcase",
    " | card_exp: 'MM/YY'",
    " | stringify",
    " | stringify | hmac: 'sha-256', 'key' | to_base64",
    " | hmac: 'sha-256', 'key'",
    " | last4",
    " | to_number",
    " | split: '-' | first",
    " | divided_by: 0",
    " | default: 'nothing'",
    " | shout",
    " | '$.number'",
]
# Behind a reference to a whole token.
TOKEN_FILTERS = [
    "",
    " | json: '$.data'",
    " | json: '$.data.number'",
    " | json: '$.containers[0]'",
    " | json: '$.enrichments.card_details.last4'",
    " | json: '$.metadata.order'",
]


@st.composite
def references(draw) -> str:
    """An expression that means a token, or nearly one."""
    id = draw(IDS)
    kind, filters = draw(
        st.sampled_from(
            [("", DATA_FILTERS)] * 4
            + [("token: ", TOKEN_FILTERS)] * 3
            + [("token_intent: ", TOKEN_FILTERS), ("config: ", [""]), ("network_token:", [""])]
        )
    )
    output = "{{ " + kind + id + draw(st.sampled_from(filters)) + " }}"
    around = ["{}"] * 6 + ["before {} after", "{}  ", "{{% raw %}}{}{{% endraw %}}", "{}{{{{"]
    return draw(st.sampled_from(around)).format(output)


PLAIN = st.sampled_from([None, True, 0, -12.5, "", "text", "{{", "}}", "{{ }}", "{{ data }}"])


def documents(leaves, size):
    def grow(inner):
        names = st.sampled_from(["a", "b", "{{ c }}", "first_name"])
        return st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4)

    # Schemathesis takes a body that is nothing but null for none at all.
    return st.recursive(leaves, grow, max_leaves=size).filter(lambda body: body is not None)


# Data that follows the rules of its type.
CARD_DATA = [
    {"number": "4242424242424242", "expiration_month": 12, "expiration_year": 2030, "cvc": "123"},
    {"number": "5555555555554444", "expiration_month": "02", "expiration_year": "2031"},
    {"number": "378282246310005", "expiration_month": 4, "expiration_year": 2025, "cvc": 1234},
    {"number": "4200000000000002"},
]
BANK_DATA = {"routing_number": "021000021", "account_number": "00001"}
DATA = [
    *(("card", data) for data in CARD_DATA),
    *(("network_token", data) for data in CARD_DATA[1:2]),
    ("card_number", "4242424242424242"),
    ("bank", BANK_DATA),
    ("us_bank_account_number", "00001"),
    ("us_bank_routing_number", "021000021"),
    ("social_security_number", "111-22-3333"),
    ("employer_id_number", "12-3456789"),
    ("token", "Sensitive Value"),
    ("token", {"name": "Ada", "tags": ["a", "b"], "number": "4242424242424242"}),
    ("token", 42),
    ("token", False),
]

# Expressions over `data`, for text and for objects; the last ones are refused.
TEXT = [
    "{{ data }}",
    "{{ data | stringify }}",
    "{{ data.number }}",
    "{{ data.name | downcase }}",
    "{{ data | json: '$.account_number' }}",
    "{{ data | stringify | last4 }}",
    "{{ data.number | card_bin }}-{{ data.number | last4 }}",
    "{% if data.name %}{{ data.name }}{% else %}nobody{% endif %}",
    "{{ data.number, reveal_last: 4 }}",
    "{{ data.none }}",
    "{{ data | shout }}",
    "{{ data",
]
MASKS = [
    *TEXT,
    "{{ data | reveal_last: 4 }}",
    "{{ data | stringify | reveal: 2, 2, '#', '-' }}",
    {"number": "{{ data.number | card_mask: 'true', 'true' }}", "kept": 1},
    {"name": "{{ data.name | reveal: 1 }}", "tags": ["{{ data.tags[0] }}", None, {"a": "*"}]},
    ["{{ data.tags | join: ',' }}", "{{ data.tags.size }}"],
    {"number": "{{ data.number | shout }}"},
]
NAMES = [
    "{{ data | alias_preserve_format: 0, 4 }}",
    "{{ data | stringify | alias_preserve_length }}",
    "{{ data.number | alias_card: true, true }}",
    "card of {{ data.name | default: 'nobody' }}",
    "{{ data.none }}",
    "a name of its own",
    *LASTING,
    "not/allowed",
]
CONTAINERS = ["/", "/a/b/", "/many/", "/PCI/High/", "/x-1/y_2/"]
METADATA = [{"order": "1001"}, {"order": "1001", "Kind": "person", "dropped": None}, {}]
EXPIRIES = ["2030-08-26", "8/26/2030 7:23:57 PM -07:00", "2031-01-01T00:00:00+05:30", "2020-01-01"]


def one(*values):
    return st.sampled_from(values)


ATTRIBUTES = {
    "mask": one(None, *MASKS),
    "fingerprint_expression": one(None, *TEXT),
    "search_indexes": st.lists(one(*TEXT), max_size=3),
    "containers": st.lists(one(*CONTAINERS), min_size=1, max_size=1),
    "metadata": one(None, *METADATA),
    "deduplicate_token": one(None, True, False),
    "expires_at": one(None, *EXPIRIES),
}


@st.composite
def attributes(draw, named=ATTRIBUTES, most=3) -> dict:
    names = draw(st.lists(st.sampled_from(sorted(named)), unique=True, max_size=most))
    return {name: draw(named[name]) for name in names}


@st.composite
def tokens(draw) -> dict:
    kind, data = draw(st.sampled_from(DATA))
    source = {"type": kind, "data": data}
    if draw(st.sampled_from([True] + [False] * 5)):
        source = {"token_intent_id": draw(one(*SEEDED["intents"], "not there"))}
    return {**source, **draw(attributes({**ATTRIBUTES, "id": one(*NAMES)}))}


@st.composite
def intents(draw) -> dict:
    kind, data = draw(st.sampled_from(DATA))
    return {"type": kind, "data": data}


CHANGES = {
    **ATTRIBUTES,
    "data": one({"number": "5555555555554444"}, {"name": "Grace"}, {"tags": None}, "111-22-4444"),
}

RULES = [
    {
        "description": "Cards",
        "priority": 1,
        "container": "/pci/",
        "transform": transform,
        "permissions": ["token:read", "token:search"],
    }
    for transform in ["redact", "mask", "reveal", "blur"]
]
GRANTS = {
    "permissions": one(["token:create"], ["token:read", "token:use"], ["log:read"], ["nonsense"], []),
    "rules": st.lists(one(*RULES), max_size=2),
}


@st.composite
def applications(draw, more=st.just({})) -> dict:
    name = draw(one("Checkout", "naïve ☃", "a" * 200, ""))
    return {"name": name, "permissions": ["token:create"], **draw(more), **draw(attributes(GRANTS))}


CONDITIONS = [
    {"attribute": "id", "operator": "equals", "value": CARD},
    {"attribute": "container", "operator": "starts_with", "value": "/pci/"},
    {"attribute": "type", "operator": "equals", "value": "card"},
]


@st.composite
def authorizations(draw) -> dict:
    grants = {**GRANTS, "expires_at": one(None, "2030-01-01"), "rules": st.lists(RULE_OF_SESSION)}
    return {"nonce": draw(one(*SEEDED["nonces"])), **draw(attributes(grants))}


RULE_OF_SESSION = st.sampled_from(
    RULES + [{**RULES[2], "container": None, "conditions": CONDITIONS[:n]} for n in (1, 2, 3)]
)
NEW_APPLICATION = st.fixed_dictionaries(
    {"type": one("private", "private", "public", "management")},
    optional={"create_key": one(True, False, None), "expires_at": one(None, *EXPIRIES)},
)
ACCOUNTS = st.fixed_dictionaries(
    {"token_id": one(ACCOUNT, ACCOUNT, *LASTING, "not there")},
    optional={"country_code": one("US", "us", "FR"), "routing_number": one("021000021", "021000020")},
)
# The last ones may lose their keys.
APPLICATION_IDS = st.sampled_from(SEEDED["applications"][:5] * 3 + [UNKNOWN])
KEYS = [{"id": application, "key_id": key} for application, key in SEEDED["keys"]]
MEMBERS = st.sampled_from(SEEDED["members"] * 2 + [UNKNOWN])

TERMS = [
    "container:/many/",
    'container:"/a/b/"',
    "type:card",
    "type:bank",
    "metadata.order:1001",
    'metadata.Kind:"Person"',
    "data:Ada",
    'data:"111-22-3333"',
    "data:3333",
    f"fingerprint:{'1' * 43}",
    f'id:"{PERSON}"',
    f"id:{CARD}",
]
QUERIES = [
    *TERMS,
    "type:card AND container:/pci/",
    "container:/pci/ AND type:card",
    "metadata.order:1001 AND metadata.kind:person",
    "type:card OR type:bank",
    "data:(Ada)",
    "data:A*",
    "NOT type:card",
    'data:"Ada',
    "Ada",
    "",
]


@st.composite
def searches(draw, places) -> dict:
    query = {"query": draw(one(None, *QUERIES))}
    return {**query, **draw(attributes({**places, "size": one(0, 1, 20, 100)}, 2))}


FILTERS = [
    {"container": "/many/"},
    {"container": "/a/"},
    {"type": "card"},
    {"type": "token", "container": "/many/", "size": 3},
    {"metadata.order": "1001"},
    {"metadata[order]": "1001"},
    {"metadata": '{"order":"1001"}'},
    {"fingerprint": "1" * 43},
    {"type": "card", "fingerprint": "1" * 43},
]
OLD_FILTERS = [
    {"id": [CARD, PERSON, "not there"]},
    {"metadata.ORDER": "1001", "metadata.kind": "PERSON"},
    {"page": 2, "size": 5},
]

BODIES = {
    "POST /tokens": tokens(),
    "PATCH /tokens/{id}": attributes(CHANGES),
    "POST /token-intents": intents(),
    "POST /tokenize": documents(tokens() | PLAIN, 4),
    "POST /detokenize": documents(references() | references() | PLAIN, 5),
    "POST /v2/tokens/search": searches({"start": one(None)}),
    "POST /tokens/search": searches({"page": one(1, 2)}),
    "POST /applications": applications(NEW_APPLICATION),
    "PUT /applications/{id}": applications(),
    "POST /enrichments/bank-account-verify": ACCOUNTS,
    "PUT /tenants/self/members/{id}": st.fixed_dictionaries({"role": one("ADMIN", "READ_ONLY")}),
    "POST /sessions/authorize": authorizations(),
    "PUT /tenants/self/owner": st.fixed_dictionaries({"member_id": MEMBERS}),
}
FORMULA_IDS = one("stripe-card", "ebanx-card", "not-there-card")
FORMULA_FILTERS = one(
    {"id": ["stripe-card", "adyen-card", "not there"]},
    {"currency": ["eur", "USD"], "country": ["DE"], "method": ["card"]},
    {"feature": ["void", "zero_auth"], "page": 2, "size": 5},
)
PATHS = {
    "GET /tokens/{id}": {"id": IDS},
    "PATCH /tokens/{id}": {"id": IDS},
    "DELETE /tokens/{id}": {"id": one(*DOOMED, "not there")},
    "GET /applications/{id}": {"id": APPLICATION_IDS},
    "PUT /applications/{id}": {"id": APPLICATION_IDS},
    "GET /applications/{id}/keys": {"id": APPLICATION_IDS},
    "POST /applications/{id}/keys": {"id": APPLICATION_IDS},
    "GET /applications/{id}/keys/{key_id}": one(*KEYS[:5]),
    "DELETE /applications/{id}/keys/{key_id}": one(*KEYS[5:], *KEYS[:1]),
    "PUT /tenants/self/members/{id}": {"id": MEMBERS},
    "GET /orchestration/connection_formulas/{id}": {"id": FORMULA_IDS},
    "GET /orchestration/connection/formulas/{id}": {"id": FORMULA_IDS},
}
LOG_FILTERS = [
    {"entity_type": "token"},
    {"entity_type": "card", "entity_id": CARD},
    {"entity_id": PERSON, "size": 3},
    {"start_date": "2020-01-01", "end_date": "2040-01-01T00:00:00Z"},
    {"page": 2, "size": 5},
    {"size": 5000},
]
QUERY = {
    "GET /v2/tokens": one(*FILTERS),
    "GET /tokens": one(*OLD_FILTERS),
    "GET /logs": one(*LOG_FILTERS),
    "GET /enrichments/card-details": one({"bin": "424242"}, {"bin": "99999999"}, {"bin": "4"}),
    "GET /orchestration/connection_formulas": FORMULA_FILTERS,
    "POST /orchestration/connection_formulas": FORMULA_FILTERS,
    "GET /orchestration/connection/formulas": FORMULA_FILTERS,
    "POST /orchestration/connection/formulas": FORMULA_FILTERS,
}

PARTS = [
    (ParameterLocation.BODY, "body", BODIES),
    (ParameterLocation.PATH, "path_parameters", PATHS),
    (ParameterLocation.QUERY, "query", QUERY),
]


def looked_up(case, draws: set):
    """The case with parts from here in four draws of five; their ids are noted in `draws`.

    What was meant to be wrong stays wrong.
    """
    label, meta = case.operation.label, case.meta
    if meta is None or meta.phase.name not in (TestPhase.FUZZING, TestPhase.STATEFUL):
        return st.just(case)
    parts = {}
    # A path that follows from an earlier answer goes where that says.
    for location, name, choices in PARTS[: 3 if meta.phase.name is TestPhase.FUZZING else 1]:
        drawn = meta.components.get(location)
        if label in choices and (drawn is None or drawn.mode.is_positive):
            strategy = choices[label]
            parts[name] = st.fixed_dictionaries(strategy) if isinstance(strategy, dict) else strategy

    def replace(values):
        if values is not None:
            for name, value in values.items():
                setattr(case, name, value)
            draws.add(case.id)
        return case

    if not parts:
        return st.just(case)
    known = st.fixed_dictionaries(parts)
    is_looked_up = st.sampled_from([True] * 4 + [False])
    return is_looked_up.flatmap(lambda yes: known if yes else st.none()).map(replace)
