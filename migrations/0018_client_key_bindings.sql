-- What a client encryption key may be used for: by one application, in one container and those below it. Null: any.
-- Both are authenticated with the private half, like its expiry.
alter table client_key
    add column application_id uuid,
    add column container text;
