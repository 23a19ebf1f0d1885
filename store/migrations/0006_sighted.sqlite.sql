-- Whether the provider ever showed something of an operation: an answer that it
-- was done or taken on, a record or a signed event with our stamp. After that, a
-- look-up that finds nothing contradicts it and proves nothing.
alter table operations add column sighted bigint not null default 0 check (sighted in (0, 1));

-- What is known of the time before: what was accepted, and what was answered
-- with a success that could not be read.
update operations set sighted = 1
where status not in ('confirmed', 'rejected') and (accepted = 1 or exists (
    select 1 from attempts a
    where a.tenant_id = operations.tenant_id and a.operation_id = operations.operation_id
      and a.outcome = 'unknown' and a.http_status between 200 and 299));
