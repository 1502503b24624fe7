import { readFileSync } from "node:fs";

/** Room for some 2,000 connections: the runtime needs two descriptors for each, and some for its files. */
const ENOUGH = 4_096;

/**
 * Returns a warning if the system allows few open files. Connections, idle ones as well, can then use up all
 * of them, and the runtime ends and starts again.
 *
 * @param limits the limits of this process, as Linux shows them
 */
export function openFilesWarning(limits = limitsOfThisProcess()): string | undefined {
  const hard = maxOpenFiles(limits);
  if (hard >= ENOUGH) return undefined;
  return (
    `this process may have only ${hard} open files, and some ${Math.floor(hard / 2)} connections ` +
    `can use them up; raise the hard limit to ${ENOUGH} or more (\`ulimit -Hn\`)`
  );
}

/** Returns how many files this process may open. Node raises the soft limit to the hard one. */
export function maxOpenFiles(limits = limitsOfThisProcess()): number {
  const hard = /^Max open files\s+\S+\s+(\d+)/m.exec(limits)?.[1];
  return hard === undefined ? Infinity : Number(hard);
}

/** Empty where the system does not say it. Only Linux does. */
function limitsOfThisProcess(): string {
  try {
    return readFileSync("/proc/self/limits", "utf8");
  } catch {
    return "";
  }
}
