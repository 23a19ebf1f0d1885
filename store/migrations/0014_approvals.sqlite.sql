-- What a person who said no pointed at, and how long an approval was looked at.
alter table approvals add column pointers text not null default ''; -- JSON list of JSON Pointers into the payload; empty: none
alter table approvals add column shown_ms bigint not null default -1; -- from the drawing of the page to the approval; -1: not known

create trigger approvals_said_fixed before update on approvals
when new.pointers <> old.pointers or new.shown_ms <> old.shown_ms
begin
    select raise(abort, 'an approval is kept as it was given');
end;

-- The last approvals of a tenant, and how long each took.
create index approvals_given on approvals (tenant_id, decided_at) where decision = 'approve';
