#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the Helm chart, lints and renders it, and compares it with the manifests that it is
made from; checks it and them with kubeconform, and the PodMonitor with the types of the
Prometheus operator.

usage: kubernetes_chart_test.py
Needs Go and a network: installs the programs into build/go.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build"
# Before yaml is imported: this directory has its own.
sys.path.insert(0, str(BUILD / "python"))
import yaml  # pylint: disable=wrong-import-position
import kubernetes_test  # pylint: disable=wrong-import-position

HELM = "helm.sh/helm/v3/cmd/helm@v3.22.0"
KUBECONFORM = "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0"
OPERATOR = "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring"
DECODER_MODULES = (f"{OPERATOR}/v1@v0.95.2", "sigs.k8s.io/yaml@v1.6.0")
# Refuses fields that the type does not have.
DECODER = f"""
package main

import (
    "fmt"
    "os"

    monitoring "{OPERATOR}/v1"
    "sigs.k8s.io/yaml"
)

func main() {{
    text, err := os.ReadFile(os.Args[1])
    if err == nil {{
        err = yaml.UnmarshalStrict(text, &monitoring.PodMonitor{{}})
    }}
    if err != nil {{
        fmt.Fprintln(os.Stderr, err)
        os.Exit(1)
    }}
}}
"""
KINDS = ("configmap-v1", "service-v1", "statefulset-apps-v1", "deployment-apps-v1",
         "networkpolicy-networking-v1", "poddisruptionbudget-policy-v1")
PATIENCE_S = 1800


def run(*command, code=0, text=None, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False,
                          timeout=PATIENCE_S, input=text, **options)
    assert done.returncode == code, (command, done.stdout, done.stderr)
    return done.stdout + (done.stderr if code else "")


def go_environment():
    assert shutil.which("go"), "go: the programs are compiled from the Go module proxy"
    return {**os.environ, "GOPATH": str(BUILD / "go"), "GOBIN": str(BUILD / "go" / "bin"),
            "GOFLAGS": "-modcacherw -buildvcs=false"}


def compiled_once(name, version, compile_it):
    """A program in build/go, which compile_it() makes there if it is not of that version."""
    program = BUILD / "go" / "bin" / name
    mark = program.with_suffix(".module")
    if not program.exists() or not mark.exists() or mark.read_text() != version:
        compile_it()
        mark.write_text(version)
    return program


def installed(module):
    """The program of a Go module."""
    return compiled_once(module.partition("@")[0].rpartition("/")[2], module,
                         lambda: run("go", "install", module, env=go_environment()))


def compile_decoder():
    environment = go_environment()
    with tempfile.TemporaryDirectory(prefix="quire-decoder-") as directory:
        pathlib.Path(directory, "main.go").write_text(DECODER)
        for command in (("mod", "init", "pod-monitor-decoder"), ("get", *DECODER_MODULES),
                        ("install", ".")):
            run("go", *command, cwd=directory, env=environment)


def documents(text):
    """{key_of(manifest): manifest} of a stream of YAML; without empty lists."""
    return {kubernetes_test.key_of(manifest): manifest
            for manifest in yaml.safe_load_all(text) if manifest}


class ChartTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(
            tempfile.TemporaryDirectory(prefix="quire-chart-")))
        cls.chart = cls.directory / "chart"
        run(sys.executable, HERE / "make_chart.py", cls.chart)
        cls.helm = installed(HELM)
        cls.kubeconform = installed(KUBECONFORM)
        cls.schemas = cls.make_schemas()

    def render(self, *features, name="quired", settings=()):
        values = [f"--set={feature}.enabled=true" for feature in features]
        return run(self.helm, "template", name, self.chart, *values, *settings)

    def rendered(self, *features):
        """Like kubernetes_test.render(), for the release `quired`."""
        found = documents(self.render(*features).replace("quired-http", "quire-http"))
        config = found.pop("ConfigMap")
        self.assertEqual(config["data"]["quired.toml"].strip(),
                         (HERE / "base" / "quired.toml").read_text().strip())
        annotations = found["StatefulSet"]["spec"]["template"]["metadata"]["annotations"]
        self.assertRegex(annotations.pop("checksum/config"), "^[0-9a-f]{64}$")
        return found

    def kustomized(self, *components):
        manifests = dict(kubernetes_test.render("base"))
        for component in components:
            kubernetes_test.render_into(manifests, HERE / "components" / component)
        return manifests

    def test_helm_takes_it(self):
        self.assertIn("0 chart(s) failed", run(self.helm, "lint", "--strict", self.chart))
        (self.directory / "broken").mkdir()
        shutil.copytree(self.chart, self.directory / "broken" / "chart")
        template = self.directory / "broken" / "chart" / "templates" / "service.yaml"
        template.write_text(template.read_text().replace(".Release.Name }}", ".Release.Name"))
        run(self.helm, "lint", "--strict", template.parents[1], code=1)

    def test_it_is_the_base_with_the_components(self):
        for components in ((), ("tls",), ("store",), ("access", "monitoring"),
                           ("tls", "access", "store", "http", "monitoring")):
            with self.subTest(components):
                self.assertEqual(self.rendered(*components), self.kustomized(*components))

    def test_releases_share_no_names(self):
        first, second = (
            {(m["kind"], m["metadata"]["name"])
             for m in yaml.safe_load_all(self.render("http", "monitoring", name=name)) if m}
            for name in ("one", "two"))
        # The configuration is the only one that kustomize makes by itself.
        self.assertEqual(len(first), len(self.kustomized("http", "monitoring")) + 1)
        self.assertFalse(first & second)

    def test_values_change_it(self):
        settings = ["--set=replicas=5", "--set=image.tag=9", "--set=storage=7Ti",
                    "--set-json", 'initContainers=[{"name":"archives","image":"a:1"}]',
                    "--set-string", "config=memory = \"1GiB\"", "--set=http.enabled=true",
                    "--set", "http.hosts={docs.example,b}"]
        found = documents(self.render(settings=settings))
        spec = found["StatefulSet"]["spec"]
        pod = spec["template"]["spec"]
        self.assertEqual(spec["replicas"], 5)
        self.assertEqual(pod["containers"][0]["image"], "quire:9")
        self.assertEqual(pod["initContainers"], [{"name": "archives", "image": "a:1"}])
        self.assertEqual(found["ConfigMap"]["data"]["quired.toml"].strip(), 'memory = "1GiB"')
        gateway, = found["Deployment/quired-http"]["spec"]["template"]["spec"]["containers"]
        self.assertEqual(gateway["args"][-2:], ["--host=docs.example", "--host=b"])
        self.assertIn("--server=quired:7420", gateway["args"])

    @classmethod
    def make_schemas(cls):
        """Those of kubernetes-validate, each in one file, as kubeconform loads no others."""
        source = (BUILD / "python" / "kubernetes_validate" / "kubernetes-json-schema"
                  / "v1.31.0-local-strict")
        assert source.is_dir(), "deploy/bootstrap.sh installs kubernetes-validate"
        target = cls.directory / "schemas"
        target.mkdir()
        definitions = json.loads((source / "_definitions.json").read_text())["$defs"]
        for kind in KINDS:
            text = (source / f"{kind}.json").read_text()
            schema = json.loads(text.replace("/api/_definitions.json#/", "#/"))
            schema["$defs"] = definitions
            del schema["$id"]
            (target / f"{kind}.json").write_text(json.dumps(schema))
        return target

    def conform(self, text, code=0):
        return run(self.kubeconform, "-strict", "-summary", "-output", "json", "-skip",
                   ",".join(kubernetes_test.FOREIGN_KINDS), "-schema-location",
                   f"{self.schemas}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json", "-",
                   text=text, code=code)

    def test_kubeconform_takes_all(self):
        every = ("access", "http", "monitoring", "store", "tls")
        texts = [self.render(), self.render(*every)]
        texts += [yaml.safe_dump_all(kubernetes_test.render(directory).values())
                  for directory in kubernetes_test.CONFIGURATIONS]
        for text in texts:
            summary = json.loads(self.conform(text))["summary"]
            self.assertGreater(summary["valid"], 4)
            self.assertEqual((summary["invalid"], summary["errors"]), (0, 0))
            self.assertEqual(summary["skipped"], text.count("kind: PodMonitor"))
        self.conform(texts[0].replace("replicas: 3", "replicas: three"), code=1)
        self.conform(texts[0].replace("serviceName:", "servicename:"), code=1)

    def test_the_operator_takes_the_pod_monitor(self):
        decoder = compiled_once("pod-monitor-decoder", "\n".join([DECODER, *DECODER_MODULES]),
                                compile_decoder)
        good = (HERE / "components" / "monitoring" / "pod-monitor.yaml").read_text()
        path = self.directory / "monitor.yaml"
        path.write_text(good)
        run(decoder, path)
        path.write_text(good.replace("podMetricsEndpoints", "podMetricEndpoints"))
        self.assertIn("podMetricEndpoints", run(decoder, path, code=1))


if __name__ == "__main__":
    unittest.main()
