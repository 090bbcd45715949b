"""``neuraxis doctor``."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from deploy.cli.command_types import command
from deploy.cli.connect import stream_of
from deploy.cli.options import Target, examples, json_option, target_options
from deploy.cli.outcomes import CheckFailed
from deploy.cli.output import emit
from deploy.processes.event_loop import run_command

if TYPE_CHECKING:
    from deploy.health.doctor import SetToExamine


@command(
    epilog=examples(
        "neuraxis doctor", "neuraxis doctor --nats nats://broker.example:4222 --json | jq 'select(.remedy)'"
    )
)
@target_options
@json_option
def doctor(target: Target, as_json: bool) -> None:
    """Check broker, stream, clocks, lag, processes, model, upstream and receivers; exit status 1 when a check fails.

    Each line is ok, warn, fail or n/a, with what to do about it.
    """
    from deploy.health.doctor import examine
    from deploy.health.findings import Verdict

    findings = run_command(examine(_set_to_examine(target)))
    emit(findings, as_json=as_json)
    if failed := [finding.check for finding in findings if finding.verdict is Verdict.FAIL]:
        raise CheckFailed(f"{len(failed)} of {len(findings)} checks failed: {', '.join(failed)}")


def _set_to_examine(target: Target) -> "SetToExamine":
    from actors.llm.endpoint import base_url
    from actors.llm.settings import LlmSettings
    from actors.registry import ACTORS
    from actors.webhook.settings import WebhookSettings
    from deploy.config.models import model_settings_in, names_of
    from deploy.health.doctor import SetToExamine
    from deploy.health.rights_check import expected_users, login_name, logins_in
    from deploy.health.stage_watch import needed_by
    from deploy.processes.broker import ADMIN, SYSTEM
    from deploy.processes.broker_access import BrokerChoice, access_of, effective_choice
    from deploy.processes.effector_registry import needed_effectors
    from deploy.processes.running_set import ModelInUse
    from schemas.subjects import Partitions

    config = target.config(every_section=True)
    llm = config.section("llm", LlmSettings)
    choice = effective_choice(target.flags, config.broker, os.environ)
    run = None if choice.named else target.data.read()  # a named broker may belong to another set
    # A folder of logins includes the login of the system account.
    asks_server = choice.as_user(SYSTEM).exists() if choice.logins else run is not None and run.contexts
    model = run.model if run is not None else None
    if model is None and llm.base_url:
        model = ModelInUse(backend="openai", base_url=base_url(llm.base_url), models=names_of(llm.models))
    receivers, key_file = config.section("webhook", WebhookSettings).receivers, llm.api_key_file
    upstream, upstream_key_file = config.gateway.upstream.url, config.gateway.upstream.key_file
    expected = Partitions(config.log.agents, config.log.sessions)
    replicas: int = config.log.replicas
    effectors = needed_effectors(config, attached=model is not None and model.backend != "composer")
    stages, alert_consumers = needed_by(config), config.broker.alert_consumers
    in_force = run.in_force if run is not None else None
    if in_force is not None and target.config_file is None and not target.assignments:
        # The settings that the set was started with, not the configuration of this folder, which may be another.
        receivers, effectors, key_file = in_force.receivers, in_force.effectors, in_force.key_file
        upstream, upstream_key_file = in_force.upstream, in_force.upstream_key_file
        stages = in_force.stages or stages
        alert_consumers = alert_consumers if in_force.alert_consumers is None else in_force.alert_consumers
        expected = Partitions(in_force.agents, in_force.sessions)
        replicas = in_force.replicas or replicas
    access = access_of(choice, target.data, user=ADMIN, name="neuraxis doctor")
    folder = choice.folder if choice.logins else Path(run.contexts) if run is not None and run.contexts else None
    logins = {login_name(access): access}
    if folder is not None:
        logins = {
            name: access_of(BrokerChoice(context=str(folder)), target.data, user=name) for name in logins_in(folder)
        }
        logins.pop(SYSTEM, None)
    return SetToExamine(
        access=access,
        system=access_of(choice, target.data, user=SYSTEM, name="neuraxis doctor") if asks_server else None,
        stream=stream_of(target),
        expected=expected,
        actors=tuple(ACTORS),
        effectors=effectors,
        stages=(*stages, *effectors),
        model=model,
        key_file=key_file,
        asking=tuple(f"{name}={value}" for name, value in model_settings_in(config)),  # what makes actors ask a model
        replicas=replicas,
        logins=logins,
        users=expected_users(stream_of(target), alert_consumers, folder),
        receivers=receivers,
        upstream=upstream,
        upstream_key_file=upstream_key_file,
        data=target.data.path,
        ledger=target.data.ledger,
        run=run,
    )
