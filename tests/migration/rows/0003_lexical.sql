-- Rows in what 0003 added: one word, 8, is in both nodes' texts; the title is another, 16.
INSERT INTO planner.lexical (scope_id, node_id, tx_from, doc, length, terms, context)
SELECT s.scope_id, t.n, 1, 1 << 20 | t.place, 2, decode('0900000000000000', 'hex'), decode('1000000000000000', 'hex')
  FROM planner.scope s, (VALUES ('n1', 0), ('n2', 1)) AS t (n, place);

INSERT INTO planner.posting (scope_id, term, doc, frequency, length)
SELECT s.scope_id, t.term, 1 << 20 | t.place, 1, 2
  FROM planner.scope s, (VALUES (8, 0), (8, 1), (16, 0), (16, 1)) AS t (term, place);

INSERT INTO planner.term (scope_id, term, nodes)
SELECT s.scope_id, t.term, 2 FROM planner.scope s, (VALUES (8), (16)) AS t (term);

INSERT INTO planner.title (scope_id, source_id, tx_from, form, first_term, terms)
SELECT s.scope_id, 'doc.md', 1, 0, 16, decode('1100000000000000', 'hex') FROM planner.scope s;

UPDATE planner.scope SET lexical = 'terms/1', lexical_nodes = 2, lexical_terms = 4;
