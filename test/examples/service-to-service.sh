#!/bin/sh
# Starts an API and then a service that calls it, with the same server:
#   gatehouse exec -- ./service-to-service.sh bun elysia-api.ts
set -eu

export PORT="${PORT:-3210}"
api="http://127.0.0.1:$PORT"
"$@" &
trap 'kill $!' EXIT
until curl -fs "$api/health" >/dev/null 2>&1; do sleep 0.1; done

ORDERS_URL=$api bun service-to-service.ts
