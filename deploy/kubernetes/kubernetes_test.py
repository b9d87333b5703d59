#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the manifests for Kubernetes fit each other and the server.

usage: kubernetes_test.py [--schemas]
With --schemas: tests that Kubernetes accepts them, by kubernetes-validate, which
deploy/bootstrap.sh installs into build/python; exit code 77 if it is missing.
"""
import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib
import unittest

HERE = pathlib.Path(__file__).resolve().parent
VALIDATOR = HERE.parents[1] / "build" / "python"
SKIPPED = 77
if "--schemas" in sys.argv:
    # Before yaml is imported: this directory has its own.
    sys.path.insert(0, str(VALIDATOR))

import yaml  # pylint: disable=wrong-import-position

# The oldest and the newest version that the manifests are checked for.
VERSIONS = ("1.29", "1.31")
CONFIGURATIONS = {"base": "quired.toml", "example": "quired-tls.toml"}
# Only a hang takes this long.
PATIENCE_S = 120
UNITS = {"Ki": 10, "Mi": 20, "Gi": 30, "KiB": 10, "MiB": 20, "GiB": 30}


def size_bytes(text):
    number, unit = re.fullmatch(r"(\d+)(\w+)", text).groups()
    return int(number) << UNITS[unit]


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)([smh])", text).groups()
    return int(number) * {"s": 1, "m": 60, "h": 3600}[unit]


def load(path):
    return yaml.safe_load(path.read_text())


def merge(base, patch):
    """A strategic merge: lists of named objects are merged by name."""
    if isinstance(base, dict) and isinstance(patch, dict):
        return {key: merge(base[key], patch[key]) if key in base and key in patch
                else patch.get(key, base.get(key)) for key in {**base, **patch}}
    if (isinstance(base, list) and isinstance(patch, list)
            and all(isinstance(entry, dict) and "name" in entry for entry in base + patch)):
        patched = {entry["name"]: entry for entry in patch}
        return ([merge(entry, patched.pop(entry["name"], {})) for entry in base]
                + list(patched.values()))
    return patch


@functools.cache
def render(directory):
    """Returns kustomize's result for base or example: {kind: manifest}."""
    kustomization = load(HERE / directory / "kustomization.yaml")
    manifests = {}
    for name in kustomization["resources"]:
        path = HERE / directory / name
        if path.is_dir():
            manifests |= render(str(path.resolve().relative_to(HERE)))
        else:
            manifest = load(path)
            manifests[manifest["kind"]] = manifest
    for patch in kustomization.get("patches", []):
        change = load(HERE / directory / patch["path"])
        assert change["metadata"]["name"] == manifests[change["kind"]]["metadata"]["name"]
        manifests[change["kind"]] = merge(manifests[change["kind"]], change)
    return manifests


class SchemaTest(unittest.TestCase):
    def validate(self, manifest, version):
        import kubernetes_validate  # pylint: disable=import-outside-toplevel,import-error
        kubernetes_validate.validate(manifest, version, strict=True)

    def test_kubernetes_takes_them(self):
        for directory in "base", "example":
            for manifest in render(directory).values():
                for version in VERSIONS:
                    with self.subTest(manifest["kind"], directory=directory, version=version):
                        self.validate(manifest, version)

    def test_kubernetes_takes_the_job_that_builds_parts(self):
        for version in VERSIONS:
            self.validate(load(HERE.parent / "parallel" / "indexed-job.yaml"), version)

    def test_faults_are_found(self):
        import kubernetes_validate  # pylint: disable=import-outside-toplevel,import-error
        for kind, change in (
                ("StatefulSet", {"spec": {"template": {"spec": {"containers": [
                    {"name": "quired", "readinesProbe": {}}]}}}}),
                ("StatefulSet", {"spec": {"replicas": "three"}}),
                ("Service", {"spec": {"ports": [{"name": "grpc", "port": "seven"}]}}),
                ("NetworkPolicy", {"spec": {"policyTypes": "Ingress"}}),
                ("PodDisruptionBudget", {"spec": {"maxUnavailible": 1}})):
            with self.subTest(kind), self.assertRaises(kubernetes_validate.ValidationError):
                self.validate(merge(render("base")[kind], change), VERSIONS[-1])


class ManifestTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="quire-kubernetes-")))

    def pod(self, directory="base"):
        return render(directory)["StatefulSet"]["spec"]["template"]["spec"]

    def container(self, directory="base"):
        server, = (c for c in self.pod(directory)["containers"] if c["name"] == "quired")
        return server

    def config(self, directory="base"):
        return tomllib.loads((HERE / directory / CONFIGURATIONS[directory]).read_text())

    def test_nothing_is_left_out(self):
        for directory in "base", "example":
            text = (HERE / directory / "kustomization.yaml").read_text()
            for path in (HERE / directory).iterdir():
                if path.name != "kustomization.yaml":
                    self.assertRegex(text, rf"[ =]{re.escape(path.name)}\n")

    def test_labels_and_ports_fit(self):
        manifests = render("base")
        stateful_set = manifests["StatefulSet"]["spec"]
        labels = stateful_set["template"]["metadata"]["labels"]
        self.assertEqual(stateful_set["serviceName"], manifests["Service"]["metadata"]["name"])
        for selector in (stateful_set["selector"]["matchLabels"],
                         manifests["Service"]["spec"]["selector"],
                         manifests["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
                         manifests["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"]):
            self.assertEqual(selector, labels)
        self.assertEqual(manifests["Service"]["spec"]["clusterIP"], "None")
        ports = {p["name"]: p["containerPort"] for p in self.container()["ports"]}
        for name, setting in (("grpc", "listen"), ("admin", "admin")):
            for directory in "base", "example":
                self.assertEqual(self.config(directory)[setting], f"0.0.0.0:{ports[name]}")
        self.assertEqual([p["port"] for rule in manifests["NetworkPolicy"]["spec"]["ingress"]
                          for p in rule["ports"]], [ports["grpc"], ports["admin"]])
        annotations = stateful_set["template"]["metadata"]["annotations"]
        self.assertEqual(annotations["prometheus.io/port"], str(ports["admin"]))

    def test_times_and_memory_fit(self):
        for directory in "base", "example":
            config = self.config(directory)
            self.assertGreater(
                self.pod(directory)["terminationGracePeriodSeconds"],
                seconds(config["drain-delay"]) + seconds(config["drain-timeout"]) + 5)
            # The probe fails well before the server refuses calls.
            probe = self.container(directory)["readinessProbe"]
            self.assertLess(probe["periodSeconds"] * probe["failureThreshold"],
                            seconds(config["drain-delay"]))
            self.assertGreaterEqual(
                size_bytes(self.container(directory)["resources"]["limits"]["memory"]),
                size_bytes(config["memory"]) * 5 // 4)

    def test_containers_have_few_rights(self):
        pod = self.pod("example")
        self.assertTrue(pod["securityContext"]["runAsNonRoot"])
        for container in pod["containers"] + pod["initContainers"]:
            context = container["securityContext"]
            self.assertTrue(context["readOnlyRootFilesystem"])
            self.assertFalse(context["allowPrivilegeEscalation"])
            self.assertEqual(context["capabilities"], {"drop": ["ALL"]})

    def test_files_of_the_configuration_are_mounted(self):
        for directory in "base", "example":
            mounts = {m["mountPath"]: m["name"] for m in self.container(directory)["volumeMounts"]}
            volumes = {v["name"] for v in self.pod(directory)["volumes"]} | {
                claim["metadata"]["name"]
                for claim in render(directory)["StatefulSet"]["spec"]["volumeClaimTemplates"]}
            self.assertLessEqual(set(mounts.values()), volumes)
            config = self.config(directory)
            files = config["archive"] + [config[key] for key in ("tls-cert", "tls-key")
                                         if key in config]
            for path in files + [self.container(directory)["args"][-1]]:
                self.assertIn(str(pathlib.Path(path).parent), mounts)

    def make_archive(self, path):
        (self.directory / "document").write_text("one document\n")
        subprocess.run([BIN / "quired", "build", "-q", "-o", path, self.directory / "document"],
                       check=True, timeout=PATIENCE_S)

    def test_the_server_takes_arguments_and_configuration(self):
        """Up to the certificate, which is missing."""
        self.make_archive(self.directory / "docs.quire")
        for directory, said in (("base", "listening on"), ("example", "/etc/quire-tls/tls.")):
            text = (HERE / directory / CONFIGURATIONS[directory]).read_text()
            for before, after in (("/srv/quire", str(self.directory)),
                                  ("0.0.0.0:7420", "127.0.0.1:0"),
                                  ("0.0.0.0:7421", "127.0.0.1:0"), ("2GiB", "512MiB")):
                text = text.replace(before, after)
            config = self.directory / "quired.toml"
            config.write_text(text)
            arguments = [str(config) if word == "/etc/quire/quired.toml" else word
                         for word in self.container(directory)["args"]]
            server = subprocess.Popen([BIN / "quired", *arguments], stdin=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, text=True)
            self.addCleanup(server.stderr.close)
            self.addCleanup(server.wait, PATIENCE_S)
            self.addCleanup(server.kill)
            lines = []
            for line in server.stderr:
                lines.append(line)
                if said in line:
                    break
            else:
                self.fail("".join(lines))

    def test_archives_are_copied_once_and_whole(self):
        source, target = self.directory / "archives", self.directory / "volume"
        source.mkdir()
        target.mkdir()
        for name in "docs.quire", "logs.quire":
            self.make_archive(source / name)
        # Left by an earlier start that was killed.
        (target / ".docs.quire.part").mkdir()
        (target / ".docs.quire.part" / "rubbish").write_text("half of it")
        container, = self.pod("example")["initContainers"]
        script, = container["args"]
        script = script.replace("/archives", str(source)).replace("/srv/quire", str(target))
        for _ in range(2):
            subprocess.run([*container["command"], script], check=True, timeout=PATIENCE_S)
            self.assertEqual(sorted(path.name for path in target.iterdir()),
                             ["docs.quire", "logs.quire"])
            for name in "docs.quire", "logs.quire":
                self.assertEqual(
                    {p.name: p.read_bytes() for p in (source / name).iterdir()},
                    {p.name: p.read_bytes() for p in (target / name).iterdir()})


if __name__ == "__main__":
    if "--schemas" in sys.argv:
        if not (VALIDATOR / "kubernetes_validate").is_dir():
            print("kubernetes-validate is not in build/python; deploy/bootstrap.sh installs it")
            sys.exit(SKIPPED)
        unittest.main(argv=sys.argv[:1], defaultTest="SchemaTest")
    BIN = pathlib.Path(os.environ["QUIRE_BINARY_DIR"]) / "bin"
    unittest.main(argv=sys.argv[:1], defaultTest="ManifestTest")
