-- Run once, as superuser, when the data folder is made: all that takes a superuser or an administrator.
--
-- The login planner_app is neither. It inherits nothing and becomes a role for the length of a transaction;
-- `planner migrate --no-roles` does the rest as that login.
\set ON_ERROR_STOP on
\getenv password APP_PASSWORD

CREATE EXTENSION vector;

CREATE ROLE planner_owner NOLOGIN NOBYPASSRLS;
CREATE ROLE planner_writer NOLOGIN NOBYPASSRLS;
CREATE ROLE planner_reader NOLOGIN NOBYPASSRLS;
CREATE ROLE planner_inspector NOLOGIN NOBYPASSRLS;

CREATE ROLE planner_app LOGIN NOINHERIT PASSWORD :'password';
GRANT planner_owner, planner_writer, planner_reader, planner_inspector TO planner_app WITH INHERIT FALSE, SET TRUE;

CREATE SCHEMA planner AUTHORIZATION planner_owner;
