"""The object store: a bucket of an S3 server, or a directory of this machine."""

from starforge.adapters.objects.directory import DirectoryObjects
from starforge.adapters.objects.s3 import S3Objects
from starforge.adapters.objects.s3_client import S3Connection

__all__ = ["DirectoryObjects", "S3Connection", "S3Objects"]
