// SPDX-License-Identifier: Apache-2.0

// Command collector is a collector with the components of ../collector.yaml, for
// ../tracing_test.py. The module proxy lacks the released connector `otlpjson`; standIn
// does what that does with spans: each log record whose body is OTLP in JSON becomes them.
package main

import (
    "context"
    "fmt"
    "os"

    "github.com/open-telemetry/opentelemetry-collector-contrib/receiver/filelogreceiver"
    "go.opentelemetry.io/collector/component"
    "go.opentelemetry.io/collector/confmap"
    "go.opentelemetry.io/collector/confmap/provider/fileprovider"
    "go.opentelemetry.io/collector/connector"
    "go.opentelemetry.io/collector/consumer"
    "go.opentelemetry.io/collector/exporter"
    "go.opentelemetry.io/collector/exporter/otlphttpexporter"
    "go.opentelemetry.io/collector/otelcol"
    "go.opentelemetry.io/collector/pdata/plog"
    "go.opentelemetry.io/collector/pdata/ptrace"
    "go.opentelemetry.io/collector/receiver"
    "go.opentelemetry.io/collector/service/telemetry"
)

type standIn struct {
    component.StartFunc
    component.ShutdownFunc
    next consumer.Traces
}

func (standIn) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s standIn) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
    var decoder ptrace.JSONUnmarshaler
    for _, resource := range logs.ResourceLogs().All() {
        for _, scope := range resource.ScopeLogs().All() {
            for _, record := range scope.LogRecords().All() {
                traces, err := decoder.UnmarshalTraces([]byte(record.Body().AsString()))
                if err != nil {
                    return fmt.Errorf("%s: %w", record.Body().AsString(), err)
                }
                if err := s.next.ConsumeTraces(ctx, traces); err != nil {
                    return err
                }
            }
        }
    }
    return nil
}

func newStandIn() connector.Factory {
    return connector.NewFactory(
        component.MustNewType("otlpjson"), func() component.Config { return &struct{}{} },
        connector.WithLogsToTraces(func(_ context.Context, _ connector.Settings, _ component.Config,
            next consumer.Traces) (connector.Logs, error) {
            return standIn{next: next}, nil
        }, component.StabilityLevelDevelopment))
}

// The collector itself reports nothing.
func noTelemetry() telemetry.Factory {
    return telemetry.NewFactory(func() component.Config { return &struct{}{} })
}

func components() (otelcol.Factories, error) {
    receivers, err := otelcol.MakeFactoryMap[receiver.Factory](filelogreceiver.NewFactory())
    if err != nil {
        return otelcol.Factories{}, err
    }
    connectors, err := otelcol.MakeFactoryMap[connector.Factory](newStandIn())
    if err != nil {
        return otelcol.Factories{}, err
    }
    exporters, err := otelcol.MakeFactoryMap[exporter.Factory](otlphttpexporter.NewFactory())
    return otelcol.Factories{Receivers: receivers, Connectors: connectors,
        Exporters: exporters, Telemetry: noTelemetry()}, err
}

func main() {
    settings := otelcol.CollectorSettings{
        BuildInfo: component.BuildInfo{Command: "collector", Version: "0"},
        Factories: components,
        ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
            DefaultScheme:     "file",
            ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory()},
        }},
    }
    if err := otelcol.NewCommand(settings).Execute(); err != nil {
        fmt.Fprintln(os.Stderr, err)
        os.Exit(1)
    }
}
