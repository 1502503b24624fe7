"""Runs the Python cell for a test: one JSON document per line on standard input, one answer per line.

The first line is the configuration. Every later line is a request, and runs in a thread of its own. Faults
and breakpoints sit in http.client and psycopg, so the example itself knows nothing about tests.
"""

import http.client
import importlib.util
import json
import os
import re
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import psycopg

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "python-cell" / "cell.py"
spec = importlib.util.spec_from_file_location("cell", EXAMPLE)
cell_module = importlib.util.module_from_spec(spec)
sys.modules["cell"] = cell_module
spec.loader.exec_module(cell_module)

config = json.loads(sys.stdin.readline())
output = threading.Lock()
events = []
# The number of requests whose bytes the kernel has.
sent = 0
# What a request wants to happen at a statement of its own thread.
local = threading.local()


def write(answer):
    with output:
        os.write(1, (json.dumps(answer, default=str) + "\n").encode())


class Breakpoint:
    """Stops the process at the n-th hit of one point: says so, with the requests so far, and waits."""

    def __init__(self, point, hit):
        self.point = point
        self.left = hit
        self.lock = threading.Lock()

    def reach(self, point):
        if point != self.point:
            return
        with self.lock:
            self.left -= 1
            if self.left != 0:
                return
            write({"reached": point, "sent": sent})
            while True:
                time.sleep(60)


breakpoint_ = Breakpoint(config.get("point"), config.get("hit", 1))
reach = breakpoint_.reach


# ---------------------------------------------------------------- the network


def operation_of(method, path):
    found = re.fullmatch(r"/v1/cells/[^/]+/leases/[^/?]+(?:/(commit|rollback))?", path)
    if found is None:
        return "other"
    return found[1] or ("begin" if method == "PUT" else "get")


send, receive = http.client.HTTPConnection.request, http.client.HTTPConnection.getresponse


def request(self, method, path, *rest, **more):
    self.operation = operation_of(method, path)
    if self.operation == "commit" and config.get("fault") == "lost commit":
        raise ConnectionResetError("the call is lost")
    reach(f"before {self.operation}")
    send(self, method, path, *rest, **more)
    # Only one thread sends at a time: the rollback has a thread of its own, after the begin has ended.
    global sent
    sent += 1
    reach(f"{self.operation} sent")


def getresponse(self):
    response = receive(self)
    reach(f"{self.operation} answered")
    if self.operation == "begin" and config.get("fault") == "lost begin":
        raise ConnectionResetError("the answer is lost")
    return response


http.client.HTTPConnection.request = request
http.client.HTTPConnection.getresponse = getresponse


# ---------------------------------------------------------------- the database

execute = psycopg.Connection.execute
LEASES = "leasehold_outstanding_leases"
READ_LEASE = re.compile(rf"SELECT .*FROM {LEASES} WHERE state = 'saved' AND uuid = ANY", re.DOTALL)
WRITE_ROW = re.compile(r'(INSERT INTO|UPDATE|DELETE FROM) "')


def send_commit(connection):
    """Sends COMMIT, and does not read its answer."""
    connection.pgconn.send_query(b"COMMIT")
    while connection.pgconn.flush() != 0:
        time.sleep(0.001)


def execute_with_points(self, query, params=None, **more):
    text = query if isinstance(query, str) else query.as_string(self)
    run = lambda: execute(self, query, params, **more)
    if f"INSERT INTO {LEASES}" in text and "'fenced'" in text:
        self.is_fencing = True
        reach("before fence")
        return run()
    if f"INSERT INTO {LEASES}" in text:
        return write_lease_row(params[0], run)
    if f"DELETE FROM {LEASES}" in text and "RETURNING" not in text:
        if config.get("fault") == "no removal":
            raise psycopg.OperationalError("the row cannot be removed")
        return around("remove", run)
    if READ_LEASE.search(text):
        result = run()
        reach("after look")
        return result
    if WRITE_ROW.match(text):
        result = run()
        reach("after write")
        return result
    if text == "COMMIT":
        return commit(self, run)
    if text == "ROLLBACK":
        result = run()
        reach("after undo")
        return result
    return run()


def around(name, run):
    reach(f"before {name}")
    result = run()
    reach(f"after {name}")
    return result


