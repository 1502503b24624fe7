import type * as z from "zod";
import { keyExpired } from "../../../auth/verifier.ts";
import type { HistoryPoint } from "../../../kernel/messages.ts";
import type { Change } from "../messages.ts";
import type { ChangesPage } from "../messages.ts";
import { ok, refused, type Result } from "../../../kernel/refusal.ts";
import { formatPositions, type Positions } from "../../../../users/router/positions.ts";
import { wallClock } from "../../../runtime.ts";
import { accessRefusal } from "../../../api/access-refusal.ts";
import { storedTypes } from "../../../api/answers.ts";
import { toApiChange } from "./answers.ts";
import { askParts } from "../../../isolate/reach.ts";
import { POLL_S, STREAM_S, type change } from "./routes.ts";
import type { Call, Handlers } from "../../../api/handler.ts";
import type { Lines, ServerSentEvent } from "../../../api/lines.ts";
import { unknownPositionIn } from "../../../isolate/known-shards.ts";
import type { OpenStream } from "./open-streams.ts";
import { readChanges, type ReadShards } from "./read-changes.ts";
import { changeRoutes } from "./routes.ts";
import { countedRead, READ_CALLS } from "../../../api/handlers/ledger-access.ts";
import { MAX_CALLS } from "../../records/edge/range-handler.ts";

/** A stream that has nothing to tell sends a comment this often, so that nobody closes the connection. */
const COMMENT_EVERY_MS = 15_000;

/** How long a client should wait before it connects again. */
const RECONNECT_MS = 1_000;

type ListChanges = Call<(typeof changeRoutes)["listChanges"]>;

/** Which changes a caller gets. */
interface Scope {
  cell: string | null;
  type: number | null;
  limit: number;
}

interface Page {
  changes: z.input<typeof change>[];
  checkpoint: string;
  positions: Positions;
  hasMore: boolean;
  /** What was read of each shard, from point to point. */
  ranges: { shard: number; after: HistoryPoint; through: HistoryPoint }[];
  /** The shards that could not be read. */
  unavailable: number[];
}

const changeHandlers: Handlers<typeof changeRoutes> = {
  async listChanges(call) {
    const { after } = call.query;
    const scope = await scopeOf(call);
    if (!scope.ok) return scope;
    if (call.wantsEvents === true) return openStream(call, scope.value);
    const page = await readPage(call, scope.value, after);
    if (!page.ok) return page;
    const { hasMore, positions: _, ...body } = page.value;
    return ok({ status: 200, body: { ...body, has_more: hasMore } });
  },
};

async function scopeOf({ deployment, waitUntil, principal, query }: ListChanges): Promise<Result<Scope>> {
  const { limits } = deployment.config;
  const { after, cell, bucket_type: name, page_size: size } = query;
  const unknown = await unknownPositionIn("after", deployment, waitUntil, after);
  if (unknown !== undefined) return unknown;
  if (principal.role === "cell" && (principal.cell === null || (cell ?? principal.cell) !== principal.cell))
    return refused(
      "PERMISSION_DENIED",
      `a key of cell ${principal.cell} gets only the changes of this cell`,
      {
        field: "cell",
      },
    );
  const limit = Math.min(size ?? limits.pageItems, limits.maxPageItems);
  const scope = { cell: principal.role === "cell" ? principal.cell : (cell ?? null), limit };
  if (name === undefined) return ok({ ...scope, type: null });
  const types = await deployment.types.forRead([{ kind: "bucket", name, field: "bucket_type" }]);
  if (!types.ok) return types;
  return ok({ ...scope, type: types.value.named("bucket", name)?.number ?? null });
}

/** Reads the next changes of every shard. A cell's own ledger counts its reads, and checks its key (A1). */
function readPage(call: ListChanges, scope: Scope, after: Positions | undefined): Promise<Result<Page>> {
  const { principal, deployment, waitUntil } = call;
  const read = (): Promise<Result<Page>> => readShards(call, scope, after);
  // A key of the role `cell` without a cell was refused before.
  if (principal.role !== "cell" || principal.cell === null) return read();
  return countedRead({ deployment, waitUntil, principal, params: { cell: principal.cell } }, read);
}

