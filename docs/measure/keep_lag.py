"""Measures `epitome keep`: memory and processor time when idle, and the lag under load.

    python3 keep_lag.py PROGRAM [SECONDS OF LOAD]

Fifty sessions of pi grow by 10,000 lines a minute together. The lag of a line is the time from its
write to the moment at which the keeper reports a version that has it. Linux only: it reads /proc.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time

SESSIONS = 50
PER_MINUTE = 10_000


def line(number):
    text = "".join(random.choices("abcdefghijklmnopqrstuvwxyz ", k=random.randint(80, 400)))
    message = {"role": "user", "content": [{"type": "text", "text": text}]}
    record = {"type": "message", "id": f"{number:08x}", "parentId": None, "message": message}
    return json.dumps(record) + "\n"


def processor_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid):
    """Resident memory in MiB: all, and what is not of files."""
    names = ("VmRSS", "RssAnon")
    rows = open(f"/proc/{pid}/status").read().splitlines()
    found = dict(row.split(":") for row in rows if row.startswith(names))
    return [round(int(found[name].split()[0]) / 1024, 1) for name in names]


def main():
    program, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 60
    with tempfile.TemporaryDirectory() as home:
        folder = os.path.join(home, ".pi/agent/sessions/--p--")
        os.makedirs(folder)
        paths = []
        for n in range(SESSIONS):
            name = f"2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b{n:04x}.jsonl"
            paths.append(os.path.join(folder, name))
            with open(paths[-1], "w") as file:
                head = {"type": "session", "version": 3, "id": name[25:61], "cwd": "/p"}
                file.write(json.dumps(head) + "\n")
                for m in range(200):
                    file.write(line(m))
        environment = {"HOME": home, "EPITOME_KEYRING": "off", "PATH": os.environ["PATH"]}
        keeper = subprocess.Popen([program, "keep", "--all", "--json"], env=environment,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        waiting = {path: [] for path in paths}
        lock = threading.Lock()
        lags, kept = [], [0]

        def read():
            for row in keeper.stdout:
                now = time.monotonic()
                version = json.loads(row)
                with lock:
                    kept[0] += 1
                    rest = []
                    for end, written in waiting.get(version["path"], []):
                        if end <= version["bytes"]:
                            lags.append(now - written)
                        else:
                            rest.append((end, written))
                    waiting[version["path"]] = rest

        threading.Thread(target=read, daemon=True).start()
        while kept[0] < SESSIONS:
            time.sleep(0.1)
        time.sleep(5)
        for phase in ("idle before", "idle after"):
            before = processor_seconds(keeper.pid)
            time.sleep(60)
            used = processor_seconds(keeper.pid) - before
            print(f"{phase}: {used / 60 * 100:.3f}% of a core over 60 s, "
                  f"resident and of its own (MiB): {memory(keeper.pid)}")
            if phase == "idle after":
                break
            start = time.monotonic()
            before = processor_seconds(keeper.pid)
            count = 0
            while (now := time.monotonic()) - start < seconds:
                while count < (now - start) * PER_MINUTE / 60:
                    path = random.choice(paths)
                    with open(path, "a") as file:
                        file.write(line(count))
                        file.flush()
                        written = time.monotonic()
                        end = file.tell()
                    with lock:
                        waiting[path].append((end, written))
                    count += 1
                time.sleep(0.002)
            used = processor_seconds(keeper.pid) - before
            elapsed = time.monotonic() - start
            time.sleep(10)
            lags.sort()
            left = sum(len(rest) for rest in waiting.values())
            at = lambda share: round(lags[min(len(lags) - 1, int(len(lags) * share))], 2)
            print(f"load: {count} lines in {elapsed:.0f} s, {left} not reported after 10 s, "
                  f"{kept[0]} versions; "
                  f"lag in seconds: p50 {at(0.5)}, p99 {at(0.99)}, p100 {at(1)}; "
                  f"{used / elapsed * 100:.0f}% of a core; memory {memory(keeper.pid)}")
        keeper.terminate()
        keeper.wait()


main()
