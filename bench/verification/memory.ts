import { readFileSync, writeFileSync } from "node:fs";
import { treeOf } from "../peers.ts";

/** Resident memory of the coordinator's runtime in MiB, now and at its peak since `forgetPeaks`. */
export interface RuntimeMemory {
  nowMib: number;
  peakMib: number;
}

const runtimesOf = (coordinator: number): number[] =>
  treeOf(coordinator).filter((pid) => readFileSync(`/proc/${pid}/comm`, "utf8").trim().startsWith("workerd"));

/** Resets the peaks, so that the peak of an earlier run is not reported for this one. */
export function forgetPeaks(coordinator: number): void {
  for (const pid of runtimesOf(coordinator)) writeFileSync(`/proc/${pid}/clear_refs`, "5");
}

export function runtimeMemory(coordinator: number): RuntimeMemory {
  const memory = { nowMib: 0, peakMib: 0 };
  for (const pid of runtimesOf(coordinator)) {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    memory.nowMib += kibOf(status, "VmRSS") / 1_024;
    memory.peakMib += kibOf(status, "VmHWM") / 1_024;
  }
  return memory;
}

/** The peak of this process. `getrusage` cannot be used: its maximum is inherited from the parent process. */
export const ownPeakMib = (): number => kibOf(readFileSync("/proc/self/status", "utf8"), "VmHWM") / 1_024;

const kibOf = (status: string, name: string): number =>
  Number(new RegExp(String.raw`^${name}:\s+(\d+) kB`, "m").exec(status)?.[1] ?? Number.NaN);