async function readShards(
  { deployment }: ListChanges,
  { cell, type, limit }: Scope,
  after: Positions | undefined,
): Promise<Result<Page>> {
  const { objects, envelope, config, shards } = deployment;
  const read: ReadShards = (asked) =>
    askParts(
      asked.map(({ shard, ...share }) => ({
        name: `shard ${shard}`,
        ask: () => objects.shard(shard).listChanges({ ...envelope, cell, type, ...share }),
      })),
      config.limits,
    );
  const { fanOut } = config.limits;
  const pages = await readChanges(read, { shards, limit, fanOut }, after);
  if (!pages.ok) return pages;
  const { positions, hasMore, unavailable } = pages.value;
  const changes = pages.value.pages.flatMap(({ shard, page }) =>
    page.changes.map((each): [number, Change] => [shard, each]),
  );
  const details = changes.flatMap(([, { claim }]) =>
    claim?.details ? [{ type: claim.type, ...claim.details }] : [],
  );
  const types = await deployment.types.forAnswer(storedTypes(details));
  if (!types.ok) return types;
  return ok({
    changes: changes.map(([shard, each]) => toApiChange(types.value, shard, each)),
    positions,
    checkpoint: formatPositions(positions),
    hasMore,
    ranges: pages.value.pages.map(({ shard, page }) => ({ shard, ...rangeOf(page) })),
    unavailable,
  });
}

const rangeOf = ({ after, through, incarnations: [first, last] }: ChangesPage) => ({
  after: { incarnation: first, position: after },
  through: { incarnation: last, position: through },
});

function openStream(
  call: ListChanges,
  scope: Scope,
): Result<{ status: 200; events: Lines<ServerSentEvent> }> {
  const stream = call.deployment.streams.enter(call.principal.keyId);
  if (stream === undefined)
    return refused("RESOURCE_EXHAUSTED", "too many streams of changes are open; try again later", {
      reason: "TOO_MANY_STREAMS",
      retryAfterMs: 10_000,
    });
  return ok({ status: 200, events: eventsOf(call, scope, stream) });
}

async function* eventsOf(call: ListChanges, scope: Scope, stream: OpenStream): Lines<ServerSentEvent> {
  try {
    yield* followedEvents(call, scope, stream);
  } finally {
    stream.leave();
  }
}

/**
 * Reads page by page, each when the client has taken the previous one. Before each page, the key is checked
 * again, so that a revoked or expired key gets no further changes.
 */
async function* followedEvents(call: ListChanges, scope: Scope, stream: OpenStream): Lines<ServerSentEvent> {
  const { deployment, principal, waitUntil, query } = call;
  const endsAtMs = deployment.clock.now() + STREAM_S * 1_000;
  let positions = query.after;
  let quietSinceMs = deployment.clock.now();
  const callsPerPage = (): number => deployment.placement.shards + READ_CALLS;
  for (let calls = 0; calls + callsPerPage() <= MAX_CALLS && deployment.clock.now() < endsAtMs;) {
    const isFirst = calls === 0;
    if (!isFirst) {
      if (principal.expiresAtMs <= deployment.clock.now()) return yield keyExpired;
      const cell = principal.cell ?? undefined;
      const refusal = await accessRefusal(deployment, principal, cell, false, waitUntil);
      if (refusal !== undefined) return yield { ok: false, refusal };
    }
    calls += callsPerPage();
    // A client that has not read for long connects again.
    if (!stream.touch()) return;
    const page = await deployment.placed((placed) =>
      readPage({ ...call, deployment: placed }, scope, positions),
    );
    const isOutage = !page.ok && !isFirst && OUTAGES.has(page.refusal.code);
    if (!page.ok && !isOutage) return yield page;
    const events: ServerSentEvent[] = isFirst ? [{ retryMs: RECONNECT_MS }] : [];
    if (page.ok) {
      const { changes, checkpoint, ranges, unavailable } = page.value;
      for (const each of changes) events.push({ event: each.event, data: each });
      const hasMoved = positions === undefined || checkpoint !== formatPositions(positions);
      if (isFirst || hasMoved)
        events.push({ event: "checkpoint", id: checkpoint, data: { checkpoint, ranges, unavailable } });
      ({ positions } = page.value);
    }
    const isDue = deployment.clock.now() - quietSinceMs >= COMMENT_EVERY_MS;
    if (events.length === 0 && isDue) events.push({});
    if (events.length > 0) quietSinceMs = deployment.clock.now();
    yield ok(events);
    if (!page.ok || !page.value.hasMore)
      await new Promise<void>((resume) => void wallClock.after(POLL_S * 1_000, resume));
  }
}

/** The stream goes on: the client would only ask again. */
const OUTAGES: ReadonlySet<string> = new Set(["UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"]);

export { changeHandlers as handlers, changeRoutes as routes };
