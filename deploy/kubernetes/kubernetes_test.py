#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the manifests for Kubernetes fit each other and the server.

usage: kubernetes_test.py [--schemas]
With --schemas: tests that Kubernetes accepts them, by kubernetes-validate, which
deploy/bootstrap.sh installs into build/python; exit code 77 if it is missing.
"""
import copy
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
CONFIGURATIONS = {"base": "base/quired.toml", "example": "base/quired.toml",
                  "example-store": "example-store/quired-store.toml",
                  "example-image-volume": "base/quired.toml"}
# Of the oldest version without image volumes.
VERSIONS_OF = {"example-image-volume": VERSIONS[1:]}
# Kinds of operators, which Kubernetes has no schema of.
FOREIGN_KINDS = ["PodMonitor"]
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
                else patch.get(key, base.get(key)) for key in {**base, **patch}
                if patch.get(key, key) is not None}
    if (isinstance(base, list) and isinstance(patch, list)
            and all(isinstance(entry, dict) and "name" in entry for entry in base + patch)):
        patched = {entry["name"]: entry for entry in patch}
        return ([merge(entry, patched.pop(entry["name"], {})) for entry in base]
                + list(patched.values()))
    return patch


def key_of(manifest):
    """The kind; with the name, if that is not the server's."""
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    return kind if name == "quired" else f"{kind}/{name}"


def apply_patch(manifests, entry, directory):
    change = load(directory / entry["path"])
    if isinstance(change, dict):
        manifests[key_of(change)] = merge(manifests[key_of(change)], change)
        return
    # A JSON patch.
    target = copy.deepcopy(manifests[entry["target"]["kind"]])
    assert target["metadata"]["name"] == entry["target"]["name"]
    manifests[entry["target"]["kind"]] = target
    for step in change:
        *path, last = step["path"].strip("/").split("/")
        assert (step["op"], last) == ("add", "-"), step
        functools.reduce(lambda node, key: node[key], path, target).append(step["value"])


def render_into(manifests, directory):
    kustomization = load(directory / "kustomization.yaml")
    for name in kustomization.get("resources", []) + kustomization.get("components", []):
        path = directory / name
        if path.is_dir():
            render_into(manifests, path)
        else:
            manifest = load(path)
            assert key_of(manifest) not in manifests, path
            manifests[key_of(manifest)] = manifest
    for entry in kustomization.get("patches", []):
        apply_patch(manifests, entry, directory)


@functools.cache
def render(directory):
    """Returns kustomize's result for base or an example: {key_of(manifest): manifest}."""
    manifests = {}
    render_into(manifests, HERE / directory)
    return manifests


