-- How a repeat of the kept request is recognised, as the rail said when it was
-- first sent. Of what was sent before this was kept, nobody can say: empty.
alter table operations add column recognised_by text not null default '';
create trigger operations_recognised before update on operations
when (new.recognised_by <> old.recognised_by and old.attempts > 0 and old.first_mark_at > 0)
  or (new.recognised_by <> '' and new.first_mark_at = 0)
begin
    select raise(abort, 'how a request is recognised was fixed when it was first sent');
end;
