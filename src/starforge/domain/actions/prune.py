"""Forgets what nobody will ask for again: commands that are done, and code that was announced and never used."""

from datetime import timedelta

from starforge.domain.actions.package import upload_key
from starforge.domain.ports import Ports

KEPT = timedelta(days=7)
UPLOADS_AT_ONCE = 100


def prune(ports: Ports) -> None:
    """Forget commands and uploads that are a week old. An upload's object goes first, so that none is left behind."""
    before = ports.now() - KEPT
    ports.store.prune_commands(before=before)
    for upload in ports.store.unused_uploads(before=before, limit=UPLOADS_AT_ONCE):
        if ports.store.upload(upload.digest) == upload:  # else it was announced again, and is on its way
            ports.objects.delete(upload_key(upload.transport_sha256))
            ports.store.forget_upload(upload)
