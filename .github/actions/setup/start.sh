#!/usr/bin/env bash
# Unpacks ARCHIVE, starts a development server that runs until the end of the job, and exports its variables.
set -euo pipefail
folder=$RUNNER_TEMP/gatehouse
mkdir -p "$folder"

case $ARCHIVE in
  http://* | https://*)
    [ -n "$SHA256" ] || { echo "gatehouse: sha256 is required for an archive from a URL" >&2; exit 1; }
    curl -fsSL --retry 3 -o "$folder/archive" "$ARCHIVE" || { echo "gatehouse: $ARCHIVE cannot be downloaded" >&2; exit 1; }
    ;;
  *)
    [ -f "$ARCHIVE" ] || { echo "gatehouse: $ARCHIVE does not exist" >&2; exit 1; }
    ln -sf "$(realpath "$ARCHIVE")" "$folder/archive"
    ;;
esac
if [ -n "$SHA256" ]; then
  echo "$SHA256  $folder/archive" | sha256sum --quiet -c - || { echo "gatehouse: $ARCHIVE has another checksum" >&2; exit 1; }
fi
tar -xf "$folder/archive" -C "$folder" --strip-components=1
rm "$folder/archive"

variables=$folder/variables
# An earlier step of this job may have left the variables of a server that has stopped.
rm -f "$variables"
# The server runs until the command after -- exits. The runner kills that command at the end of the job.
# shellcheck disable=SC2086
nohup "$folder/gatehouse" exec $OPTIONS -- \
  sh -c '{
    # The job may have other variables that begin with SERVICE_. A client without a secret gets an empty one,
    # so that later steps do not use a secret of the job.
    for name in SERVICE_URL SERVICE_CLIENT_ID SERVICE_CLIENT_SECRET SERVICE_REALM SERVICE_DEV_TOKEN; do
      printf "%s=%s\n" "$name" "$(printenv "$name")"
    done
    [ -z "$NODE_EXTRA_CA_CERTS" ] || echo "NODE_EXTRA_CA_CERTS=$NODE_EXTRA_CA_CERTS"
  } > "$1.part"; mv "$1.part" "$1" && exec tail -f /dev/null' sh "$variables" \
  > "$folder/log" 2>&1 &
server=$!
echo "$server" > "$folder/pid"
until [ -s "$variables" ]; do
  kill -0 "$server" 2>/dev/null || { cat "$folder/log" >&2; exit 1; }
  sleep 0.1
done

grep -E '^SERVICE_(CLIENT_SECRET|DEV_TOKEN)=.' "$variables" | sed 's/^[^=]*=/::add-mask::/'
cat "$variables" >> "$GITHUB_ENV"
echo "$folder" >> "$GITHUB_PATH"
