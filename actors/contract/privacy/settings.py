"""The setting of whose personal data is hidden from models."""

import msgspec


class PrivacySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether keys, card and account numbers, e-mail addresses, telephone numbers and the like are masked.

    Attributes:
        mask: Whether they are, for all agents that ``agents`` does not name. Takes the extra ``privacy``.
        agents: Agent -> whether they are.
        regions: Countries (``DE``, ``US``) whose numbers are telephone numbers without a country code, too.
    """

    mask: bool = False
    agents: dict[str, bool] = {}
    regions: tuple[str, ...] = ()

    def masks(self, agent: str) -> bool:
        """Return whether an agent's people's data is masked."""
        return self.agents.get(agent, self.mask)

    @property
    def is_on(self) -> bool:
        """Whether anybody's is."""
        return self.mask or any(self.agents.values())
