"""The setting of whose personal data is hidden from models."""

import msgspec


class PrivacySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether access keys, card and account numbers, e-mail addresses, telephone numbers and the like are masked.

    Attributes:
        mask: Whether they are masked for agents that ``agents`` does not name. Needs the extra ``privacy``.
        agents: Agent -> whether they are masked for that agent.
        regions: Countries (``DE``, ``US``, by ISO 3166) whose telephone numbers are found without their country code,
            too. A program that has to mask does not start with an unknown one.
    """

    mask: bool = False
    agents: dict[str, bool] = {}
    regions: tuple[str, ...] = ()

    def masks(self, agent: str) -> bool:
        """Return whether the personal data of an agent's users is masked."""
        return self.agents.get(agent, self.mask)

    @property
    def is_on(self) -> bool:
        """Whether it is masked for any agent."""
        return self.mask or any(self.agents.values())