class SchemaTest(unittest.TestCase):
    def validate(self, manifest, version):
        import kubernetes_validate  # pylint: disable=import-outside-toplevel,import-error
        kubernetes_validate.validate(manifest, version, strict=True)

    def test_kubernetes_takes_them(self):
        for directory in CONFIGURATIONS:
            for manifest in render(directory).values():
                if manifest["kind"] in FOREIGN_KINDS:
                    continue
                for version in VERSIONS_OF.get(directory, VERSIONS):
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
        """The file, and the variables of the container."""
        config = tomllib.loads((HERE / CONFIGURATIONS[directory]).read_text())
        for variable in self.container(directory).get("env", []):
            config[variable["name"].removeprefix("QUIRED_").lower().replace("_", "-")] = (
                variable["value"])
        return config

    def test_nothing_is_left_out(self):
        for path in HERE.rglob("*"):
            if path.suffix in (".yaml", ".toml") and path.name != "kustomization.yaml":
                text = (path.parent / "kustomization.yaml").read_text()
                self.assertRegex(text, rf"[ =]{re.escape(path.name)}\n")
        used = {path.resolve() for kustomization in HERE.glob("*/kustomization.yaml")
                for path in [kustomization.parent / name
                             for name in load(kustomization).get("components", [])]}
        self.assertEqual(used, set((HERE / "components").iterdir()))

    def test_labels_and_ports_fit(self):
        manifests = render("base")
        stateful_set = manifests["StatefulSet"]["spec"]
        labels = stateful_set["template"]["metadata"]["labels"]
        self.assertEqual(stateful_set["serviceName"], manifests["Service"]["metadata"]["name"])
        for selector in (stateful_set["selector"]["matchLabels"],
                         manifests["Service"]["spec"]["selector"],
                         manifests["Service/quired-metrics"]["spec"]["selector"],
                         render("example")["PodMonitor"]["spec"]["selector"]["matchLabels"],
                         manifests["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
                         manifests["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"]):
            self.assertEqual(selector, labels)
        self.assertEqual(manifests["Service"]["spec"]["clusterIP"], "None")
        ports = {p["name"]: p["containerPort"] for p in self.container()["ports"]}
        for name, setting in (("grpc", "listen"), ("admin", "admin")):
            for directory in CONFIGURATIONS:
                self.assertEqual(self.config(directory)[setting], f"0.0.0.0:{ports[name]}")
        self.assertEqual([p["port"] for rule in manifests["NetworkPolicy"]["spec"]["ingress"]
                          for p in rule["ports"]], [ports["grpc"], ports["admin"]])
        self.assertEqual([p["port"] for p in manifests["Service/quired-metrics"]["spec"]["ports"]],
                         [ports["admin"]])
        for endpoint in render("example")["PodMonitor"]["spec"]["podMetricsEndpoints"]:
            self.assertIn(endpoint["port"], ports)
        annotations = stateful_set["template"]["metadata"]["annotations"]
        self.assertEqual(annotations["prometheus.io/port"], str(ports["admin"]))

    def test_times_and_memory_fit(self):
        for directory in CONFIGURATIONS:
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
        gateway = render("example-store")["Deployment/quire-http"]["spec"]["template"]["spec"]
        for pod in self.pod("example"), self.pod("example-store"), gateway:
            self.assertTrue(pod["securityContext"]["runAsNonRoot"])
            for container in pod["containers"] + pod.get("initContainers", []):
                context = container["securityContext"]
                self.assertTrue(context["readOnlyRootFilesystem"])
                self.assertFalse(context["allowPrivilegeEscalation"])
                self.assertEqual(context["capabilities"], {"drop": ["ALL"]})

    def test_only_servers_with_a_store_make_calls(self):
        for directory in CONFIGURATIONS:
            policy = render(directory)["NetworkPolicy"]["spec"]
            self.assertIn("Egress", policy["policyTypes"])
            ports = [p["port"] for rule in policy.get("egress", []) for p in rule["ports"]]
            self.assertEqual(ports, [53, 53, 443, 80] if directory == "example-store" else [])

    def test_the_cache_is_smaller_than_its_volume(self):
        config = self.config("example-store")
        claims = {claim["metadata"]["name"]: claim["spec"]["resources"]["requests"]["storage"]
                  for claim in render("example-store")["StatefulSet"]["spec"]
                  ["volumeClaimTemplates"]}
        self.assertEqual(set(claims), {"archives", "cache"})
        self.assertLessEqual(size_bytes(config["store-cache"].rpartition(":")[2]) * 1.1,
                             size_bytes(claims["cache"]))

    def test_the_gateway_takes_its_arguments(self):
        manifests = render("example-store")
        gateway, = manifests["Deployment/quire-http"]["spec"]["template"]["spec"]["containers"]
        ports = {p["name"]: p["containerPort"] for p in gateway["ports"]}
        self.assertIn(f"--listen=0.0.0.0:{ports['http']}", gateway["args"])
        self.assertIn(f"--admin=0.0.0.0:{ports['admin']}", gateway["args"])
        service = manifests["Service/quire-http"]["spec"]
        self.assertEqual([p["targetPort"] for p in service["ports"]], ["http"])
        policy = manifests["NetworkPolicy/quire-http"]["spec"]
        self.assertEqual([rule["ports"][0]["port"] for rule in policy["ingress"]],
                         [ports["http"], ports["admin"]])
        self.assertEqual(policy["egress"][0]["ports"], [
            {"port": p["port"]} for p in manifests["Service"]["spec"]["ports"]])
        memory, = (word.partition("=")[2] for word in gateway["args"] if "--memory" in word)
        self.assertGreaterEqual(size_bytes(gateway["resources"]["limits"]["memory"]),
                                size_bytes(memory) * 5 // 4)
        arguments = [re.sub(r"0\.0\.0\.0:\d+|quired:\d+", "127.0.0.1:0", word)
                     for word in gateway["args"] if not word.startswith("--server")]
        process = subprocess.Popen(
            [BIN / pathlib.Path(gateway["command"][0]).name, "--server=127.0.0.1:1", *arguments],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait, PATIENCE_S)
        self.addCleanup(process.kill)
        self.assertTrue(any("listening on" in line for line in process.stderr))

    def test_the_image_has_the_programs(self):
        recipe = (HERE.parent / "packages" / "Containerfile").read_text()
        for package in "quired", "quire", "quire-http":
            self.assertIn(f"/debs/{package}_*.deb", recipe)

    def test_files_of_the_configuration_are_mounted(self):
        for directory in CONFIGURATIONS:
            mounts = {m["mountPath"]: m["name"] for m in self.container(directory)["volumeMounts"]}
            volumes = {v["name"] for v in self.pod(directory)["volumes"]} | {
                claim["metadata"]["name"]
                for claim in render(directory)["StatefulSet"]["spec"].get("volumeClaimTemplates", [])}
            self.assertLessEqual(set(mounts.values()), volumes)
            config = self.config(directory)
            files = [path for path in config["archive"] if "s3://" not in path]
            files += [config[key] for key in ("tls-cert", "tls-key", "access") if key in config]
            if "store-cache" in config:
                files.append(config["store-cache"].rpartition(":")[0] + "/x")
            for path in files + [self.container(directory)["args"][-1]]:
                self.assertIn(str(pathlib.Path(path).parent), mounts)

    def make_archive(self, path):
        (self.directory / "document").write_text("one document\n")
        subprocess.run([BIN / "quired", "build", "-q", "-o", path, self.directory / "document"],
                       check=True, timeout=PATIENCE_S)

    def test_the_server_takes_arguments_and_configuration(self):
        """Up to the certificate, the rules and the store, which are missing."""
        self.make_archive(self.directory / "docs.quire")
        for directory, said in (("base", "listening on"), ("example", "/etc/quire-access/access"),
                                ("example-store", "s3://archives/docs.quire")):
            text = (HERE / CONFIGURATIONS[directory]).read_text()
            for before, after in (("/srv/quire", str(self.directory)),
                                  ("0.0.0.0:7420", "127.0.0.1:0"),
                                  ("0.0.0.0:7421", "127.0.0.1:0"), ("2GiB", "512MiB")):
                text = text.replace(before, after)
            config = self.directory / "quired.toml"
            config.write_text(text)
            container = self.container(directory)
            arguments = [str(config) if word == "/etc/quire/quired.toml" else word
                         for word in container["args"]]
            variables = {v["name"]: v["value"].replace("/var/cache/quire", f"{self.directory}/cache")
                         .replace("45GiB", "1GiB") for v in container.get("env", [])}
            server = subprocess.Popen(
                [BIN / "quired", *arguments, "--store-endpoint", "http://127.0.0.1:1"],
                stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                env={**os.environ, **variables, "AWS_EC2_METADATA_DISABLED": "true"})
            self.addCleanup(server.stderr.close)
            self.addCleanup(server.wait, PATIENCE_S)
            self.addCleanup(server.kill)
            lines = []
            for line in server.stderr:
                lines.append(line)
                self.assertNotIn("environment variable", line)
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
