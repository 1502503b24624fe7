/**
 * `npm run reconcile -- <part>`: reconciles a part that has gone back in time, by calls to the deployment's
 * API. docs/operating/runbook.md says when and in which order.
 */
import { parseArgs } from "node:util";
import {
  createClient,
  LeaseholdError,
  type Client,
  type Part,
  type Reconciliation,
} from "../src/client/index.ts";

const HELP = `Usage: npm run reconcile -- <part> [options]

Reconciles a part that has gone back in time. <part> is shard-3, ledger-7 for cell 7, or directory.
Without an option other than --url, it shows what is known about the part. The operator key is read from the
environment variable LEASEHOLD_OPERATOR_KEY.

  --dry-run        show what would be done, and change nothing
  --apply          accept the loss; needs --reason
  --declare-lost   with --dry-run or --apply: you know that the storage of the part was set back, although
                   the part has not noticed it
  --finish         take a shard back into service once every cell has verified; needs --reason
  --reason <text>  why you do this; it is logged
  --url <url>      the deployment; LEASEHOLD_URL by default
  --help           show this text
`;

/** The deployment asks other parts meanwhile, and its own limit is two minutes. */
const DEADLINE_MS = 130_000;

const options = {
  "dry-run": { type: "boolean" },
  apply: { type: "boolean" },
  finish: { type: "boolean" },
  "declare-lost": { type: "boolean" },
  reason: { type: "string" },
  url: { type: "string" },
  help: { type: "boolean" },
} as const;

type Step = "show" | "dry-run" | "apply" | "finish";

interface Command {
  part: string;
  step: Step;
  isDeclared: boolean;
  reason: string;
  client: Client;
}

/** Undefined: the help was asked for. */
function commandOf(args: string[]): Command | undefined {
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
  if (values.help === true) return undefined;
  const [part, ...more] = positionals;
  if (part === undefined || more.length > 0)
    throw new Error("give one part, such as shard-3, ledger-7 or directory");
  const steps = (["dry-run", "apply", "finish"] as const).filter((step) => values[step] === true);
  if (steps.length > 1) throw new Error("give only one of --dry-run, --apply and --finish");
  const step: Step = steps[0] ?? "show";
  const { reason, "declare-lost": isDeclared = false } = values;
  if (isDeclared && step !== "dry-run" && step !== "apply")
    throw new Error("--declare-lost needs --dry-run or --apply");
  if (reason === undefined && (step === "apply" || step === "finish"))
    throw new Error(`--${step} needs --reason, a text that is logged`);
  return {
    part,
    step,
    isDeclared,
    reason: reason ?? "dry run",
    client: createClient({
      url: required(values.url ?? process.env["LEASEHOLD_URL"], "--url or LEASEHOLD_URL"),
      // No option: other users of the machine can read the arguments of a process.
      key: required(process.env["LEASEHOLD_OPERATOR_KEY"], "LEASEHOLD_OPERATOR_KEY"),
      attemptMs: DEADLINE_MS,
      deadlineMs: DEADLINE_MS,
    }),
  };
}

function required(value: string | undefined, name: string): string {
  if (value === undefined || value === "") throw new Error(`${name} is required`);
  return value;
}

async function textOf({ part, step, isDeclared, reason, client }: Command): Promise<string> {
  switch (step) {
    case "show":
      return describePart(await client.parts.get(part));
    case "finish":
      return describePart(await client.parts.finish(part, { reason }));
    default: {
      const declared = isDeclared ? { declare_lost: true } : {};
      return describe(
        await client.parts.reconcile(part, { dry_run: step === "dry-run", ...declared, reason }),
      );
    }
  }
}

const pointOf = (point: Part["point"]): string =>
  point === null ? "none" : `position ${point.position} of incarnation ${point.incarnation}`;

function describePart({ id, state, point, loss }: Part): string {
  const lines = [`${id} is ${state}. Its newest point: ${pointOf(point)}.`];
  if (loss !== null) {
    const noticed =
      loss.seen === null
        ? `${loss.noticed_by} declared a loss`
        : `${loss.noticed_by} had seen ${pointOf(loss.seen)}`;
    lines.push(`${loss.noticed_at}: ${noticed}.`, `What was left then: ${pointOf(loss.point)}.`);
  }
  return lines.join("\n");
}

function describe({ part, dry_run: isDryRun, ...done }: Reconciliation): string {
  const lines = [describePart(part)];
  for (const { cell_id: cell, outstanding, decided, leases } of done.lost_leases) {
    const ids = leases.length > 0 ? `, among them ${leases.join(", ")}` : "";
    lines.push(`Cell ${cell}: ${decided} decided leases and ${outstanding} open ones are lost${ids}.`);
  }
  const verb = isDryRun ? "would be" : "were";
  for (const { shard, holds, leases } of done.rebuilt_leases)
    lines.push(`shard-${shard}: ${leases} leases ${verb} granted again, from ${holds} holds.`);
  if (done.cell_state !== undefined)
    lines.push(`The cell is ${done.cell_state}. Freeze it again if that is out of date.`);
  if (done.restored !== undefined) {
    const { cells, keys, revocations, types } = done.restored;
    const ids = cells.length > 0 ? ` (${cells.join(", ")})` : "";
    lines.push(
      `From the copies in D1, ${cells.length} cells${ids}, ${keys} keys, ${revocations} revocations and ` +
        `${types.length} types${types.length > 0 ? ` (${types.join(", ")})` : ""} ${verb} restored.`,
      "Changes of the last minutes before the loss may be missing in D1. Repeat those that you know of.",
    );
  }
  if (done.unreachable.length > 0) lines.push(`Could not be asked: ${done.unreachable.join(", ")}.`);
  if (isDryRun) lines.push("Nothing was changed.");
  if (part.state === "reconciling")
    lines.push("Let every cell verify twice without changes, then use --finish.");
  return lines.join("\n");
}

async function main(): Promise<void> {
  const command = commandOf(process.argv.slice(2));
  process.stdout.write(command === undefined ? HELP : `${await textOf(command)}\n`);
}

main().catch((error: unknown) => {
  const detail = error instanceof Error ? error.message : String(error);
  const hint = error instanceof LeaseholdError ? "" : " (--help shows the usage)";
  process.stderr.write(`reconcile: ${detail}${hint}\n`);
  process.exitCode = 1;
});
