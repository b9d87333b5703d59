# SPDX-License-Identifier: Apache-2.0
"""Build backend (PEP 517): setuptools, with the descriptors of the protos made first.

Builds in a copy, so that the source tree stays as it is. The protos are those of the
repository, so pip needs all of it: `pip install ./client/python`, or `pip install
"git+URL#subdirectory=client/python"`. A source distribution has the descriptors.

protoc is that of PATH; without one, pip installs grpcio-tools for the build.
"""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from setuptools import build_meta

_PACKAGE = pathlib.Path(__file__).resolve().parent
_PROTOS = _PACKAGE.parents[1] / "proto"
_FILES = ("quire/v1/archive.proto", "quire/v1/error_details.proto")
_DESCRIPTORS = pathlib.Path("quire_archive", "descriptors.binpb")
# 2020-01-01: equal sources give equal wheels.
_EPOCH = "1577836800"


def _has_protos():
    return (_PROTOS / _FILES[0]).is_file()


def _protoc():
    """The command, without arguments."""
    program = shutil.which("protoc")
    if program is not None:
        return [program]
    try:
        import grpc_tools  # pylint: disable=import-outside-toplevel
    except ImportError:
        raise RuntimeError("quire-archive is built with protoc, which is neither in PATH nor the "
                           "Python module grpc_tools; install protobuf-compiler or grpcio-tools"
                           ) from None
    includes = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    return [sys.executable, "-m", "grpc_tools.protoc", f"-I{includes}"]


def _write_descriptors(path):
    """Raises RuntimeError if there is nothing to make them of."""
    if _has_protos():
        subprocess.run([*_protoc(), f"-I{_PROTOS}", "--include_imports",
                        f"--descriptor_set_out={path}", *_FILES], check=True)
    elif not path.is_file():
        raise RuntimeError(f"{_PROTOS} is missing, of which quire-archive is built; install it "
                           "from a whole checkout of the repository, or from a wheel")


@contextlib.contextmanager
def _copied_sources():
    """Makes a copy with the descriptors the working directory."""
    os.environ.setdefault("SOURCE_DATE_EPOCH", _EPOCH)
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as directory:
        copy = pathlib.Path(directory)
        for name in ("pyproject.toml", "README.md", "MANIFEST.in", "build_backend.py"):
            shutil.copy(_PACKAGE / name, copy)
        shutil.copytree(_PACKAGE / "quire_archive", copy / "quire_archive",
                        ignore=shutil.ignore_patterns("__pycache__"))
        _write_descriptors(copy / _DESCRIPTORS)
        os.chdir(copy)
        try:
            yield
        finally:
            os.chdir(before)


def get_requires_for_build_wheel(config_settings=None):  # pylint: disable=unused-argument
    """What pip installs for the build, in addition to the list in pyproject.toml."""
    return ["grpcio-tools"] if _has_protos() and shutil.which("protoc") is None else []


get_requires_for_build_sdist = get_requires_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Returns the name of the wheel, in that directory."""
    directory = os.path.abspath(wheel_directory)
    with _copied_sources():
        return build_meta.build_wheel(directory, config_settings, metadata_directory)


def build_sdist(sdist_directory, config_settings=None):
    """Returns the name of the source distribution, in that directory."""
    directory = os.path.abspath(sdist_directory)
    with _copied_sources():
        return build_meta.build_sdist(directory, config_settings)
