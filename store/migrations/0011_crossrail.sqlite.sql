-- What a line gives back, or takes back: the provider's id of the charge that a
-- refund or a dispute is about, of the refund that came back. Lines that were
-- stored before say nothing of it.
alter table statement_lines add column of_id text not null default '';
create index statement_lines_returning on statement_lines (tenant_id, rail, of_id) where of_id <> '';
create trigger statement_lines_of_fixed before update on statement_lines
when new.of_id <> old.of_id
begin
    select raise(abort, 'a statement line is kept as it was read');
end;

-- How far the operations were looked through for one purchase on two rails. What
-- is confirmed later is compared when it is confirmed.
create table cross_rail_sweeps (
    id       bigint not null primary key check (id = 1),
    after_id bigint not null
);
insert into cross_rail_sweeps (id, after_id) values (1, 0);
