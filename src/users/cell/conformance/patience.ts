/** Deadlines that every machine meets, because no test depends on its speed. */
const PATIENCE_MS = 60_000;

export const patientClient = { attemptMs: PATIENCE_MS, deadlineMs: PATIENCE_MS };

export const patientCell = {
  beginDeadlineMs: PATIENCE_MS,
  preflightDeadlineMs: PATIENCE_MS,
  decideDeadlineMs: PATIENCE_MS,
};
