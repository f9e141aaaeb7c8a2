"""The store: one door to PostgreSQL, tables, named queries, reads and writes."""
