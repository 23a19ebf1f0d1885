-- The ledger. Times are Unix milliseconds UTC, 0 means "not set"; amounts are
-- minor units. Bodies are kept as the bytes that were hashed.

create table meta (
    key   text not null primary key,
    value text not null
);

create table tenants (
    tenant_id  text   not null primary key check (tenant_id <> ''),
    created_at bigint not null
);

create table operations (
    id             bigint  not null primary key, -- time-ordered, made by the program
    tenant_id      text    not null references tenants (tenant_id) check (tenant_id <> ''),
    operation_id   text    not null check (operation_id <> ''),
    order_id       text    not null unique,
    provider_key   text    not null,

    action_type    text    not null,
    action_version text    not null,
    effect         text    not null,
    fingerprint    text    not null,
    canonical      blob    not null,
    payload        blob    not null,
    amount         bigint  check (amount >= 0), -- null: the payload names no amount
    currency       text    not null,
    recipient      text    not null,
    reference      text    not null,
    reference_key  text    not null, -- as overlap compares it: case, width and blanks do not count
    account        text    not null,
    customer       text    not null,
    refund_of      text    not null,
    rail           text    not null,
    rail_address   text    not null,
    rail_account   text    not null,
    row_hash       text    not null,

    agent          text    not null,
    token_id       text    not null,
    owner          text    not null,
    run_id         text    not null,
    parent_run_id  text    not null,
    step           text    not null,
    distinct_from  text    not null, -- JSON list
    because        text    not null,
    replaces       text    not null,
    after_ids      text    not null, -- JSON list
    overlaps       text    not null, -- JSON list
    duplicate_of   text    not null,

    policy_version text    not null,
    policy_row     text    not null,
    asked          text    not null, -- JSON
    asked_until    bigint  not null,

    status         text    not null check (status in ('awaiting_approval', 'ready', 'in_flight', 'unknown', 'unknown_hold', 'confirmed', 'rejected')),
    reason         text    not null check (
                       (status = 'unknown_hold' and reason in ('same_reference', 'same_recipient_amount', 'same_step', 'exact_repeat', 'claims_exhausted',
                           'inconclusive', 'evidence_conflict', 'key_expired', 'attempts_exhausted', 'budget_exhausted', 'receipt_mismatch', 'authority_gone', 'restored'))
                    or (status = 'rejected' and reason in ('denied', 'approval_expired', 'cancelled', 'policy_denied', 'declined', 'not_executed', 'replaced',
                           'prerequisite_rejected', 'run_stopped', 'authority_gone', 'observed', 'duplicate'))
                    or (status not in ('unknown_hold', 'rejected') and reason = '')),
    detail         text    not null,
    version        bigint  not null check (version > 0),
    attempts       bigint  not null check (attempts >= 0),
    open_attempts  bigint  not null check (open_attempts between 0 and attempts),
    claims         bigint  not null,
    released       bigint  not null check (released in (0, 1)),
    look_only      bigint  not null check (look_only in (0, 1)),
    accepted       bigint  not null check (accepted in (0, 1)),
    quarantined    bigint  not null check (quarantined in (0, 1)),
    ever_unknown   bigint  not null check (ever_unknown in (0, 1)),

    epoch          bigint  not null,
    fence          bigint  not null check (fence >= 0),
    lease_owner    text    not null,
    lease_until    bigint  not null,

    next_send_at   bigint  not null,
    next_look_at   bigint  not null,
    looks          bigint  not null,
    first_mark_at  bigint  not null,
    unknown_since  bigint  not null,
    last_send_by   bigint  not null,
    quiet_from     bigint  not null,

    receipt_id     text    not null,
    receipt        blob,             -- the receipt as JSON; null until confirmed
    receipt_raw    blob,             -- the provider's record as it wrote it
    created_at     bigint  not null,
    updated_at     bigint  not null,

    unique (tenant_id, operation_id),
    unique (tenant_id, provider_key)
);

create index operations_newest on operations (tenant_id, id);
create index operations_status on operations (tenant_id, status, id);
create index operations_reference on operations (tenant_id, effect, reference_key) where reference_key <> '';
create index operations_money on operations (tenant_id, effect, recipient, currency, amount, reference_key) where recipient <> '';
create index operations_unclear on operations (tenant_id, effect, recipient, currency, amount)
    where recipient <> '' and (status in ('in_flight', 'unknown', 'unknown_hold') or open_attempts > 0 or quarantined = 1);
