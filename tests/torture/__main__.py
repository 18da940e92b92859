"""Long torture: lives of models and spoilt files, with other seeds, until the time is up.

``make torture`` runs it for an hour, or ``TORTURE_SECONDS``. Every round has a seed, which is
printed when it fails: ``python -m tests.torture --seed SEED --rounds 1`` repeats it. A line about
each run goes to results/torture/torture.jsonl.
"""

import argparse
import json
import os
import secrets
import sys
import tempfile
import time
import traceback
from pathlib import Path

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from losse.runs.provenance import environment
from tests.torture.endurance import files_in_a_row, leak
from tests.torture.fuzz import fuzz
from tests.torture.machine import COUNTS, Life

RECORDS = Path(__file__).parents[2] / "results" / "torture" / "torture.jsonl"
LIVES, STEPS, CHANGES, UPDATES, CYCLES = 8, 25, 4, 240, 20
"""Of one round: models, calls of each, changes of each file, updates in which none leaks, and how
often a model is saved and loaded."""


def one_round(number, updates, cycles):
    """Everything with one seed; what was done."""
    before = dict(COUNTS)
    run_state_machine_as_test(
        seed(number)(Life),
        settings=settings(
            max_examples=LIVES,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=False,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )
    done = {name: COUNTS[name] - before[name] for name in COUNTS}
    with tempfile.TemporaryDirectory() as folder:
        done |= {f"files {how}": n for how, n in fuzz(Path(folder), number, CHANGES).items()}
        files_in_a_row(Path(folder), cycles)
    leak(updates, warm_up=120)
    return done | {"saved and loaded": cycles, "updates without a leak": updates}


def main():
    """Run rounds until the time is up; 1 if one has failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--seconds", type=float, default=os.environ.get("TORTURE_SECONDS", 3600))
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**9))
    parser.add_argument("--rounds", type=int, default=10**9)
    parser.add_argument("--updates", type=int, default=UPDATES, help="of a round, for leaks")
    parser.add_argument("--cycles", type=int, default=CYCLES, help="of saving and loading")
    given = parser.parse_args()
    known = environment()  # before anybody changes the code
    began, totals, rounds, failure = time.monotonic(), {}, 0, None
    print(f"torture for {float(given.seconds):.0f} s from seed {given.seed}", flush=True)
    while rounds < given.rounds and time.monotonic() - began < float(given.seconds):
        number = given.seed + rounds
        try:
            done = one_round(number, given.updates, given.cycles)
        except Exception:
            traceback.print_exc()
            failure = number
            print(f"FAILED. Repeat: python -m tests.torture --seed {number} --rounds 1")
            break
        totals = {name: totals.get(name, 0) + n for name, n in done.items()}
        rounds += 1
        print(f"seed {number}, {time.monotonic() - began:.0f} s: {totals}", flush=True)
    record = {"seed": given.seed, "rounds": rounds, "failed": failure, "counts": totals}
    record |= {"seconds": round(time.monotonic() - began, 1)}
    record |= {"revision": known.revision, "python": sys.version.split()[0], "cpu": known.cpu}
    RECORDS.parent.mkdir(parents=True, exist_ok=True)
    with RECORDS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
    return int(failure is not None)


if __name__ == "__main__":
    sys.exit(main())
