"""The endpoint that the gateway passes requests on to, from its settings and the environment."""

from collections.abc import Mapping

from actors.contract.privacy.recognising import masking_fault
from actors.llm.endpoint import BadEndpoint, Endpoint, api_key, base_url
from deploy.config.loading import UPSTREAM_VARIABLE
from deploy.config.settings import UpstreamSettings


def upstream_of(settings: UpstreamSettings, environment: Mapping[str, str]) -> Endpoint | None:
    """Return the endpoint with its key; None if none is configured.

    Raises:
        BadEndpoint: its address or key cannot be used, or people's data cannot be masked as the settings say.
    """
    if not settings.url:
        return None
    if fault := masking_fault(settings.privacy):
        raise BadEndpoint(f"gateway.upstream.privacy is on, and {fault}")
    key = api_key(environment, settings.key_file, UPSTREAM_VARIABLE)
    return Endpoint(base_url(settings.url, UPSTREAM_VARIABLE), key)
