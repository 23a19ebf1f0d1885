-- What providers and banks say happened on an account, and which of our
-- operations each line of it is.

-- One file that was taken in. Its lines are written before it can be seen:
-- visible_at is set by one commit, when all of them are there.
create table statements (
    id            text   not null primary key,
    tenant_id     text   not null references tenants (tenant_id),
    rail          text   not null,
    account       text   not null check (account <> ''),
    format        text   not null,
    file_name     text   not null,
    sha256        text   not null,
    currency      text   not null,
    from_at       bigint not null,
    to_at         bigint not null check (to_at >= from_at),
    opening       bigint, -- null: the file states none
    closing       bigint,
    total         bigint not null, -- of the amounts of all its lines, also of those that were there before
    lines         bigint not null check (lines >= 0),
    already       bigint not null check (already between 0 and lines),
    warnings      text   not null, -- JSON list of sentences
    notes         text   not null, -- JSON list of sentences
    imported_by   text   not null,
    started_at    bigint not null,
    visible_at    bigint not null, -- 0: its lines are still being written
    undone_at     bigint not null,
    undone_by     text   not null,
    undone_reason text   not null,
    check (undone_at = 0 or visible_at > 0)
);
create unique index statements_once on statements (tenant_id, rail, account, sha256) where undone_at = 0;
create index statements_of on statements (tenant_id, rail, account, from_at) where visible_at > 0 and undone_at = 0;
create index statements_unfinished on statements (started_at) where visible_at = 0;

-- identity is the line's own name on the account, else the hash of what the file
-- says of it; occurrence counts equal ones: two equal lines are two.
create table statement_lines (
    id            bigint not null primary key, -- time-ordered, made by the program
    statement_id  text   not null references statements (id),
    tenant_id     text   not null,
    rail          text   not null,
    account       text   not null,
    identity      text   not null check (identity <> ''),
    occurrence    bigint not null check (occurrence > 0),
    number        bigint not null,
    line_id       text   not null,
    provider_id   text   not null,
    stamp         text   not null,
    hash          text   not null,
    kind          text   not null check (kind in ('', 'charge', 'refund', 'payout', 'fee', 'dispute', 'transfer', 'adjustment')),
    amount        bigint not null, -- signed as the account sees it
    gross         bigint not null,
    fee           bigint not null,
    currency      text   not null,
    booked_at     bigint not null,
    counted_at    bigint not null check (counted_at >= booked_at), -- later than booked where its own period was closed before it came
    date_only     bigint not null check (date_only in (0, 1)),
    counterparty  text   not null,
    reference     text   not null,
    reference_key text   not null, -- as overlap compares it
    batch         text   not null,
    text          text   not null,
    content       text   not null,

    state         text   not null check (state in ('unmatched', 'suggested', 'matched', 'set_aside')),
    finding       text   not null check (finding in ('', 'not_ours', 'amount_differs', 'twice', 'late_effect', 'contradicts', 'probable_pair', 'answers_unknown')),
    operation_id  text   not null, -- what is suggested, or what the finding is about
    rule          text   not null,
    sentence      text   not null,
    not_this      text   not null, -- JSON list of operations that a person said it is not
    owner         text   not null,
    snoozed_until bigint not null,
    answered_by   text   not null,
    reason        text   not null check (state <> 'set_aside' or reason <> ''),
    version       bigint not null check (version > 0),
    weighed_at    bigint not null, -- 0: matching has not looked at it
    undone        bigint not null check (undone in (0, 1))
);
create unique index statement_lines_once on statement_lines (tenant_id, rail, account, identity, occurrence) where undone = 0;
create index statement_lines_of on statement_lines (statement_id, id);
create index statement_lines_open on statement_lines (tenant_id, rail, state, id) where undone = 0 and state in ('unmatched', 'suggested');
create index statement_lines_unweighed on statement_lines (id) where undone = 0 and weighed_at = 0 and state in ('unmatched', 'suggested');
create index statement_lines_provider on statement_lines (tenant_id, rail, provider_id) where provider_id <> '';
create index statement_lines_stamp on statement_lines (tenant_id, rail, stamp) where stamp <> '';
create index statement_lines_reference on statement_lines (tenant_id, rail, reference_key) where reference_key <> '';
create index statement_lines_about on statement_lines (tenant_id, operation_id) where operation_id <> '';

