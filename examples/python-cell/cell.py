"""A cell in Python, without Leasehold's SDK.

docs/guides/any-language.md describes the protocol that this file follows, and explains each step. Rules in
brackets, such as [L5], are those of docs/reference/protocol.md. It needs Python 3.9 and psycopg 3.

    cell = Cell(Coordinator(url, key, "7"), database_url, [USERS])
    cell.install()
    user = cell.transaction(lambda tx: tx.insert("users", username="ada"))
    cell.reconcile(full=True)       # every minute; full once an hour
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
        results = []
        for at in range(0, len(buckets), 100):
            body = {"buckets": buckets[at : at + 100]}
            results += needed(self._call("POST", "/v1/records/lookup", body, 10.0))["results"]
        return [result.get("record") for result in results]

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
