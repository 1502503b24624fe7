const EXIT_CODE = 130;
/** A repeated signal is taken as a second Ctrl-C only this long after the first. */
const REPEAT_MS = 1_000;

/** What `onStopSignal` uses of the process. */
interface SignalledProcess {
  on: (signal: "SIGINT" | "SIGTERM", listener: () => void) => unknown;
  exit: (code: number) => void;
}

/**
 * Calls `stop` at the first SIGINT or SIGTERM. A second signal ends the process at once, unless it comes
 * within a second: a terminal sends Ctrl-C to npm and to this process, and npm passes it on, so one Ctrl-C
 * arrives twice.
 */
export function onStopSignal(stop: () => void, target: SignalledProcess = process): void {
  let isStopping = false;
  let mayExit = false;
  const onSignal = (): void => {
    if (mayExit) target.exit(EXIT_CODE);
    if (isStopping) return;
    isStopping = true;
    // If the stop blocks this thread, signals that arrived meanwhile are handled before the immediate.
    setTimeout(() => setImmediate(() => (mayExit = true)), REPEAT_MS).unref();
    stop();
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) target.on(signal, onSignal);
}
