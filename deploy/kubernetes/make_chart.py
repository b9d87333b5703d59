#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a Helm chart, made from the manifests in base/ and components/.

usage: make_chart.py DIRECTORY
The directory must not exist. With its default values and the release name `quired` the chart
renders to the base; each component is a value, such as `store.enabled`.
"""
import pathlib
import sys

import yaml

HERE = pathlib.Path(__file__).resolve().parent
NAME = "{{ .Release.Name }}"
# Components that change manifests of the base, and those that add some.
PATCHES = ("tls", "access", "store")
RESOURCES = ("monitoring", "http")


class Template(str):
    """Text that is written without quotes."""


class When:
    """A value that is written only if one of the components is enabled."""

    def __init__(self, components, value):
        self.components = components
        self.value = value

    def condition(self):
        flags = [f".Values.{component}.enabled" for component in self.components]
        return f"or {' '.join(flags)}" if len(flags) > 1 else flags[0]


class Dumper(yaml.SafeDumper):
    """Writes text of several lines as such."""


Dumper.add_representer(str, lambda dumper, text: dumper.represent_scalar(
    "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None))


def name_of(entry):
    return isinstance(entry, dict) and (entry.get("name") or entry.get("metadata", {}).get("name"))


def merge(base, patch, component):
    """A strategic merge, whose additions are conditional."""
    for key, value in patch.items():
        old = base.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            merge(old, value, component)
        elif isinstance(value, list) and all(name_of(entry) for entry in value):
            entries = base.setdefault(key, [])
            plain = {name_of(entry): entry for entry in entries if not isinstance(entry, When)}
            for entry in value:
                if name_of(entry) in plain:
                    merge(plain[name_of(entry)], entry, component)
                else:
                    entries.append(When([component], entry))
        elif old is None:
            base[key] = When([component], value)
        else:
            assert old == value, f"{component} changes {key}"


def append(manifest, change, component):
    """A JSON patch that appends to a list."""
    *path, last = change["path"].strip("/").split("/")
    assert (change["op"], last) == ("add", "-"), change
    for key in path:
        manifest = manifest[key]
    manifest.append(When([component], change["value"]))


def write(node, indent, lines):
    """Appends YAML of a dict or list."""
    pad = " " * indent
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        condition = None
        if isinstance(value, list) and value and all(isinstance(entry, When) for entry in value):
            value = When(sorted({name for entry in value for name in entry.components}), value)
        if isinstance(value, When):
            condition = value.condition()
            lines.append("{{- if " + condition + " }}")
            value = value.value
        head = f"{pad}- " if isinstance(node, list) else f"{pad}{key}:"
        if isinstance(value, Template):
            lines.append(f"{head.rstrip()} {value}")
        elif isinstance(value, (dict, list)) and value:
            nested = []
            write(value, indent + 2, nested)
            if isinstance(node, list):
                assert not nested[0].startswith("{{"), "a conditional first key of an entry"
                nested[0] = head + nested[0].lstrip()
            else:
                lines.append(head)
            lines.extend(nested)
        else:
            scalar = yaml.safe_dump(value, default_flow_style=True, width=1000)
            lines.append(f"{head.rstrip()} {scalar.removesuffix('...' + chr(10)).rstrip()}")
        if condition:
            lines.append("{{- end }}")


def rename(node):
    """Replaces the names of the base by those of a release; containers keep theirs."""
    if isinstance(node, When):
        node.value = rename(node.value)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key != "name" or "image" not in node:
                node[key] = rename(value)
    elif isinstance(node, list):
        node[:] = [rename(value) for value in node]
    elif node in ("quired", "quired-metrics"):
        return Template(f'"{node.replace("quired", NAME)}"')
    elif node == "quire-http":
        return Template(f'"{NAME}-http"')
    elif isinstance(node, str) and node.startswith("--server=quired:"):
        return Template(f'"{node.replace("quired", NAME)}"')
    return node


def plain(node):
    return node.value if isinstance(node, When) else node


def at(entries, name):
    """The entry of a list with the name."""
    found, = (plain(entry) for entry in entries if name_of(plain(entry)) == name)
    return found


def load(path):
    return yaml.safe_load((HERE / path).read_text())


class Chart:
    """The files of a chart."""

    def __init__(self):
        self.values = {}
        self.templates = {}

    def value(self, path, default):
        """Adds a value; returns the expression for it."""
        table = self.values
        *tables, key = path.split(".")
        for name in tables:
            table = table.setdefault(name, {})
        table[key] = default
        return f".Values.{path}"

    def scalar(self, path, node, key):
        """The scalar at `key` becomes a value."""
        node[key] = Template("{{ " + self.value(path, node[key]) + " | quote }}"
                             if isinstance(node[key], str)
                             else "{{ " + self.value(path, node[key]) + " }}")

    def block(self, path, node, key, default=None):
        """The dict or list at `key` becomes a value."""
        expression = self.value(path, node.get(key, default))
        node[key] = Template("{{- toYaml " + expression + " | nindent %INDENT% }}")

    def add(self, path, manifest, component=None):
        lines = []
        write(rename(manifest), 0, lines)
        for number, line in enumerate(lines):
            indent = len(line) - len(line.lstrip())
            lines[number] = line.replace("%INDENT%", str(indent + 2))
        if component:
            lines = ["{{- if .Values." + component + ".enabled }}", *lines, "{{- end }}"]
        self.templates[pathlib.Path(path).name] = "\n".join(lines) + "\n"


def image(chart, container):
    repository, _, tag = container["image"].partition(":")
    expression = (f'"{{{{ {chart.value("image.repository", repository)} }}}}:'
                  f'{{{{ {chart.value("image.tag", tag)} }}}}"')
    container["image"] = Template(expression)


def stateful_set(chart, manifest):
    spec = manifest["spec"]
    pod = spec["template"]["spec"]
    server = at(pod["containers"], "quired")
    image(chart, server)
    chart.scalar("replicas", spec, "replicas")
    chart.block("resources", server, "resources")
    claims = spec["volumeClaimTemplates"]
    chart.scalar("storage", at(claims, "archives")["spec"]["resources"]["requests"], "storage")
    chart.scalar("store.storage", at(claims, "cache")["spec"]["resources"]["requests"], "storage")
    chart.scalar("store.cache", at(server["env"], "QUIRED_STORE_CACHE"), "value")
    chart.scalar("store.secret", plain(server["envFrom"])[0]["secretRef"], "name")
    for component in "tls", "access":
        chart.scalar(f"{component}.secret", at(pod["volumes"], component)["secret"], "secretName")
    at(pod["volumes"], "tls")["secret"]["defaultMode"] = 0o440
    # Without them the base has none.
    expression = chart.value("initContainers", [])
    pod["initContainers"] = Template("{{- toYaml " + expression + " | nindent %INDENT% }}")
    # A changed configuration restarts the pods.
    spec["template"]["metadata"]["annotations"]["checksum/config"] = Template(
        "{{ .Values.config | sha256sum }}")


def make():
    """Returns {path: text}."""
    chart = Chart()
    manifests = {path: load(f"base/{path}")
                 for path in load("base/kustomization.yaml")["resources"]}
    for component in PATCHES:
        chart.value(f"{component}.enabled", False)
        for entry in load(f"components/{component}/kustomization.yaml")["patches"]:
            patch = load(f"components/{component}/{entry['path']}")
            if isinstance(patch, list):
                for change in patch:
                    append(manifests["stateful-set.yaml"], change, component)
            else:
                changed, = (m for m in manifests.values() if m["kind"] == patch["kind"]
                            and m["metadata"]["name"] == patch["metadata"]["name"])
                merge(changed, patch, component)
    stateful_set(chart, manifests["stateful-set.yaml"])
    for component in RESOURCES:
        chart.value(f"{component}.enabled", False)
        for path in load(f"components/{component}/kustomization.yaml")["resources"]:
            manifest = load(f"components/{component}/{path}")
            if manifest["kind"] == "Deployment":
                chart.scalar("http.replicas", manifest["spec"], "replicas")
                gateway = at(manifest["spec"]["template"]["spec"]["containers"], "quire-http")
                image(chart, gateway)
                chart.block("http.resources", gateway, "resources")
                arguments = gateway["args"]
                own = [word for word in arguments if not word.startswith("--host=")]
                expression = chart.value("http.hosts", [word.removeprefix("--host=")
                                                        for word in arguments
                                                        if word not in own])
                gateway["args"] = [*own, Template(
                    "LOOP{{- range " + expression + " }}\n%PAD%- --host={{ . }}\n{{- end }}")]
            chart.add(path, manifest, component)
    for path, manifest in manifests.items():
        chart.add(path, manifest)
    chart.value("config", (HERE / "base" / "quired.toml").read_text())
    chart.templates["config-map.yaml"] = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n"
        f'  name: "{NAME}"\ndata:\n  quired.toml: |\n'
        "    {{- .Values.config | trim | nindent 4 }}\n")
    return files(chart)


def files(chart):
    version = chart.values["image"]["tag"]
    values = yaml.dump(chart.values, Dumper=Dumper, sort_keys=False)
    for text, pad in ((chart.templates["http-deployment.yaml"], "            "),):
        lines = text.split("\n")
        for number, line in enumerate(lines):
            if "LOOP" in line:
                lines[number] = line[line.index("LOOP") + 4:]
            lines[number] = lines[number].replace("%PAD%", pad)
        chart.templates["http-deployment.yaml"] = "\n".join(lines)
    text = chart.templates["stateful-set.yaml"]
    lines = text.split("\n")
    number, = (n for n, line in enumerate(lines) if line.lstrip().startswith("initContainers:"))
    lines[number:number + 1] = ["{{- with .Values.initContainers }}",
                                lines[number].replace(".Values.initContainers", "."), "{{- end }}"]
    chart.templates["stateful-set.yaml"] = "\n".join(lines)
    head = "# Made by deploy/kubernetes/make_chart.py; see deploy/kubernetes.\n"
    return {
        "Chart.yaml": (f"{head}apiVersion: v2\nname: quired\ntype: application\n"
                       "description: Archive servers, and quire-http\n"
                       f"version: {version}\nappVersion: {version}\n"),
        "values.yaml": head + values,
        **{f"templates/{name}": head + body for name, body in chart.templates.items()}}


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    target = pathlib.Path(sys.argv[1])
    if target.exists():
        print(f"make_chart.py: {target} exists; remove it, or name another", file=sys.stderr)
        return 1
    (target / "templates").mkdir(parents=True)
    for name, text in make().items():
        (target / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
