-- Search expressions that have a sub-key of their own.
--
-- A search names a value and no expression, so it computes one term for each row of its tenant. `number` bounds how many
-- there are; expressions beyond it share one sub-key. `digest` identifies the token type and the expression. Rows are
-- never removed. They are not authenticated: a search only looks for more or fewer terms, and every token that it
-- finds proves its terms itself.
create table search_expression (
    tenant_id integer not null,
    number smallint not null check (number between 1 and 32),
    digest bytea not null,
    primary key (tenant_id, number),
    unique (tenant_id, digest)
);
