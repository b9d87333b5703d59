#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian 12 packages that Quire needs for building and testing. Can be
# repeated: asks dpkg first and downloads only missing packages.
#
# usage: deploy/bootstrap.sh [build|all|bench|package|replay]
#   build   packages for compiling (g++, CMake, libraries)
#   all     also packages for deploy/test.sh (clang, Python modules; kubernetes-validate,
#           mypy, fsspec, surt and warcio from PyPI into build/python; buf from npm into
#           build/buf); the default
#   bench   only the peers of loadtest/bench/archive_bench.py and device_bench.py;
#           not needed for building or testing
#   package packages for compiling and for deploy/package_test.sh
#   replay  only Chromium, for python_replay_test of the stage ecosystem
set -euo pipefail

# Compiler and build tools. binutils, g++ and make come with build-essential; help2man
# generates the man pages.
tools=(build-essential cmake ninja-build pkg-config ccache help2man)

# Libraries of deploy/cmake/QuireDependencies.cmake.
libraries=(
  libgrpc++-dev libgrpc-dev protobuf-compiler protobuf-compiler-grpc
  libprotobuf-dev libabsl-dev
  libsdsl-dev libdivsufsort-dev
  zlib1g-dev libbrotli-dev libbz2-dev liblz4-dev libzstd-dev liblzma-dev libxxhash-dev
  liburing-dev libarchive-dev libre2-dev libmicrohttpd-dev
  libcli11-dev nlohmann-json3-dev prometheus-cpp-dev libssl-dev openssl libcurl4-openssl-dev
  libsystemd-dev
  libspdlog-dev libtomlplusplus-dev
  libgtest-dev libgmock-dev libbenchmark-dev
)

# The second compiler with its sanitizers and checkers, and the Python modules
# of the reference reader and of the end-to-end tests; python3-botocore (5 MB) signs
# requests to object stores, for comparison; iproute2 creates the slow links of
# loadtest/bench/wire_bench.py. Only tests run Prometheus, Alertmanager, nginx and
# HAProxy; systemd and python3-seccomp check the unit of deploy/systemd, logrotate
# rotates its logs, and rsync copies archives as in docs/backup.md.
checkers=(
  clang-14 clang-tidy-14 clang-format-14 lld-14 llvm-14 libclang-rt-14-dev
  shellcheck git unzip
  python3 python3-grpcio python3-protobuf python3-xxhash python3-zstandard
  python3-lz4 python3-yaml python3-botocore iproute2
  prometheus prometheus-alertmanager
  systemd python3-seccomp python3-pip python3-setuptools python3-wheel
  curl wget nginx haproxy zstd xz-utils logrotate rsync
)

# Not libhts-dev: it would replace libcurl4-openssl-dev, which prometheus-cpp-dev needs.
# fio measures a disk.
peers=(
  tabix libdeflate-dev librocksdb-dev fio
)

# Tools to build Debian packages, check them, and use them in separate roots.
packagers=(debhelper lintian mmdebstrap bubblewrap)

# Replays a crawl, driven by selenium.
browsers=(chromium chromium-driver fonts-dejavu-core)

say() { printf 'bootstrap: %s\n' "$*"; }
die() {
  printf 'bootstrap: %s\n' "$@" >&2
  exit 1
}

case "${1:-all}" in
  build) wanted=("${tools[@]}" "${libraries[@]}") ;;
  all) wanted=("${tools[@]}" "${libraries[@]}" "${checkers[@]}") ;;
  bench) wanted=("${peers[@]}") ;;
  package) wanted=("${tools[@]}" "${libraries[@]}" "${packagers[@]}") ;;
  replay) wanted=("${browsers[@]}") ;;
  *) die "usage: deploy/bootstrap.sh [build|all|bench|package|replay]" ;;
esac

# Not sourced: the file sets unrelated names.
release_field() { sed -n "s/^$1=\"\\?\\([^\"]*\\)\"\\?\$/\\1/p" /etc/os-release; }
if [[ ! -r /etc/os-release ]]; then
  die "cannot identify this system (no /etc/os-release)." \
    "Quire is built and tested on Debian 12 (bookworm)."
fi
if [[ "$(release_field ID)" != debian || "$(release_field VERSION_ID)" != 12 ]]; then
  die "this is $(release_field PRETTY_NAME); Quire is built and tested on Debian 12 (bookworm)." \
    "Run it in a container instead:" \
    "  docker run --rm -it -v \"\$PWD\":/quire -w /quire debian:12 deploy/quickstart.sh"
fi

