import type * as z from "zod";
import { FORMAT, FORMATS } from "../../../kernel/formats.ts";
import type { Told } from "../../../kernel/messages.ts";
import type { PartStatus } from "../../loss/messages.ts";
import { ok, refused, type Result } from "../../../kernel/refusal.ts";
import { Database } from "../../../d1/database.ts";
import { missingMigrations } from "../../../d1/migrations.ts";
import {
  askParts,
  type AskedPart,
  DIRECTORY,
  reach,
  readTimeoutMs,
  withFailure,
} from "../../../isolate/reach.ts";
import { upgradeRoutes } from "./routes.ts";
import type { Deployment } from "../../../isolate/deployment.ts";
import type { Handlers } from "../../../api/handler.ts";
import { operatorOf, reasonFault } from "../../../api/operator.ts";
import { VERSION } from "../../../api/version.ts";

type Upgrade = z.input<(typeof upgradeRoutes)["getUpgrade"]["responses"][200]["schema"]>["upgrade"];
type Blocker = Upgrade["blockers"][number];

/** How long all parts have to answer: 1,257 at most, in turns and far away. Clients wait for it twice. */
const ALL_MS = 25_000;

const D1_MS = 2_000;

/** The blockers that the detail of a refusal names. */
const MAX_NAMED = 5;

const upgradeHandlers: Handlers<typeof upgradeRoutes> = {
  async getUpgrade({ deployment }) {
    const upgrade = await readUpgrade(deployment);
    return upgrade.ok ? ok({ status: 200, body: { upgrade: upgrade.value } }) : upgrade;
  },

  async finishUpgrade(call) {
    const { deployment, body } = call;
    const fault = reasonFault(body.reason, deployment.config.limits);
    if (fault !== undefined) return fault;
    if (body.format !== FORMAT)
      return refused(
        "FAILED_PRECONDITION",
        `the newest format that the Worker speaks is ${FORMAT}, not ${body.format}`,
        { reason: "UPGRADE_BLOCKED", field: "format" },
      );
    const before = await readUpgrade(deployment);
    if (!before.ok) return before;
    if (before.value.format < FORMAT && before.value.blockers.length > 0) return blocked(before.value);
    const message = { ...deployment.envelope, operator: operatorOf(call, body.reason), raiseTo: FORMAT };
    const raised = await reach(
      readTimeoutMs(deployment.config.limits),
      { name: DIRECTORY, advice: "it may have been done; look, or repeat the call" },
      () => deployment.objects.directory().raiseFormat(message),
    );
    if (!raised.ok) return raised;
    // The answer told this isolate the format, and these messages tell it to all other parts.
    const after = await readUpgrade(deployment);
    if (!after.ok) return withFailure(after, { detail: `${after.refusal.detail}; the format is in force` });
    return ok({ status: 200, body: { upgrade: after.value } });
  },
};

function blocked({ blockers }: Upgrade): Result<never> {
  const named = blockers.slice(0, MAX_NAMED).map(({ part, detail }) => `${part} (${detail})`);
  const more = blockers.length > MAX_NAMED ? `, and ${blockers.length - MAX_NAMED} more` : "";
  return refused("FAILED_PRECONDITION", `the upgrade waits for ${named.join(", ")}${more}`, {
    reason: "UPGRADE_BLOCKED",
  });
}

/**
 * Asks all parts that are in use, or will be when a growth is cut. Messages tell them the format in force. A
 * part that is not asked learns it from the next message that it gets.
 */
async function readUpgrade(deployment: Deployment): Promise<Result<Upgrade>> {
  const { objects, envelope, shards, config, env } = deployment;
  const view = await deployment.directory.read();
  if (!view.ok) return view;
  const { cells, isPlaced, growth } = view.value;
  const parts = [
    partOf("directory", () => objects.directory().part(envelope)),
    // Without a cell, there are no shards yet.
    ...Array.from({ length: isPlaced ? Math.max(shards, growth?.to ?? 0) : 0 }, (_, shard) =>
      partOf(`shard-${shard}`, () => objects.shard(shard).part(envelope)),
    ),
    ...[...cells.values()].map(({ cell, locationHint }) =>
      partOf(`ledger-${cell}`, () => objects.ledger(cell, locationHint).part(envelope)),
    ),
  ];
  const [answers, missing] = await Promise.all([
    askParts(parts, config.limits, ALL_MS),
    missingMigrations(new Database(env, { timeoutMs: D1_MS, attempts: 1 })),
  ]);
  const told = answers.map((answer, index) => ({ part: parts[index]?.name ?? "", answer }));
  const newest = Math.max(FORMAT, ...told.map(({ answer }) => (answer.ok ? (answer.value.speaks ?? 0) : 0)));
  const { format } = deployment.format;
  return ok({
    release: VERSION,
    format,
    newest_format: newest,
    is_finished: format === newest,
    waiting_features: FORMATS.slice(format).flatMap(({ features }) => features),
    blockers: [
      ...told.flatMap(({ part, answer }) => blockerOf(part, answer, newest) ?? []),
      ...(missing.ok
        ? missing.value.map((name) => d1Blocker("MISSING_MIGRATION", `it lacks the migration ${name}`))
        : [d1Blocker("UNREACHABLE", missing.refusal.detail)]),
    ],
  });
}

const partOf = (name: string, ask: () => Promise<Result<PartStatus> & Told>): AskedPart<Told> => ({
  name,
  ask: async () => {
    const answer = await ask();
    // A shard that is not in use yet refuses, and tells its format all the same.
    return answer.ok || answer.speaks !== undefined ? ok<Told>(answer) : answer;
  },
});

function blockerOf(part: string, answer: Result<Told>, newest: number): Blocker | undefined {
  if (!answer.ok) return { part, cause: "UNREACHABLE", detail: answer.refusal.detail };
  const { speaks = 0, hearsOlder } = answer.value;
  if (speaks < newest)
    return { part, cause: "OLDER_CODE", detail: `its version knows format ${speaks} at most` };
  if (hearsOlder !== true) return undefined;
  return { part, cause: "OLDER_CALLERS", detail: "an older version has called it within the last minute" };
}

const d1Blocker = (cause: Blocker["cause"], detail: string): Blocker => ({ part: "d1", cause, detail });

export { upgradeHandlers as handlers, upgradeRoutes as routes };
