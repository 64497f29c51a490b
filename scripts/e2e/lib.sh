# Shared by setup-kind.sh and use-cluster.sh, which set $kubeconfig; sourced, not run.
# Standard output belongs to `export FORGE_…` lines, so that eval can take it; all else goes to standard error.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # what one file sets the other uses
repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
namespace=starforge
bucket=starforge
storage_root=/starforge
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
exec 3>&1 1>&2

say() { printf '[%s %4ds] %s\n' "$(basename "$0")" "$SECONDS" "$*"; }
fail() { # fail SENTENCE…
    printf '%s\n' "$@"
    exit 1
}
setting() { printf 'export %s=%q\n' "$1" "$2" >&3; }

# Every request is short; waiting has its own limit.
kube() { kubectl --kubeconfig "$kubeconfig" --request-timeout=30s "$@"; }
kube_wait() { # kube_wait SECONDS WHAT KUBECTL_ARGUMENTS…: for a kubectl command that takes --timeout
    local limit=$1 what=$2 began=$SECONDS
    shift 2
    say "waiting for $what, at most $limit s"
    if ! kubectl --kubeconfig "$kubeconfig" "$@" --timeout="${limit}s" >"$scratch/wait" 2>&1; then
        cat "$scratch/wait"
        explain
        fail "$what: not within $limit s. What the cluster says is above; run this again once it is mended."
    fi
    say "$what: after $((SECONDS - began)) s"
}
explain() { # what is not well, for a person
    kube get pods -A --field-selector=status.phase!=Running,status.phase!=Succeeded || true
    kube get events -A --field-selector=type=Warning --sort-by=.lastTimestamp | tail -n 15 || true
}

ensure_namespace() { kube create namespace "$1" --dry-run=client -o yaml | kube apply -f - >/dev/null; }
apply_folder() { kube kustomize "$1" | kube apply -f - >/dev/null; }

grant_rights() {
    say "service account and rights from deploy/ in namespace $namespace"
    ensure_namespace "$namespace"
    apply_folder "$repo/deploy"
}

# A volume whose claim was deleted stays Released and binds no more; its data stays in its folder.
forget_released_volumes() {
    local volume
    for volume in starforge-storage starforge-corpus; do
        if [ "$(kube get pv "$volume" --ignore-not-found -o jsonpath='{.status.phase}')" = Released ]; then
            say "volume $volume had lost its claim: made again"
            kube delete pv "$volume" >/dev/null
        fi
    done
}
bind_volumes() { # bind_volumes KUSTOMIZE_FOLDER
    forget_released_volumes
    apply_folder "$1"
    kube_wait 60 "claims starforge-storage and starforge-corpus bound" wait -n "$namespace" \
        --for=jsonpath='{.status.phase}'=Bound pvc/starforge-storage pvc/starforge-corpus
}
# Jobs run as whatever user their image names: the storage root is open to all, as /tmp is.
make_volume_folders() { # make_volume_folders PARENT
    mkdir -p "$1/storage" "$1/corpus"
    chmod 1777 "$1/storage"
    echo "a line of the test corpus" >"$1/corpus/corpus.txt"
    chmod -R a+rX "$1/corpus"
}

print_cluster() { # print_cluster SERVER CA_FILE TOKEN_DURATION
    local token
    token=$(kube create token starforge -n "$namespace" --duration="$3")
    setting FORGE_DEFAULT_FLEET_KIND kuberay
    setting FORGE_K8S_API_SERVER "$1"
    setting FORGE_K8S_TOKEN "$token"
    setting FORGE_K8S_CA_FILE "$2"
    setting FORGE_K8S_NAMESPACE "$namespace"
}
print_image() { # print_image IMAGE RAY_VERSION
    setting FORGE_IMAGE_NEMO_RL "$1"
    setting FORGE_KUBERAY_RAY_VERSION "$2"
}
print_s3() { # print_s3 ENDPOINT ACCESS_KEY SECRET_KEY
    setting FORGE_S3_ENDPOINT "$1"
    setting FORGE_S3_BUCKET "$bucket"
    setting FORGE_S3_ACCESS_KEY "$2"
    setting FORGE_S3_SECRET_KEY "$3"
}
print_storage() {
    setting FORGE_STORAGE_ROOT "$storage_root"
    setting FORGE_K8S_STORAGE_PVC starforge-storage
    setting FORGE_K8S_CORPUS_PVC starforge-corpus
}
