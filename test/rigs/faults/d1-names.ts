/** What statements for D1 are called in a journal. */
/** `INSERT INTO leases ...` → `insert leases`. */
export function nameOf(sql: string): string {
  const verb = /^\s*(select|insert|update|delete)/i.exec(sql)?.[1]?.toLowerCase() ?? "run";
  const table = /\b(?:from|into|update)\s+"?(leases|cells|keys|cron_runs)"?/i.exec(sql)?.[1] ?? "?";
  return `${verb} ${table}`;
}

/** Of a call. */
export const isD1Write = (label: string): boolean =>
  / > d1 /.test(label) && /\b(insert|update|delete) /.test(label);

/** Of what the call writes. */
export const writeLabel = (label: string): string => label.replace("worker > d1 ", "d1: ");
