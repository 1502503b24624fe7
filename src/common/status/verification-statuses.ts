/** The statuses of runs that did something, as the SDK calls them, and `failed`. */
export const verificationStatuses = [
  "done",
  "out_of_time",
  "needs_approval",
  "slot_lost",
  "stopped",
  "failed",
] as const;
