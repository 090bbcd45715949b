"""Look-alikes: characters that look like ASCII letters and that NFKD and case folding do not unify with them.

``confusables.json`` lists them (script -> ASCII letters -> their look-alikes). If the capital and the small letter look
like different ASCII letters (Greek eta: H and n), both are listed.
"""

from importlib.resources import files

import msgspec


def load_confusables() -> dict[str, str]:
    """Return look-alike -> ASCII letters, from the data file.

    Raises:
        ValueError: a target is not lower-case ASCII, or a look-alike is ASCII or listed twice.
    """
    data = files("actors.contract.text").joinpath("confusables.json").read_bytes()
    found: dict[str, str] = {}
    for script, rows in msgspec.json.decode(data, type=dict[str, dict[str, str]]).items():
        for target, lookalikes in rows.items():
            if not target.isascii() or target != target.lower():
                raise ValueError(f"confusables.json: {script}: target {target!r} is not lower-case ASCII")
            for char in lookalikes:
                if char.isascii() or char in found:
                    raise ValueError(f"confusables.json: {script}: {char!r} is ASCII or listed twice")
                found[char] = target
    return found


CONFUSABLES = load_confusables()
"""Look-alike -> the ASCII letters that it looks like."""
