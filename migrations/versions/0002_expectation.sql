-- 0002, expectations: what an operator expects a plan to hold, kept to be checked at every later state.
--
-- A new table is locked by nobody. The foreign key takes a lock on scope that keeps its writers out for as long as
-- it takes to look at an empty table; lock_timeout bounds the wait for it (sql/objects/02_session.sql).

CREATE TABLE planner.expectation (
    scope_id       uuid        NOT NULL,
    expectation_id text        COLLATE "C" NOT NULL,
    created_at     timestamptz NOT NULL,
    actor          text        NOT NULL,
    plan_id        uuid        NOT NULL,
    request        jsonb       NOT NULL,
    what           text        NOT NULL,
    stage          text        NOT NULL,
    note           text,
    CONSTRAINT expectation_pkey PRIMARY KEY (scope_id, expectation_id),
    CONSTRAINT expectation_id_check CHECK (expectation_id ~ '^[0-9a-f]{16}$')
);

-- No statistics on scope_id: 0001 says why.

ALTER TABLE planner.expectation ALTER COLUMN scope_id SET STATISTICS 0;

SELECT planner.place('expectation');

ALTER TABLE planner.expectation ADD CONSTRAINT expectation_scope_fkey
    FOREIGN KEY (scope_id) REFERENCES planner.scope (scope_id);
