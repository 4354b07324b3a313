-- 3-D Secure sessions end, and what is sensitive in them ends first.
--
-- `details_until` is when authentication values, device data and messages of issuers are removed from `sealed`.
-- `token_id` is the token that a session was created for: a session is deleted with its token. Sessions that were finished
-- before this migration have no `expires_at`; the sweep gives them one.
alter table threeds_session add column details_until timestamptz;
alter table threeds_session add column token_id uuid;
create index threeds_session_by_details on threeds_session (details_until) where details_until is not null;
create index threeds_session_by_token on threeds_session (tenant_id, token_id) where token_id is not null;
create index threeds_session_without_end on threeds_session (session_id) where expires_at is null;
