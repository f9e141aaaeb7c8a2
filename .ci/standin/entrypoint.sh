#!/bin/bash
# As the public image's: the first start makes the cluster, the database and what initdb.d says.
set -euo pipefail

if [ "$(id -u)" = 0 ]; then
    chown postgres:postgres "$PGDATA"
    exec setpriv --reuid=postgres --regid=postgres --init-groups -- "$0" "$@"
fi

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    user=${POSTGRES_USER:-postgres}
    initdb --username="$user" --pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD") \
        --auth-local=trust --auth-host=scram-sha-256 --locale-provider=builtin --locale=C.UTF-8
    echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
    echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
    pg_ctl -w -o "-c listen_addresses=" start
    database=${POSTGRES_DB:-$user}
    [ "$database" = postgres ] || createdb --username="$user" "$database"
    for script in /docker-entrypoint-initdb.d/*.sql; do
        [ ! -e "$script" ] || psql -v ON_ERROR_STOP=1 --username="$user" --dbname="$database" -f "$script"
    done
    pg_ctl -w -m fast stop
    printf '\nPostgreSQL init process complete; ready for start up.\n\n'
fi

exec "$@"
