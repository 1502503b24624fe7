import { sql } from "drizzle-orm";
import { ok, type Result } from "../../../kernel/refusal.ts";
import type { CronRun } from "../../../cron/cron-run.ts";
import { runBatch, inStatements, jsonArray } from "../../../d1/database.ts";
import { webhookAlerts, type webhooks } from "../../../d1/schema.ts";
import { thresholdOf, webhookEvents, type WebhookEvent } from "./events.ts";
import { bodyOf } from "./message.ts";
import type { Finding, Findings, RunFacts } from "./rules/rule.ts";
import { rules } from "./rules/rules.ts";

type Endpoint = typeof webhooks.$inferSelect;
type Alert = typeof webhookAlerts.$inferSelect;

type Observed = { holds: true; finding: Finding } | { holds: false } | undefined;

/**
 * What a run changes about one alert. Each step is guarded by what the run has read, because runs
 * overlap.
 */
interface Step extends Pick<Alert, "event" | "subject" | "episode" | "clearedSinceMs"> {
  to:
    | "pending"
    | "firing"
    | "resolved"
    | "dropped"
    | "removed"
    | "clearing"
    | "holding"
    | "seen"
    | "restarted";
  webhookId: string;
  body: string | null;
}

/** The steps of one endpoint in one run. The next run continues. */
const MAX_STEPS = 500;
/** Nobody knows what was in a longer time without a run that saw the condition, so its time begins anew. */
const MAX_GAP_MS = 180_000;

/**
 * Evaluates the rules for each endpoint, and puts messages into its queue. An alert fires after its condition
 * held for `for_s`, and is resolved after it did not for `resolve_s`. Both need two runs that have seen it.
 * Gaps of more than `MAX_GAP_MS`, in which no run looked or could find out, don't count.
 *
 * A step and its message are one transaction, and the id of the message follows from the alert, so runs that
 * overlap or are repeated make the same message. If the queue of an endpoint is full, its alerts stay as they
 * are until there is room.
 */
export async function evaluate(
  run: CronRun,
  endpoints: readonly Endpoint[],
  facts: RunFacts,
): Promise<Result<null>> {
  const { database, runtime } = run;
  const enabled = endpoints.filter(({ isEnabled }) => isEnabled);
  if (enabled.length === 0) return ok(null);
  const kept = await database.run("read alerts", (orm) => orm.select().from(webhookAlerts));
  if (!kept.ok) return kept;
  const alertByKey = new Map(kept.value.map((alert) => [keyOf(alert), alert]));
  const stepsById = new Map([...endpoints, ...kept.value].map(({ webhookId }) => [webhookId, [] as Step[]]));
  for (const event of webhookEvents) {
    const listeners = enabled.filter(({ events }) => events.includes(event));
    if (listeners.length === 0) continue;
    const thresholds = listeners.map((endpoint) => thresholdOf(event, endpoint.thresholds));
    const findings = await rules[event].read(run, facts, thresholds);
    if (!findings.ok) {
      runtime.log("webhook_rule_failed", { event });
      continue;
    }
    for (const endpoint of listeners) {
      const alerts = kept.value.filter(
        (alert) => alert.webhookId === endpoint.webhookId && alert.event === event,
      );
      stepsById
        .get(endpoint.webhookId)
        ?.push(...stepsOf(endpoint, event, findings.value, alerts, alertByKey, facts.nowMs, runtime.uuid));
    }
  }
  for (const step of removed(endpoints, kept.value)) stepsById.get(step.webhookId)?.push(step);
  const seen = await saveSightings(run, [...stepsById.values()].flat().filter(isSighting), facts.nowMs);
  if (!seen.ok) return seen;
  return saveSteps(run, inTurns([...stepsById.values()].map(mostUrgent)), facts.nowMs);
}

/** These only record what was seen. A run takes all of them, because those left out would become gaps. */
const isSighting = ({ to }: Step): boolean => to === "seen" || to === "restarted";

/**
 * Changes without a message come first. Alerts that wait for room in the queue, and new alerts, take turns,
 * so that neither keeps the other from its progress.
 */
function mostUrgent(all: readonly Step[]): Step[] {
  const steps = all.filter((step) => !isSighting(step));
  const begun = steps.filter(({ to }) => to === "pending");
  const told = steps.filter(({ body }) => body !== null);
  const others = steps.filter(({ to, body }) => to !== "pending" && body === null);
  return [...others, ...inTurns([told, begun])].slice(0, MAX_STEPS);
}

/** One step of each list after another, so that a run without time for all of them serves each. */
function inTurns(lists: readonly (readonly Step[])[]): Step[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  return [...Array(longest).keys()].flatMap((index) =>
    lists.flatMap((steps) => steps.slice(index, index + 1)),
  );
}

