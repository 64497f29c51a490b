"""Names that are never taken, whatever the ignore files say: histories, environments, caches, keys, outputs."""

from fnmatch import fnmatchcase

_FOLDERS = (
    ".venv",
    "venv",
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    "node_modules",
    "wandb",
    "outputs",
)
_ANYTHING = (
    ".git",
    ".hg",
    ".svn",
    ".env",
    ".env.*",
    "*.pem",
    "id_rsa*",
    "id_ed25519*",
    ".aws",
    ".ssh",
    ".netrc",
    "kubeconfig",
    ".DS_Store",
)


def floor_rule(name: str, *, is_folder: bool) -> str | None:
    """The pattern that keeps `name` (of a file or folder at any depth) out, or None."""
    patterns = (*_FOLDERS, *_ANYTHING) if is_folder else _ANYTHING
    return next((pattern for pattern in patterns if fnmatchcase(name.lower(), pattern.lower())), None)
