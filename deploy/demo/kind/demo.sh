#!/bin/sh
# The product and a cluster with fake GPUs on a laptop: `demo.sh up`, then follow its output; `demo.sh down`. Needs docker, kind,
# kubectl, helm, and FAKE_GPU_OPERATOR: address or folder of the chart run-ai/fake-gpu-operator (see its README).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
NAME=${NAME:-gpubroker-demo}
PLACE=gpubroker
IMAGE=gpubroker:demo

need() {
  for program in "$@"; do
    command -v "$program" >/dev/null || { echo "$program is not on the path; install it and try again." >&2; exit 1; }
  done
}

random() { head -c "$1" /dev/urandom | base64 | tr -d '\n' | tr '+/' '-_'; }

secrets() {
  if kubectl get secret gpubroker-database >/dev/null 2>&1; then return; fi  # a second `up` keeps existing secrets
  owner=$(random 24) web=$(random 24) worker=$(random 24)
  host=postgres.$PLACE.svc:5432/gpubroker
  # Through standard input, so that no secret is in the process list.
  kubectl apply -f - <<END
{"apiVersion": "v1", "kind": "List", "items": [
{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "passwords"}, "stringData": {
  "POSTGRES_PASSWORD": "$(random 24)", "OWNER_PASSWORD": "$owner", "WEB_PASSWORD": "$web", "WORKER_PASSWORD": "$worker"}},
{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "gpubroker"}, "stringData": {
  "secret-key": "$(random 48)", "credential-keys": "$(random 32)"}},
{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "gpubroker-valkey"}, "stringData": {
  "url": "redis://valkey.$PLACE.svc:6379/0"}},
{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "gpubroker-database"}, "stringData": {
  "owner": "postgresql://gpubroker_owner:${owner}@$host",
  "web": "postgresql://gpubroker_web:${web}@$host",
  "worker": "postgresql://gpubroker_worker:${worker}@$host"}}]}
END
}

up() {
  need docker kind kubectl helm
  : "${FAKE_GPU_OPERATOR:?name the chart of run-ai/fake-gpu-operator in it, then try again}"
  kind get clusters | grep -qx "$NAME" || kind create cluster --name "$NAME" --config "$here/cluster.yaml" --wait 3m
  docker build -f "$root/deploy/Containerfile" -t "$IMAGE" "$root"
  kind load docker-image "$IMAGE" --name "$NAME"
  kubectl config use-context "kind-$NAME"
  helm upgrade --install gpu-operator "$FAKE_GPU_OPERATOR" --namespace gpu-operator --create-namespace \
    --values "$here/gpus.yaml" --wait --timeout 5m
  kubectl get namespace "$PLACE" >/dev/null 2>&1 || kubectl create namespace "$PLACE"
  kubectl config set-context --current --namespace "$PLACE"
  secrets
  kubectl create configmap database --from-file="$root/deploy/database.sql" --from-file="$root/deploy/roles.sql" \
    --dry-run=client -o yaml | kubectl apply -f -
  kubectl apply -f "$here/backing.yaml"
  kubectl rollout status statefulset/postgres deployment/valkey --timeout 5m
  helm upgrade --install gpubroker "$root/deploy/chart" --namespace "$PLACE" --values "$here/values.yaml" \
    --wait --timeout 5m
  echo
  echo "Open it:         kubectl -n $PLACE port-forward service/gpubroker-web 8000:80, then http://localhost:8000/"
  echo "Be an operator:  sign up there, then kubectl -n $PLACE exec deploy/gpubroker-web -- python manage.py operator appoint <address>"
  echo "Sell its GPUs:   $0 way-in prints a kubeconfig; add a cluster called laptop with it at http://localhost:8000/ops/clusters/add/"
  echo "                 then $0 follow, and publish what is drafted at http://localhost:8000/ops/offerings/"
  echo "Take it away:    $0 down"
}

# Kubeconfig of this cluster for the chart's service account. It has no secret: the token is the pod's own.
way_in() {
  need kubectl
  authority=$(kubectl config view --raw --flatten --minify --context "kind-$NAME" \
    -o 'jsonpath={.clusters[0].cluster.certificate-authority-data}')
  cat <<END
{"apiVersion": "v1", "kind": "Config", "current-context": "here",
"contexts": [{"name": "here", "context": {"cluster": "here", "user": "here"}}],
"clusters": [{"name": "here", "cluster": {"server": "https://kubernetes.default.svc",
  "certificate-authority-data": "$authority"}}],
"users": [{"name": "here", "user": {"tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"}}]}
END
}

follow() {
  need helm
  helm upgrade gpubroker "$root/deploy/chart" --kube-context "kind-$NAME" --namespace "$PLACE" \
    --values "$here/values.yaml" --set 'agent.clusters={laptop}' --wait --timeout 5m
}

case ${1:-} in
  up) up ;;
  way-in) way_in ;;
  follow) follow ;;
  down) need kind; kind delete cluster --name "$NAME" ;;
  *) echo "usage: $0 up|way-in|follow|down" >&2; exit 2 ;;
esac
