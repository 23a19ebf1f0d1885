-- A proof counts once, however it is spelled: this is how two are compared. What
-- was recorded before keeps the comparison by capitals alone.
alter table refund_settlements add column proof_key text not null default '';
update refund_settlements set proof_key = lower(proof) where proof <> '';
create unique index refund_settlements_once_spelled on refund_settlements (tenant_id, rail, proof_key) where proof_key <> '';
