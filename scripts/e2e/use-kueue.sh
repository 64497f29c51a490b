#!/usr/bin/env bash
# Builds Kueue from its Go module and runs it in the test cluster of $CLUSTER_ENV, for jobs that name a queue:
#   CLUSTER_IMAGE=…/image bash scripts/e2e/use-kueue.sh [--build | --delete]
# --build only builds it, --delete takes it out of the cluster.
# CLUSTER_IMAGE is the program that makes a root directory an image of the cluster: image ROOT NAME CONFIG_JSON.
# The build takes some minutes the first time and is kept. Kueue manages the RayJobs that bear its label alone.
set -euo pipefail
cluster_env=${CLUSTER_ENV:-/var/lib/starforge-cluster/env}
# shellcheck source=scripts/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
version=v0.17.0
kept=${XDG_CACHE_HOME:-$HOME/.cache}/starforge-kueue/$version
image=cluster.local/kueue:$version

[ -r "$cluster_env" ] || fail "No cluster is described by $cluster_env: start one, or set CLUSTER_ENV to its file."
# shellcheck source=/dev/null
. "$cluster_env"
kubeconfig=${KUBECONFIG:-}
command -v go >/dev/null || PATH=$PATH:/usr/local/go/bin
command -v go >/dev/null || fail "Kueue is built from its Go module, and there is no go on the path."

module=$(cd "$scratch" && go mod download -json "sigs.k8s.io/kueue@$version" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
[ -n "$module" ] || fail "The Go module of Kueue $version can't be had."

manifests() {
    cp -r "$module/config" "$scratch/config"
    chmod -R u+w "$scratch/config"
    # One replica, on any node, of what was built here; and as little of the cluster's memory as it can do with.
    cat >"$scratch/kustomization.yaml" <<OVERLAY
resources: [config/default]
patches:
  - target: {kind: Deployment, name: .*controller-manager}
    patch: |
      - {op: replace, path: /spec/replicas, value: 1}
      - {op: replace, path: /spec/template/spec/containers/0/image, value: $image}
      - {op: add, path: /spec/template/spec/containers/0/imagePullPolicy, value: IfNotPresent}
      - {op: replace, path: /spec/template/spec/containers/0/resources, value: {requests: {cpu: 50m, memory: 128Mi}}}
OVERLAY
    kubectl kustomize "$scratch"
}

if [ "${1:-}" = --delete ]; then
    manifests | kube delete --ignore-not-found --wait=true -f - >/dev/null
    say "Kueue is gone"
    exit 0
fi

if [ ! -x "$kept/manager" ]; then
    say "building Kueue $version"
    mkdir -p "$kept"
    (cd "$module" && CGO_ENABLED=0 go build -mod=mod -trimpath -ldflags="-s -w" -o "$kept/manager.new" ./cmd/kueue)
    mv "$kept/manager.new" "$kept/manager"
fi
[ "${1:-}" != --build ] || exit 0
[ -n "${CLUSTER_IMAGE:-}" ] || fail "CLUSTER_IMAGE is not set: name the program that makes images of this cluster."
mkdir -p "$scratch/root"
cp "$kept/manager" "$scratch/root/manager"
"$CLUSTER_IMAGE" "$scratch/root" "$image" '{"Entrypoint": ["/manager"], "User": "65532:65532", "WorkingDir": "/"}'
manifests | kube apply --server-side --force-conflicts -f - >/dev/null
kube -n kueue-system rollout status deployment/kueue-controller-manager --timeout=180s >/dev/null
# It is ready some seconds before its webhooks answer, without which nothing of its kinds can be made.
answers() {
    kube apply --dry-run=server -f - >"$scratch/answer" 2>&1 <<FLAVOR
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: starforge-asks}}
FLAVOR
}
for second in $(seq 60); do
    ! answers || break
    [ "$second" != 60 ] || fail "Kueue's webhooks do not answer: $(cat "$scratch/answer")"
    sleep 1
done
say "Kueue $version runs in the cluster"
