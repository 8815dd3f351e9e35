#!/bin/sh
# A CI job: each suite has a server of its own, on a free port, gone when the suite is over. No container, no waiting.
set -eu
cd "$(dirname "$0")"

gatehouse exec -- ./end-to-end.sh bun elysia-api.ts
gatehouse exec -- ./end-to-end.sh bun express-api.ts
