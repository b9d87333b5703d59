#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Certificates for tests, made by openssl: an authority and certificates it signs."""
import subprocess

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Authority:
    """Files NAME.pem and NAME.key in a directory; `pem` is the authority's own."""

    def __init__(self, directory, name):
        self.directory = directory
        self.name = name
        self.pem = directory / f"{name}.pem"
        openssl("req", "-x509", *KEY, "-keyout", directory / f"{name}.key", "-out", self.pem,
                "-days", 30, "-subj", f"/CN={name}")

    def sign(self, name, names="DNS:localhost,IP:127.0.0.1", days=30):
        """Returns the paths of a certificate for `names` and of its key."""
        pem, key, request, extensions = (
            self.directory / f"{name}.{kind}" for kind in ("pem", "key", "csr", "ext"))
        openssl("req", *KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        extensions.write_text(f"subjectAltName={names}\n")
        openssl("x509", "-req", "-in", request, "-CA", self.pem,
                "-CAkey", self.directory / f"{self.name}.key", "-CAcreateserial",
                "-out", pem, "-days", days, "-extfile", extensions)
        return pem, key
