-- Rows in every table of 0001, for two scopes with the same content: 'a' and 'b'. Run as planner_owner.
INSERT INTO planner.embedding_model (name, revision, dimensions) VALUES ('toy', '1', 3);

INSERT INTO planner.scope (scope_id, name, last_tx, live_nodes, created_at) VALUES
    ('aaaaaaaa-0000-8000-8000-000000000000', 'a', 2, 2, '2026-01-01Z'),
    ('bbbbbbbb-0000-8000-8000-000000000000', 'b', 2, 2, '2026-01-01Z');

INSERT INTO planner.ledger
SELECT s.scope_id, t.tx, '2026-01-01Z', 'test', 'ingest', '{}', decode(repeat('00', 32), 'hex')
  FROM planner.scope s, generate_series(1, 2) AS t (tx);

INSERT INTO planner.source
SELECT s.scope_id, 'doc.md', 'text/markdown', 'truth', NULL, NULL FROM planner.scope s
UNION ALL
SELECT s.scope_id, 'turn', 'application/json', 'cache', 'talk', 1 FROM planner.scope s;

-- 'Grüße, world' is 14 bytes.
INSERT INTO planner.source_version
SELECT s.scope_id, 'doc.md', 1, convert_to('Grüße, world', 'UTF8'), 14, decode(repeat('11', 32), 'hex'), 'p1',
       'A title', 'file:doc.md', 'external', 'test', '{"k": 1}', '2026-01-01Z', NULL, NULL
  FROM planner.scope s;

INSERT INTO planner.span
SELECT s.scope_id, 'doc.md', 1, t.a, t.b, 'paragraph', t.n, '{Top}', NULL, 7, 0, decode(repeat('22', 32), 'hex')
  FROM planner.scope s, (VALUES (0, 7, 0), (7, 14, 1)) AS t (a, b, n);

INSERT INTO planner.derivation
SELECT s.scope_id, 'doc.md', 1, 'other.md', 1, 0, 5 FROM planner.scope s;

INSERT INTO planner.token_count
SELECT s.scope_id, decode(repeat('22', 32), 'hex'), 'utf8-script-v1', 3 FROM planner.scope s;

INSERT INTO planner.node (scope_id, node_id, tx_from, kind, label, attributes, confidence)
SELECT s.scope_id, t.n, 1, 'paragraph', 'label', '{}', 1 FROM planner.scope s, (VALUES ('n1'), ('n2')) AS t (n);

INSERT INTO planner.node_span
SELECT s.scope_id, t.n, 1, 'doc.md', 1, t.a, t.b FROM planner.scope s, (VALUES ('n1', 0, 7), ('n2', 7, 14)) AS t (n, a, b);

INSERT INTO planner.edge (scope_id, src, dst, predicate, tx_from, confidence)
SELECT s.scope_id, 'n1', 'n2', 'next', 1, 1 FROM planner.scope s;

INSERT INTO planner.scope_model (scope_id, model_id, tx_from)
SELECT s.scope_id, m.model_id, 1 FROM planner.scope s, planner.embedding_model m;

INSERT INTO planner.embedding (scope_id, model_id, node_id, tx_from, vec, text_hash)
SELECT s.scope_id, m.model_id, 'n1', 1, '[1,0,0]', decode(repeat('22', 32), 'hex')
  FROM planner.scope s, planner.embedding_model m;

INSERT INTO planner.plan
SELECT s.scope_id, '01900000-0000-7000-8000-000000000001', '2026-01-02Z', 'planned', NULL, NULL,
       decode(repeat('33', 32), 'hex'), decode(repeat('44', 32), 'hex'), 'v1', 'v1', 2,
       '{"text": "who greets?"}', '{}', '{{1,0,0}}', 'utf8-script-v1', true, 10, 10, NULL, NULL, 0.4, 4, 3,
       '{}', '{}', '{}', '{"recall": 1.5, "select": 0.25}', '{}', 3, 1, 1, 0, 1, 0, 0
  FROM planner.scope s;

INSERT INTO planner.plan_candidate
SELECT s.scope_id, '01900000-0000-7000-8000-000000000001', t.rank, t.sel, 'doc.md', 1, t.a, t.b, 'paragraph',
       'truth', 0.9, 0.9, 0, 3, decode(repeat('22', 32), 'hex'), 'n1', t.outcome, t.dup
  FROM planner.scope s,
       (VALUES (0, 0, 0, 7, 'selected', NULL::integer),
               (1, NULL, 0, 5, 'duplicate', 0),
               (2, NULL, 7, 14, 'over_budget', NULL)) AS t (rank, sel, a, b, outcome, dup);

INSERT INTO planner.plan_node
SELECT s.scope_id, '01900000-0000-7000-8000-000000000001', 'n1', '{semantic}', 0.9, 0.9, NULL, NULL, NULL, NULL
  FROM planner.scope s;

INSERT INTO planner.delivery
SELECT s.scope_id, '01900000-0000-7000-8000-000000000002', '01900000-0000-7000-8000-000000000001', '2026-01-02Z',
       'span', 'v1', 'utf8-script-v1', 10, 3, decode(repeat('55', 32), 'hex'), '{}', '[]', '[]', '[]'
  FROM planner.scope s;

INSERT INTO planner.api_token
SELECT s.scope_id, decode(repeat('66', 32), 'hex'), 'ci', '{read}', '2026-01-01Z', NULL, NULL FROM planner.scope s;
