"""The protocol between a measured process and the one that measures it: ``ready``, and the CPU time used."""

import asyncio
import sys
import time


async def answer_until_input_ends() -> None:
    """Print ``ready``, then for each line of standard input the CPU seconds used so far; return when the input ends."""
    print("ready", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        print(time.process_time(), flush=True)
