-- The nodes that run, by their own word. Each tells of itself every few seconds, and a row that is not told
-- again is deleted a day later. How many there are says which share of a limit a node has by itself.
create table node (
    node_id uuid primary key,
    version text not null,
    started_at timestamptz not null,
    seen_at timestamptz not null
);
