"""A document of what each login may do, for administrators who configure their broker by other means."""

from collections.abc import Sequence
from typing import Any

from deploy.processes.broker.users import rendered_permissions
from schemas.permissions import BrokerUser


def permissions_rows(users: Sequence[BrokerUser], stream: str) -> list[dict[str, Any]]:
    """Return a row for each login: its actors, its inbox prefix, and its permissions as nats-server writes them."""
    return [
        {
            "login": user.name,
            "stream": stream,
            "owners": list(user.owners),
            "inbox_prefix": user.inbox_prefix,
            "permissions": rendered_permissions(user.permissions),
        }
        for user in users
    ]


def permissions_text(users: Sequence[BrokerUser], stream: str) -> str:
    """Return the permissions as plain text, a paragraph for each login."""
    paragraphs = []
    for row in permissions_rows(users, stream):
        lines = [f"login {row['login']}", f"  inbox prefix  {row['inbox_prefix']}"]
        if row["owners"]:
            lines.append(f"  appends for   {', '.join(row['owners'])}")
        for kind in ("publish", "subscribe"):
            for rule in ("allow", "deny"):
                lines += [f"  {kind} {rule}  {subject}" for subject in row["permissions"][kind][rule]]
        if row["permissions"].get("allow_responses"):
            lines.append("  may answer the requests that it receives (allow_responses)")
        paragraphs.append("\n".join(lines))
    return "\n\n".join(paragraphs) + "\n"
