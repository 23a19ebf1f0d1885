-- What people and tests say about a rail, beside its configuration.

-- A rail that a person has paused: nothing is claimed or marked for it.
create table rail_pauses (
    tenant_id text   not null references tenants (tenant_id),
    rail      text   not null,
    person    text   not null,
    reason    text   not null,
    at        bigint not null,
    primary key (tenant_id, rail)
);

-- What a rail did when it was last tested against a test account.
create table rail_tests (
    id        bigint not null primary key,
    tenant_id text   not null references tenants (tenant_id),
    rail      text   not null,
    by        text   not null,
    at        bigint not null,
    findings  text   not null -- JSON list of {check, promised, seen, passed}
);
create index rail_tests_of on rail_tests (tenant_id, rail, at);

-- What happened to a rail, a run, a person or a token: who did it and why.
create index action_log_object on action_log (tenant_id, object, object_id, seq) where operation_id = '';

-- What was to be sent again and was not: its rail rests, say, or has gone.
create index operations_overdue on operations (next_send_at)
    where status = 'unknown' and next_send_at > 0 or status = 'ready' and attempts > 0;