const keyOf = ({ webhookId, event, subject }: Pick<Alert, "webhookId" | "event" | "subject">): string =>
  `${webhookId} ${event} ${subject}`;

function stepsOf(
  endpoint: Endpoint,
  event: WebhookEvent,
  { found, isFine }: Findings,
  alerts: readonly Alert[],
  alertByKey: ReadonlyMap<string, Alert>,
  nowMs: number,
  newId: () => string,
): Step[] {
  const { webhookId } = endpoint;
  const rule = rules[event];
  const threshold = thresholdOf(event, endpoint.thresholds);
  const findingOf = new Map(found.map((finding) => [finding.subject, finding]));
  const observed = (subject: string): Observed => {
    const finding = findingOf.get(subject);
    if (finding === undefined) return isFine(subject) ? { holds: false } : undefined;
    return rule.holds(finding, threshold) ? { holds: true, finding } : { holds: false };
  };
  const begun = found
    .filter(
      (finding) =>
        rule.holds(finding, threshold) &&
        !alertByKey.has(keyOf({ webhookId, event, subject: finding.subject })),
    )
    .map(({ subject }): Step => ({
      to: "pending",
      webhookId,
      event,
      subject,
      episode: newId(),
      clearedSinceMs: null,
      body: null,
    }));
  const changed = alerts.flatMap((alert): Step[] => {
    const forS = rule.isMomentary === true ? 0 : endpoint.forS;
    const to = nextOf(alert, observed(alert.subject), { ...endpoint, forS }, nowMs);
    if (to === undefined) return [];
    const { subject, episode, clearedSinceMs } = alert;
    const step = { to, webhookId, event, subject, episode, clearedSinceMs };
    const seen = observed(subject);
    if (to === "firing" && seen?.holds === true)
      return [{ ...step, body: bodyOf({ ...seen.finding, event, status: "firing", atMs: nowMs }) }];
    if (to !== "resolved") return [{ ...step, body: null }];
    const cell = findingOf.get(subject)?.cell ?? null;
    const text = rule.resolved(subject);
    return [{ ...step, body: bodyOf({ event, status: "resolved", subject, cell, text, atMs: nowMs }) }];
  });
  return [...begun, ...changed];
}

/** What becomes of an alert. Undefined: it stays as it is, also if nothing is known about its subject. */
function nextOf(
  { state, heldSinceMs, clearedSinceMs, seenAtMs }: Alert,
  observed: Observed,
  { forS, resolveS }: Endpoint,
  nowMs: number,
): Step["to"] | undefined {
  if (observed === undefined) return undefined;
  const isGap = nowMs - seenAtMs > MAX_GAP_MS;
  if (state === "pending") {
    if (!observed.holds) return "dropped";
    if (isGap) return "restarted";
    return nowMs - heldSinceMs >= forS * 1_000 ? "firing" : "seen";
  }
  if (observed.holds) return clearedSinceMs === null ? undefined : "holding";
  if (clearedSinceMs === null) return "clearing";
  if (isGap) return "restarted";
  return nowMs - clearedSinceMs >= resolveS * 1_000 ? "resolved" : "seen";
}

/** Alerts of events that an operator has taken from an endpoint end without a message. */
const removed = (endpoints: readonly Endpoint[], alerts: readonly Alert[]): Step[] => {
  const eventsOf = new Map(endpoints.map(({ webhookId, events }) => [webhookId, events]));
  return alerts
    .filter(({ webhookId, event }) => !(eventsOf.get(webhookId) ?? []).includes(event))
    .map((alert) => ({ ...alert, to: "removed", body: null }));
};

async function saveSightings(
  { database }: CronRun,
  sightings: readonly Step[],
  nowMs: number,
): Promise<Result<null>> {
  const rows = sightings.map(({ to, webhookId, event, subject, episode, clearedSinceMs }) => ({
    json: JSON.stringify({ to, webhookId, event, subject, episode, clearedSinceMs }),
  }));
  for (const group of inStatements(rows)) {
    const saved = await database.run("save sightings", (orm) =>
      runBatch(orm, [see(jsonArray(group), nowMs)]),
    );
    if (!saved.ok) return saved;
  }
  return ok(null);
}

async function saveSteps(
  { database, limits }: CronRun,
  steps: readonly Step[],
  nowMs: number,
): Promise<Result<null>> {
  const rows = steps.map(({ to, webhookId, event, subject, episode, clearedSinceMs, body }) => ({
    json: JSON.stringify({
      to,
      webhookId,
      event,
      subject,
      episode,
      clearedSinceMs,
      body,
      id: messageIdOf(to, episode),
    }),
  }));
  for (const group of inStatements(rows)) {
    const json = jsonArray(group);
    const saved = await database.run(
      "save alerts",
      (orm) =>
        runBatch(orm, [
          insertMessages(json, nowMs, limits.webhookQueue),
          fire(json),
          end(json),
          mark(json, nowMs),
          begin(json, nowMs),
        ]),
      5,
    );
    if (!saved.ok) return saved;
  }
  return ok(null);
}

