-- Hosted pages: the branding of tenants, and sessions of the hosted card form.

-- One row per tenant. `branding_id` changes with every change, so that browsers can cache logo and colors by it.
-- Colors are `#rrggbb`. `logo_type`: 1 PNG, 2 JPEG, 3 WebP. `row_mac` covers every column except the times: a row that
-- was written by SQL is not shown to cardholders.
create table branding (
    tenant_id integer primary key,
    branding_id uuid not null,
    name text,
    accent text,
    accent_text text,
    dark_accent text,
    dark_accent_text text,
    logo bytea,
    logo_type smallint check (logo_type between 1 and 3),
    created_by uuid not null,
    created_at timestamptz not null default now(),
    row_mac bytea not null
);
create unique index branding_by_id on branding (branding_id);

-- `page_digest` is the digest of the secret in the page's URL. `sealed` holds everything else about a session and
-- is bound to state, expiry and version: a row that was changed by SQL cannot be decrypted. States: 1 open, 2 complete.
create table checkout_session (
    tenant_id integer not null,
    session_id uuid not null,
    row_version integer not null,
    state smallint not null check (state between 1 and 2),
    page_digest bytea not null,
    sealed bytea not null,
    created_by uuid not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    primary key (tenant_id, session_id)
);
create unique index checkout_session_by_page on checkout_session (page_digest);
create index checkout_session_expiry on checkout_session (expires_at);
