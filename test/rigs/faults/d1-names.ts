/** The tables of D1 that copy what objects have, or that runs of the cron write. */
export const d1Tables = [
  "open_leases",
  "cells",
  "keys",
  "cron_runs",
  "seen_points",
  "type_sets",
  "growths",
  "operation_sets",
  "audit",
];

/** The name of a D1 statement in a journal: `INSERT INTO keys ...` → `insert keys`. */
export function nameOf(sql: string): string {
  const verb = /^\s*(select|insert|update|delete)/i.exec(sql)?.[1]?.toLowerCase() ?? "run";
  const table =
    new RegExp(`\\b(?:from|into|update)\\s+"?(${d1Tables.join("|")})"?`, "i").exec(sql)?.[1] ?? "?";
  return `${verb} ${table}`;
}

/** Whether a call writes to D1. */
export const isD1Write = (label: string): boolean =>
  / > d1 /.test(label) && /\b(insert|update|delete) /.test(label);

/** The label of the write that a call makes. */
export const writeLabel = (label: string): string => label.replace("worker > d1 ", "d1: ");
