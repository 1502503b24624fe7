/** The Worker of src/coordinator/index.ts with a clock that stands still. Only its shortest timers fire. */
import type { Env } from "../../../src/coordinator/env.ts";
import { deploy } from "../../../src/coordinator/isolate/deployment.ts";
import worker from "../../../src/coordinator/index.ts";
import { logEvent } from "../../../src/coordinator/log.ts";
import { wallClock } from "../../../src/coordinator/runtime.ts";

export * from "../../../src/coordinator/index.ts";

/** The longest pause in which the Worker only lets other requests run. */
const MAX_PAUSE_MS = 1;
const A_WEEK_MS = 604_800_000;

const deployed = new WeakSet<Env>();

function deployOnce(env: Env): void {
  if (deployed.has(env)) return;
  deployed.add(env);
  const nowMs = Date.now();
  const clock = {
    now: () => nowMs,
    after: (delayMs: number, then: () => void) =>
      wallClock.after(delayMs > MAX_PAUSE_MS ? A_WEEK_MS : delayMs, then),
  };
  deploy(env, { clock, log: logEvent });
}

export default {
  ...worker,
  fetch: (request, env, context) => {
    deployOnce(env);
    return worker.fetch(request, env, context);
  },
} satisfies ExportedHandler<Env>;