create index operations_alias on operations (tenant_id, effect, recipient, currency, amount) where recipient <> '' and duplicate_of <> '';
create index operations_step on operations (tenant_id, effect, step, run_id) where step <> '';
create index operations_child_step on operations (tenant_id, effect, step, parent_run_id) where step <> '' and parent_run_id <> '';
create index operations_run on operations (tenant_id, run_id) where run_id <> '';
create index operations_receipt on operations (tenant_id, receipt_id) where receipt_id <> '';
create index operations_fingerprint on operations (tenant_id, fingerprint);
create index operations_to_send on operations (tenant_id, rail, next_send_at, id) where status = 'ready' or (status = 'unknown' and next_send_at > 0);
create index operations_to_look on operations (next_look_at) where next_look_at > 0;
create index operations_sending on operations (lease_until) where status = 'in_flight';
create index operations_unplanned on operations (lease_until) where status = 'unknown' and next_look_at = 0 and next_send_at = 0;
create index operations_asked on operations (asked_until) where status = 'awaiting_approval';

-- The bytes that go on the wire, kept with the first mark; the same each time.
create table requests (
    tenant_id    text   not null,
    operation_id text   not null,
    method       text   not null,
    url          text   not null,
    header       text   not null, -- JSON list of pairs, secrets left out
    body         blob   not null,
    sha256       text   not null,
    display      text   not null,
    created_at   bigint not null,
    primary key (tenant_id, operation_id),
    foreign key (tenant_id, operation_id) references operations (tenant_id, operation_id)
);

create table attempts (
    tenant_id      text   not null,
    operation_id   text   not null,
    number         bigint not null check (number > 0),
    epoch          bigint not null,
    fence          bigint not null,
    worker         text   not null,
    provider_key   text   not null,
    address        text   not null,
    account        text   not null,
    request_sha256 text   not null,
    marked_at      bigint not null,
    send_by        bigint not null,
    outcome        text   not null check (outcome in ('open', 'unknown', 'receipt', 'declined', 'not_sent')),
    outcome_at     bigint not null,
    http_status    bigint not null,
    sentence       text   not null,
    primary key (tenant_id, operation_id, number),
    unique (tenant_id, operation_id, epoch, fence), -- one mark a lease
    foreign key (tenant_id, operation_id) references operations (tenant_id, operation_id)
);

create table approvals (
    id             text   not null primary key,
    tenant_id      text   not null,
    operation_id   text   not null,
    decision       text   not null check (decision in ('approve', 'reject', 'ask-changes')),
    fingerprint    text   not null,
    policy_version text   not null,
    rail_address   text   not null,
    rail_account   text   not null,
    person_id      text   not null,
    person_email   text   not null,
    self_approved  bigint not null check (self_approved in (0, 1)),
    reason         text   not null,
    decided_at     bigint not null,
    expires_at     bigint not null,
    spent_at       bigint not null,
    voided_at      bigint not null,
    foreign key (tenant_id, operation_id) references operations (tenant_id, operation_id)
);
-- One person counts once.
create unique index approvals_one_voice on approvals (tenant_id, operation_id, person_id) where decision = 'approve' and voided_at = 0;
create index approvals_of on approvals (tenant_id, operation_id, decided_at);

create table evidence (
    id           text   not null primary key,
    tenant_id    text   not null,
    operation_id text   not null,
    attempt      bigint not null,
    source       text   not null,
    finding      text   not null,
    sentence     text   not null,
    body         blob   not null,
    sha256       text   not null,
    recorded_by  text   not null,
    at           bigint not null,
    foreign key (tenant_id, operation_id) references operations (tenant_id, operation_id)
);
create index evidence_of on evidence (tenant_id, operation_id, at);

-- Everything that ever happened, in order. The next four triggers keep it so,
-- whoever opens the file.
create table action_log (
    seq          bigint not null primary key,
    tenant_id    text   not null,
    operation_id text   not null,
    object       text   not null,
    object_id    text   not null,
    event        text   not null,
    actor_kind   text   not null,
    actor        text   not null,
    from_status  text   not null,
    to_status    text   not null,
    reason       text   not null,
    sentence     text   not null,
    fact         text   not null, -- JSON
    at           bigint not null
);
create index action_log_of on action_log (tenant_id, operation_id, seq) where operation_id <> '';
create index action_log_tenant on action_log (tenant_id, seq);

