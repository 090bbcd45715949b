"""Live through worlds by hand: ``python -m tests.simulation.run FIRST [COUNT]`` prints each broken promise."""

import sys
from collections import Counter

import structlog

from tests.simulation.world import plan_of, run_world


def main() -> int:
    first, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(10 if count == 1 else 50))
    met: Counter[str] = Counter()
    broken = 0
    for seed in range(first, first + count):
        outcome = run_world(seed)
        met += outcome.incidents + outcome.counters
        if outcome.broken:
            broken += 1
            print(f"seed {seed}: {plan_of(seed)}", *outcome.broken, sep="\n  ")
    print(f"{count} worlds, {broken} broken; met: {dict(sorted(met.items()))}")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
