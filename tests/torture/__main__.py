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
from tests.torture.endurance import leak
from tests.torture.fuzz import fuzz
from tests.torture.machine import COUNTS, Life

RECORDS = Path(__file__).parents[2] / "results" / "torture" / "torture.jsonl"
LIVES, STEPS, CHANGES, UPDATES = 8, 25, 4, 240
"""Of one round: models, calls of each, changes of each file, and updates in which none leaks."""


def one_round(number):
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
    leak(UPDATES, warm_up=120)
    return done | {"updates without a leak": UPDATES}


def main():
    """Run rounds until the time is up; 1 if one has failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--seconds", type=float, default=os.environ.get("TORTURE_SECONDS", 3600))
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**9))
    parser.add_argument("--rounds", type=int, default=10**9)
    given = parser.parse_args()
    known = environment()  # before anybody changes the code
    began, totals, rounds, failure = time.monotonic(), {}, 0, None
    print(f"torture for {float(given.seconds):.0f} s from seed {given.seed}", flush=True)
    while rounds < given.rounds and time.monotonic() - began < float(given.seconds):
        number = given.seed + rounds
        try:
            done = one_round(number)
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
