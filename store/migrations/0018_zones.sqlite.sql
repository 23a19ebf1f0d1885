-- In which time zone a statement names its days; empty where it was not kept.
alter table statements add column zone text not null default '';
alter table statement_lines add column zone text not null default ''; -- of a line that has a day and no time
