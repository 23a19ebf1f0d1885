-- Who runs a job, until when, and up to which of its ticks it was begun. One row
-- a job: a tick is begun by comparing and setting ticked_for, so each of them is
-- begun once, whatever the clocks of the nodes say.
create table job_leases (
    job         text   not null primary key check (job <> ''),
    node        text   not null,
    fence       bigint not null check (fence > 0),
    lease_until bigint not null,
    ticked_for  bigint not null
);

-- Why a run was made (schedule, missed, person, command), by whom, and for which tick.
alter table job_runs add column why text not null default 'schedule';
alter table job_runs add column asked_by text not null default '';
alter table job_runs add column scheduled_for bigint not null default 0;
alter table job_runs add column fence bigint not null default 0;

-- When a rail last answered a look-up, and how long it has not.
create table rail_looks (
    tenant_id    text   not null references tenants (tenant_id),
    rail         text   not null,
    answered_at  bigint not null,
    silent_since bigint not null, -- 0: it answers
    silent_runs  bigint not null,
    ask_at       bigint not null, -- left alone until then
    primary key (tenant_id, rail)
);

-- The last re-check of an operation that ended, and since when its receipt was
-- not shown.
create table rechecks (
    tenant_id     text   not null,
    operation_id  text   not null,
    looked_at     bigint not null,
    finding       text   not null,
    missing_since bigint not null,
    primary key (tenant_id, operation_id),
    foreign key (tenant_id, operation_id) references operations (tenant_id, operation_id)
);
create index rechecks_missing on rechecks (missing_since) where missing_since > 0;

-- What contradicts an operation that ended, for a person to answer. No answer
-- changes the operation.
create table exceptions (
    id           text   not null primary key,
    tenant_id    text   not null,
    operation_id text   not null,
    kind         text   not null check (kind in ('receipt_gone', 'receipt_changed', 'late_effect', 'contradiction')),
    sentence     text   not null,
    evidence     text   not null, -- JSON list of ids
    owner        text   not null,
    opened_at    bigint not null,
    answered_at  bigint not null,
    answered_by  text   not null,
    answer       text   not null check (answered_at = 0 or answer <> ''),
    version      bigint not null check (version > 0),
    foreign key (tenant_id, operation_id) references operations (tenant_id, operation_id)
);
create unique index exceptions_open on exceptions (tenant_id, operation_id, kind) where answered_at = 0;
create index exceptions_of on exceptions (tenant_id, operation_id, kind);
create trigger exceptions_no_delete before delete on exceptions
begin
    select raise(abort, 'an exception is answered, never deleted');
end;