-- A match is what belongs together, and by which rule. It is ended, never deleted.
create table statement_matches (
    id            text   not null primary key,
    tenant_id     text   not null references tenants (tenant_id),
    rail          text   not null,
    rule          text   not null check (rule in ('provider_id', 'stamp', 'hash', 'reference', 'person')),
    difference    bigint not null, -- what the lines show less what the operations come to
    explained_as  text   not null check (explained_as in ('', 'fee', 'fx', 'rounding', 'other')),
    explained     text   not null check (explained_as <> 'other' or explained <> ''),
    matched_by    text   not null,
    reason        text   not null,
    at            bigint not null,
    ended_at      bigint not null,
    ended_by      text   not null,
    ended_reason  text   not null check (ended_at = 0 or ended_reason <> ''),
    check (difference = 0 or explained_as <> '')
);

-- What stands on either side of a match: lines, and operations.
create table statement_sides (
    match_id     text   not null references statement_matches (id),
    tenant_id    text   not null,
    line_id      bigint references statement_lines (id), -- null: the side is an operation
    operation_id text   not null,
    amount       bigint not null, -- as the account sees it
    live         bigint not null check (live in (0, 1)),
    check ((line_id is null) <> (operation_id = '')),
    foreign key (tenant_id) references tenants (tenant_id)
);
create unique index statement_sides_line on statement_sides (line_id) where live = 1 and line_id is not null;
create unique index statement_sides_operation on statement_sides (tenant_id, operation_id) where live = 1 and operation_id <> '';
create index statement_sides_match on statement_sides (match_id);
create index statement_sides_lines on statement_sides (line_id);

-- A confirmed operation that no statement shows although one should.
create table statement_absences (
    tenant_id     text   not null,
    operation_id  text   not null,
    rail          text   not null,
    confirmed_at  bigint not null,
    opened_at     bigint not null,
    ended_at      bigint not null, -- it was seen after all
    owner         text   not null,
    snoozed_until bigint not null,
    answered_by   text   not null,
    answered_at   bigint not null,
    reason        text   not null check (answered_at = 0 or reason <> ''),
    version       bigint not null check (version > 0),
    primary key (tenant_id, operation_id),
    foreign key (tenant_id, operation_id) references operations (tenant_id, operation_id)
);
create index statement_absences_open on statement_absences (tenant_id, rail, confirmed_at) where ended_at = 0 and answered_at = 0;

-- How far the operations of a rail were held against its statements.
create table statement_sweeps (
    tenant_id text   not null references tenants (tenant_id),
    rail      text   not null,
    after_id  bigint not null, -- row of the last operation that needs no more looking
    primary key (tenant_id, rail)
);

-- How a person said that files of this shape are to be read.
create table statement_mappings (
    tenant_id   text   not null references tenants (tenant_id),
    rail        text   not null,
    fingerprint text   not null, -- of the header
    answers     text   not null, -- JSON
    by          text   not null,
    at          bigint not null,
    primary key (tenant_id, rail, fingerprint)
);

-- An account is closed up to a moment: what counts before it stays as it is.
create table statement_periods (
    tenant_id text   not null references tenants (tenant_id),
    rail      text   not null,
    account   text   not null,
    until     bigint not null check (until > 0),
    closed_by text   not null,
    closed_at bigint not null,
    sheet     text   not null, -- JSON: what was counted
    primary key (tenant_id, rail, account, until)
);

create trigger statements_fixed before update on statements
when new.id <> old.id or new.tenant_id <> old.tenant_id or new.rail <> old.rail or new.account <> old.account
  or new.sha256 <> old.sha256 or (old.visible_at > 0 and (new.visible_at <> old.visible_at or new.lines <> old.lines or new.total <> old.total))
  or (old.undone_at > 0 and new.undone_at <> old.undone_at)
