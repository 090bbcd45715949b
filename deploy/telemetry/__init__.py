"""Telemetry: metrics of worker processes for Prometheus, traces for OpenTelemetry, the dashboard and the alert rules.

``process_metrics``     the metrics of one worker process
``metrics_server``      serves them over HTTP
``telemetry_settings``  checks the settings
``tracing``             follows the log and sends its spans to a collector
``spans``               spans of an exchange, computed from its events
``collector``           sends spans to a collector

The dashboard (``dashboard.json``) and the rules (``alerts.yml``) are files of this package.
"""
