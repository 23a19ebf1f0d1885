-- Names that lead back to an operation, runs with their budgets, and the order
-- in which operations wait for each other.

-- An id that was given out before anything was planned in detail.
create table intents (
    tenant_id    text   not null references tenants (tenant_id),
    operation_id text   not null,
    action_type  text   not null,
    reference    text   not null,
    run_id       text   not null,
    step         text   not null,
    quote        text   not null, -- JSON; empty: none
    quote_until  bigint not null,
    previous     text   not null, -- the id that this one follows
    agent        text   not null,
    token_id     text   not null,
    created_at   bigint not null,
    primary key (tenant_id, operation_id)
);

-- What a business calls a purchase, and the one operation that has the name.
-- The primary key settles who was first.
create table names (
    tenant_id    text   not null references tenants (tenant_id),
    action_type  text   not null,
    kind         text   not null check (kind in ('reference', 'step')),
    name         text   not null, -- the reference; or the run and the step as JSON
    operation_id text   not null,
    given_at     bigint not null,
    primary key (tenant_id, action_type, kind, name)
);
create index names_of on names (tenant_id, operation_id);

-- An operation waits until those it comes after are confirmed.
create table prerequisites (
    tenant_id    text not null,
    operation_id text not null,
    after_id     text not null,
    primary key (tenant_id, operation_id, after_id),
    foreign key (tenant_id, operation_id) references operations (tenant_id, operation_id)
);
create index prerequisites_of on prerequisites (tenant_id, after_id);

-- Pairs that a person has said to be two purchases: never asked again.
create table separations (
    tenant_id    text   not null,
    operation_id text   not null,
    earlier_id   text   not null,
    person       text   not null,
    reason       text   not null,
    at           bigint not null,
    primary key (tenant_id, operation_id, earlier_id)
);

-- What layers outside report: retries and fallbacks of their own.
create table run_reports (
    tenant_id text   not null,
    run_id    text   not null,
    layer     text   not null check (layer in ('http', 'tool', 'worker', 'workflow', 'model', 'repeat', 'mark')),
    count     bigint not null check (count >= 0),
    primary key (tenant_id, run_id, layer)
);
create index runs_children on runs (tenant_id, parent_run_id) where parent_run_id <> '';
create index operations_cached on operations (tenant_id, agent, action_type, fingerprint, updated_at) where status = 'confirmed';

-- Whether an operation already stands for one that ended.
create index operations_replaces on operations (tenant_id, replaces) where replaces <> '';