create trigger action_log_no_update before update on action_log
begin
    select raise(abort, 'the action log is append-only');
end;
create trigger action_log_no_delete before delete on action_log
begin
    select raise(abort, 'the action log is append-only');
end;
create trigger action_log_no_overwrite before insert on action_log
when exists (select 1 from action_log where seq = new.seq)
begin
    select raise(abort, 'the action log is append-only');
end;
create trigger action_log_in_order before insert on action_log
when new.seq <> coalesce((select max(seq) from action_log), 0) + 1
begin
    select raise(abort, 'the action log has no gaps');
end;

-- Identities are never freed, evidence is never lost, attempts are never undone.
create trigger operations_no_delete before delete on operations
begin
    select raise(abort, 'an operation is never deleted');
end;
create trigger operations_no_overwrite before insert on operations
when exists (select 1 from operations where tenant_id = new.tenant_id and operation_id = new.operation_id)
begin
    select raise(abort, 'an operation is never overwritten');
end;
create trigger operations_final before update on operations
when old.status in ('confirmed', 'rejected') and (new.status <> old.status or new.reason <> old.reason
  or new.receipt_id <> old.receipt_id or new.duplicate_of <> old.duplicate_of)
begin
    select raise(abort, 'nothing leads out of confirmed or rejected');
end;
create trigger operations_identity before update on operations
when new.tenant_id <> old.tenant_id or new.operation_id <> old.operation_id or new.order_id <> old.order_id
  or new.fingerprint <> old.fingerprint or new.canonical <> old.canonical or new.payload <> old.payload
  or (old.attempts > 0 and (new.provider_key <> old.provider_key or new.row_hash <> old.row_hash))
begin
    select raise(abort, 'what an operation is was fixed when it was registered');
end;
create trigger requests_no_update before update on requests
begin
    select raise(abort, 'a request is kept as it was first sent');
end;
create trigger requests_no_delete before delete on requests
begin
    select raise(abort, 'a request is kept as it was first sent');
end;
create trigger requests_no_overwrite before insert on requests
when exists (select 1 from requests where tenant_id = new.tenant_id and operation_id = new.operation_id)
begin
    select raise(abort, 'a request is kept as it was first sent');
end;
create trigger attempts_no_delete before delete on attempts
begin
    select raise(abort, 'an attempt is never deleted');
end;
create trigger attempts_no_overwrite before insert on attempts
when exists (select 1 from attempts where tenant_id = new.tenant_id and operation_id = new.operation_id and number = new.number)
begin
    select raise(abort, 'an attempt is never overwritten');
end;
-- Only what became of an attempt is written later, and what is definite stays;
-- a receipt alone outlives a definite no.
create trigger attempts_fixed before update on attempts
when new.tenant_id <> old.tenant_id or new.operation_id <> old.operation_id or new.number <> old.number
  or new.epoch <> old.epoch or new.fence <> old.fence or new.worker <> old.worker or new.provider_key <> old.provider_key
  or new.address <> old.address or new.account <> old.account or new.request_sha256 <> old.request_sha256
  or new.marked_at <> old.marked_at or new.send_by <> old.send_by
  or (old.outcome in ('receipt', 'declined', 'not_sent') and new.outcome not in (old.outcome, 'receipt'))
begin
    select raise(abort, 'an attempt is kept as it was marked');
end;
create trigger approvals_no_delete before delete on approvals
begin
    select raise(abort, 'an approval is spent or voided, never deleted');
end;
create trigger approvals_fixed before update on approvals
when new.id <> old.id or new.tenant_id <> old.tenant_id or new.operation_id <> old.operation_id or new.decision <> old.decision
  or new.fingerprint <> old.fingerprint or new.policy_version <> old.policy_version
  or new.rail_address <> old.rail_address or new.rail_account <> old.rail_account
  or new.person_id <> old.person_id or new.person_email <> old.person_email or new.self_approved <> old.self_approved
  or new.decided_at <> old.decided_at or new.expires_at <> old.expires_at
  or (old.spent_at > 0 and new.spent_at <> old.spent_at) or (old.voided_at > 0 and new.voided_at <> old.voided_at)
