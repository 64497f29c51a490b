#!/usr/bin/env bash
# Makes a kind cluster with two labelled workers, the KubeRay operator, an S3 server and StarForge's rights in it,
# and prints the settings that point StarForge at it:
#   eval "$(bash scripts/e2e/setup-kind.sh)"
# Run it again to repair: what is there stays, what is missing is made, and the same lines are printed (the token is
# a new one). docs/kubernetes.md tells how to use it on a machine that can pull nothing.
set -euo pipefail
# shellcheck source=scripts/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

name=starforge state_parent=${XDG_STATE_HOME:-${HOME:-/root}/.local/state}/starforge/kind
kuberay_version=1.5.0 chart_repo=https://ray-project.github.io/kuberay-helm/ operator_kustomize=''
ray_version=2.55.1 ray_image='' node_image='' duration=24h
gpus='' storage='' delete='' archives=()
operator_namespace=kuberay-system s3_namespace=starforge-s3 s3_node_port=30900

usage() {
    cat <<TEXT
setup-kind.sh [OPTIONS]
  --name NAME               of the kind cluster (default: $name)
  --delete                  removes the cluster and its folder
  --gpus                    advertises nvidia.com/gpu: 8 on the h200 worker, 4 on the b200 worker (they are not there)
  --storage                 prints the storage root and the corpus claim as well
  --kuberay-version VERSION of the operator's helm chart (default: $kuberay_version)
  --chart-repo URL          that has the chart (default: $chart_repo)
  --operator-kustomize DIR  installs the operator from this kustomize folder, without helm
  --image-archive FILE      loads this image archive into the nodes, before anything needs it; repeatable
  --node-image IMAGE        of the kind nodes (default: kind's own)
  --ray-version VERSION     (default: $ray_version)
  --ray-image IMAGE         of the jobs (default: rayproject/ray:VERSION)
  --token-duration TIME     how long the token is good for (default: $duration)
TEXT
}

while [ $# -gt 0 ]; do
    case $1 in
        --gpus) gpus=yes ;;
        --storage) storage=yes ;;
        --delete) delete=yes ;;
        -h | --help) usage && exit 0 ;;
        --name | --kuberay-version | --chart-repo | --operator-kustomize | --image-archive | --node-image | --ray-version | --ray-image | --token-duration)
            [ -n "${2:-}" ] || fail "setup-kind.sh: $1 needs a value."
            case $1 in
                --name) name=$2 ;;
                --kuberay-version) kuberay_version=${2#v} ;;
                --chart-repo) chart_repo=$2 ;;
                --operator-kustomize) operator_kustomize=$2 ;;
                --image-archive) archives+=("$2") ;;
                --node-image) node_image=$2 ;;
                --ray-version) ray_version=$2 ;;
                --ray-image) ray_image=$2 ;;
                --token-duration) duration=$2 ;;
            esac
            shift
            ;;
        *) usage && fail "setup-kind.sh: there is no option $1." ;;
    esac
    shift
done
state=$state_parent/$name kubeconfig=$state_parent/$name/kubeconfig

require() { # require TOOL SENTENCE: all that is missing is told at once
    command -v "$1" >/dev/null || missing+=("$1 is not on the path: $2")
}
missing=()
require docker "kind runs the nodes as its containers; install Docker and start it."
require kind "install it from https://kind.sigs.k8s.io."
if [ -z "$delete" ]; then
    require kubectl "install it from https://kubernetes.io/docs/tasks/tools."
    require curl "it is how this script sees that the object store answers."
    [ -n "$operator_kustomize" ] || require helm "install it from https://helm.sh, or name the operator's kustomize folder by --operator-kustomize."