begin
    select raise(abort, 'a statement is kept as it was taken in');
end;
create trigger statements_no_delete before delete on statements when old.visible_at > 0
begin
    select raise(abort, 'a statement is undone, never deleted');
end;
create trigger statements_no_undo_when_closed before update on statements
when new.undone_at > 0 and old.undone_at = 0 and exists (
    select 1 from statement_periods p where p.tenant_id = old.tenant_id and p.rail = old.rail and p.account = old.account and p.until > old.from_at
      and exists (select 1 from statement_lines l where l.statement_id = old.id and l.counted_at < p.until))
begin
    select raise(abort, 'the period is closed');
end;

create trigger statement_lines_no_delete before delete on statement_lines
when exists (select 1 from statements s where s.id = old.statement_id and s.visible_at > 0)
begin
    select raise(abort, 'a statement line is undone, never deleted');
end;
create trigger statement_lines_no_overwrite before insert on statement_lines
when exists (select 1 from statement_lines where id = new.id)
begin
    select raise(abort, 'a statement line is kept as it was read');
end;
create trigger statement_lines_in_open_period before insert on statement_lines
when exists (select 1 from statement_periods p where p.tenant_id = new.tenant_id and p.rail = new.rail and p.account = new.account and p.until > new.counted_at)
begin
    select raise(abort, 'the period is closed');
end;
create trigger statement_lines_fixed before update on statement_lines
when new.id <> old.id or new.statement_id <> old.statement_id or new.tenant_id <> old.tenant_id or new.rail <> old.rail or new.account <> old.account
  or new.identity <> old.identity or new.occurrence <> old.occurrence or new.provider_id <> old.provider_id or new.stamp <> old.stamp
  or new.hash <> old.hash or new.kind <> old.kind or new.amount <> old.amount or new.gross <> old.gross or new.fee <> old.fee
  or new.currency <> old.currency or new.booked_at <> old.booked_at or new.counted_at <> old.counted_at
  or new.reference <> old.reference or new.content <> old.content or (old.undone = 1 and new.undone = 0)
begin
    select raise(abort, 'a statement line is kept as it was read');
end;
create trigger statement_lines_closed before update on statement_lines
when (new.state <> old.state or new.undone <> old.undone)
  and exists (select 1 from statement_periods p where p.tenant_id = old.tenant_id and p.rail = old.rail and p.account = old.account and p.until > old.counted_at)
begin
    select raise(abort, 'the period is closed');
end;

create trigger statement_matches_fixed before update on statement_matches
when new.id <> old.id or new.tenant_id <> old.tenant_id or new.rule <> old.rule or new.difference <> old.difference
  or new.explained_as <> old.explained_as or new.matched_by <> old.matched_by or new.at <> old.at
  or (old.ended_at > 0 and new.ended_at <> old.ended_at)
begin
    select raise(abort, 'a match is ended, never changed');
end;
create trigger statement_matches_no_delete before delete on statement_matches
begin
    select raise(abort, 'a match is ended, never deleted');
end;
create trigger statement_sides_fixed before update on statement_sides
when new.match_id <> old.match_id or new.line_id is not old.line_id or new.operation_id <> old.operation_id or new.amount <> old.amount
  or (old.live = 0 and new.live = 1)
begin
    select raise(abort, 'a match is ended, never changed');
end;
create trigger statement_sides_no_delete before delete on statement_sides
begin
    select raise(abort, 'a match is ended, never deleted');
end;
create trigger statement_absences_no_delete before delete on statement_absences
begin
    select raise(abort, 'an exception is answered, never deleted');
end;
create trigger statement_periods_fixed before update on statement_periods
begin
    select raise(abort, 'the period is closed');
end;
create trigger statement_periods_no_delete before delete on statement_periods
begin
    select raise(abort, 'the period is closed');
end;
