import type * as z from "zod";
import type { Growth } from "../messages.ts";
import type { OperatorCall } from "../../../kernel/messages.ts";
import { ok, refused, type Result } from "../../../kernel/refusal.ts";
import { Database } from "../../../d1/database.ts";
import { readSeen } from "../../../d1/directory-copies.ts";
import type { GrowthDriver } from "./growth-driver.ts";
import { mirrorGrowth } from "../../projection/edge/mirror.ts";
import {
  checkSources,
  completeCut,
  dropAborted,
  dropCopies,
  isReadyToCut,
  prepareCut,
  readGrowth,
  readProgress,
  stepGrowth,
  type GrowthState,
} from "./cron.ts";
import { timeOf } from "../../../api/answers.ts";
import { growthRoutes } from "./routes.ts";
import type { Deployment } from "../../../isolate/deployment.ts";
import type { Call, Handlers } from "../../../api/handler.ts";
import { operatorOf, reasonFault } from "../../../api/operator.ts";
import { DIRECTORY, reach, readTimeoutMs } from "../../../isolate/reach.ts";

type Body = z.input<(typeof growthRoutes)["getGrowth"]["responses"][200]["schema"]>;
type Answered = Result<{ status: 200; body: Body }>;

/** How long one call makes steps. A client waits for it. */
const STEPS_MS = 3_000;

const UNSURE = "it may have been done; read the growth, or repeat the call";

const growthHandlers: Handlers<typeof growthRoutes> = {
  getGrowth: ({ deployment }) => shown(deployment),

  async startGrowth(call) {
    const { deployment, body } = call;
    const fault = reasonFault(body.reason, deployment.config.limits);
    if (fault !== undefined) return fault;
    const { shards: to } = body;
    const dropped = await dropAborted(driverOf(deployment));
    if (!dropped.ok) return dropped;
    const checked = await checkSources(driverOf(deployment));
    if (!checked.ok) return checked;
    return change(call, (message, { objects }) => objects.directory().startGrowth({ ...message, to }));
  },

  async stepGrowth({ deployment }) {
    const driver = driverOf(deployment);
    const growth = await readGrowth(driver);
    if (!growth.ok) return growth;
    if (growth.value === null) return answer(deployment, null);
    const stepped = await stepGrowth(driver, growth.value, deployment.clock.now() + STEPS_MS);
    return stepped.ok ? answer(deployment, stepped.value) : stepped;
  },

  async cutGrowth(call) {
    const { deployment, body } = call;
    const fault = reasonFault(body.reason, deployment.config.limits);
    if (fault !== undefined) return fault;
    const driver = driverOf(deployment);
    const growth = await readGrowth(driver);
    if (!growth.ok) return growth;
    if (growth.value === null) return noGrowth;
    const { id, phase } = growth.value;
    const sources = phase === "copying" ? await prepareCut(driver, growth.value) : [];
    if (sources === null) return notCopied;
    return change(call, async (message, { objects }) => {
      const ordered = await objects.directory().cutGrowth({ ...message, id, sources });
      return ordered.ok ? completeCut(driver, ordered.value) : ordered;
    });
  },

  async abortGrowth(call) {
    const fault = reasonFault(call.body.reason, call.deployment.config.limits);
    if (fault !== undefined) return fault;
    const growth = await readGrowth(driverOf(call.deployment));
    if (!growth.ok) return growth;
    if (growth.value === null) return noGrowth;
    const running = growth.value;
    const driver = driverOf(call.deployment);
    const aborted = await change(call, async (message, { objects }) => {
      // If a shard can't be reached afterwards, the cron finds there what was aborted.
      const copied = await mirrorGrowth(driver.database, running);
      return copied.ok ? objects.directory().abortGrowth({ ...message, id: running.id }) : copied;
    });
    if (aborted.ok) call.waitUntil(dropCopies(driver, running));
    return aborted;
  },
};

const noGrowth = refused("FAILED_PRECONDITION", "no growth runs", { reason: "GROWTH_UNKNOWN" });

const notCopied = refused(
  "FAILED_PRECONDITION",
  "a shard has not copied all of its names, is reconciling, or does not answer; make steps until " +
    "`can_be_cut` is true",
  { reason: "GROWTH_NOT_COPIED" },
);

/** A request that works as the cron does. Its messages always have the newest placement that it knows. */
const driverOf = (deployment: Deployment): GrowthDriver => ({
  get envelope() {
    return { ...deployment.envelope, placement: deployment.placement.current };
  },
  objects: deployment.objects,
  database: new Database(deployment.env),
  limits: deployment.config.limits,
  clock: deployment.clock,
});

type Changed = Call<(typeof growthRoutes)["startGrowth" | "cutGrowth" | "abortGrowth"]>;
type Change = (
  message: OperatorCall & { growthCopiedAt: number },
  deployment: Deployment,
) => Promise<Result<Growth | null>>;

/** Changes the growth, and answers the state after that. */
async function change(call: Changed, work: Change): Promise<Answered> {
  const { deployment, body } = call;
  const seen = await readSeen(new Database(deployment.env));
  // A directory that went back would not notice it, and could abort a growth that was cut (G2).
  if (!seen.ok) return seen;
  const { growthPosition: growthCopiedAt } = seen.value;
  const message = { ...deployment.envelope, operator: operatorOf(call, body.reason), growthCopiedAt };
  const done = await reach(readTimeoutMs(deployment.config.limits), { name: DIRECTORY, advice: UNSURE }, () =>
    work(message, deployment),
  );
  deployment.directory.expire();
  return done.ok ? shown(deployment) : done;
}

async function shown(deployment: Deployment): Promise<Answered> {
  const driver = driverOf(deployment);
  const growth = await readGrowth(driver);
  if (!growth.ok) return growth;
  return answer(deployment, growth.value && (await readProgress(driver, growth.value)));
}

/** The directory has accepted the placement that the isolate knows, so its number of shards is in use. */
const answer = ({ placement }: Deployment, state: GrowthState | null): Answered =>
  ok({ status: 200, body: { shards: placement.shards, growth: state && toApiGrowth(state) } });

function toApiGrowth(state: GrowthState): NonNullable<Body["growth"]> {
  const { from, to, phase, startedAtMs, cutAtMs } = state.growth;
  return {
    from,
    to,
    phase,
    started_at: timeOf(startedAtMs),
    cut_at: cutAtMs === null ? null : timeOf(cutAtMs),
    can_be_cut: isReadyToCut(state),
    sources: state.shards.map(({ shard, progress }) => ({
      shard,
      state: progress?.state ?? null,
      copied: progress?.copied ?? 0,
      waiting: progress?.waiting ?? 0,
      cleaned: progress?.cleaned ?? 0,
      waits_for: progress?.waitsFor ?? null,
    })),
  };
}

export { growthHandlers as handlers, growthRoutes as routes };
