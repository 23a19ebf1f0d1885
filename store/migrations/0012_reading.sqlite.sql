-- The log as people read it: what somebody did, one kind of event, one object.
-- Entries about operations are found by the operation, so that the last two cost
-- a submission nothing.
create index action_log_actor on action_log (tenant_id, actor, seq);
create index action_log_event on action_log (tenant_id, event, seq);
create index action_log_object_id on action_log (tenant_id, object_id, seq) where object <> 'operation';
create index action_log_kind on action_log (tenant_id, object, seq) where object <> 'operation';

-- Whom money was taken from, and whom it is owed.
create index operations_customer on operations (tenant_id, customer, id) where customer <> '';
create index refunds_owed_customer on refunds_owed (tenant_id, customer, number) where customer <> '';
