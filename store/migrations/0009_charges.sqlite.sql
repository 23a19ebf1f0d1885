-- What has gone back of a charge is asked whenever a refund is registered.
create index operations_refund_of on operations (tenant_id, refund_of) where refund_of <> '';
create index refunds_owed_receipt on refunds_owed (tenant_id, receipt_id);
