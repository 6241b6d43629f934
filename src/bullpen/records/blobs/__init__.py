"""Blobs: bytes that are known by their digest, in a folder or in a bucket that speaks S3."""