missing_packages() {
  local package
  for package in "${wanted[@]}"; do
    if [[ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" != installed ]]; then
      printf '%s\n' "$package"
    fi
  done
}

# Packages that Debian lacks go below build/, where no other program uses them.
# Without them one test is skipped with a message, and python_package_test fails.
python_modules() {
  local here modules wanted
  here=$(cd "$(dirname "$0")/.." && pwd)
  local requirements=("$here/deploy/kubernetes/requirements.txt"
    "$here/client/python/tests/checker_modules.txt")
  modules=$here/build/python
  wanted=$(cat "${requirements[@]}")
  if [[ "$1" != all || "$wanted" == "$(cat "$modules/requirements.txt" 2>/dev/null)" ]]; then
    return
  fi
  say "pip install kubernetes-validate, mypy, fsspec, surt and warcio into $modules"
  rm -rf "$modules"
  if /usr/bin/python3 -m pip install --quiet --disable-pip-version-check --no-deps \
    --root-user-action=ignore --only-binary :all: --target "$modules" \
    --requirement "${requirements[0]}" --requirement "${requirements[1]}" </dev/null; then
    printf '%s\n' "$wanted" >"$modules/requirements.txt"
  else
    rm -rf "$modules"
    say "pip could not install them; kubernetes_schema_test will be skipped and" \
      "python_package_test will fail"
  fi
}

# buf checks the protos in the stage ecosystem. npm is not installed for it, as Debian's
# conflicts with other versions of Node.
buf_version=1.75.0
buf() {
  local here directory
  here=$(cd "$(dirname "$0")/.." && pwd)
  directory=$here/build/buf
  if [[ "$1" != all ]] ||
    grep -qs "\"version\": \"$buf_version\"" "$directory/node_modules/@bufbuild/buf/package.json"; then
    return
  fi
  say "npm install @bufbuild/buf@$buf_version into $directory"
  rm -rf "$directory"
  if ! npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$directory" \
    "@bufbuild/buf@$buf_version" </dev/null; then
    rm -rf "$directory"
    say "npm could not install it; proto_buf_test of the stage ecosystem will fail"
  fi
}

mapfile -t missing < <(missing_packages)
if ((${#missing[@]} == 0)); then
  say "all ${#wanted[@]} packages are installed; nothing to do"
  python_modules "${1:-all}"
  buf "${1:-all}"
  exit 0
fi
say "${#missing[@]} of ${#wanted[@]} packages are missing: ${missing[*]}"

as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null ||
    die "installing packages needs root, and there is no sudo; run this as root once:" \
      "  apt-get install --no-install-recommends ${missing[*]}"
  as_root=(sudo)
fi

apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" </dev/null
}
# Tests start these themselves. As services they would listen on ports unasked: they
# are masked (`systemctl unmask NAME` reverts it), and no service is started during
# installation, unless the system has its own policy.
policy=/usr/sbin/policy-rc.d
allow_services() {
  trap - EXIT
  "${as_root[@]}" rm -f "$policy"
}
forbid_services() {
  local service unit is_missing=
  local services=(prometheus prometheus-alertmanager nginx haproxy)
  for service in "${services[@]}"; do
    unit=/etc/systemd/system/$service.service
    [[ " ${missing[*]} " == *" $service "* ]] || continue
    is_missing=yes
    if [[ ! -e "$unit" && ! -L "$unit" ]]; then
      say "$service is not to run as a service: masking it"
      "${as_root[@]}" mkdir -p /etc/systemd/system
      "${as_root[@]}" ln -s /dev/null "$unit"
    fi
  done
  if [[ -n "$is_missing" && ! -e "$policy" ]]; then
    trap allow_services EXIT
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
  fi
}
install_missing() {
  forbid_services
  say "apt-get install --no-install-recommends (the ${#missing[@]} above)"
  apt install -y --no-install-recommends "${missing[@]}"
}
update_lists() {
  say "apt-get update"
  apt update || say "apt-get update failed for some source; continuing with the available lists"
}

# Fetch package lists only if they are missing (a fresh container) or too old (files
# that the mirror no longer has).
if ! apt-cache show --no-all-versions "${missing[@]}" >/dev/null 2>&1; then
  update_lists
  install_missing || die "apt-get could not install them; its messages are above"
elif ! install_missing; then
  update_lists
  install_missing || die "apt-get could not install them; its messages are above"
fi

mapfile -t missing < <(missing_packages)
((${#missing[@]} == 0)) || die "still missing after installation: ${missing[*]}"
python_modules "${1:-all}"
buf "${1:-all}"
say "done: all ${#wanted[@]} packages are installed"
