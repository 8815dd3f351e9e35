#!/bin/sh
# A CI job. Each suite has its own server on a free port; the server stops when the suite ends. The job needs
# no container and no step that waits for a server.
set -eu
cd "$(dirname "$0")"

gatehouse exec -- ./end-to-end.sh bun elysia-api.ts
gatehouse exec -- ./end-to-end.sh bun express-api.ts
