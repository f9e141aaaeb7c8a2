-- Scratch databases: made for one evaluation, dropped after it. Asked by the login itself, which needs CREATEDB.

-- name: create_scratch
-- An empty database, whatever was put into the cluster's template.
CREATE DATABASE {name} TEMPLATE template0;

-- name: relax_scratch
-- Nothing in it has to outlive a crash, so no transaction waits for the disk.
ALTER DATABASE {name} SET synchronous_commit = off;

-- name: drop_scratch
-- Gone, whoever is still connected.
DROP DATABASE IF EXISTS {name} WITH (FORCE);
