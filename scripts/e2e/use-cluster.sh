#!/usr/bin/env bash
# Prints the settings that point StarForge at a test cluster that is already up:
#   eval "$(bash scripts/e2e/use-cluster.sh)"
# The cluster is the one that the file $CLUSTER_ENV describes: KUBECONFIG of an administrator, CLUSTER_API_SERVER,
# CLUSTER_CA, RAY_IMAGE, S3_HTTPS_ENDPOINT, S3_HTTP_ENDPOINT, S3_ACCESS_KEY, S3_SECRET_KEY. What is printed is the
# token of the service account of deploy/rbac.yaml, nothing more. Run it as often as you like: it repairs.
set -euo pipefail
cluster_env=${CLUSTER_ENV:-/var/lib/starforge-cluster/env}
# shellcheck source=scripts/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

usage() {
    cat <<TEXT
use-cluster.sh [--http] [--storage] [--token-duration TIME]
  --http                 print the store that speaks HTTP only (default: the HTTPS one, with FORGE_S3_CA_FILE)
  --storage              print the storage root and the corpus claim as well
  --token-duration TIME  how long the token is good for (default: 24h)
CLUSTER_ENV=$cluster_env
TEXT
}

http='' storage='' duration=24h
while [ $# -gt 0 ]; do
    case $1 in
        --http) http=yes ;;
        --storage) storage=yes ;;
        --token-duration) duration=${2:?--token-duration needs a time such as 24h} && shift ;;
        -h | --help) usage && exit 0 ;;
        *) usage && fail "use-cluster.sh: there is no option $1." ;;
    esac
    shift
done

[ -r "$cluster_env" ] || fail "No cluster is described by $cluster_env: start one, or set CLUSTER_ENV to its file."
# shellcheck source=/dev/null
. "$cluster_env"
for name in KUBECONFIG CLUSTER_API_SERVER CLUSTER_CA RAY_IMAGE S3_HTTPS_ENDPOINT S3_HTTP_ENDPOINT S3_ACCESS_KEY S3_SECRET_KEY; do
    [ -n "${!name:-}" ] || fail "$cluster_env does not set $name."
done
command -v kubectl >/dev/null || fail "kubectl is not on the path: $cluster_env should put it there."
kubeconfig=${KUBECONFIG:-}
kube get --raw=/readyz >/dev/null 2>&1 || fail "The API server $CLUSTER_API_SERVER does not answer: is the cluster up?"
kube get crd rayjobs.ray.io >/dev/null 2>&1 || fail "The cluster has no KubeRay operator: the CRD rayjobs.ray.io is missing."

grant_rights

# All nodes of that cluster share this machine's disk; next to its state, the folders go when the cluster goes.
volumes=$(cd "$(dirname "$cluster_env")" && pwd)/volumes
make_volume_folders "$volumes"
ln -s "$repo/deploy/volumes" "$scratch/volumes"
cat >"$scratch/kustomization.yaml" <<OVERLAY
resources: [volumes]
patches:
  - target: {kind: PersistentVolume, name: starforge-storage}
    patch: '[{"op": "replace", "path": "/spec/hostPath/path", "value": "$volumes/storage"}]'
  - target: {kind: PersistentVolume, name: starforge-corpus}
    patch: '[{"op": "replace", "path": "/spec/hostPath/path", "value": "$volumes/corpus"}]'
OVERLAY
bind_volumes "$scratch"

print_cluster "$CLUSTER_API_SERVER" "$CLUSTER_CA" "$duration"
print_image "$RAY_IMAGE" "${RAY_IMAGE##*:}"
if [ -n "$http" ]; then
    print_s3 "$S3_HTTP_ENDPOINT" "$S3_ACCESS_KEY" "$S3_SECRET_KEY"
else
    print_s3 "$S3_HTTPS_ENDPOINT" "$S3_ACCESS_KEY" "$S3_SECRET_KEY"
    setting FORGE_S3_CA_FILE "$CLUSTER_CA"
fi
[ -z "$storage" ] || print_storage
# Two machines of one CPU each fill a node of two, so they need the one that the operator was not placed on.
for node in $(kube get nodes -o name); do
    requests=$(kube get pods -A --field-selector "spec.nodeName=${node#node/}" \
        -o jsonpath='{.items[*].spec.containers[*].resources.requests.cpu}')
    series=$(kube get "$node" -o jsonpath='{.metadata.labels.starforge/gpu-series}')
    [ -n "$requests" ] || [ -z "$series" ] || setting LOOP_PAIR_SERIES "$series"
done
say "done: user $namespace/starforge, token good for $duration"
