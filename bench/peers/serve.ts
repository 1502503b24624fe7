/** What every peer's process says on its standard output once it answers, in one line of JSON. */
export interface Serving {
  url: string;
  /** Bearer tokens by cell. */
  keys: Record<string, string>;
  /** For lookups. */
  router: string;
}

/** Says that the peer answers, and stops it when it is told to. */
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
  // Whoever started us is gone.
  process.stdin.once("end", end).resume();
  process.stdout.write(`${JSON.stringify(serving)}\n`);
}

/** The folder that the peer may write to. */
export function folderOf(argv: readonly string[]): string {
  const [folder] = argv.slice(2);
  if (folder === undefined) throw new Error("usage: node bench/peers/<peer>.ts <folder>");
  return folder;
}
