-- The seal of the action log: a Merkle tree (RFC 6962) over its entries, and signed
-- heads. All of it only grows, whoever opens the file.

-- What heads are signed with. Whoever reads the database can sign, as with
-- signing_keys: heads count where somebody kept them elsewhere.
create table log_keys (
    key        text   not null primary key, -- public, as a note's verifier key
    seed       blob   not null, -- Ed25519
    blind      blob   not null, -- makes leaves that nobody can guess
    created_at bigint not null
);

-- The hashes of leaves and of whole subtrees, in the order in which they become
-- final: the 2n-th and a few more once n entries are sealed.
create table log_hashes (
    place bigint not null primary key check (place >= 0),
    hash  blob   not null check (length(hash) = 32)
);

create table log_heads (
    size bigint not null primary key check (size > 0), -- entries that it covers
    at   bigint not null,
    note text   not null -- as it was signed
);
create index log_heads_at on log_heads (at, size);

create trigger log_keys_no_update before update on log_keys
begin
    select raise(abort, 'the key of the log is kept');
end;
create trigger log_keys_no_delete before delete on log_keys
begin
    select raise(abort, 'the key of the log is kept');
end;
create trigger log_keys_one before insert on log_keys
when exists (select 1 from log_keys)
begin
    select raise(abort, 'the log has one key');
end;
create trigger log_hashes_no_update before update on log_hashes
begin
    select raise(abort, 'what is sealed stays');
end;
create trigger log_hashes_no_delete before delete on log_hashes
begin
    select raise(abort, 'what is sealed stays');
end;
create trigger log_hashes_in_order before insert on log_hashes
when new.place <> coalesce((select max(place) from log_hashes), -1) + 1
begin
    select raise(abort, 'hashes of the log are kept in order');
end;
create trigger log_heads_no_update before update on log_heads
begin
    select raise(abort, 'what is sealed stays');
end;
create trigger log_heads_no_delete before delete on log_heads
begin
    select raise(abort, 'what is sealed stays');
end;
create trigger log_heads_grow before insert on log_heads
when new.size <= coalesce((select max(size) from log_heads), 0)
  or new.size > coalesce((select max(seq) from action_log), 0)
begin
    select raise(abort, 'a head covers more than the one before it, and what is there');
end;