def write_lease_row(lease, run):
    reach("before row")
    if getattr(local, "fence_first", False):
        local.noted.append(cell._fence(lease))
    result = run()
    reach("row before begin")
    return result


def commit(connection, run):
    if getattr(connection, "is_fencing", False):
        result = run()
        reach("after fence")
        return result
    options, local.reconcile_before_commit = getattr(local, "reconcile_before_commit", None), None
    if options is not None:
        local.noted.append(dict(cell.reconcile(**options)))
    fate = getattr(local, "commit", None)
    if fate == "lost_saved":
        run()
    elif fate == "lost_undone":
        execute(connection, "ROLLBACK")
    if fate is not None:
        raise psycopg.OperationalError("the connection is lost")
    reach("before COMMIT")
    if breakpoint_.point == "COMMIT sent":
        send_commit(connection)
        reach("COMMIT sent")
    result = run()
    reach("after COMMIT")
    return result


psycopg.Connection.execute = execute_with_points


# ---------------------------------------------------------------- the cell


def table_of(given):
    when = given.pop("when", None)
    is_claimed = (lambda row: row[when]) if when is not None else (lambda row: True)
    return cell_module.ClaimedTable(**given, when=is_claimed)


coordinator = cell_module.Coordinator(config["url"], config["key"], config["cell"])
coordinator.RETRIES = config.get("retries", 1)
cell = cell_module.Cell(
    coordinator,
    config["database_url"],
    [table_of(each) for each in config["tables"]],
    # Long deadlines, so that a slow machine does not change the course of a test.
    begin_s=config.get("begin_s", 10.0),
    decide_s=10.0,
    fence_s=0.3,
    on_event=events.append,
)


class Undone(Exception):
    pass


def run_steps(tx, steps):
    return [run_step(tx, *step) for step in steps]


def run_step(tx, kind, *args):
    if kind == "insert":
        return tx.insert(args[0], **args[1])
    if kind == "update":
        return tx.update(args[0], args[1], **args[2])
    if kind == "delete":
        return tx.delete(args[0], args[1])
    if kind == "sql":
        tx.db.execute(args[0])
    elif kind == "undone":
        tx.db.execute("SAVEPOINT undone")
        run_steps(tx, args[0])
        tx.db.execute("ROLLBACK TO SAVEPOINT undone")
    elif kind == "spoil":
        try:
            tx.db.execute("SELECT 1 / 0")
        except psycopg.Error:
            pass
    elif kind == "fail":
        raise Undone("a bug")
    return None


def transaction(steps, commit=None, reconcile_before_commit=None, fence_first=False):
    local.commit, local.reconcile_before_commit = commit, reconcile_before_commit
    local.fence_first, local.noted = fence_first, []
    try:
        return {"results": cell.transaction(lambda tx: run_steps(tx, steps)), "noted": local.noted}
    finally:
        local.commit, local.reconcile_before_commit, local.fence_first = None, None, False


def save_history():
    with closing(cell.connect()) as db:
        coordinator.history.save(db, coordinator.cell)


REQUESTS = {
    "install": cell.install,
    "transaction": transaction,
    "reconcile": lambda **options: dict(cell.reconcile(**options)),
    "verify": cell.verify,
    "fence": cell._fence,
    "save_history": save_history,
    "events": lambda: events,
}


def code_of(error):
    if isinstance(error, cell_module.Failed):
        return error.answer.code if error.answer.kind == "refused" else "UNAVAILABLE"
    if isinstance(error, cell_module.OutcomeUnknown):
        return "UNKNOWN_COMMIT"
    if isinstance(error, cell_module.NotSaved):
        return "NOT_SAVED"
    return "DATABASE" if isinstance(error, psycopg.Error) else type(error).__name__


def answer(number, op, options):
    try:
        outcome = {"value": REQUESTS[op](**options)}
    except Exception as error:
        outcome = {"error": {"code": code_of(error), "message": f"{type(error).__name__}: {error}"}}
    if "point" in config:
        # The point may be in work that the cell does after it has answered. There is only one request.
        for thread in threading.enumerate():
            if thread not in (threading.main_thread(), threading.current_thread()):
                thread.join()
    write({"id": number, **outcome})


for line in sys.stdin:
    given = json.loads(line)
    job = (given["id"], given["op"], given.get("options", {}))
    threading.Thread(target=answer, args=job, daemon=True).start()
