-- People manage themselves and each other: invitations, a second factor, and
-- sessions that say where they come from and how they were proved.

-- What an authenticator app shares with us is kept as it is: a code can't be
-- checked against a hash. Whoever reads the database could sign tokens as well;
-- its folder is closed to others.
alter table people add column factor_secret blob; -- null: none was ever offered
alter table people add column factor_at bigint not null default 0; -- confirmed then; 0: not, or taken away
alter table people add column factor_step bigint not null default 0; -- of the last code that counted
alter table people add column password_short bigint not null default 0; -- 1: good beside a second factor only
alter table people add column signed_in_at bigint not null default 0;

create table recovery_codes (
    code_hash text   not null primary key, -- SHA-256 of person and code
    person_id text   not null references people (id),
    used_at   bigint not null
);
create index recovery_codes_of on recovery_codes (person_id);

alter table sessions add column address text not null default '';
alter table sessions add column proved_at bigint not null default 0; -- when the person last showed who they are
alter table sessions add column proved_with text not null default ''; -- password · code · link

-- A right password whose second factor has not come yet.
create table half_sign_ins (
    token_hash text   not null primary key, -- SHA-256 of what the cookie holds
    person_id  text   not null references people (id),
    expires_at bigint not null
);

create table invites (
    id          text   not null primary key,
    secret_hash text   not null unique, -- SHA-256 of what the link holds
    tenant_id   text   not null references tenants (tenant_id),
    email       text   not null, -- lower case; empty: whoever has the link says it
    roles       text   not null, -- JSON list
    invited_by  text   not null, -- e-mail
    created_at  bigint not null,
    expires_at  bigint not null,
    used_at     bigint not null,
    revoked_at  bigint not null
);
create index invites_of on invites (tenant_id, created_at);
