"""Checks how long receivers keep an alert against how long it may fire: settings of two sections."""

from actors.alerts.settings import AlertsSettings
from actors.webhook.settings import WebhookSettings
from deploy.config.loading import BadConfiguration, Config


def longest_firing_ms(alerts: AlertsSettings) -> int:
    """Return for how many milliseconds an alert may fire without another event of it."""
    return max(alerts.quiet_ms, alerts.info_quiet_ms, alerts.lapse_ms, alerts.session_lapse_ms)


def check_alert_lifetimes(config: Config) -> None:
    """Raise BadConfiguration if an Alertmanager would end alerts that still fire, as if nothing were wrong any more."""
    webhook, alerts = config.section("webhook", WebhookSettings), config.section("alerts", AlertsSettings)
    longest = longest_firing_ms(alerts)
    if webhook.lasts_ms <= longest and any(each.style == "alertmanager" for each in webhook.receivers.values()):
        raise BadConfiguration(
            f"webhook.lasts_ms is {webhook.lasts_ms}, and alerts may fire for {longest} ms without another event "
            "(alerts.lapse_ms and the like): an Alertmanager would end them before; set webhook.lasts_ms higher"
        )
