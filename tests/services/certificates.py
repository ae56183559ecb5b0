"""Certificates of a test's own authority, made by openssl."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.services.maven import NotInstalledError


class Certificates(NamedTuple):
    """PEM files: of an authority, and of a certificate that it signed for 127.0.0.1."""

    authority: str
    certificate: str
    key: str


def make_certificates(folder: Path) -> Certificates:
    """Make them in a new folder; the certificate is for servers and clients.

    Raises:
        NotInstalledError: there is no openssl.
    """
    if shutil.which("openssl") is None:
        raise NotInstalledError("openssl is not installed")
    folder.mkdir(parents=True)
    names = ("ca.pem", "ca.key", "own.pem", "own.key")
    authority, authority_key, certificate, key = (str(folder / name) for name in names)
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    first = ["-subj", "/CN=authority", "-keyout", authority_key, "-out", authority]
    name = ["-subj", "/CN=shop", "-addext", "subjectAltName=IP:127.0.0.1"]
    signed = ["-CA", authority, "-CAkey", authority_key]
    is_none = ["-addext", "basicConstraints=critical,CA:FALSE"]
    second = [*name, *signed, *is_none, "-keyout", key, "-out", certificate]
    for arguments in (first, second):
        subprocess.run([*new, *arguments], check=True, capture_output=True)
    return Certificates(authority, certificate, key)
