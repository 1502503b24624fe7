/** Runs the measured cell in a process of its own, so that its memory can be measured and limited. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { VerificationReport } from "../../src/users/cell/verification/report.ts";

/**
 * A small heap shows that verification needs little memory: a million rows alone would not fit. The young
 * generation is limited as well, because by default it is the larger part.
 */
const HEAP = ["--max-old-space-size=256", "--max-semi-space-size=16"];

export interface CellAccess {
  url: string;
  key: string;
  /** The folder of PostgreSQL's socket. */
  databaseFolder: string;
}

export interface VerifyTask extends CellAccess {
  digests: boolean;
  apply: boolean;
  /** Whether to print progress, as for a backfill. */
  printsProgress: boolean;
}

/** What both programs report about themselves. */
export interface ResourceUsage {
  seconds: number;
  /** The size of all response bodies, uncompressed. */
  bytes: number;
  /** The number of HTTP requests by operation, retries included. */
  calls: Record<string, number>;
  /** The number of requests that did not succeed. Conflicts count too. */
  failed: number;
  /** Resident MiB after a tenth of the work and at its end. */
  earlyMib: number;
  endMib: number;
  peakMib: number;
  cpuSeconds: number;
}

export interface VerifyResult extends ResourceUsage {
  report: VerificationReport;
}

export interface ExportResult extends ResourceUsage {
  records: number;
}

/** Runs `verify.ts` or `export.ts` in a child process until it exits. */
export function runProgram(name: "verify", task: VerifyTask): Promise<VerifyResult>;
export function runProgram(name: "export", task: CellAccess): Promise<ExportResult>;
export async function runProgram(name: string, task: CellAccess): Promise<ResourceUsage> {
  const child = fork(join(import.meta.dirname, `${name}.ts`), { execArgv: HEAP, stdio: "inherit" });
  const ended = once(child, "exit");
  let used: ResourceUsage | undefined;
  child.on("message", (message) => (used = message as ResourceUsage));
  child.send(task);
  const [code] = (await ended) as [number | null];
  if (code !== 0 || used === undefined) throw new Error(`${name} exited with ${code}; see its output above`);
  return used;
}
