-- Rows in what 0002 added.
INSERT INTO planner.expectation
SELECT s.scope_id, '0123456789abcdef', '2026-01-03Z', 'test', '01900000-0000-7000-8000-000000000001',
       '{"text": "who greets?", "budget_tokens": 10}', 'doc.md@1:7-14', 'over_budget', 'they asked in May'
  FROM planner.scope s;
