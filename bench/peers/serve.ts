/** The line of JSON that each peer's process prints to standard output when it is ready. */
export interface Serving {
  url: string;
  /** Bearer tokens by cell. */
  keys: Record<string, string>;
  /** The bearer token for lookups. */
  router: string;
}

/** Announces that the peer is ready, and stops it on a signal. */
export function serve(serving: Serving, stop: () => Promise<void>): void {
  let stopping = false;
  const end = (): void => {
    if (stopping) return;
    stopping = true;
    stop().then(
      () => process.exit(0),
      (error: unknown) => {
        process.stderr.write(`${String(error)}\n`);
        process.exit(1);
      },
    );
  };
  process.once("SIGTERM", end);
  process.once("SIGINT", end);
  // The parent process is gone when standard input ends.
  process.stdin.once("end", end).resume();
  process.stdout.write(`${JSON.stringify(serving)}\n`);
}

/** The folder that the peer may write to, from the command line. */
export function folderOf(argv: readonly string[]): string {
  const [folder] = argv.slice(2);
  if (folder === undefined) throw new Error("usage: node bench/peers/<peer>.ts <folder>");
  return folder;
}
