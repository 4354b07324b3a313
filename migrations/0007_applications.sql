-- What the sweep looks for every few seconds: few applications ever expire.
create index application_by_expiry on application (expires_at) where expires_at is not null;
