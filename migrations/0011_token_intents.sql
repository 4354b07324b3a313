-- Short-lived placeholders for data that may become a token. One row each, gone with it.
--
-- A security code lies in the same row under a key of its own, as in `security_code`: it may end before
-- the intent does, and no backup opens it afterwards.
create table token_intent (
    tenant_id integer not null,
    intent_id uuid not null,
    kind smallint not null,
    fingerprint bytea,
    sealed bytea not null,
    created_by uuid not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    code_key_id bytea,
    code_sealed bytea,
    code_until timestamptz,
    primary key (tenant_id, intent_id)
);
alter table token_intent alter column sealed set storage external;
-- For the sweep alone, which takes the oldest rows of all tenants.
create index token_intent_by_expiry on token_intent (expires_at);
create index token_intent_by_code on token_intent (code_until) where code_until is not null;