begin
    select raise(abort, 'an approval is kept as it was given');
end;
create trigger evidence_no_update before update on evidence
begin
    select raise(abort, 'evidence is never changed');
end;
create trigger evidence_no_overwrite before insert on evidence
when exists (select 1 from evidence where id = new.id)
begin
    select raise(abort, 'evidence is never changed');
end;
create trigger evidence_no_delete before delete on evidence
begin
    select raise(abort, 'evidence is never deleted');
end;

-- Every policy and action type that was ever in force, by hash.
create table versions (
    tenant_id text   not null,
    kind      text   not null check (kind in ('action_type', 'policy')),
    name      text   not null,
    hash      text   not null,
    body      text   not null,
    first_at  bigint not null,
    primary key (tenant_id, kind, name, hash)
);

create table people (
    id            text   not null primary key,
    tenant_id     text   not null references tenants (tenant_id),
    email         text   not null unique, -- lower case
    name          text   not null,
    roles         text   not null, -- JSON list
    password_hash text   not null, -- empty: cannot sign in with a password
    created_at    bigint not null,
    disabled_at   bigint not null
);

create table sessions (
    token_hash  text   not null primary key, -- SHA-256 of what the cookie holds
    person_id   text   not null references people (id),
    created_at  bigint not null,
    seen_at     bigint not null,
    expires_at  bigint not null,
    user_agent  text   not null
);

create table sign_in_failures (
    subject  text   not null primary key, -- an e-mail or an address
    count    bigint not null,
    last_at  bigint not null
);

create table setup_codes (
    code_hash  text   not null primary key,
    created_at bigint not null,
    expires_at bigint not null,
    tries      bigint not null,
    used_at    bigint not null
);

create table signing_keys (
    kid        text   not null primary key,
    private    blob   not null, -- Ed25519 seed
    created_at bigint not null,
    retired_at bigint not null
);

create table tokens (
    id           text   not null primary key, -- the jti
    tenant_id    text   not null references tenants (tenant_id),
    agent        text   not null,
    owner        text   not null,
    scopes       text   not null, -- JSON list
    action_types text   not null, -- JSON list; empty: all
    rails        text   not null, -- JSON list; empty: all
    max_amount   bigint,
    currency     text   not null,
    created_at   bigint not null,
    expires_at   bigint not null,
    revoked_at   bigint not null
);
create index tokens_of on tokens (tenant_id, created_at);

create table job_runs (
    id          bigint not null primary key,
    job         text   not null,
    node        text   not null,
    started_at  bigint not null,
    finished_at bigint not null,
    looked_at   bigint not null,
    resolved    bigint not null,
    held        bigint not null,
    opened      bigint not null,
    problems    text   not null -- JSON list of sentences
);
create index job_runs_of on job_runs (job, started_at);

-- Money that went out twice. One entry an effect.
create table refunds_owed (
    id           text   not null primary key,
    tenant_id    text   not null,
    operation_id text   not null,
    receipt_id   text   not null,
    direction    text   not null check (direction in ('we_owe', 'owed_to_us')),
    cause        text   not null,
    rail         text   not null,
    currency     text   not null,
    amount       bigint not null check (amount >= 0),
    open         bigint not null check (open between 0 and amount),
    status       text   not null check (status in ('owed', 'settling', 'settled', 'waived')),
    customer     text   not null,
    due_at       bigint not null,
    opened_at    bigint not null,
    unique (tenant_id, rail, receipt_id),
    foreign key (tenant_id, operation_id) references operations (tenant_id, operation_id)
);
create trigger refunds_owed_no_delete before delete on refunds_owed
begin
    select raise(abort, 'a refund owed is settled or waived, never deleted');
end;

-- Runs and their retry budgets; filled when run budgets are in force.
create table runs (
    tenant_id     text   not null references tenants (tenant_id),
    run_id        text   not null,
    parent_run_id text   not null,
    max_attempts  bigint not null,
    deadline      bigint not null,
    used          bigint not null,
    stopped_at    bigint not null,
    created_at    bigint not null,
    primary key (tenant_id, run_id)
);
