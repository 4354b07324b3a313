-- Sinks that receive the entries of the audit log read those of the last seconds of all tenants. Entries are appended in the
-- order of their time, so an index over ranges of pages is enough: a few kilobytes a day, which inserts hardly touch.
create index log_by_creation on log using brin (created_at) with (pages_per_range = 16, autosummarize = on);
