#!/bin/sh
# Starts an API and then a service that calls it, with the same server:
#   gatehouse exec -- ./service-to-service.sh bun elysia-api.ts
set -eu

command -v curl >/dev/null || { echo "curl is not installed" >&2; exit 1; }
export PORT="${PORT:-3210}"
api="http://127.0.0.1:$PORT"
"$@" &
trap 'kill $! 2>/dev/null || true' EXIT
until curl -fs "$api/health" >/dev/null 2>&1; do
  kill -0 $! 2>/dev/null || { echo "the API has ended" >&2; exit 1; }
  sleep 0.1
done

ORDERS_URL=$api bun service-to-service.ts