fi
[ ${#missing[@]} -eq 0 ] || fail "${missing[@]}"
docker version >/dev/null 2>&1 || fail "docker is there but its daemon does not answer: start it, or set DOCKER_HOST to where it is."
for archive in ${archives[@]+"${archives[@]}"}; do
    [ -r "$archive" ] || fail "The image archive $archive can't be read."
done
[ -z "$operator_kustomize" ] || [ -e "$operator_kustomize/kustomization.yaml" ] ||
    fail "$operator_kustomize is no kustomize folder: it has no kustomization.yaml."

cluster_exists() { kind get clusters 2>/dev/null | grep -qxF "$name"; }
workers() { kind get nodes --name "$name" 2>/dev/null | grep -v -- '-control-plane'; }

delete_cluster() {
    if cluster_exists; then
        say "deleting kind cluster $name"
        # Files of jobs may belong to users that only the node can remove them for.
        docker exec "$(workers | head -n 1)" find /var/lib/starforge/storage -mindepth 1 -delete || say "storage root: not emptied"
        kind delete cluster --name "$name" --kubeconfig "$kubeconfig" 2>&1
    fi
    rm -rf "$state"
    say "kind cluster $name is gone"
}

make_cluster() {
    mkdir -p "$state" && chmod 700 "$state"
    make_volume_folders "$state"
    if cluster_exists; then
        say "kind cluster $name is there"
        # shellcheck disable=SC2046  # one word per node
        docker start $(kind get nodes --name "$name" 2>/dev/null) >/dev/null
    else
        say "creating kind cluster $name, which waits at most 180 s for its control plane"
        # From $state, as the folders that cluster.yaml mounts are relative.
        (cd "$state" && kind create cluster --name "$name" --config "$repo/deploy/kind/cluster.yaml" --wait 180s \
            --kubeconfig "$kubeconfig" ${node_image:+--image "$node_image"} 2>&1)
    fi
    (umask 077 && kind get kubeconfig --name "$name" >"$kubeconfig.new") ||
        fail "kind cluster $name is only half made: remove it by --delete and run this again."
    mv "$kubeconfig.new" "$kubeconfig"
    cluster_field 'index .cluster "certificate-authority-data" | base64decode' >"$state/ca.crt"
    kube_wait 120 "all nodes Ready" wait --for=condition=Ready node --all
}
cluster_field() { kube config view --raw -o go-template="{{range .clusters}}{{$1}}{{end}}"; }

# The checksum is kept on the node, so that a new node or a changed archive is loaded and nothing is loaded twice.
load_archives() {
    local archive mark node lacking
    for archive in ${archives[@]+"${archives[@]}"}; do
        mark=/var/lib/starforge-loaded/$(cksum <"$archive" | tr ' ' -) lacking=''
        for node in $(workers); do
            docker exec "$node" test -e "$mark" || lacking+=${lacking:+,}$node
        done
        [ -n "$lacking" ] || continue
        say "loading $archive into $lacking"
        kind load image-archive "$archive" --name "$name" --nodes "$lacking" 2>&1
        for node in ${lacking//,/ }; do
            docker exec "$node" sh -c "mkdir -p $(dirname "$mark") && touch $mark"
        done
    done
}

install_operator() {
    if [ -n "$operator_kustomize" ]; then
        say "KubeRay operator from $operator_kustomize"
        ensure_namespace "$operator_namespace"
        mkdir "$scratch/kuberay"
        ln -s "$(cd "$operator_kustomize" && pwd)" "$scratch/kuberay/operator"
        # The user id is for images that name none, which runAsNonRoot refuses. 65532 is that of the official image.
        cat >"$scratch/kuberay/kustomization.yaml" <<OVERLAY
namespace: $operator_namespace
resources: [operator]
patches:
  - target: {kind: Deployment, name: kuberay-operator}
    patch: '[{"op": "add", "path": "/spec/template/spec/securityContext/runAsUser", "value": 65532}]'
OVERLAY
        # On the server's side, as the CRDs are too large for kubectl's annotation.
        kube kustomize "$scratch/kuberay" | kube apply --server-side --force-conflicts -f - >/dev/null
    else
        say "KubeRay operator, helm chart $kuberay_version from $chart_repo, waiting at most 300 s"
        helm upgrade --install kuberay-operator kuberay-operator --repo "$chart_repo" --version "$kuberay_version" \
            --namespace "$operator_namespace" --create-namespace --kubeconfig "$kubeconfig" --wait --timeout 300s 2>&1
    fi
    kube_wait 60 "the RayJob type served" wait --for=condition=Established crd/rayjobs.ray.io
    kube_wait 300 "the KubeRay operator available" rollout status -n "$operator_namespace" deployment/kuberay-operator
}

s3_key() { kube get secret s3 -n "$s3_namespace" -o go-template="{{index .data \"$1\" | base64decode}}"; }
install_s3() {
    say "S3 server in namespace $s3_namespace"
    ensure_namespace "$s3_namespace"
    if [ -z "$(kube get secret s3 -n "$s3_namespace" --ignore-not-found -o name)" ]; then
        kube create -f - >/dev/null <<SECRET
{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s3", "namespace": "$s3_namespace"},
 "stringData": {"access-key": "starforge", "secret-key": "$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')"}}
SECRET
        kube delete pod -n "$s3_namespace" -l app=s3 >/dev/null  # one with the keys of a lost Secret
    fi
    apply_folder "$repo/deploy/kind"
    kube_wait 180 "the S3 server available" rollout status -n "$s3_namespace" deployment/s3
    s3_endpoint=http://$(docker port "$name-control-plane" "$s3_node_port/tcp" | head -n 1)
    local began=$SECONDS limit=60
    say "waiting for the S3 server to answer at $s3_endpoint, at most $limit s"
    until curl -s --noproxy '*' --max-time 5 -o /dev/null "$s3_endpoint"; do
        ((SECONDS - began < limit)) || fail "The S3 server runs but does not answer at $s3_endpoint: does Docker publish ports on this machine?"
        sleep 1
    done
}

advertise_gpus() { # advertise_gpus SERIES COUNT: a COUNT of null takes them away
    local node
    node=$(kube get nodes -l "starforge/gpu-series=$1" -o name)
    [ -n "$node" ] || fail "kind cluster $name has no worker of series $1: remove it by --delete and run this again."
    kube patch "$node" --subresource=status --type=merge \
        -p "{\"status\": {\"capacity\": {\"nvidia.com/gpu\": $2}, \"allocatable\": {\"nvidia.com/gpu\": $2}}}" >/dev/null
}
set_gpus() {
    if [ -n "$gpus" ]; then
        say "advertising GPUs that are not there: 8 on h200, 4 on b200"
        advertise_gpus h200 '"8"'
        advertise_gpus b200 '"4"'
    else
        advertise_gpus h200 null
        advertise_gpus b200 null
    fi
}

if [ -n "$delete" ]; then
    delete_cluster
    exit 0
fi
make_cluster
load_archives
install_operator
install_s3
grant_rights
bind_volumes "$repo/deploy/volumes"
set_gpus

access_key=$(s3_key access-key) secret_key=$(s3_key secret-key)
print_cluster "$(cluster_field .cluster.server)" "$state/ca.crt" "$duration"
print_image "${ray_image:-rayproject/ray:$ray_version}" "$ray_version"
print_s3 "$s3_endpoint" "$access_key" "$secret_key"
setting FORGE_S3_POD_ENDPOINT "http://s3.$s3_namespace.svc:9000"
[ -n "$gpus" ] || setting FORGE_K8S_GPU_PASSTHROUGH 0
[ -z "$storage" ] || print_storage
say "done. As an administrator: kubectl --kubeconfig $kubeconfig get pods -A"
