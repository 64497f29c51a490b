"""Writes a file below the storage root on one machine, reads it on another, and finds the corpus read-only."""

import errno
import os
import socket
import sys
from pathlib import Path

import ray

import starforge

ROOT, CORPUS = Path(os.environ["STORAGE"]), Path(os.environ["CORPUS"])
NOTE = ROOT / os.environ["NOTE_NAME"]


def read(path: Path) -> tuple[str, str]:
    return socket.gethostname(), path.read_text()


def corpus_refuses() -> bool:
    try:
        (CORPUS / "written").write_text("no")
    except OSError as refused:
        return refused.errno == errno.EROFS
    return False


ray.init()
written_by = socket.gethostname()
NOTE.write_text(f"written by {written_by}")
elsewhere = "reader" if "reader" in ray.cluster_resources() else "train"
host, text = ray.get(ray.remote(read).options(num_cpus=0, resources={elsewhere: 0.1}).remote(NOTE))
NOTE.unlink()
lines = (CORPUS / "corpus.txt").read_text().splitlines()
print(f"read on another machine: {host != written_by}, text {text == f'written by {written_by}'}")
print(f"corpus lines {len(lines)} read-only {corpus_refuses()}")
starforge.progress(1, 1, another=int(host != written_by), readonly=int(corpus_refuses()))
sys.exit(0 if text == f"written by {written_by}" and corpus_refuses() else 4)
