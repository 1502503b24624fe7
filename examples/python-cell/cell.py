"""A cell in Python, without Leasehold's SDK.

docs/guides/any-language.md describes the protocol that this file follows, and explains each step. Rules in
brackets, such as [L5], are those of docs/reference/protocol.md. It needs Python 3.9 and psycopg 3.

    cell = Cell(Coordinator(url, key, "7"), database_url, [USERS])
    cell.install()
    user = cell.transaction(lambda tx: tx.insert("users", username="ada"))
    cell.reconcile(full=True)       # every minute; full every ten minutes
    cell.verify(apply=True)         # a few times a day
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import sys
import threading
import time
import uuid
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, Iterable, Iterator, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

Row = dict  # a row of the database: column -> value
Op = dict  # one create, destroy or replace of a batch
Batch = dict
Record = dict  # a claim, as the coordinator shows it

# ---------------------------------------------------------------- the cell's own tables

SCHEMA = """
CREATE TABLE IF NOT EXISTS leasehold_outstanding_leases (
  uuid uuid PRIMARY KEY,
  state text NOT NULL DEFAULT 'saved',
  sources jsonb NOT NULL,
  deferred jsonb,
  created_at timestamptz(3) NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX IF NOT EXISTS leasehold_outstanding_leases_created
  ON leasehold_outstanding_leases (created_at);
CREATE TABLE IF NOT EXISTS leasehold_verification_queue (
  source_type text NOT NULL,
  source_id text NOT NULL,
  lease_uuid uuid NOT NULL,
  queued_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (source_type, source_id)
);
CREATE TABLE IF NOT EXISTS leasehold_ledger_history (
  cell text NOT NULL,
  incarnation bigint NOT NULL,
  position bigint NOT NULL,
  saved_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (cell, incarnation)
);
"""


# ---------------------------------------------------------------- which columns are claimed


class Claim(NamedTuple):
    """One name of one row, with its subject and its source."""

    bucket_type: str
    value: str
    subject_type: str
    subject_id: str
    source_type: str
    source_id: str

    @property
    def bucket(self) -> dict:
        return {"type": self.bucket_type, "value": self.value}

    @property
    def source(self) -> dict:
        return {"type": self.source_type, "id": self.source_id}

    def op(self, **more: Any) -> Op:
        subject = {"type": self.subject_type, "id": self.subject_id}
        return {"bucket": self.bucket, "subject": subject, "source": self.source, **more}


@dataclass(frozen=True)
class ClaimedTable:
    """A table with names that must be unique across all cells. Its primary key is `id`."""

    name: str
    source: str  # the source type: identifies the table to the coordinator
    subject: str  # the subject type
    columns: dict[str, str]  # column -> bucket type
    subject_id: str = "id"  # the column with the id of the subject
    when: Callable[[Row], bool] = lambda row: True  # whether a row's names are claimed
    integer_ids: bool = True  # False: the ids are text

    def claims(self, row: Row | None) -> list[Claim]:
        """The claims that a row must have. An empty column has none."""
        if row is None or not self.when(row):
            return []
        subject, source = str(row[self.subject_id]), str(row["id"])
        return [
            Claim(bucket, str(row[column]), self.subject, subject, self.source, source)
            for column, bucket in self.columns.items()
            if row[column] is not None
        ]

    def has_id(self, source_id: str) -> bool:
        return not self.integer_ids or re.fullmatch(r"0|[1-9][0-9]{0,17}", source_id) is not None

    @property
    def order(self) -> sql.SQL:
        """Sorts rows like the coordinator sorts source ids: integers as numbers, text by its bytes."""
        return sql.SQL("id" if self.integer_ids else 'id COLLATE "C"')


def claim_of(record: Record) -> Claim:
    bucket, subject, source = record["bucket"], record["subject"], record["source"]
    return Claim(
        bucket["type"], bucket["value"], subject["type"], subject["id"], source["type"], source["id"]
    )


def source_order(source_id: str) -> tuple:
    """Decimal ids come first, as numbers; all others follow by their bytes [R3]."""
    if re.fullmatch("[0-9]+", source_id):
        return (0, int(source_id), len(source_id))
    return (1, source_id.encode())


# ---------------------------------------------------------------- calls to the coordinator


@dataclass
class Answer:
    """What is known after a call: ok, refused, or nothing [M2]."""

    kind: str  # "ok", "refused" or "unknown"
    body: dict = field(default_factory=dict)
    # Whether the coordinator certainly did nothing, and will do nothing. False also for a refusal that came
    # after an attempt without an answer, because that attempt may still arrive.
    nothing_done: bool = False
    retry_after: float = 0.0

    # Only a refusal has these. What a 5xx says about itself must not decide anything.

    @property
    def code(self) -> str | None:
        return self.body.get("code") if self.kind == "refused" else None

    @property
    def reason(self) -> str | None:
        return self.body.get("reason") if self.kind == "refused" else None

    @property
    def conflicts(self) -> list[dict]:
        return self.body.get("conflicts", []) if self.kind == "refused" else []

    @property
    def state(self) -> str | None:
        """The state of the lease, in the answer to a call about one."""
        return self.body.get("lease", {}).get("state")

    @property
    def is_unknown_lease(self) -> bool:
        """With a reason, it is the route or the cell that is unknown, which says nothing about the lease."""
        return self.code == "NOT_FOUND" and self.reason is None

    def __str__(self) -> str:
        code, reason = self.body.get("code", self.kind), self.body.get("reason")
        return f"{code}{f' ({reason})' if reason else ''}: {self.body.get('detail', '')}"


class Failed(Exception):
    """A call failed. `answer` says how."""

    def __init__(self, answer: Answer):
        super().__init__(str(answer))
        self.answer = answer


class Coordinator:
    """The calls of one cell, with retries while an outcome is unknown and time is left."""

    ATTEMPT_S = 6.0  # longer than the coordinator's own deadline of a begin, which is 5 s
    RETRIES = 4

    def __init__(self, url: str, key: str, cell: str):
        self.cell = cell
        self.history = LedgerHistory()
        self._url = urlsplit(url)
        self._key = key

    def begin(self, lease: str, batch: Batch, deadline: float) -> Answer:
        return self._lease("PUT", f"/{lease}", batch, deadline)

    def commit(self, lease: str, deadline: float = 10.0) -> Answer:
        return self._lease("POST", f"/{lease}/commit", None, deadline)

    def roll_back(self, lease: str, deadline: float = 10.0) -> Answer:
        return self._lease("POST", f"/{lease}/rollback", None, deadline)

    def get(self, lease: str) -> Answer:
        return self._lease("GET", f"/{lease}", None, 10.0)

    def granted(self, created_after: datetime | None) -> Iterator[list[dict]]:
        """The cell's open leases, page by page. Raises `Failed` if the list cannot be read to its end."""
        query = {"page_size": "100"}
        if created_after is not None:
            query["created_after"] = created_after.isoformat()
        while True:
            page = needed(self._lease("GET", f"?{urlencode(query)}", None, 10.0))
            yield page["leases"]
            if page["next_page_token"] == "":
                return
            query["page_token"] = page["next_page_token"]

    def lookup(self, buckets: list[dict]) -> list[Record | None]:
        """Who has each name, whatever its spelling. Another cell's record has no `uuid` and no `source`."""
        found: list[Record | None] = []
        for at in range(0, len(buckets), 100):
            body = {"buckets": buckets[at : at + 100]}
            for result in needed(self._call("POST", "/v1/records/lookup", body, 10.0))["results"]:
                # A batch of one name is refused if its answer is unknown, and repeated.
                is_unknown = "unavailable" in result and len(buckets) > 1
                found += self.lookup([result["bucket"]]) if is_unknown else [result.get("record")]
        return found

    def records(self, table: ClaimedTable, after: str, upto: str | None) -> tuple[datetime, list[Record]]:
        """The cell's claims of source ids in (after, upto], and the time of the reading."""
        query = {"source_type": table.source, "page_size": "1000"}
        query.update({} if after == "" else {"source_id_gt": after})
        query.update({} if upto is None else {"source_id_lte": upto})
        types = "".join(f"&bucket_type={quote(each)}" for each in sorted(set(table.columns.values())))
        as_of, records = None, []
        while True:
            path = f"/v1/cells/{self.cell}/records?{urlencode(query)}{types}"
            page = needed(self._call("GET", path, None, 10.0))
            as_of = as_of or time_of(page["as_of"])
            records += page["records"]
            if page["next_page_token"] == "":
                return as_of, records
            query["page_token"] = page["next_page_token"]

    def take_slot(self, run: str) -> Answer:
        return self._call("PUT", f"/v1/cells/{self.cell}/verification-slots/{run}", None, 10.0)

    def release_slot(self, run: str) -> None:
        self._call("POST", f"/v1/cells/{self.cell}/verification-slots/{run}/release", None, 2.0)

    def _lease(self, method: str, path: str, body: Any, deadline: float) -> Answer:
        answer = self._call(method, f"/v1/cells/{self.cell}/leases{path}", body, deadline, self.history)
        if answer.kind == "ok" and "lease" in answer.body:
            if answer.state not in ("GRANTED", "COMMITTED", "ROLLED_BACK"):
                return Answer("unknown", {"detail": f"a new state of a lease: {answer.state}"})
        return answer

    def _call(self, method: str, path: str, body: Any, deadline: float, history: Any = None) -> Answer:
        """Repeats a call while its outcome is unknown. Every call of this class may be repeated."""
        end = time.monotonic() + deadline
        # Written once, because a repeated begin must have the same batch [B2].
        payload = None if body is None else json.dumps(body).encode()
        is_uncertain = False
        for attempt in range(self.RETRIES + 1):
            left = end - time.monotonic()
            answer = self._attempt(method, path, payload, max(0.01, min(self.ATTEMPT_S, left)), history)
            if answer.kind == "ok":
                return answer
            is_uncertain = is_uncertain or answer.kind == "unknown"
            answer.nothing_done = answer.kind == "refused" and not is_uncertain
            # Of the refusals, only a limit passes by itself.
            is_limit = answer.code == "RESOURCE_EXHAUSTED" and answer.body.get("retryable") is True
            if answer.kind == "refused" and not is_limit:
                break
            pause = answer.retry_after + random.random() * min(2.0, 0.1 * 2**attempt)
            if time.monotonic() + pause + 0.02 >= end:
                break
            time.sleep(pause)
        return answer

    def _attempt(self, method: str, path: str, payload: Any, timeout: float, history: Any) -> Answer:
        secure = self._url.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        headers = {"Authorization": f"Bearer {self._key}", "Accept": "application/json"}
        if payload is not None:
            headers["Content-Type"] = "application/json"
        seen = history.next() if history else None
        if seen is not None:
            headers["Leasehold-History"] = f"{seen[0]}.{seen[1]}"
        try:
            # The timeout is for each read, so an answer that trickles in can take longer.
            with closing(kind(self._url.hostname, self._url.port, timeout=timeout)) as connection:
                connection.request(method, path, payload, headers)
                response = connection.getresponse()
                text = response.read()
            body = json.loads(text) if text else {}
        except (OSError, http.client.HTTPException, ValueError) as error:
            return Answer("unknown", {"detail": f"{type(error).__name__}: {error}"})
        if 200 <= response.status < 300 and isinstance(body, dict):
            if history:
                history.answered(seen, response.getheader("Leasehold-History"))
            return Answer("ok", body)
        # Proxies answer too, and a 5xx says nothing about what was done.
        is_json = response.getheader("Content-Type", "").startswith("application/problem+json")
        is_problem = is_json and isinstance(body, dict)
        is_refused = is_problem and 400 <= response.status < 500 and "code" in body
        wait = response.getheader("Retry-After", "")
        return Answer(
            "refused" if is_refused else "unknown",
            body if is_problem else {"detail": f"HTTP {response.status} without a problem document"},
            retry_after=float(wait) if wait.isdigit() else 0.0,
        )


def needed(answer: Answer) -> dict:
    if answer.kind != "ok":
        raise Failed(answer)
    return answer.body


def time_of(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


class LedgerHistory:
    """What this cell has seen of its ledger, so that a ledger that goes back in time is noticed [L7]."""

    def __init__(self) -> None:
        self._points: dict[int, int] = {}  # incarnation -> the largest position that was seen
        self._replaced: dict[int, int] = {}
        self._lock = threading.Lock()

    def next(self) -> tuple[int, int] | None:
        """The point to send with the next call. If there are several, they take turns."""
        with self._lock:
            if not self._points:
                return None
            incarnation = next(iter(self._points))
            self._points[incarnation] = position = self._points.pop(incarnation)
            return incarnation, position

    def answered(self, sent: tuple[int, int] | None, header: str | None) -> None:
        match = re.fullmatch(r"([0-9]{1,16})\.([0-9]{1,16})", header or "")
        if match is None:
            return
        incarnation, position = int(match[1]), int(match[2])
        with self._lock:
            # A point is dropped only here: the ledger has answered a call that carried it, so it has it.
            if sent is not None and sent[0] < incarnation and self._points.get(sent[0], -1) == sent[1]:
                self._replaced[sent[0]] = self._points.pop(sent[0])
            # More than two points can only come from calls that the ledger does not answer.
            if incarnation in self._points or len(self._points) < 8:
                self._points[incarnation] = max(position, self._points.get(incarnation, -1))

    def load(self, db: psycopg.Connection, cell: str) -> None:
        query = "SELECT incarnation, position FROM leasehold_ledger_history WHERE cell = %s"
        with self._lock:
            for row in db.execute(query, (cell,)):
                incarnation, position = row["incarnation"], row["position"]
                if position > self._replaced.get(incarnation, -1):
                    self._points[incarnation] = max(position, self._points.get(incarnation, -1))

    def save(self, db: psycopg.Connection, cell: str) -> None:
        """Other processes of the cell write the same rows, so a position only grows."""
        with self._lock:
            points, replaced = dict(self._points), dict(self._replaced)
        for incarnation, position in points.items():
            db.execute(
                """INSERT INTO leasehold_ledger_history AS known (cell, incarnation, position)
                   VALUES (%s, %s, %s)
                   ON CONFLICT (cell, incarnation) DO UPDATE
                   SET position = excluded.position, saved_at = clock_timestamp()
                   WHERE known.position < excluded.position""",
                (cell, incarnation, position),
            )
        # Afterwards, so that a process that dies in between has forgotten nothing.
        for incarnation, position in replaced.items():
            db.execute(
                """DELETE FROM leasehold_ledger_history
                   WHERE cell = %s AND incarnation = %s AND position <= %s""",
                (cell, incarnation, position),
            )
        with self._lock:
            for incarnation in replaced:
                self._replaced.pop(incarnation, None)


# ---------------------------------------------------------------- one transaction with its lease


class Refused(Failed):
    """The coordinator did not grant the lease, and nothing was saved. See `answer.code` and `.conflicts`."""


class OutcomeUnknown(Exception):
    """The answer to COMMIT was lost. The rows are saved or not; reconciliation finishes the lease."""


class NotSaved(Exception):
    """The database reported no error, and saved nothing."""


class Transaction:
    """A local transaction that remembers the claimed rows that it changes."""

    def __init__(self, db: psycopg.Connection, tables: dict[str, ClaimedTable]):
        self.db = db
        self._tables = tables
        self._before: dict[tuple[str, Any], list[Claim]] = {}

    def insert(self, table: str, **values: Any) -> Row:
        query = sql.SQL("INSERT INTO {} ({}) VALUES ({}) RETURNING *").format(
            sql.Identifier(table),
            sql.SQL(", ").join(map(sql.Identifier, values)),
            sql.SQL(", ").join(sql.Placeholder() * len(values)),
        )
        row = self.db.execute(query, list(values.values())).fetchone()
        if row is None:
            raise NotSaved(f"the database did not insert a row into {table}: check its triggers and rules")
        if table in self._tables:
            self._before[(table, row["id"])] = []
        return row

    def update(self, table: str, row_id: Any, **values: Any) -> Row | None:
        self.watch(table, row_id)
        query = sql.SQL("UPDATE {} SET {} WHERE id = %s RETURNING *").format(
            sql.Identifier(table),
            sql.SQL(", ").join(sql.SQL("{} = %s").format(sql.Identifier(name)) for name in values),
        )
        return self.db.execute(query, [*values.values(), row_id]).fetchone()

    def delete(self, table: str, row_id: Any) -> bool:
        self.watch(table, row_id)
        query = sql.SQL("DELETE FROM {} WHERE id = %s").format(sql.Identifier(table))
        return self.db.execute(query, (row_id,)).rowcount > 0

    def watch(self, table: str, row_id: Any) -> None:
        """Call this before you change a claimed row with SQL of your own. It locks the row."""
        key = (table, row_id)
        if table in self._tables and key not in self._before:
            self._before[key] = self._tables[table].claims(self._read(table, row_id, lock=True))

    def changes(self) -> tuple[Batch, list[dict]] | None:
        """The batch of the lease and the rows that it is for, or None if no claim changes.

        It reads the rows again: only the difference between the start and the end of the transaction
        counts, and a savepoint or a trigger may have changed what was written.
        """
        before: dict[tuple[str, str], Claim] = {}
        after: dict[tuple[str, str], Claim] = {}
        for (table, row_id), was in self._before.items():
            now = self._tables[table].claims(self._read(table, row_id))
            before.update({claim[:2]: claim for claim in was if claim not in now})
            for claim in now:
                if claim in was:
                    continue
                if claim[:2] in after:
                    raise ValueError(f"two rows have the {claim.bucket_type} {claim.value}")
                after[claim[:2]] = claim
        creates = [claim for name, claim in after.items() if name not in before]
        replaces = [claim for name, claim in after.items() if name in before]
        destroys = [claim for name, claim in before.items() if name not in after]
        rows = unique([claim.source for claim in creates + replaces + destroys])
        if not rows:
            return None
        return batch_of(
            creates=[claim.op() for claim in creates],
            # A destroy names its source, so that it cannot release the claim of another row that has the
            # name by now.
            destroys=[{"bucket": claim.bucket, "source": claim.source} for claim in destroys],
            replaces=[claim.op() for claim in replaces],
            # A claim may be missing, if the row is older than the column's claims.
            allow_missing=bool(destroys or replaces),
        ), rows

    def _read(self, table: str, row_id: Any, lock: bool = False) -> Row | None:
        query = sql.SQL("SELECT * FROM {} WHERE id = %s" + (" FOR UPDATE" if lock else ""))
        return self.db.execute(query.format(sql.Identifier(table)), (row_id,)).fetchone()


def unique(sources: list[dict]) -> list[dict]:
    return list({(each["type"], each["id"]): each for each in sources}.values())


def batch_of(**parts: Any) -> Batch:
    return {name: part for name, part in parts.items() if part}


# What a body gives to `_leased`: its result, and the batch with the rows that it is for.
Work = Callable[[psycopg.Connection], "tuple[Any, tuple[Batch, list[dict]] | None]"]


class Cell:
    """The cell's side of the protocol: transactions with leases, reconciliation and verification."""

    def __init__(
        self,
        coordinator: Coordinator,
        database_url: str,
        tables: Iterable[ClaimedTable],
        begin_s: float = 0.25,  # the local transaction holds its locks for so long
        decide_s: float = 2.0,
        fence_s: float = 2.0,  # how long a fence waits for a transaction that is saving its lease
        on_event: Callable[[dict], None] = lambda event: print(json.dumps(event), file=sys.stderr),
    ):
        self.coordinator = coordinator
        self.tables = {table.name: table for table in tables}
        self._database_url = database_url
        self._begin_s = begin_s
        self._decide_s = decide_s
        self._fence_s = fence_s
        self._report = lambda kind, **facts: on_event({"kind": kind, **facts})
        self._history_saved_at: float | None = None

    def connect(self) -> psycopg.Connection:
        """Connects to the primary, never to a replica. A statement outside of BEGIN is saved at once."""
        return psycopg.connect(self._database_url, autocommit=True, row_factory=dict_row)

    def install(self) -> None:
        with closing(self.connect()) as db:
            # Two processes that create the same table at the same time could fail.
            db.execute("BEGIN")
            db.execute("SELECT pg_advisory_xact_lock(7810756276994469740)")
            db.execute(SCHEMA)
            db.execute("COMMIT")

    def transaction(self, body: Callable[[Transaction], Any]) -> Any:
        """Runs a local transaction with a lease for the names that it changes.

        Raises what the body raises, `Refused` or `NotSaved`: then nothing was saved. Raises `OutcomeUnknown`
        if the rows may or may not be saved.
        """

        def work(db: psycopg.Connection) -> tuple[Any, Any]:
            tx = Transaction(db, self.tables)
            return body(tx), tx.changes()

        return self._leased(work, lambda lease, batch: self._begin(lease, batch))

    def _leased(self, work: Work, begin: Callable[[str, Batch], Answer | None]) -> Any:
        """Local writes, lease row, begin, COMMIT, commit of the lease.

        Whatever fails, and wherever the process dies, the lease row is in the database if and only if the
        rows are [L1].
        """
        self._load_history()
        lease = str(uuid.uuid4())
        begun: Answer | None = None
        with closing(self.connect()) as db:
            try:
                db.execute("BEGIN")
                result, changes = work(db)
                if changes is not None:
                    batch, rows = changes
                    # If a reconciliation has fenced the lease, this insert fails [L5].
                    db.execute(
                        "INSERT INTO leasehold_outstanding_leases (uuid, sources) VALUES (%s, %s)",
                        (lease, Jsonb(rows)),
                    )
                    begun = Answer("unknown", {"detail": "the begin was interrupted"})
                    begun = begin(lease, batch)
                    if begun is None:  # nothing is left to change
                        db.execute("DELETE FROM leasehold_outstanding_leases WHERE uuid = %s", (lease,))
                    elif begun.state != "GRANTED":
                        raise Refused(begun)
            except BaseException:
                # COMMIT was not sent, so nothing can be saved any more [L2].
                self._undo(db, lease, begun)
                raise
            try:
                done = db.execute("COMMIT").statusmessage
            except psycopg.Error as error:
                if not proves_rollback(error):
                    # Only the database knows, so neither commit nor rollback is safe [L3].
                    raise OutcomeUnknown(f"the outcome of COMMIT is unknown; lease {lease}") from error
                self._undo(db, lease, begun)
                raise
            if done != "COMMIT":  # PostgreSQL answers ROLLBACK if an earlier error was ignored
                self._undo(db, lease, begun)
                raise NotSaved("the transaction was rolled back, because of an error in it")
        if begun is not None:
            self._commit_if_saved(lease)
        self._save_history(every=5.0)
        return result

    def _begin(self, lease: str, batch: Batch) -> Answer | None:
        """Begins a lease, and adjusts the batch if rows and claims already differed.

        After a certain refusal nothing is left at the coordinator, so the same UUID can be used again.
        """
        end = time.monotonic() + self._begin_s
        answer = self.coordinator.begin(lease, batch, self._begin_s)
        if answer.nothing_done and is_same_name_twice(answer):
            batch = self._with_respellings(batch)
            answer = self.coordinator.begin(lease, batch, max(0.05, end - time.monotonic()))
        if not (answer.nothing_done and answer.conflicts and all(map(is_older_drift, answer.conflicts))):
            return answer
        batch = self._without_drift(lease, batch, answer.conflicts)
        if not any(batch.get(name) for name in ("creates", "destroys", "replaces")):
            return None
        return self.coordinator.begin(lease, batch, max(0.05, end - time.monotonic()))

    def _with_respellings(self, batch: Batch) -> Batch:
        """Turns a destroy and a create of the same name into a replace.

        Only the coordinator knows that two spellings are the same name: both then belong to the same record.
        """
        creates, destroys = batch.get("creates", []), batch.get("destroys", [])
        buckets = [op["bucket"] for op in creates + destroys]
        uuids = [record and record.get("uuid") for record in self.coordinator.lookup(buckets)]
        created, destroyed = uuids[: len(creates)], uuids[len(creates) :]
        both = {each for each in created if each is not None and each in destroyed}
        return batch_of(
            creates=[op for op, its in zip(creates, created) if its not in both],
            # A name without a claim needs no destroy.
            destroys=[op for op, its in zip(destroys, destroyed) if its is not None and its not in both],
            replaces=batch.get("replaces", []) + [op for op, its in zip(creates, created) if its in both],
            allow_missing=batch.get("allow_missing"),
        )

    def _without_drift(self, lease: str, batch: Batch, conflicts: list[dict]) -> Batch:
        """Names of others are not released."""
        self._report("not_owned", lease=lease, conflicts=conflicts)
        dropped = {each["index"] for each in conflicts}
        kept = [op for i, op in enumerate(batch["destroys"]) if i not in dropped]
        return batch_of(**(batch | {"destroys": kept}))

    def _undo(self, db: psycopg.Connection, lease: str, begun: Answer | None) -> None:
        """Ends the local transaction first, then the lease, unless the begin was certainly refused [L2]."""
        try:
            db.execute("ROLLBACK")
        except psycopg.Error:
            pass  # the connection is lost, and the server rolls back
        db.close()
        if begun is None or begun.nothing_done:
            return
        if begun.kind == "ok":
            self._roll_back(lease)
        else:
            # The coordinator does not answer. The user should not wait for that a second time.
            threading.Thread(target=self._roll_back, args=(lease,)).start()

    def _roll_back(self, lease: str) -> None:
        answer = self.coordinator.roll_back(lease, self._decide_s)
        if answer.kind != "ok":  # reconciliation does it later
            self._report("rollback_postponed", lease=lease, error=str(answer))

    def _commit_if_saved(self, lease: str) -> None:
        """COMMIT was reported. The lease is committed only after its row was seen from outside [L4]."""
        try:
            is_saved = bool(self._saved([lease]))
        except psycopg.Error as error:
            return self._report("commit_postponed", lease=lease, error=str(error))
        if is_saved:
            return self._commit(lease)
        # A reconciliation may have committed the lease and removed the row. A fence tells [L5].
        try:
            fence = self._fence(lease)
        except psycopg.Error as error:
            raise OutcomeUnknown(f"the row of lease {lease} was not found") from error
        if fence == "saved":
            return self._report("commit_postponed", lease=lease, error="its row was not seen at first")
        answer = self.coordinator.roll_back(lease, self._decide_s) if fence == "fenced" else None
        if answer is not None and answer.kind == "ok":
            raise NotSaved("the database reported COMMIT, but saved nothing")
        if answer is None or answer.reason != "LEASE_COMMITTED":
            raise OutcomeUnknown(f"the row of lease {lease} was not found")

    def _commit(self, lease: str) -> None:
        answer = self.coordinator.commit(lease, self._decide_s)
        try:
            if answer.kind == "ok":
                self._remove(lease)
            elif answer.reason == "LEASE_ROLLED_BACK" or answer.is_unknown_lease:
                self._contradicted(lease, answer)
            else:
                self._report("commit_postponed", lease=lease, error=str(answer))
        except psycopg.Error as error:
            self._report("removal_postponed", lease=lease, error=str(error))

    # ------------------------------------------------------------ lease rows and fences

    def _saved(self, leases: list[str]) -> dict[str, float]:
        """The leases among these whose rows are saved, with their ages in seconds."""
        with closing(self.connect()) as db:
            rows = db.execute(
                """SELECT uuid::text AS uuid, EXTRACT(EPOCH FROM clock_timestamp() - created_at)::float AS age
                   FROM leasehold_outstanding_leases WHERE state = 'saved' AND uuid = ANY(%s::uuid[])""",
                (leases,),
            ).fetchall()
        return {row["uuid"]: row["age"] for row in rows}

    def _remove(self, lease: str) -> None:
        with closing(self.connect()) as db:
            db.execute(
                "DELETE FROM leasehold_outstanding_leases WHERE uuid = %s AND state = 'saved'", (lease,)
            )

    def _fence(self, lease: str) -> str:
        """Writes a fence in the place of the lease row: then no transaction can save the lease any more.

        Returns "fenced", or "saved" if the row is there, or "in_flight" if a transaction is writing it. The
        insert waits for such a transaction, because both write the same key.
        """
        with closing(self.connect()) as db:
            try:
                # A stricter level would not see the row that the insert waited for.
                db.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
                db.execute(f"SET LOCAL lock_timeout = {max(1, round(self._fence_s * 1_000))}")
                db.execute(
                    """INSERT INTO leasehold_outstanding_leases (uuid, state, sources)
                       VALUES (%s, 'fenced', '[]') ON CONFLICT DO NOTHING""",
                    (lease,),
                )
                query = "SELECT state FROM leasehold_outstanding_leases WHERE uuid = %s"
                row = db.execute(query, (lease,)).fetchone()
                db.execute("COMMIT")
            except psycopg.errors.LockNotAvailable:
                return "in_flight"
        return "in_flight" if row is None else row["state"]

    def _contradicted(self, lease: str, answer: Answer) -> bool:
        """The rows are saved, and their lease is not committed: another cell may have the names [L6]."""
        with closing(self.connect()) as db:
            db.execute("BEGIN")
            removed = db.execute(
                """DELETE FROM leasehold_outstanding_leases
                   WHERE uuid = %s AND state = 'saved' RETURNING sources""",
                (lease,),
            ).fetchone()
            for source in removed["sources"] if removed else []:
                db.execute(
                    """INSERT INTO leasehold_verification_queue (source_type, source_id, lease_uuid)
                       VALUES (%s, %s, %s)
                       ON CONFLICT (source_type, source_id) DO UPDATE SET lease_uuid = excluded.lease_uuid""",
                    (source["type"], source["id"], lease),
                )
            db.execute("COMMIT")
        if removed:  # otherwise somebody else has finished the lease meanwhile
            found = "NOT_FOUND" if answer.is_unknown_lease else "ROLLED_BACK"
            self._report("contradicted", lease=lease, coordinator=found)
        return removed is not None

    # ------------------------------------------------------------ reconciliation

    def reconcile(
        self,
        full: bool = False,
        commit_grace_s: float = 60,  # a younger row is left to its own process, which is about to commit it
        stale_s: float = 600,  # a lease without a row is given up after this time
        window_s: float = 7_200,  # how far back a run looks that is not full
        orphan_s: float = 600,  # a full run asks about rows without an open lease that are older
        keep_fences_s: float = 86_400,  # longer than any local transaction lasts
    ) -> Counter:
        """Commits the open leases whose rows are saved, and rolls back those that were never saved.

        Run it once a minute, and a full one every ten minutes. Runs may overlap, because the first decision
        about a lease wins. Raises `Failed` if the list of leases cannot be read to its end.
        """
        counts: Counter = Counter()
        self._load_history()
        try:
            after = None if full else datetime.now(timezone.utc) - timedelta(seconds=window_s)
            for page in self.coordinator.granted(after):
                # Read after the leases: a row that is written later belongs to a lease that is not stale.
                saved = self._saved([lease["uuid"] for lease in page])
                for lease in page:
                    age, its = lease["age_ms"] / 1_000, lease["uuid"]
                    if its not in saved:
                        work = self._give_up if age >= stale_s else None
                    else:
                        # A negative age means that the database's clock was set back.
                        row_age = saved[its] if saved[its] >= 0 else age
                        work = self._finish if row_age >= commit_grace_s else None
                    self._count(counts, its, work, "pending" if its not in saved else None)
            if full:
                # After all leases. Otherwise the lease of a row could just be on a later page.
                for its in self._old_rows(orphan_s):
                    self._count(counts, its, self._settle, None)
                with closing(self.connect()) as db:
                    db.execute(
                        """DELETE FROM leasehold_outstanding_leases WHERE state = 'fenced'
                           AND created_at <= clock_timestamp() - make_interval(secs => %s)""",
                        (keep_fences_s,),
                    )
        finally:
            self._save_history()
        return counts

    def _count(self, counts: Counter, lease: str, work: Any, otherwise: str | None) -> None:
        """A failure with one lease is counted, and left to the next run."""
        counts["processed"] += 1
        try:
            outcome = otherwise if work is None else work(lease)
        except (psycopg.Error, Failed) as error:
            outcome = "failed"
            self._report("failed", lease=lease, error=str(error))
        if outcome is not None:
            counts[outcome] += 1

    def _finish(self, lease: str) -> str | None:
        """An open lease whose rows are saved."""
        answer = self.coordinator.commit(lease)
        if answer.kind == "ok":
            self._remove(lease)
            return "committed"
        if answer.reason == "LEASE_ROLLED_BACK" or answer.is_unknown_lease:
            return "contradicted" if self._contradicted(lease, answer) else None
        raise Failed(answer)

    def _give_up(self, lease: str) -> str | None:
        """An open lease whose rows were not saved for a long time. The fence comes first [L5]."""
        if self._fence(lease) != "fenced":
            return "pending"
        answer = self.coordinator.roll_back(lease)
        if answer.kind == "ok":
            return "rolled_back"
        if answer.reason == "LEASE_COMMITTED":  # its row was removed before the fence was written
            return None
        raise Failed(answer)

    def _settle(self, lease: str) -> str | None:
        """An old row whose lease is not open any more."""
        answer = self.coordinator.get(lease)
        if answer.state == "COMMITTED":
            self._remove(lease)
            return "orphaned"
        if answer.state == "GRANTED":
            return self._finish(lease)
        if answer.state == "ROLLED_BACK" or answer.is_unknown_lease:
            return "contradicted" if self._contradicted(lease, answer) else None
        raise Failed(answer)

    def _old_rows(self, orphan_s: float) -> list[str]:
        with closing(self.connect()) as db:
            rows = db.execute(
                """SELECT uuid::text AS uuid FROM leasehold_outstanding_leases
                   WHERE state = 'saved' AND deferred IS NULL
                   AND created_at <= clock_timestamp() - make_interval(secs => %s) ORDER BY uuid""",
                (orphan_s,),
            ).fetchall()
        return [row["uuid"] for row in rows]

    # ------------------------------------------------------------ the history of the ledger

    def _load_history(self) -> None:
        """Before the first call, because that one must already notice a ledger that went back [L7]."""
        if self._history_saved_at is None:
            with closing(self.connect()) as db:
                self.coordinator.history.load(db, self.coordinator.cell)
            self._history_saved_at = time.monotonic()

    def _save_history(self, every: float = 0.0) -> None:
        """Not after every answer, because that would make one row hot. Failures are tried again."""
        if time.monotonic() - (self._history_saved_at or 0.0) < every:
            return
        try:
            with closing(self.connect()) as db:
                self.coordinator.history.save(db, self.coordinator.cell)
                # Another process of the cell may have seen more.
                self.coordinator.history.load(db, self.coordinator.cell)
            self._history_saved_at = time.monotonic()
        except psycopg.Error as error:
            self._report("history_not_saved", error=str(error))

    # ------------------------------------------------------------ verification

    def verify(self, apply: bool = False, max_changes: int = 100, recent_s: float = 3_600) -> dict:
        """Compares all rows with all claims, and repairs what differs. Without `apply` it only reports."""
        self._load_history()
        run = Verification(self, apply, max_changes, recent_s)
        try:
            return run.run()
        finally:
            self._save_history()


OPS = ("creates", "destroys", "replaces")


def is_same_name_twice(answer: Answer) -> bool:
    """A malformed name has the field `creates[0].bucket.value`; two spellings of one name have this one."""
    found = re.fullmatch(r"(creates|destroys|replaces)\[\d+\]\.bucket", answer.body.get("field", ""))
    return answer.code == "INVALID_ARGUMENT" and found is not None


def is_bad_name(answer: Answer) -> bool:
    """Only this part comes from a user. A wrong type, id or scope is a mistake of the deployment."""
    found = re.fullmatch(r"(creates|replaces)\[\d+\]\.bucket\.value", answer.body.get("field", ""))
    return answer.code == "INVALID_ARGUMENT" and found is not None


def is_older_drift(conflict: dict) -> bool:
    """Rows and claims differed before this transaction, so it must not fail because of that."""
    return conflict["list"] == "destroys" and conflict["kind"] in ("not_owner", "mismatch")


def proves_rollback(error: psycopg.Error) -> bool:
    """Whether an error of COMMIT proves that nothing was saved.

    An ERROR of the server undoes everything, except in the classes of connections, resources, operators,
    systems, configuration and internal errors. A lost connection has no SQLSTATE.
    """
    code, severity = error.sqlstate or "", error.diag.severity_nonlocalized or error.diag.severity
    is_unsure = code[:2] in ("", "08", "53", "57", "58", "F0", "XX") or code == "40003"
    return severity == "ERROR" and not is_unsure


class Stopped(Exception):
    """A verification ends early. The message is the status of its report."""


class Verification:
    """One run over all tables.

    It computes no canonical forms. It compares values exactly, and asks the coordinator about those that
    differ: a lookup finds the record of a name in any spelling.
    """

    PAGE = 1_000

    def __init__(self, cell: Cell, apply: bool, max_changes: int, recent_s: float):
        self._cell = cell
        self._coordinator = cell.coordinator
        self._by_source = {table.source: table for table in cell.tables.values()}
        self._apply = apply
        self._max_changes = max_changes
        self._recent_s = recent_s
        self._run = str(uuid.uuid4())
        self._slot_at = 0.0
        self._counts: Counter = Counter()
        self._items: list[dict] = []
        self._needed: set[str] = set()  # records whose names a row uses, and that must stay [V3]
        self._as_of = datetime.fromtimestamp(0, timezone.utc)

    def run(self) -> dict:
        status = "done"
        try:
            self._renew_slot()
            if self._apply:
                self._repair_queue()
            # In all tables, names are taken first. Only then are claims released that no row has [V3].
            for table in self._by_source.values():
                self._claim_pass(table)
            for table in self._by_source.values():
                self._release_pass(table)
        except Stopped as stopped:
            status = str(stopped)
        finally:
            self._coordinator.release_slot(self._run)
        return {"status": status, "applied": self._apply, "counts": dict(self._counts), "items": self._items}

    def _renew_slot(self) -> None:
        """A slot lasts for a minute. It only limits load: nothing depends on it for safety."""
        if time.monotonic() - self._slot_at < 10 and self._slot_at:
            return
        answer = self._coordinator.take_slot(self._run)
        if answer.reason == "NO_VERIFICATION_SLOT":
            raise Stopped("slot_lost" if self._slot_at else "no_slot")
        needed(answer)
        self._slot_at = time.monotonic()

    def _ranges(self, table: ClaimedTable) -> Iterator[tuple[list[Row], list[Record]]]:
        """Rows and records of the same ranges of ids. The last range is open, for records after all rows."""
        after, where = "", sql.SQL("TRUE")
        while True:
            query = sql.SQL("SELECT * FROM {} WHERE {} ORDER BY {} LIMIT {}").format(
                sql.Identifier(table.name), where, table.order, self.PAGE
            )
            with closing(self._cell.connect()) as db:
                rows = db.execute(query).fetchall()
            ids = [str(row["id"]) for row in rows]
            in_order = ids if after == "" else [after, *ids]
            if any(source_order(a) >= source_order(b) for a, b in zip(in_order, in_order[1:])):
                raise ValueError(f"the ids of {table.name} do not come in the order of the coordinator")
            upto = ids[-1] if len(ids) == self.PAGE else None
            self._renew_slot()
            self._as_of, records = self._coordinator.records(table, after, upto)
            self._counts["rows"] += len(rows)
            yield rows, records
            if upto is None:
                return
            after, where = upto, sql.SQL("{} > {}").format(table.order, rows[-1]["id"])

    def _claim_pass(self, table: ClaimedTable) -> None:
        for rows, records in self._ranges(table):
            claimed = {claim_of(record) for record in records}
            missing = [claim for row in rows for claim in table.claims(row) if claim not in claimed]
            for at in range(0, len(missing), 500):
                self._claim(missing[at : at + 500])

    def _release_pass(self, table: ClaimedTable) -> None:
        for rows, records in self._ranges(table):
            self._counts["rows"] -= len(rows)  # counted by the first pass
            ids = {str(row["id"]) for row in rows}
            wanted = {claim for row in rows for claim in table.claims(row)}
            for record in records:
                if claim_of(record) not in wanted and record["uuid"] not in self._needed:
                    self._release(record, existed=record["source"]["id"] in ids)

    def _claim(self, claims: list[Claim]) -> None:
        """Takes names that rows lack, with one lease. If it is refused, the names are tried in halves."""
        if not claims:
            return
        if not self._apply:
            return self._preview(claims)
        self._may_change(len(claims))

        def work(db: psycopg.Connection) -> tuple[Any, Any]:
            now = self._lock(db, claims)
            still = [claim for claim in claims if claim in now[claim.source_id, claim.source_type]]
            return len(still), self._batch(still, creates=[claim.op() for claim in still])

        try:
            self._note("created", self._repair(work))
        except Refused as refused:
            self._counts["changes"] -= len(claims)
            answer = refused.answer
            is_about_names = answer.conflicts or is_bad_name(answer) or is_same_name_twice(answer)
            if not answer.nothing_done or not is_about_names:
                raise
            if len(claims) == 1:
                return self._refused(claims[0], refused.answer)
            middle = len(claims) // 2
            self._claim(claims[:middle])
            self._claim(claims[middle:])

    def _preview(self, claims: list[Claim]) -> None:
        for claim, record in zip(claims, self._lookup(claims)):
            if record is None:
                self._note("missing", 1)
            elif "source" not in record:
                self._skip("other_cell", claim)
            else:
                self._needed.add(record["uuid"])
                self._note("different", claim_of(record) != claim)

    def _refused(self, claim: Claim, answer: Answer) -> None:
        if is_bad_name(answer):
            return self._skip("unnameable", claim)
        if answer.conflicts[0]["kind"] == "leased":
            return self._skip("leased", claim, self._lookup([claim])[0])
        [record] = self._lookup([claim])
        if record is None:
            return self._skip("changed", claim)
        if "source" not in record:
            return self._skip("other_cell", claim)
        if claim_of(record) != claim:
            self._move(claim, record)

    def _move(self, claim: Claim, record: Record) -> None:
        """Gives this cell's own record another spelling, subject or row. The name is never free meanwhile."""
        if self._is_held_or_recent(record):
            return self._skip("recent", claim, record)
        if record["source"]["type"] not in self._by_source:
            return self._skip("not_verified", claim, record)
        self._may_change(1)

        def work(db: psycopg.Connection) -> tuple[Any, Any]:
            other = claim_of(record)
            now = self._lock(db, [claim, other])
            if claim not in now[claim.source_id, claim.source_type]:
                return "changed", None
            is_moved = (other.source_id, other.source_type) != (claim.source_id, claim.source_type)
            if is_moved and self._uses(now[other.source_id, other.source_type], record):
                return "duplicate", None
            return "replaced", self._batch([claim, other], replaces=[claim.op(epoch=record["epoch"])])

        self._repaired(work, claim, record)

    def _release(self, record: Record, existed: bool) -> None:
        """Gives up a claim that no row has, judged again while the row is locked [V2]."""
        claim = claim_of(record)
        if self._is_held_or_recent(record):
            return
        if not self._apply:
            return self._note("extra", 1)
        self._may_change(1)

        def work(db: psycopg.Connection) -> tuple[Any, Any]:
            now = self._lock(db, [claim])[claim.source_id, claim.source_type]
            # The row was there a moment ago. The next run decides, because it may be deleted just now.
            if (existed and not now.exists) or self._uses(now, record):
                return "changed", None
            op = {"bucket": claim.bucket, "source": claim.source, "epoch": record["epoch"]}
            return "destroyed", self._batch([claim], destroys=[op])

        self._repaired(work, claim, record)

    def _repaired(self, work: Work, claim: Claim, record: Record) -> None:
        try:
            outcome = self._repair(work)
        except Refused as refused:
            if not (refused.answer.nothing_done and refused.answer.conflicts):
                raise
            outcome = "changed"  # somebody else changed the claim: its epoch is another [B10]
        if outcome in ("replaced", "destroyed"):
            return self._note(outcome, 1)
        self._counts["changes"] -= 1
        self._skip(outcome, claim, record)

    def _repair_queue(self) -> None:
        """Rows that were saved without their lease come first, however recent they are [L6]."""
        with closing(self._cell.connect()) as db:
            queue = db.execute("SELECT * FROM leasehold_verification_queue").fetchall()
        for entry in queue:
            table = self._by_source.get(entry["source_type"])
            if table is None:
                continue
            with closing(self._cell.connect()) as db:
                claims = table.claims(self._row(db, table, entry["source_id"]))
            skipped = len(self._items)
            for claim in claims:
                self._claim([claim])
            if len(self._items) == skipped:
                with closing(self._cell.connect()) as db:
                    db.execute(
                        """DELETE FROM leasehold_verification_queue
                           WHERE source_type = %s AND source_id = %s AND lease_uuid = %s""",
                        (entry["source_type"], entry["source_id"], entry["lease_uuid"]),
                    )

    def _repair(self, work: Work) -> Any:
        """A shard that has lost claims lets only verification take names [H6], so the begin says so."""
        begin = lambda lease, batch: self._coordinator.begin(lease, {**batch, "verification": True}, 5.0)
        return self._cell._leased(work, begin)

    def _batch(self, claims: list[Claim], **ops: list[Op]) -> Any:
        batch = batch_of(**ops)
        return (batch, unique([claim.source for claim in claims])) if batch else None

    def _lock(self, db: psycopg.Connection, claims: list[Claim]) -> dict[tuple[str, str], LockedRow]:
        """Locks the rows of these claims, in one order for all runs, and reads what they claim now."""
        locked = {}
        for source_type, source_id in sorted({(claim.source_type, claim.source_id) for claim in claims}):
            table = self._by_source[source_type]
            row = self._row(db, table, source_id, " FOR UPDATE")
            locked[source_id, source_type] = LockedRow(table.claims(row), exists=row is not None)
        return locked

    def _row(self, db: psycopg.Connection, table: ClaimedTable, source_id: str, lock: str = "") -> Row | None:
        if not table.has_id(source_id):
            return None
        query = sql.SQL("SELECT * FROM {} WHERE id = %s" + lock).format(sql.Identifier(table.name))
        return db.execute(query, (int(source_id) if table.integer_ids else source_id,)).fetchone()

    def _uses(self, row: LockedRow, record: Record) -> bool:
        """Whether a row has the name of this record, in any spelling."""
        its = [claim for claim in row if claim.bucket_type == record["bucket"]["type"]]
        if any(claim.value == record["bucket"]["value"] for claim in its):
            return True
        return any(found and found.get("uuid") == record["uuid"] for found in self._lookup(its))

    def _lookup(self, claims: list[Claim]) -> list[Record | None]:
        return self._coordinator.lookup([claim.bucket for claim in claims])

    def _is_held_or_recent(self, record: Record) -> bool:
        """A lease may still change the claim, or the row that it is for may not be saved yet [V1]."""
        if record["status"] != "ACTIVE" or record["lease_uuid"] is not None:
            return True
        return (self._as_of - time_of(record["updated_at"])).total_seconds() < self._recent_s

    def _may_change(self, changes: int) -> None:
        """Counts changes before they are made, and stops before there are too many [V5]."""
        if self._counts["changes"] + changes > self._max_changes:
            raise Stopped("needs_approval")
        self._counts["changes"] += changes

    def _note(self, what: str, count: int) -> None:
        if count:
            self._counts[what] += count

    def _skip(self, why: str, claim: Claim, record: Record | None = None) -> None:
        """Reports a name that is left as it is. The record of a name that a row uses is not given up [V3]."""
        self._note(why, 1)
        if record is not None and "uuid" in record:
            self._needed.add(record["uuid"])
        self._items.append({"skipped": why, "bucket": claim.bucket, "source": claim.source})


class LockedRow(list):
    """The claims of a row, and whether the row exists."""

    def __init__(self, claims: list[Claim], exists: bool):
        super().__init__(claims)
        self.exists = exists


# ---------------------------------------------------------------- a small application

USERS = ClaimedTable(
    "users", source="RAILS_TABLE_USERS", subject="USER", columns={"username": "USERNAMES", "email": "EMAILS"}
)


def main() -> int:
    parser = argparse.ArgumentParser(description="A cell in Python. README.md says which variables it needs.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("install", help="create the tables")
    commands.add_parser("list", help="show the users of this cell")
    sign_up = commands.add_parser("sign-up", help="insert a user")
    sign_up.add_argument("username")
    sign_up.add_argument("--email")
    rename = commands.add_parser("rename", help="give a user another name")
    rename.add_argument("id", type=int)
    rename.add_argument("username")
    delete = commands.add_parser("delete", help="delete a user")
    delete.add_argument("id", type=int)
    reconcile = commands.add_parser("reconcile", help="finish interrupted leases, once a minute")
    reconcile.add_argument("--once", action="store_true", help="a single full run")
    verify = commands.add_parser("verify", help="compare all rows with all claims")
    verify.add_argument("--apply", action="store_true", help="repair what differs")
    verify.add_argument("--max-changes", type=int, default=100, help="stop before more changes (100)")
    given = parser.parse_args()

    names = ("LEASEHOLD_URL", "LEASEHOLD_KEY", "LEASEHOLD_CELL", "DATABASE_URL")
    missing = [name for name in names if not os.environ.get(name)]
    if missing:
        parser.error(f"set {', '.join(missing)}")
    url, key, its_id, database_url = (os.environ[name] for name in names)
    cell = Cell(Coordinator(url, key, its_id), database_url, [USERS])
    try:
        if given.command == "install":
            cell.install()
            with closing(cell.connect()) as db:
                db.execute(
                    "CREATE TABLE IF NOT EXISTS users (id bigserial PRIMARY KEY, "
                    "username text NOT NULL UNIQUE, email text UNIQUE)"
                )
        elif given.command == "list":
            with closing(cell.connect()) as db:
                for row in db.execute("SELECT * FROM users ORDER BY id"):
                    print(row["id"], row["username"], row["email"] or "")
        elif given.command == "sign-up":
            values = {"username": given.username, "email": given.email}
            print(cell.transaction(lambda tx: tx.insert("users", **values)))
        elif given.command == "rename":
            print(cell.transaction(lambda tx: tx.update("users", given.id, username=given.username)))
        elif given.command == "delete":
            print(cell.transaction(lambda tx: tx.delete("users", given.id)))
        elif given.command == "reconcile" and given.once:
            print(dict(cell.reconcile(full=True)))
        elif given.command == "reconcile":
            run_forever(cell)
        elif given.command == "verify":
            print(json.dumps(cell.verify(given.apply, given.max_changes), indent=2))
    except Refused as refused:
        print(explain(refused.answer), file=sys.stderr)
        return 1
    except psycopg.errors.UniqueViolation:
        # The cell's own database found it first. For the user it is the same.
        print("taken", file=sys.stderr)
        return 1
    return 0


def explain(answer: Answer) -> str:
    """What to tell a user."""
    names = ", ".join(conflict["bucket"]["value"] for conflict in answer.conflicts)
    if answer.code == "ALREADY_EXISTS":
        return f"taken: {names}"
    if is_bad_name(answer):
        return f"not a valid name: {answer.body.get('detail')}"
    if answer.code == "INVALID_ARGUMENT":
        return f"an operator must look at this: {answer}"
    return f"try again in a moment ({answer})"


def run_forever(cell: Cell) -> None:
    """A minute between two runs, varied by a tenth so that cells spread out. Every tenth run is full."""
    runs = 0
    while True:
        try:
            cell.reconcile(full=runs % 10 == 0)
            runs += 1
        except (Failed, psycopg.Error) as error:
            print(f"reconciliation failed, and is tried again: {error}", file=sys.stderr)
        time.sleep(60 * random.uniform(0.9, 1.1))


if __name__ == "__main__":
    sys.exit(main())
