import { writeFile } from "node:fs/promises";
import { keyFactsOf, readsEverything } from "../connection/key-facts.ts";
import { messageOf, usageError, exitCodes } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { VERSION } from "../framework/version.ts";
import { escapeControls } from "../../common/text/escape.ts";
import { table } from "../output/table.ts";
import type { Result } from "../output/result.ts";
import { checkCells } from "./check-cells.ts";
import { checkConnection } from "./check-connection.ts";
import { checkDeployment, checkShards } from "./check-deployment.ts";
import type { Check } from "./check.ts";

interface DoctorOptions {
  output?: string;
  probe: boolean;
}

/** Runs all checks. Those that need what an earlier one could not reach are left out. */
export async function doctor(context: Context, { output, probe }: DoctorOptions): Promise<Result> {
  const { url, key, origin } = await context.target();
  const connection = await checkConnection(context);
  const checks = [...connection.checks];
  const canList = connection.isAccepted && readsEverything(keyFactsOf(key));
  if (connection.isReachable) checks.push(...(await checkDeployment(context, connection.nowMs, canList)));
  if (canList) checks.push(await checkShards(context), ...(await checkCells(context, probe)));
  const failed = checks.filter(({ state }) => state === "fail").length;
  if (output !== undefined) await writeBundle(output, bundleOf(checks, connection.version));
  return {
    document: { url, key_from: origin, ok: failed === 0, checks },
    lines: checks,
    text: (style) =>
      table(
        checks,
        [
          { title: "", value: ({ state }) => (state === "fail" ? "FAIL" : state) },
          { title: "CHECK", value: ({ name }) => name },
          { title: "DETAIL", value: ({ detail }) => detail },
        ],
        { ...style, isTerminal: false },
      ),
    notes: [
      failed === 0 ? "No check failed." : `${failed} of ${checks.length} checks failed.`,
      ...(output === undefined
        ? []
        : [`Wrote ${escapeControls(output)}: it has no names, keys or addresses.`]),
    ],
    nextSteps: [...new Set(checks.flatMap(({ next }) => next ?? []))],
    exitCode: failed === 0 ? exitCodes.ok : exitCodes.failed,
  };
}

/** What may be passed on: states and numbers, but no text from the deployment other than its version. */
const bundleOf = (checks: readonly Check[], version: string | null): object => ({
  leasehold: VERSION,
  node: process.version,
  platform: process.platform,
  deployment_version: version,
  checks: checks.map(({ name, state, facts }) => ({ name, state, facts })),
});

async function writeBundle(file: string, bundle: object): Promise<void> {
  try {
    await writeFile(file, `${JSON.stringify(bundle, null, 2)}\n`, { mode: 0o600 });
  } catch (error) {
    throw usageError(`--output can't be written: ${messageOf(error)}`);
  }
}
