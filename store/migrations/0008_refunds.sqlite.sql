-- What is owed is a sum over a journal that is only ever added to. The entry
-- keeps the sum of what is open beside it, for lists, and is held against the
-- journal.
create table refunds (
    number       bigint not null primary key, -- in the order of opening
    id           text   not null unique,
    tenant_id    text   not null,
    operation_id text,                        -- null: reported without one
    receipt_id   text   not null,             -- the effect that should not be
    direction    text   not null check (direction in ('we_owe', 'owed_to_us')),
    cause        text   not null check (cause in ('duplicate_charge', 'cross_rail_duplicate', 'orphan_charge', 'overcharge', 'not_delivered', 'late_effect', 'reported')),
    rail         text   not null,
    instrument   text   not null,             -- what it was paid with, where the provider says so
    currency     text   not null,
    amount       bigint not null check (amount >= 0),
    open         bigint not null check (open between 0 and amount),
    status       text   not null check (status in ('owed', 'settling', 'settled', 'waived')),
    customer     text   not null,
    source       text   not null check (source in ('evidence', 'report')),
    opened_by    text   not null,
    reason       text   not null,             -- in the words of who reported it
    reopened     bigint not null check (reopened >= 0), -- how often money that was settled came back
    version      bigint not null,             -- counts changes; forms carry it
    overdue_at   bigint not null,             -- when the log last said that it is overdue; 0: never
    due_at       bigint not null,
    opened_at    bigint not null,
    unique (tenant_id, rail, receipt_id),
    foreign key (tenant_id, operation_id) references operations (tenant_id, operation_id),
    check ((status in ('settled', 'waived')) = (open = 0))
);
insert into refunds (number, id, tenant_id, operation_id, receipt_id, direction, cause, rail, instrument, currency, amount, open, status, customer,
    source, opened_by, reason, reopened, version, overdue_at, due_at, opened_at)
select row_number() over (order by opened_at, id), id, tenant_id, operation_id, receipt_id, direction, cause, rail, '', currency, amount, amount,
    case when amount = 0 then 'settled' else 'owed' end, customer, 'evidence', '', '', 0, 1, 0, due_at, opened_at
from refunds_owed;
drop table refunds_owed;
alter table refunds rename to refunds_owed;
create index refunds_owed_due on refunds_owed (tenant_id, due_at, number);
create index refunds_owed_of on refunds_owed (tenant_id, operation_id);
create index refunds_owed_open on refunds_owed (due_at) where open > 0;

create trigger refunds_owed_no_delete before delete on refunds_owed
begin
    select raise(abort, 'a refund owed is settled or waived, never deleted');
end;
create trigger refunds_owed_no_overwrite before insert on refunds_owed
when exists (select 1 from refunds_owed where number = new.number or id = new.id
    or tenant_id = new.tenant_id and rail = new.rail and receipt_id = new.receipt_id)
begin
    select raise(abort, 'a refund owed is never overwritten');
end;
create trigger refunds_owed_fixed before update on refunds_owed
when new.number <> old.number or new.id <> old.id or new.tenant_id <> old.tenant_id or new.operation_id is not old.operation_id
  or new.receipt_id <> old.receipt_id or new.direction <> old.direction or new.cause <> old.cause or new.rail <> old.rail
  or new.currency <> old.currency or new.amount <> old.amount or new.customer <> old.customer or new.source <> old.source
  or new.opened_by <> old.opened_by or new.due_at <> old.due_at or new.opened_at <> old.opened_at or new.reopened < old.reopened
begin
    select raise(abort, 'what is owed, to whom and by when is kept as it was opened');
end;

-- Settlements: by an operation of ours, or by the proof of a refund that was made
-- elsewhere. What landed may still bounce.
create table refund_settlements (
    id           text   not null primary key,
    tenant_id    text   not null,
    entry        text   not null references refunds_owed (id),
    kind         text   not null check (kind in ('operation', 'proof')),
    operation_id text,
    proof        text   not null, -- the provider's refund id, a bank reference, a transaction hash
    checked      bigint not null check (checked in (0, 1)), -- the rail was asked and agreed
    rail         text   not null,
    amount       bigint not null check (amount > 0),
    currency     text   not null,
    paid_on      text   not null, -- a date, where somebody named one
    state        text   not null check (state in ('open', 'landed', 'fell', 'bounced')),
    reason       text   not null,
    by           text   not null,
    at           bigint not null,
    ended_at     bigint not null,
    foreign key (tenant_id, operation_id) references operations (tenant_id, operation_id) deferrable initially deferred,
    check ((kind = 'operation') = (operation_id is not null)),
    check (kind = 'operation' or proof <> ''),
    check ((state = 'open') = (ended_at = 0))
);
create unique index refund_settlements_one_open on refund_settlements (entry) where state = 'open';
create unique index refund_settlements_once on refund_settlements (tenant_id, rail, lower(proof)) where proof <> '';
create unique index refund_settlements_operation on refund_settlements (tenant_id, operation_id) where kind = 'operation';
create index refund_settlements_of on refund_settlements (entry, at);
create trigger refund_settlements_no_delete before delete on refund_settlements
begin
    select raise(abort, 'a settlement is never deleted');
end;
create trigger refund_settlements_no_overwrite before insert on refund_settlements
when exists (select 1 from refund_settlements where id = new.id)
begin
    select raise(abort, 'a settlement is never overwritten');
