/** The API over real Durable Objects and D1. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { runCron } from "../../../src/coordinator/cron/cron.ts";
import type { Started, StartOptions } from "../../suites/conformance/coordinator.ts";
import { conformanceSuite } from "../../suites/conformance/suite.ts";
import { Api, env, keyOf, startDeployment } from "../../support/workerd/api.ts";
import { counting } from "../../support/workerd/counting.ts";
import { stubsOf } from "../../support/workerd/stubs.ts";

async function start({ cells = ["1", "2"], variables = {} }: StartOptions): Promise<Started> {
  await startDeployment(...cells);
  const watched = counting({ ...env, LEASEHOLD_REQUEST_LOG: "errors", ...variables });
  const isolate = new Api({ ...watched.env });
  const byCell = new Map(
    await Promise.all(cells.map(async (cell) => [cell, await keyOf(`cell ${cell}`)] as const)),
  );
  const [operator, router] = await Promise.all([keyOf("operator"), keyOf("router")]);
  return {
    url: isolate.url,
    fetch: isolate.fetch,
    keys: { operator, router, cell: (id) => byCell.get(id) ?? "" },
    cron: async () => void (await runCron(env, Date.now())),
    ringAlarms: async () => {
      for (const cell of cells) await runDurableObjectAlarm(stubsOf(env).ledger(cell));
    },
    asked: () => watched.calls,
    close: async () => {},
  };
}

conformanceSuite("the Worker in workerd", start);
