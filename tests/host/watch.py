"""`watch` beside runs that go on, that are over, and that were killed; its page as a browser sees it.

    watch.py GMC DIRECTORY"""
import atexit
import html
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

from programs import check, ending, failures, program, read, run, write

gmc, work = sys.argv[1:3]
shutil.rmtree(work, ignore_errors=True)
os.makedirs(work)
os.chdir(work)
program("fit", """data { int N; vector[N] y; }
prior { m ~ normal(0, 5); s ~ half_cauchy(0, 1); }
likelihood { y ~ student_t(4, m, s); }
""", "--method", "nuts")
data = write("data.json", json.dumps({"y": [0.1, 0.3, 2.0, 2.2, -0.5]}))


def begun(name, *args):
    """A run, once its status is there."""
    p = subprocess.Popen(["./fit", data, "--seed", "1", "-q", "--no-summary", "--status", "-o", name, *args], stderr=subprocess.PIPE)
    atexit.register(p.kill)  # if a check ends this with an error, the run would keep its output open, and its caller waiting
    while not os.path.exists(name + ".status.json") and p.poll() is None: time.sleep(0.02)
    return p


def asked(port, request):
    """The head and the body of an answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
        s.sendall(request.encode())
        got = b""
        while more := s.recv(65536): got += more
    return got.decode().split("\r\n\r\n", 1)


def page(port, path="/", host="localhost", how="GET"):
    return asked(port, "%s %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (how, path, host))


def refused(what, says, *command):
    status, text = ending(*command)
    check(status == 2 and says in text and "\n" not in text, what + ":", status, text)


# ---- mistakes ----

refused("no such run", "none.status.json is not there", "./fit", "watch", "none")
refused("no run", "no run is given", "./fit", "watch")
write("other.status.json", '{"phase": "sampling"}')
refused("another file", "is no status of a run", gmc, "watch", "other")
os.mkdir("folder.status.json")
refused("a folder", "is not there", gmc, "watch", "folder")
for port in ("x", "-1", "65536", "80.5"):
    refused("--port " + port, "a port is a number from 0 to 65535", "./fit", "watch", "none", "--port", port)

# ---- a run that goes on ----

def in_two_parts(port):
    """Whether such a request is answered. It has a second to arrive, which a busy machine may take from it: one of five."""
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", port)) as one:
            try:
                one.sendall(b"GET ")
                time.sleep(0.05)
                one.sendall(b"/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                if b"200" in one.recv(20): return True
            except OSError:
                pass
    return False


endless = begun("run", "--samples", "100000000")
with socket.socket() as taken:
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    said = subprocess.run(["./fit", "watch", "run", "--port", str(taken.getsockname()[1])], capture_output=True, text=True)
    check(said.returncode == 2 and "is in use: give another" in said.stderr, "a port in use:", said)
watching = subprocess.Popen([gmc, "watch", "run", "--port", "0"], stdout=subprocess.PIPE, text=True)
plain = subprocess.Popen([gmc, "watch", "run"], stdout=subprocess.PIPE, text=True)
first, where = watching.stdout.readline(), watching.stdout.readline()
port = int(re.match(r"http://127\.0\.0\.1:(\d+)/ ", where)[1])
seen = []
while len(seen) < 3 or seen[-1] == seen[0]:
    head, body = page(port)
    shown = re.search(r'<progress [^>]*value="(\d+)" max="(\d+)"', body)
    seen.append((int(shown[1]), int(shown[2])))
    time.sleep(0.7)
now = json.loads(read("run.status.json"))
check([s[0] for s in seen] == sorted(s[0] for s in seen) and seen[-1][0] <= now["sweep"] and seen[-1][1] == now["sweeps"],
      "the page has the sweeps of the run:", seen, now)
check("200 OK" in head and "Refresh: 1" in head and "no-store" in head and int(re.search(r"Content-Length: (\d+)", head)[1]) == len(body)
      and body.startswith("<!DOCTYPE html>") and not re.search("<script|https?:|src=", body), "it asks again, and for nothing else:", head)
check("403" in page(port, host="elsewhere.example")[0] and "403" in asked(port, "GET / HTTP/1.1\r\n\r\n")[0]
      and "200" in page(port, host="127.0.0.1:%d" % port)[0], "a request for another host is refused")
check("404" in page(port, "/run_1.csv.part")[0] and "404" in page(port, "/../data.json")[0] and "405" in page(port, how="POST")[0],
      "nothing else is served")
slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
slow[3].sendall(b"GET ")
started = time.time()
check("200" in page(port)[0] and time.time() - started < 5, "those that say nothing hold nobody up:", time.time() - started)
check(in_two_parts(port), "one that asks in two parts is answered")
for one in slow: one.close()
addresses = {socket.inet_ntoa(bytes.fromhex(line.split()[1][:8])[::-1]) for line in read("/proc/net/tcp").split("\n")[1:]
             if line and int(line.split()[1][9:], 16) == port and line.split()[3] == "0A"}
check(addresses == {"127.0.0.1"}, "it listens here alone:", addresses)
endless.send_signal(signal.SIGINT)
endless.communicate(timeout=60)
time.sleep(1.5)
head, body = page(port)
check("Refresh" not in head and "interrupted" in body and "status 130" in body, "the last page asks no more:", head)
text = watching.communicate(timeout=60)[0]
check(watching.returncode == 130 and "interrupted" in text, "it is over with the run, with its status:", watching.returncode, text)
text = plain.communicate(timeout=60)[0].strip().split("\n")
check(plain.returncode == 130 and len(text) <= 3 and "interrupted" in text[-1], "as lines:", plain.returncode, text)

# ---- runs that are over, several, names that HTML reads ----

done = begun("a<b>&", "--samples", "50")
done.communicate()
status = subprocess.run(["./fit", "watch", "a<b>&", "run", "--port", "0"], capture_output=True, text=True)
check(status.returncode == 130 and "http" not in status.stdout and "a<b>&: done" in status.stdout and "run: interrupted" in status.stdout,
      "runs that are over:", status)
check(subprocess.run([gmc, "watch", "a<b>&"], capture_output=True).returncode == 0, "done: 0")
endless = begun("b", "--samples", "100000000")
watching = subprocess.Popen([gmc, "watch", "a<b>&", "b", "--port", "0"], stdout=subprocess.PIPE, text=True)
port = int([watching.stdout.readline() for _ in range(3)][2].split(":")[2].split("/")[0])
body = page(port)[1]
check("a<b>" not in body and html.escape("a<b>&") in body and body.count("<section>") == 2, "two runs, with names as text:")

# ---- one that was killed ----

endless.kill()
endless.communicate()
os.utime("b.status.json", (time.time() - 100,) * 2)
text = watching.communicate(timeout=90)[0]
check(watching.returncode == 4 and "its process is not there" in text, "killed:", watching.returncode, text)
changed = json.loads(read("b.status.json"))
changed["pid"] = os.getpid()
write("b.status.json", json.dumps(changed))
os.utime("b.status.json", (time.time() - 100,) * 2)
watching = subprocess.Popen([gmc, "watch", "b"], stdout=subprocess.PIPE, text=True)
line = watching.stdout.readline()
check(re.search(r"nothing new for 1\d\d s", line) and watching.poll() is None, "suspended:", line)
watching.kill()
watching.communicate()

# ---- what the status names ----

run("./fit", data, "--seed", "1", "-q", "--status", "-o", "named", "--samples", "100000", "--thin", "100", "--max-time", "6", status=10)
named = json.loads(read("named.status.json"))
ess = [q["ess"] for q in named["quantities"]]
check(ess == sorted(ess) and {q["name"] for q in named["quantities"]} == {"lp__", "m", "s"} and named["min_ess"] == ess[0]
      and named["quantities"][0]["name"] == named["min_ess_of"] and all(0.99 < q["rhat"] < 1.05 for q in named["quantities"]),
      "quantities, the fewest effective draws first:", named)
sys.exit(failures() > 0)
