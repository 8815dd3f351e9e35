#!/bin/sh
# Tests an API from outside, against a server that runs only during the test:
#   gatehouse exec -- ./end-to-end.sh bun elysia-api.ts
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

status() { curl -s -o /dev/null -w '%{http_code}' "$@"; }
expect() {
  wanted=$1 what=$2
  shift 2
  found=$(status "$@")
  [ "$found" = "$wanted" ] || { echo "$what: expected $wanted, found $found" >&2; exit 1; }
  echo "ok $what"
}
as() { gatehouse token -o header "$@"; }

expect 401 'no token' "$api/orders"
expect 200 'no token where none is needed' "$api/hello"
expect 200 'alice reads' "$api/orders" -H "$(as --user alice --scope read)"
expect 403 'alice without the scope' "$api/orders" -H "$(as --user alice --scope openid)"
expect 403 'alice is no admin' -X DELETE "$api/orders" -H "$(as --user alice)"
expect 200 'admin deletes' -X DELETE "$api/orders" -H "$(as --user admin)"
expect 200 'somebody who does not exist yet' "$api/hello" -H "$(as --user newcomer --role tester)"
expect 401 'another service' "$api/orders" -H "$(as --user alice --client dev-web)"
for bad in expired not-yet-valid wrong-iss wrong-aud wrong-signature unknown-kid alg-none hs256-with-public-key id-token missing-claim tampered; do
  expect 401 "a token that is bad: $bad" "$api/orders" -H "$(as --user alice --bad $bad)"
done
