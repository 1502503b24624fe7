/** The measured side as a process of its own: its memory is the verification's, and is bounded. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { VerificationReport } from "../../src/cell/verification/report.ts";

/**
 * Little, to show that it is enough: a million rows alone would be more. The young generation counts as well,
 * and is the larger part by default.
 */
const HEAP = ["--max-old-space-size=256", "--max-semi-space-size=16"];

export interface CellAccess {
  url: string;
  key: string;
  /** Of PostgreSQL's socket. */
  databaseFolder: string;
}

export interface VerifyTask extends CellAccess {
  digests: boolean;
  apply: boolean;
  /** Prints lines, as a backfill does. */
  printsProgress: boolean;
}

/** What both programs say of themselves. */
export interface ResourceUsage {
  seconds: number;
  /** The body of answers, before it was compressed. */
  bytes: number;
  /** Tries, by operation. */
  calls: Record<string, number>;
  /** That were no answer with what was asked for: conflicts too. */
  failed: number;
  /** In the middle of the work, after a tenth of it, and at its end. */
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

/** Runs `verify.ts` or `export.ts` to its end. */
export function runProgram(name: "verify", task: VerifyTask): Promise<VerifyResult>;
export function runProgram(name: "export", task: CellAccess): Promise<ExportResult>;
export async function runProgram(name: string, task: CellAccess): Promise<ResourceUsage> {
  const child = fork(join(import.meta.dirname, `${name}.ts`), { execArgv: HEAP, stdio: "inherit" });
  const ended = once(child, "exit");
  let used: ResourceUsage | undefined;
  child.on("message", (message) => (used = message as ResourceUsage));
  child.send(task);
  const [code] = (await ended) as [number | null];
  if (code !== 0 || used === undefined) throw new Error(`${name} ended with ${code}; its words are above`);
  return used;
}
