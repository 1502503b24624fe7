import type { WebhookEvent } from "../events.ts";
import { cellDrift } from "./cell-drift.ts";
import { cellSilent } from "./cell-silent.ts";
import { contradiction } from "./contradiction.ts";
import { cronFailed } from "./cron-failed.ts";
import { historyLost } from "./history-lost.ts";
import { credentialExpiring } from "./credential-expiring.ts";
import type { Rule } from "./rule.ts";
import { staleLeases } from "./stale-leases.ts";

export const rules: Readonly<Record<WebhookEvent, Rule>> = {
  stale_leases: staleLeases,
  history_lost: historyLost,
  contradiction,
  cell_silent: cellSilent,
  cell_drift: cellDrift,
  cron_failed: cronFailed,
  credential_expiring: credentialExpiring,
};
