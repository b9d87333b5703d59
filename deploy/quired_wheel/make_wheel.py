# SPDX-License-Identifier: Apache-2.0
"""Makes the wheel `quired`: the program, its libraries by auditwheel, the licences of all that
is bundled with the places of their sources, and the sources of quired.

build.sh runs it. Equal programs, libraries and sources give equal wheels.

usage: make_wheel.py QUIRED DIRECTORY
"""
import base64
import hashlib
import lzma
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
# The C library of Debian 12.
POLICY = f"manylinux_2_36_{platform.machine()}"
# Libraries of headers, or linked statically.
HEADER_PACKAGES = ("libcli11-dev", "libsdsl-dev", "libtomlplusplus-dev", "nlohmann-json3-dev")
COMMON_LICENCES = pathlib.Path("/usr/share/common-licenses")
# 2020-01-01.
ZIP_TIME = (2020, 1, 1, 0, 0, 0)


def run(*arguments):
    """The standard output of a command."""
    return subprocess.run([*map(str, arguments)], check=True, stdout=subprocess.PIPE,
                          cwd=SOURCE).stdout


def version_of_project():
    text = (SOURCE / "CMakeLists.txt").read_text()
    return re.search(r"project\(quire VERSION (\S+)", text)[1]


def write_wheel(directory, path):
    """Packs a directory as a wheel, with a new RECORD."""
    (information,) = directory.glob("*.dist-info")
    record = information / "RECORD"
    record.unlink(missing_ok=True)
    lines = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for source in sorted(found for found in directory.rglob("*") if found.is_file()):
            name = source.relative_to(directory).as_posix()
            data = source.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(data)}\n")
            add_file(file, name, data, source.stat().st_mode & 0o777)
        name = record.relative_to(directory).as_posix()
        add_file(file, name, "".join([*lines, f"{name},,\n"]).encode(), 0o644)


def add_file(file, name, data, mode):
    entry = zipfile.ZipInfo(name, ZIP_TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = (0o100000 | mode) << 16
    file.writestr(entry, data)


def write_sources(path):
    """The sources of quired: the revision of the checkout, which must be that of the program."""
    changed = run("git", "status", "--porcelain", "--untracked-files=no").decode()
    if changed:
        print(f"make_wheel.py: warning: the sources in the wheel lack changes that are not "
              f"committed:\n{changed}", end="", file=sys.stderr)
    tar = run("git", "archive", "--prefix=quire/", "HEAD")
    path.write_bytes(lzma.compress(tar, preset=6))


def write_package(directory, program, version):
    """The wheel before its libraries are added."""
    package = directory / "quired"
    (package / "bin").mkdir(parents=True)
    shutil.copy(HERE / "quired_launcher.py", package / "__init__.py")
    (package / "__main__.py").write_text("from . import main\n\nmain()\n")
    run("strip", "-o", package / "bin" / "quired", program)
    (package / "bin" / "quired").chmod(0o755)
    write_sources(package / "quire-source.tar.xz")
    information = directory / f"quired-{version}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: quired\nVersion: {version}\n"
        "Summary: Builds, checks and serves compressed document archives\n"
        "License: GPL-3.0-or-later\nRequires-Python: >=3.9\n"
        "Description-Content-Type: text/markdown\n\n" + (HERE / "README.md").read_text())
    (information / "WHEEL").write_text(
        "Wheel-Version: 1.0\nGenerator: quired_wheel\nRoot-Is-Purelib: false\n"
        f"Tag: py3-none-linux_{platform.machine()}\n")
    (information / "entry_points.txt").write_text("[console_scripts]\nquired = quired:main\n")


def libraries_of(program):
    """{file name: path} of the shared libraries, by each name that they have."""
    found = {}
    for line in run("ldd", program).decode().splitlines():
        match = re.match(r"\s*(\S+) => (/\S+)", line)
        if match:
            path = pathlib.Path(match[2])
            found[match[1]] = found[path.resolve().name] = path
    return found


def package_of(path):
    """The Debian package of a file."""
    for candidate in (path.resolve(), path, pathlib.Path(f"/usr{path}"),
                      pathlib.Path(str(path.resolve()).removeprefix("/usr"))):
        found = subprocess.run(["dpkg-query", "-S", candidate], capture_output=True, text=True,
                               check=False)
        if found.returncode == 0:
            return found.stdout.partition(": ")[0].split(",")[0]
    return sys.exit(f"make_wheel.py: {path}: no Debian package has this library, and so neither "
                    "its licence nor its source is known")


def write_licences(directory, program):
    """The licences of quired and of all that is bundled, and a table of their sources."""
    (information,) = directory.glob("*.dist-info")
    licences = information / "licenses"
    licences.mkdir()
    shutil.copy(SOURCE / "LICENSES" / "GPL-3.0-or-later.txt", licences)
    shutil.copy(SOURCE / "LICENSES" / "Apache-2.0.txt", licences)
    known = libraries_of(program)
    packages = {package: [] for package in HEADER_PACKAGES}
    for file in sorted((directory / "quired.libs").iterdir()):
        # auditwheel adds a hash to the name.
        name = re.sub(r"-[0-9a-f]{8}(?=\.)", "", file.name)
        packages.setdefault(package_of(known[name]), []).append(file.name)
    rows = ["| package | source, version | where the source is | files |", "|---|---|---|---|"]
    for package, files in sorted(packages.items()):
        source, version = run("dpkg-query", "-W", "-f",
                              "${source:Package} ${source:Version}", package).decode().split()
        rows.append(f"| {package} | {source} {version} | "
                    f"https://snapshot.debian.org/package/{source}/{version}/ | "
                    f"{', '.join(files) or 'in quired'} |")
        text = pathlib.Path("/usr/share/doc", package.partition(":")[0],
                            "copyright").read_text(errors="replace")
        (licences / f"{package.partition(':')[0]}.copyright").write_text(text)
        for common in re.findall(r"/usr/share/common-licenses/([A-Za-z0-9+-]+(?:\.[0-9]+)*)", text):
            if (COMMON_LICENCES / common).is_file():
                shutil.copy(COMMON_LICENCES / common, licences)
    (licences / "BUNDLED.md").write_text(
        "# Bundled with quired\n\nLibraries of Debian 12. NAME.copyright has the licence of "
        "each.\n\n" + "\n".join(rows) + "\n\nThe sources of quired itself are "
        "`quired/quire-source.tar.xz` in the package.\n")


def main():
    program, target = sys.argv[1:]
    program = pathlib.Path(program).resolve()
    version = version_of_project()
    with tempfile.TemporaryDirectory(prefix="quired-wheel-") as scratch:
        scratch = pathlib.Path(scratch)
        bare = scratch / f"quired-{version}-py3-none-linux_{platform.machine()}.whl"
        (scratch / "package").mkdir()
        write_package(scratch / "package", program, version)
        write_wheel(scratch / "package", bare)
        subprocess.run(["auditwheel", "repair", "--plat", POLICY, "--wheel-dir",
                        scratch / "repaired", bare], check=True, stdout=sys.stderr)
        (repaired,) = (scratch / "repaired").iterdir()
        run("python3", "-m", "zipfile", "-e", repaired, scratch / "unpacked")
        # zipfile keeps no modes.
        (scratch / "unpacked" / "quired" / "bin" / "quired").chmod(0o755)
        write_licences(scratch / "unpacked", program)
        made = pathlib.Path(target).resolve() / repaired.name
        write_wheel(scratch / "unpacked", made)
    print(made)


if __name__ == "__main__":
    main()