end;
create trigger refund_settlements_fixed before update on refund_settlements
when new.id <> old.id or new.tenant_id <> old.tenant_id or new.entry <> old.entry or new.kind <> old.kind
  or new.operation_id is not old.operation_id or new.rail <> old.rail or new.amount <> old.amount or new.currency <> old.currency
  or new.checked <> old.checked or new.paid_on <> old.paid_on or new.reason <> old.reason or new.by <> old.by or new.at <> old.at
  or (old.proof <> '' and new.proof <> old.proof)
  or not (old.state = new.state or old.state = 'open' and new.state in ('landed', 'fell') or old.state = 'landed' and new.state = 'bounced')
begin
    select raise(abort, 'a settlement is kept as it was made');
end;

-- Waivers: one person asks, another one waives.
create table refund_waivers (
    id         text   not null primary key,
    tenant_id  text   not null,
    entry      text   not null references refunds_owed (id),
    amount     bigint not null check (amount > 0),
    reason     text   not null check (reason <> ''),
    asked_by   text   not null,
    asked_at   bigint not null,
    waived_by  text   not null,
    agreement  text   not null, -- the second person's reason
    state      text   not null check (state in ('asked', 'waived', 'void')), -- void: it was settled meanwhile
    ended_at   bigint not null,
    check (lower(waived_by) <> lower(asked_by)),
    check ((state = 'waived') = (waived_by <> ''))
);
create unique index refund_waivers_one_asked on refund_waivers (entry) where state = 'asked';
create index refund_waivers_of on refund_waivers (entry, asked_at);
create trigger refund_waivers_no_delete before delete on refund_waivers
begin
    select raise(abort, 'a waiver is never deleted');
end;
create trigger refund_waivers_no_overwrite before insert on refund_waivers
when exists (select 1 from refund_waivers where id = new.id)
begin
    select raise(abort, 'a waiver is never overwritten');
end;
create trigger refund_waivers_fixed before update on refund_waivers
when old.state <> 'asked' or new.id <> old.id or new.tenant_id <> old.tenant_id or new.entry <> old.entry
  or new.reason <> old.reason or new.asked_by <> old.asked_by or new.asked_at <> old.asked_at
begin
    select raise(abort, 'a waiver is kept as it was given');
end;

-- The journal: each transaction moves amounts between the accounts of one entry,
-- and its postings add up to nothing in every currency. The postings come first,
-- and the transaction closes them: an unbalanced one is refused, and a posting
-- without its transaction does not commit.
create table refund_journal (
    id         bigint not null primary key,
    tenant_id  text   not null,
    entry      text   not null references refunds_owed (id),
    event      text   not null check (event in ('open', 'begin', 'land', 'fall', 'prove', 'waive', 'bounce')),
    settlement text   not null, -- empty: it is about none
    by         text   not null,
    reason     text   not null,
    at         bigint not null
);
create table refund_postings (
    transaction_id bigint not null references refund_journal (id) deferrable initially deferred,
    line           bigint not null,
    tenant_id      text   not null,
    entry          text   not null references refunds_owed (id),
    direction      text   not null,
    account        text   not null check (account in ('origin', 'open', 'settling', 'settled', 'waived')),
    customer       text   not null,
    rail           text   not null,
    currency       text   not null,
    amount         bigint not null check (amount <> 0),
    primary key (transaction_id, line)
);
create index refund_journal_of on refund_journal (entry, id);
create index refund_postings_of on refund_postings (entry, account);
create index refund_postings_tenant on refund_postings (tenant_id, account);
create trigger refund_journal_balanced before insert on refund_journal
when not exists (select 1 from refund_postings where transaction_id = new.id)
  or exists (select 1 from refund_postings where transaction_id = new.id and (tenant_id <> new.tenant_id or entry <> new.entry))
  or exists (select 1 from refund_postings where transaction_id = new.id group by currency having sum(amount) <> 0)
begin
    select raise(abort, 'the postings of a transaction add up to nothing in every currency');
end;
create trigger refund_postings_closed before insert on refund_postings
when exists (select 1 from refund_journal where id = new.transaction_id)
  or exists (select 1 from refund_postings where transaction_id = new.transaction_id and line = new.line)
begin
    select raise(abort, 'the journal is append-only');
end;
create trigger refund_journal_no_overwrite before insert on refund_journal
when exists (select 1 from refund_journal where id = new.id)
begin
    select raise(abort, 'the journal is append-only');
end;
create trigger refund_journal_no_update before update on refund_journal
begin
    select raise(abort, 'the journal is append-only');
end;
create trigger refund_journal_no_delete before delete on refund_journal
begin
    select raise(abort, 'the journal is append-only');
end;
create trigger refund_postings_no_update before update on refund_postings
begin
    select raise(abort, 'the journal is append-only');
end;
create trigger refund_postings_no_delete before delete on refund_postings
begin
    select raise(abort, 'the journal is append-only');
end;

-- What was owed before there was a journal.
insert into refund_postings (transaction_id, line, tenant_id, entry, direction, account, customer, rail, currency, amount)
select number, 1, tenant_id, id, direction, 'origin', customer, rail, currency, -amount from refunds_owed where amount > 0
union all
select number, 2, tenant_id, id, direction, 'open', customer, rail, currency, amount from refunds_owed where amount > 0;
insert into refund_journal (id, tenant_id, entry, event, settlement, by, reason, at)
select number, tenant_id, id, 'open', '', '', '', opened_at from refunds_owed where amount > 0;
