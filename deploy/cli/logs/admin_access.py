"""How commands that change a whole log reach its broker: the named one, or that of the data folder."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from deploy.cli.connect import access_to, names_broker
from deploy.cli.options import Target

if TYPE_CHECKING:
    from deploy.config.loading import Config
    from events.jetstream import Access


@asynccontextmanager
async def admin_access(target: Target, config: "Config") -> AsyncIterator["Access"]:
    """Give the admin's access to the named broker, or else to that of the data folder, which runs for the block.

    Raises:
        BadContext: see ``deploy.processes.broker_access.access_of``.
        FolderTaken, Misconfigured, ProgramFailed: see ``deploy.copying.repartitioning.within_folder``.
    """
    from deploy.copying.repartitioning import within_folder
    from deploy.processes.broker import ADMIN

    if names_broker(target, config):
        yield access_to(target, ADMIN)
        return
    async with within_folder(target.data, config) as access:
        yield access
