-- What is to be told to people outside, one row a channel, and the messages that
-- tell it. Notices are made from the action log by a cursor (meta, 'noticed_up_to'),
-- in the commit that moves it; a message is written before it is sent, and sent
-- under one name until it is delivered or given up.
create table notices (
    id           bigint not null primary key, -- time-ordered, made by the program
    tenant_id    text   not null references tenants (tenant_id),
    channel      text   not null check (channel <> ''),
    about        text   not null check (about <> ''), -- each thing is told once a channel
    kind         text   not null check (kind in ('approval', 'expiring', 'hold', 'owed', 'exception', 'rail', 'daily', 'test')),
    operation_id text   not null,
    body         text   not null, -- JSON
    at           bigint not null,
    message_id   bigint not null default 0, -- 0: waits; -1: answered before it was told
    unique (tenant_id, channel, about)
);
create index notices_waiting on notices (tenant_id, channel, id) where message_id = 0;

create table notice_messages (
    id        bigint not null primary key,
    name      text   not null unique,
    tenant_id text   not null references tenants (tenant_id),
    channel   text   not null,
    kind      text   not null,
    body      text   not null, -- JSON
    since     bigint not null, -- when its oldest notice came
    made_at   bigint not null,
    attempts  bigint not null check (attempts >= 0),
    next_at   bigint not null,
    problem   text   not null,
    tried_at  bigint not null,
    state     text   not null check (state in ('open', 'delivered', 'given_up')),
    ended_at  bigint not null check ((state = 'open') = (ended_at = 0))
);
create unique index notice_messages_one_open on notice_messages (tenant_id, channel) where state = 'open';
create index notice_messages_of on notice_messages (tenant_id, channel, id);
