/** The exit codes of every command. docs/reference/command-line.md describes them. */
export const exitCodes = {
  ok: 0,
  /** The command failed, or what it checked is not in order. */
  failed: 1,
  usage: 2,
  conflict: 3,
  notFound: 4,
  notAllowed: 5,
  unavailable: 6,
  /** The command compared two sides, and they differ. */
  drift: 10,
  /** Ctrl-C. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];
