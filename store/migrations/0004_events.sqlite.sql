-- What providers tell us by themselves: every event as it came, kept before
-- anything is made of it, and each one once.
create table events (
    id           bigint not null primary key, -- time-ordered, made by the program
    tenant_id    text   not null references tenants (tenant_id),
    rail         text   not null,
    event_id     text   not null check (event_id <> ''), -- the provider's; else the hash of the body
    signed       bigint not null check (signed in (0, 1)),
    contradicts  bigint not null check (contradicts in (0, 1)), -- an earlier one of the same id had other bytes
    seal         text   not null, -- JSON list of pairs: the headers that prove it
    body         blob   not null,
    sha256       text   not null,
    received_at  bigint not null,

    state        text   not null check (state in ('kept', 'matched', 'unmatched')), -- kept: nothing was made of it yet
    stamp        text   not null,
    receipt_id   text   not null,
    operation_id text   not null check ((operation_id <> '') = (state = 'matched')),
    sentence     text   not null,
    weighed_at   bigint not null
);
create unique index events_once on events (tenant_id, rail, event_id) where contradicts = 0;
create unique index events_copies on events (tenant_id, rail, event_id, sha256);
create index events_kept on events (id) where state = 'kept';
create index events_of on events (tenant_id, operation_id) where operation_id <> '';
create index events_unmatched_stamp on events (received_at, stamp) where state = 'unmatched' and stamp <> '';
create index events_unmatched_receipt on events (received_at, receipt_id) where state = 'unmatched' and stamp = '' and receipt_id <> '';

create trigger events_fixed before update on events
when new.id <> old.id or new.tenant_id <> old.tenant_id or new.rail <> old.rail or new.event_id <> old.event_id
  or new.signed <> old.signed or new.contradicts <> old.contradicts or new.seal <> old.seal or new.body <> old.body
  or new.sha256 <> old.sha256 or new.received_at <> old.received_at
  or (old.state = 'matched' and (new.state <> old.state or new.operation_id <> old.operation_id))
begin
    select raise(abort, 'an event is kept as it came, and belongs to one operation');
end;
create trigger events_no_overwrite before insert on events
when exists (select 1 from events where id = new.id)
begin
    select raise(abort, 'an event is kept as it came');
end;
create trigger events_no_delete before delete on events
begin
    select raise(abort, 'an event is never deleted');
end;
