"""A deployment as systemd units: hardened, supervised by a watchdog, secrets as credentials."""

from deploy.deploying.plan import GRACE_S, START_S, WATCHDOG_S, Deployment, Paths, Process
from deploy.deploying.writing_files import HEADER, Files

ETC = "/etc/neuraxis"
"""Where the configuration and the secrets are on the machine."""

UNITS = "etc/systemd/system"

# %d is systemd's folder of a unit's credentials, %S that of units' state.
_PATHS = Paths("%d", "%d/neuraxis.toml", "%S/neuraxis")

_HARDENED = """\
DynamicUser=yes
User=neuraxis
UMask=0077
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
PrivateUsers=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProcSubset=pid
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RemoveIPC=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
CapabilityBoundingSet=
AmbientCapabilities=
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
"""

_UNIT = """\
[Unit]
Description={description}
After=network-online.target
Wants=network-online.target
PartOf=neuraxis.target
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
Restart=always
RestartSec=2
RestartPreventExitStatus=2
TimeoutStartSec={start}
TimeoutStopSec={grace}
WatchdogSec={watchdog}
KillMode=mixed
Environment=PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
TasksMax=200
"""

_TARGET = """\
[Unit]
Description=Neuraxis: {what}
Wants={units}
After=network-online.target

[Install]
WantedBy=multi-user.target
"""


def systemd_files(deployment: Deployment, program: str) -> Files:
    """Return the units and the configuration by their paths below ``/``; the secrets are not among them."""
    files: dict[str, str] = {}
    units: list[str] = []
    shared = "".join(f'Environment="{name}={value}"\n' for name, value in deployment.environment.items())
    note = f"# {HEADER.format(command='systemd', version=deployment.version)}\n"
    command = f"worker $ACTORS --context {_PATHS.secrets}/${{LOGIN}}.json --config {_PATHS.configuration} $OPTIONS"
    template = _unit("Neuraxis worker %i", f"{program} {command}")
    files["neuraxis-worker@.service"] = note + template + shared + "\n" + _HARDENED
    for process in deployment.processes:
        if process.is_gateway:
            command = " ".join((program, *process.command(_PATHS)))
            files["neuraxis-gateway.service"] = (
                note + _unit("Neuraxis gateway", command) + shared + _own_lines(process) + "\n" + _HARDENED
            )
            units.append("neuraxis-gateway.service")
            continue
        for number in range(1, process.group.replicas + 1):
            unit = f"neuraxis-worker@{process.name}-{number}.service"
            files[f"{unit}.d/group.conf"] = note + "[Service]\n" + _own_lines(process) + _variables(process)
            units.append(unit)
    files["neuraxis.target"] = note + _TARGET.format(what=f"{len(units)} processes", units=" ".join(units))
    written = {f"{UNITS}/{name}": text.encode() for name, text in files.items()}
    return {**written, f"{ETC[1:]}/neuraxis.toml": deployment.configuration}


def _unit(description: str, command: str) -> str:
    return _UNIT.format(description=description, command=command, start=START_S, grace=GRACE_S, watchdog=WATCHDOG_S)


def _own_lines(process: Process) -> str:
    """Return the lines in which processes differ: credentials, limits, and the folder that one may write."""
    # The configuration is a credential, too: systemd reads it as root, so its file may have any mode and owner.
    lines = [f"LoadCredential=neuraxis.toml:{ETC}/neuraxis.toml"]
    lines += [f"LoadCredential={secret.name}:{ETC}/{secret.source}" for secret in process.secrets]
    lines += [f"MemoryMax={process.limits.memory_mb}M", f"CPUQuota={round(process.limits.cpus * 100)}%"]
    if process.is_ledger:
        lines += ["StateDirectory=neuraxis", "StateDirectoryMode=0700"]
    return "\n".join(lines) + "\n"


def _variables(process: Process) -> str:
    """Return the variables by which a worker differs from the template."""
    found = {
        "ACTORS": " ".join(process.group.hosted),
        "LOGIN": process.name,
        "OPTIONS": " ".join(process.placed_options(_PATHS)),
    }
    return "".join(f'Environment="{name}={value}"\n' for name, value in found.items())