/** Standard Webhooks allow no full stop in an id. */
const messageIdOf = (to: Step["to"], episode: string): string => `msg_${episode}_${to}`;

/** The steps for the alerts that are still as this run has read them. */
const current = (json: string) => sql`
  FROM json_each(${json}) AS step JOIN webhook_alerts AS alert
    ON alert.webhook_id = step.value ->> 'webhookId' AND alert.event = step.value ->> 'event'
   AND alert.subject = step.value ->> 'subject' AND alert.episode = step.value ->> 'episode'
   AND alert.cleared_since_ms IS step.value ->> 'clearedSinceMs'`;

const insertMessages = (json: string, nowMs: number, most: number) => sql`
  INSERT INTO webhook_deliveries (message_id, webhook_id, event, status, subject, body, state, created_at_ms,
                                  due_at_ms)
  SELECT id, webhook_id, event, status, subject, body, 'pending', ${nowMs}, ${nowMs}
  FROM (
    SELECT step.value ->> 'id' AS id, alert.webhook_id, alert.event, step.value ->> 'to' AS status,
           alert.subject, step.value ->> 'body' AS body,
           row_number() OVER (PARTITION BY alert.webhook_id ORDER BY step.key) AS place
    ${current(json)}
    WHERE (step.value ->> 'to' = 'firing' AND alert.state = 'pending')
       OR (step.value ->> 'to' = 'resolved' AND alert.cleared_since_ms IS NOT NULL)
  ) AS message LEFT JOIN (
    SELECT webhook_id AS queue, count(*) AS waiting FROM webhook_deliveries
    WHERE state = 'pending' GROUP BY webhook_id
  ) ON queue = webhook_id
  WHERE place + coalesce(waiting, 0) <= ${most}
  ON CONFLICT DO NOTHING`;

const isQueued = sql`EXISTS (SELECT 1 FROM webhook_deliveries WHERE message_id = step.value ->> 'id')`;

const fire = (json: string) => sql`
  UPDATE webhook_alerts SET state = 'firing', cleared_since_ms = NULL
  WHERE (webhook_id, event, subject) IN (
    SELECT alert.webhook_id, alert.event, alert.subject ${current(json)}
    WHERE step.value ->> 'to' = 'firing' AND alert.state = 'pending' AND ${isQueued}
  )`;

const end = (json: string) => sql`
  DELETE FROM webhook_alerts WHERE (webhook_id, event, subject) IN (
    SELECT alert.webhook_id, alert.event, alert.subject ${current(json)}
    WHERE (step.value ->> 'to' = 'resolved' AND alert.cleared_since_ms IS NOT NULL AND ${isQueued})
       OR (step.value ->> 'to' = 'dropped' AND alert.state = 'pending')
       OR step.value ->> 'to' = 'removed'
  )`;

/** Records what was seen again. After a gap, the time begins anew. */
const see = (json: string, nowMs: number) => sql`
  UPDATE webhook_alerts SET
    held_since_ms = iif(state = 'pending' AND step ->> 'to' = 'restarted', ${nowMs}, held_since_ms),
    cleared_since_ms = iif(state = 'firing' AND step ->> 'to' = 'restarted', ${nowMs}, cleared_since_ms),
    seen_at_ms = max(seen_at_ms, ${nowMs})
  FROM (
    SELECT step.value AS step, alert.webhook_id AS id, alert.event AS its_event, alert.subject AS its_subject
    ${current(json)}
  )
  WHERE webhook_id = id AND event = its_event AND subject = its_subject`;

/** Notes that a firing alert no longer holds, or that it holds again. */
const mark = (json: string, nowMs: number) => sql`
  UPDATE webhook_alerts SET cleared_since_ms = iif(cleared_since_ms IS NULL, ${nowMs}, NULL),
    seen_at_ms = ${nowMs}
  WHERE (webhook_id, event, subject) IN (
    SELECT alert.webhook_id, alert.event, alert.subject ${current(json)}
    WHERE alert.state = 'firing'
      AND step.value ->> 'to' = iif(alert.cleared_since_ms IS NULL, 'clearing', 'holding')
  )`;

const begin = (json: string, nowMs: number) => sql`
  INSERT INTO webhook_alerts (webhook_id, event, subject, episode, state, held_since_ms, seen_at_ms)
  SELECT value ->> 'webhookId', value ->> 'event', value ->> 'subject', value ->> 'episode',
         'pending', ${nowMs}, ${nowMs}
  FROM json_each(${json})
  WHERE value ->> 'to' = 'pending'
    AND EXISTS (SELECT 1 FROM webhooks WHERE webhook_id = value ->> 'webhookId')
  ON CONFLICT DO NOTHING`;
