"""The roots that Ray containers trust when the object store has a CA of its own."""

from pathlib import Path

import certifi


def ca_bundle(ca_file: str | None) -> str | None:
    """The public roots and those of `ca_file` as one PEM text; None without a file. OSError if it can't be read."""
    if not ca_file:
        return None
    return "\n".join([_certificates(certifi.contents()), _certificates(Path(ca_file).read_text())])


def _certificates(pem: str) -> str:
    """The certificates alone: comments make the bundle a third larger than it needs to be."""
    kept, inside = [], False
    for line in pem.splitlines():
        inside = inside or line.startswith("-----BEGIN")
        if inside:
            kept.append(line.strip())
        inside = inside and not line.startswith("-----END")
    return "\n".join(kept)
