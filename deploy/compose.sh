#!/bin/sh
# Write deploy/.env with passwords and keys for deploy/compose.yaml, once; a second run changes nothing.
set -eu
cd "$(dirname "$0")"
if [ -e .env ]; then
  echo "deploy/.env is there already; it holds the keys to your data. Nothing was changed."
  exit 0
fi
# Written atomically, and readable only by you.
umask 077
random() { head -c "$1" /dev/urandom | base64 | tr -d '\n' | tr '+/' '-_'; }
new=".env.$$"
trap 'rm -f "$new"' EXIT
{
  echo "# Made by deploy/compose.sh. Keep a copy where the backups are: without CREDENTIAL_ENCRYPTION_KEYS clusters must be registered and secrets saved anew."
  echo "SECRET_KEY=$(random 48)"
  echo "CREDENTIAL_ENCRYPTION_KEYS=$(random 32)"
  for who in ADMINISTRATOR OWNER WEB WORKER; do echo "${who}_PASSWORD=$(random 24)"; done
  echo "# Behind a proxy that speaks TLS:"
  echo "# PUBLIC_URL=https://gpus.example.com"
  echo '# ALLOWED_HOSTS=["gpus.example.com","127.0.0.1"]'
  echo "# SECURE_COOKIES=true"
  echo "# TRUSTED_PROXY_COUNT=1"
} > "$new"
mv "$new" .env
trap - EXIT
echo "Wrote deploy/.env. Now: docker compose -f deploy/compose.yaml up --build --detach"
