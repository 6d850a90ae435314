"""Metrics that clients push to brokers (KIP-714).

    client_metrics        what was pushed, by client, for as long as it is fresh
    telemetry_requests    GetTelemetrySubscriptions and PushTelemetry

Import from the modules.
"""
