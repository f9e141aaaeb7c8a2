-- Access tokens, as hashes: made, listed, revoked and looked up, by the writer alone.

-- name: add_token
-- Keep a new token; one that is there already was kept by an attempt whose answer was lost.
INSERT INTO planner.api_token (scope_id, token_hash, label, permissions, created_at, expires_at)
VALUES (%(scope_id)s, %(token_hash)s, %(label)s, %(permissions)s::text[], %(created_at)s, %(expires_at)s)
ON CONFLICT (scope_id, token_hash) DO NOTHING

-- name: tokens
-- A scope's tokens, oldest first.
SELECT x.token_hash, x.label, x.permissions, x.created_at, x.expires_at, x.revoked_at
  FROM planner.api_token x
 WHERE x.scope_id = %(scope_id)s
 ORDER BY x.created_at, x.token_hash

-- name: revoke_token
-- Revoke the token whose hash begins so, in hexadecimal digits; the first time stands.
UPDATE planner.api_token AS x
   SET revoked_at = coalesce(x.revoked_at, %(now)s)
 WHERE x.scope_id = %(scope_id)s AND left(encode(x.token_hash, 'hex'), 16) = %(token_id)s
RETURNING x.token_hash, x.label, x.permissions, x.created_at, x.expires_at, x.revoked_at

-- name: find_token
-- The token of a hash, and whether it can be used now.
SELECT x.token_hash, x.revoked_at IS NULL AND coalesce(x.expires_at > %(now)s, true), x.label, x.permissions
  FROM planner.api_token x
 WHERE x.scope_id = %(scope_id)s AND x.token_hash = %(token_hash)s
