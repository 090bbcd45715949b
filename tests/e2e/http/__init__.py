"""End-to-end tests over HTTP: the gateway, the dashboard, clients."""
