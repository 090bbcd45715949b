"""The doctor's checks of the language model, and of the effectors, which call models and others outside."""

from collections.abc import Mapping, Sequence

import msgspec

from actors.llm.endpoint import BadEndpoint, Endpoint, api_key
from deploy.config.models import LISTING_TIMEOUT_S, is_listed, listed_models, names_in
from deploy.health.findings import Finding, Verdict
from deploy.processes.running_set import ModelInUse
from events.errors import LogError
from events.jetstream import Connection
from schemas.permissions import durable_names


class ConsumerLoad(msgspec.Struct, frozen=True):
    """The load of an effector's consumer: idle workers, requests under way, and requests not yet begun."""

    waiting: int
    under_way: int
    pending: int


async def examine_model(
    use: ModelInUse | None, environment: Mapping[str, str], key_file: str, asking: Sequence[str] = ()
) -> Finding:
    """Check the model that a set uses, with this process's own key; ``use`` is None if the model is not known.

    ``asking`` names the settings of this configuration that make an actor ask a model.
    """
    if use is None or use.backend != "openai":
        return judge_model(use, (), asking)
    try:
        key = api_key(environment, key_file)
    except BadEndpoint as wrong:
        return Finding(
            "model", Verdict.WARN, str(wrong), "correct llm.api_key_file, or the variable NEURAXIS_LLM_API_KEY"
        )
    listed = await listed_models(Endpoint(use.base_url, key), LISTING_TIMEOUT_S)
    return judge_model(use, listed if isinstance(listed, str) else names_in(listed))


def judge_model(use: ModelInUse | None, listed: Sequence[str] | str, asking: Sequence[str] = ()) -> Finding:
    """Judge a model by the names that its endpoint lists; a text instead of them is the reason why it lists none.

    Without a model, settings that make an actor ask one are wrong: nobody would answer. The backend ``composer`` is no
    model: it puts answers together from what is remembered.
    """
    if asking and (use is None or use.backend == "composer"):
        settings = ", ".join(asking)
        remedy = f"name a model by llm.base_url, or remove {settings}: a model is then asked if one is attached"
        verdict = Verdict.WARN if use is None else Verdict.FAIL
        why = "it is not known which model the set uses" if use is None else "none is attached"
        return Finding("model", verdict, f"{settings} asks a language model, and {why}", remedy)
    if use is None:
        return Finding("model", Verdict.SKIP, "unknown which model the set uses, if any")
    if use.backend == "composer":
        return Finding("model", Verdict.SKIP, "none is attached: the composer answers")
    asked = ", ".join(use.models)
    if use.backend == "local":
        return Finding("model", Verdict.OK, f"{asked}, in the process of the effectors")
    if isinstance(listed, str):
        remedy = "start it, correct llm.base_url or the key, or go without by `neuraxis up --llm composer`"
        return Finding("model", Verdict.FAIL, f"{use.base_url} does not list its models: {listed}", remedy)
    lacking = [name for name in use.models if not is_listed(name, listed)]
    if lacking:
        remedy = "have the endpoint load it, or name another by llm.models"
        return Finding("model", Verdict.WARN, f"{use.base_url} does not list {', '.join(lacking)}", remedy)
    return Finding("model", Verdict.OK, f"{asked} at {use.base_url}")


async def examine_effectors(connection: Connection, stream: str, names: Sequence[str]) -> Finding:
    """Check the consumers of the effectors that should run; an effector with ordered queues has one for each queue."""
    found: dict[str, ConsumerLoad | None] = {}
    for name in names:
        try:
            infos = [await connection.api(f"CONSUMER.INFO.{stream}.{each}") for each in durable_names(name)]
        except LogError:
            found[name] = None
        else:
            # Each queue's consumer reads all requests, and skips those of other queues. So the numbers are not added
            # up: the consumer that is furthest behind shows how many requests wait at most.
            pending = max(int(info["num_pending"]) for info in infos)
            found[name] = ConsumerLoad(int(infos[0]["num_waiting"]), int(infos[0]["num_ack_pending"]), pending)
    return judge_effectors(found)


def judge_effectors(loads: Mapping[str, ConsumerLoad | None]) -> Finding:
    """Judge whether somebody serves each effector; a load is None if its consumer cannot be read."""
    if not loads:
        return Finding("effectors", Verdict.SKIP, "none are needed without a language model")
    idle = [name for name, seen in loads.items() if seen is None or not (seen.waiting or seen.under_way)]
    if idle:
        remedy = f"run `neuraxis up`, or `neuraxis worker {' '.join(idle)}`"
        return Finding("effectors", Verdict.FAIL, f"nobody serves {', '.join(idle)}", remedy)
    waiting = sum(seen.pending for seen in loads.values() if seen is not None)
    return Finding("effectors", Verdict.OK, f"{', '.join(loads)} served, at most {waiting} requests waiting")
