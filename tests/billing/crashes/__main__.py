"""Invoice runs killed before each statement and commit, then repeated and compared.

`make crashes` uses a throwaway server: the connection breaks at every point, and at every 20th point a process is
killed by SIGKILL as well. `make crashes EVERY=10` tries every tenth point. Exits with 1 if any row is lost, duplicated
or differs from an undisturbed run.
"""

import os
import sys
from collections import Counter
from time import perf_counter

from deploy.embedded.roles import DATABASE, OWNER, WORKER
from deploy.embedded.scratch import EMPTY_DATABASE, TemporaryInstallation, scratch

KILLED_EVERY, LEAST, SHOWN = 20, 200, 5


def main(every: int = 1) -> int:
    with scratch() as ready:
        return _try_all(ready, every)


def _try_all(ready: TemporaryInstallation, every: int) -> int:
    server = ready.product.server
    os.environ |= ready.product.env(WORKER) | {"GPUBROKER_LOG_LEVEL": "ERROR"}  # what is warned of is part of the story
    from deploy.embedded import roles

    roles.clone_database(server, DATABASE, template=EMPTY_DATABASE)
    os.environ["GPUBROKER_OWNER_DATABASE_URL"] = server.login(OWNER, DATABASE)
    import django

    django.setup()
    from tests.billing.crashes import crash_month, trial
    from tests.billing.crashes.written_rows import digest

    crash_month.create_month()
    ground = trial.CrashDatabase(server, DATABASE)
    whole = trial.run_undisturbed(ground)
    said = whole.said
    commits, begun = said.count("COMMIT"), perf_counter()
    print(f"the run makes {len(said) - commits} statements and {commits} commits; digest {digest(whole.lines)[:16]}")
    found, bad = Counter[str](), 0
    for point in range(0, len(said), every):
        for by_kill in (False, True) if point // every % KILLED_EVERY == 0 else (False,):
            wrong = trial.run_with_crash(ground, point, whole, by_kill=by_kill)
            found["SIGKILL" if by_kill else "connection broken off"] += 1
            bad += bool(wrong)
            for line in wrong[:SHOWN]:
                print(f"before {point}, {said[point].split(chr(10))[0][:60]!r}: {line}", flush=True)
    for how, many in found.items():
        print(f"{how:24} {many:4} points")
    print(f"{'other than undisturbed':24} {bad:4}")
    print(f"{perf_counter() - begun:.0f} s: same invoices, lines, transfers and numbers" if not bad else "WRONG")
    return 1 if bad or (every == 1 and len(said) < LEAST) else 0


if __name__ == "__main__":
    sys.exit(main(*(int(given) for given in sys.argv[1:2])))
