-- What a person who said no pointed at.
alter table approvals add column pointers text not null default ''; -- JSON list of JSON Pointers into the payload; empty: none

create trigger approvals_said_fixed before update on approvals
when new.pointers <> old.pointers
begin
    select raise(abort, 'an approval is kept as it was given');
end;
