# SPDX-License-Identifier: Apache-2.0
"""The program quired, which builds, checks and serves archives; quire_archive.open() runs it.

Licences of all that is bundled, and where their sources are, are in the directory licenses of
the package's metadata; the sources of quired are in SOURCES.
"""
import os
import sys

__version__ = "0.1.0"
_HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(_HERE, "bin", "quired")
SOURCES = os.path.join(_HERE, "quire-source.tar.xz")
# Certificates of the system: the path that libcurl has compiled in (Debian), and those of
# others: Fedora and RHEL, openSUSE, Alpine and BSD.
_CERTIFICATES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                 "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/ca-bundle.pem",
                 "/etc/ssl/cert.pem")


def environment(given=None, certificates=_CERTIFICATES):
    """The environment for the program: `given`, by default that of this process, with
    AWS_CA_BUNDLE if libcurl would find no certificates."""
    made = dict(os.environ if given is None else given)
    found = next((path for path in certificates if os.path.exists(path)), None)
    if "AWS_CA_BUNDLE" not in made and found not in (None, certificates[0]):
        made["AWS_CA_BUNDLE"] = found
    return made


def main():
    """Becomes the program, with the arguments of this process."""
    os.execve(PROGRAM, ["quired", *sys.argv[1:]], environment())
