-- What one tenant may use, where that differs from the deployment's settings: a JSON object, covered by
-- the row's digest.
alter table tenant add column quotas text not null default '{}';
