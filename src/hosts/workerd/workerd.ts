/** Runs workerd under Miniflare, so that it ends with this process and not before. */
import { createRequire } from "node:module";
import { join } from "node:path";

/**
 * Miniflare's signal handlers end the process before it can shut down in order. This removes them, so that
 * only the handlers of the caller remain.
 */
export function withoutSignalHandlers<T>(make: () => T): T {
  const signals = ["SIGINT", "SIGTERM"] as const;
  const before = new Map(signals.map((signal) => [signal, process.listeners(signal)]));
  const made = make();
  for (const signal of signals) {
    for (const listener of process.listeners(signal))
      if (!before.get(signal)?.includes(listener)) process.removeListener(signal, listener);
  }
  return made;
}

/**
 * Returns a program that runs workerd and ends it together with this process, even if this process is killed.
 * Windows has no shell for it, so there it returns workerd itself.
 */
export function workerdWrapper(): string {
  const require = createRequire(import.meta.url);
  const { default: binary } = require("workerd") as { default: string };
  if (process.platform === "win32") return binary;
  process.env["LEASEHOLD_WORKERD"] = binary;
  return join(import.meta.dirname, "workerd.sh");
}
