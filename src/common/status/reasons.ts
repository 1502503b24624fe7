import { durationText } from "../text/duration.ts";
import { cellsText } from "../text/cells-text.ts";
import { countOf } from "../text/count-of.ts";
import { commandLine } from "../text/shell-word.ts";
import { escapeControls } from "../text/escape.ts";
import { driftText, isSilent } from "./health.ts";
import { sharedAddressesOf } from "./shared-addresses.ts";
import {
  KEY_SOON_MS,
  type CellLimits,
  type CellStatus,
  type ExpiringAuthority,
  type ExpiringKeys,
  type FailedCopy,
  type Observed,
  type ObservedOperation,
} from "./observed.ts";

/** Why a deployment is not green, and what to do next. */
export interface Reason {
  problem: string;
  /** A command. */
  next?: string;
  about: Topic;
}

/** What a reason is about, so that the console can link to it. */
export type Topic =
  | { part: "deployment" | "cells" | "keys" | "shards" }
  | { part: "cell" | "stale_leases" | "report"; cell: string };

const DEPLOYMENT: Topic = { part: "deployment" };

/** The cron runs every minute. */
const CRON_LATE_MS = 5 * 60_000;

/** Applies the migrations that D1 lacks. */
export const APPLY_MIGRATIONS = "npx wrangler d1 migrations apply leasehold --remote";

/** The part of a limit from which on it counts as reached. */
const NEAR = 0.9;

/** Decisions that wait for a shard. A busy cell has some at any moment. */
const MANY_UNAPPLIED = 1_000;

/** A growth that copies for longer is forgotten: each change of a name that will move costs one more row. */
const COPYING_LONG_MS = 86_400_000;

/** A cut that is not in force after this time, or a growth that has not ended. */
const CUT_LATE_MS = 5 * 60_000;
const END_LATE_MS = 3_600_000;

/** The failed copies of which each is a reason of its own. */
const MAX_COPIES = 20;

/** Said beside the reasons if not everything was read. */
export const CUT =
  "There are more cells, stale leases or failed copies than were read, so counts may be too low.";

/** An empty list: the deployment is green. */
export const reasonsOf = (observed: Observed): Reason[] => [
  ...partReasons(observed),
  ...projectionReasons(observed),
  ...copyReasons(observed),
  ...growthReasons(observed),
  ...observed.operations.map(operationReason),
  ...unreadReasons(observed),
  ...observed.cells.flatMap((cell) => cellReasons(cell, observed.limits)),
  ...addressReasons(observed),
  ...observed.expiring_keys.map(expiringReason),
  ...observed.expiring_authorities.map(authorityReason),
  ...keyReasons(observed),
];

function partReasons({ readiness, failed_parts: parts, failure }: Observed): Reason[] {
  if (readiness === "no_cells")
    return [
      {
        problem: "No cell is registered yet, so nothing can be claimed.",
        next: "leasehold cells add --help",
        about: { part: "cells" },
      },
    ];
  if (parts.length === 0 && failure === null) return [];
  if (parts.length === 0)
    return [
      {
        problem: `The deployment is not ready: ${escapeControls(failure ?? "")}.`,
        next: "leasehold doctor",
        about: DEPLOYMENT,
      },
    ];
  return parts.map((part) => ({
    problem: `This part does not answer, or has lost history: ${escapeControls(part)}.`,
    next: nextOfPart(part),
    about: DEPLOYMENT,
  }));
}

/** `/readyz` writes `shard 3` and `ledger of cell 7`, and the route of parts `shard-3` and `ledger-7`. */
function nextOfPart(part: string): string {
  const [, shard] = /^shard (\d+)$/.exec(part) ?? [];
  const [, cell] = /^ledger of cell (\d+)$/.exec(part) ?? [];
  const id = shard === undefined ? (cell === undefined ? part : `ledger-${cell}`) : `shard-${shard}`;
  return commandLine("parts", "show", id);
}

const unreadReasons = ({ unread }: Observed): Reason[] =>
  unread.map(({ what, why }) => ({
    problem: `${what} can't be read: ${escapeControls(why)}.`,
    next: "leasehold doctor",
    about: DEPLOYMENT,
  }));

function projectionReasons(observed: Observed): Reason[] {
  const { readiness, d1, missing_migrations: missing } = observed;
  if (d1 === "down")
    return [
      {
        problem: "D1 does not answer, so stale leases can't be listed and types can't be changed.",
        next: "leasehold doctor",
        about: DEPLOYMENT,
      },
    ];
  if (d1 === "outdated")
    return [
      {
        problem: `D1 lacks migrations: ${escapeControls(missing.join(", "))}.`,
        next: APPLY_MIGRATIONS,
        about: DEPLOYMENT,
      },
      ...cronReasons(observed),
    ];
  return readiness === "failed" ? [] : cronReasons(observed);
}

/** What the cron could not copy, one by one, is in `failed_copies`. */
function cronReasons({ cron, failed_copies: copies }: Pick<Observed, "cron" | "failed_copies">): Reason[] {
  if (cron === null)
    return [
      {
        problem: "The cron has not finished a run yet. It should run every minute.",
        next: "leasehold doctor",
        about: DEPLOYMENT,
      },
    ];
  const reasons: Reason[] = [];
  if (cron.age_ms > CRON_LATE_MS)
    reasons.push({
      problem: `The cron last finished ${durationText(cron.age_ms)} ago. It should run every minute.`,
      next: "leasehold doctor",
      about: DEPLOYMENT,
    });
  if (cron.cells_failed > copies.length)
    reasons.push({
      problem: `The last run of the cron failed for ${countOf(cron.cells_failed, "cell")}.`,
      next: "leasehold cells ls",
      about: { part: "cells" },
    });
  return reasons;
}

/** Also while the deployment grows, everything works. So only a growth that is late is a reason. */
function growthReasons({ growth }: Observed): Reason[] {
  if (growth === null) return [];
  const { to, phase, can_be_cut: isReady, age_ms: age, cut_age_ms: cutAge } = growth;
  const since = durationText(cutAge ?? age);
  const reason = (problem: string): Reason[] => [
    { problem, next: `leasehold shards grow --to ${to} --reason TEXT`, about: { part: "shards" } },
  ];
  if (phase === "copying" && age >= COPYING_LONG_MS)
    return reason(
      `The growth to ${to} shards has been copying for ${since}` +
        (isReady ? ", and waits for its cut." : ", and is not ready for its cut."),
    );
  if (phase === "cutting" && (cutAge ?? 0) >= CUT_LATE_MS)
    return reason(`The cut to ${to} shards was ordered ${since} ago, and is not in force.`);
  if (phase === "cut" && (cutAge ?? 0) >= END_LATE_MS)
    return reason(`The growth to ${to} shards was cut ${since} ago, and has not ended.`);
  return [];
}

/** Meanwhile, names that nobody has are unavailable: a shard may have lost them (H6). */
const operationReason = ({ kind, about, age_ms: ageMs }: ObservedOperation): Reason => ({
  problem: `The ${kind} of ${kind === "restore" ? "a backup" : about} has run for ${durationText(ageMs)}.`,
  next: "leasehold operations",
  about: { part: "shards" },
});

function copyReasons({ failed_copies: copies }: Observed): Reason[] {
  const more = copies.length - MAX_COPIES;
  return [
    ...copies.slice(0, MAX_COPIES).map(copyReason),
    ...(more <= 0
      ? []
      : [
          {
            problem: `The cron could not copy the leases of ${countOf(more, "more cell")}.`,
            next: "leasehold api GET /v1/admin/copies/failed",
            about: { part: "cells" } as const,
          },
        ]),
  ];
}

const copyReason = ({ cell, error }: FailedCopy): Reason => ({
  problem: `The cron could not copy the leases of cell ${cell}: ${escapeControls(error)}.`,
  next: commandLine("parts", "show", `ledger-${cell}`),
  about: { part: "cell", cell },
});

/** A removed cell gets no requests, so its address is free. */
const addressReasons = ({ cells }: Observed): Reason[] =>
  sharedAddressesOf(cells.filter(({ state }) => state !== "REMOVED")).map((shared) => {
    const ids = shared.map(({ cell }) => cell);
    return {
      problem: `C${cellsText(ids).slice(1)} have the same address, so routers can't tell them apart.`,
      next: `${commandLine("cells", "set", ids.at(-1))} --address URL --reason TEXT`,
      about: { part: "cells" },
    };
  });

function expiringReason({ role, cell, id, expires_in_ms: ms }: ExpiringKeys): Reason {
  const whose = cell === null ? `of the role ${role}` : `of cell ${cell}`;
  return {
    problem: `The last key ${whose} expires in ${durationText(ms)}.`,
    next: `${commandLine("keys", "rotate", id)} --reason TEXT`,
    about: { part: "keys" },
  };
}

function authorityReason({ name, expires_in_ms: ms }: ExpiringAuthority): Reason {
  const whose = `The certificate of the authority ${name}`;
  return {
    problem:
      ms > 0
        ? `${whose} expires in ${durationText(ms)}, and its clients are refused from then on.`
        : `${whose} has expired, so its clients are refused.`,
    next: "leasehold identities apply --help",
    about: { part: "keys" },
  };
}

/** Why one cell is not in order. */
export function cellReasons(status: CellStatus, limits: CellLimits | null): Reason[] {
  const { cell, state, stale_leases: stale, oldest_stale_ms: oldestMs } = status;
  const show = commandLine("cells", "show", cell);
  const about: Topic = { part: "cell", cell };
  const reasons: Reason[] = [];
  if (state === null)
    reasons.push({ problem: `The ledger of cell ${cell} can't be reached.`, next: show, about });
  if (state === "FROZEN")
    reasons.push({
      problem: `Cell ${cell} is frozen, so its begins are refused.`,
      next: `leasehold cells thaw ${cell} --reason TEXT`,
      about,
    });
  if (state === "DRAINING")
    reasons.push({
      problem: `Cell ${cell} is draining, so its begins are refused.`,
      next: `leasehold cells undrain ${cell} --reason TEXT`,
      about,
    });
  if (state === "REMOVING")
    reasons.push({
      problem: `Cell ${cell} is being removed, and its removal has not ended.`,
      next: `leasehold cells remove ${cell} --reason TEXT`,
      about,
    });
  if (stale > 0)
    reasons.push({
      problem:
        `Cell ${cell} has ${countOf(stale, "stale lease")}; the oldest was granted ` +
        `${durationText(oldestMs ?? 0)} ago.`,
      next: commandLine("leases", "ls", "--stale", "--cell", cell),
      about: { part: "stale_leases", cell },
    });
  if ((status.unapplied_decisions ?? 0) >= MANY_UNAPPLIED)
    reasons.push({
      problem: `Shards have not applied ${status.unapplied_decisions} decisions of cell ${cell}.`,
      next: "leasehold doctor",
      about: DEPLOYMENT,
    });
  return [...reasons, ...reportReasons(status), ...limitReasons(status, limits, show)];
}

/** A cell that has never reported may be one that does not use the SDK, so it is no reason. */
function reportReasons(status: CellStatus): Reason[] {
  const { cell, reconciliation, drift } = status;
  const next = commandLine("verify", "report", "--cell", cell);
  const about: Topic = { part: "report", cell };
  const found = driftText(drift);
  return [
    ...silenceReasons(status),
    ...(reconciliation === "aborted"
      ? [
          {
            problem: `The last reconciliation of cell ${cell} was aborted, so its leases may stay open.`,
            next,
            about,
          },
        ]
      : []),
    ...(found === ""
      ? []
      : [{ problem: `The last verification of cell ${cell} found drift: ${found}.`, next, about }]),
  ];
}

/** A cell without a valid key can't report, so this is said instead of where to read its report. */
function silenceReasons({ cell, reported_age_ms: ageMs, has_valid_key: hasKey }: CellStatus): Reason[] {
  if (ageMs === null || !isSilent(ageMs)) return [];
  const problem = `Cell ${cell} is silent: it last reported ${durationText(ageMs)} ago`;
  return [
    hasKey === false
      ? {
          problem: `${problem}. No key that is listed for it is valid.`,
          next: commandLine("keys", "mint", "--role", "cell", "--cell", cell),
          about: { part: "keys" },
        }
      : {
          problem: `${problem}.`,
          next: commandLine("verify", "report", "--cell", cell),
          about: { part: "report", cell },
        },
  ];
}

function limitReasons(status: CellStatus, limits: CellLimits | null, next: string): Reason[] {
  if (limits === null) return [];
  const { cell, stored_bytes: bytes, outstanding_leases: leases } = status;
  const about: Topic = { part: "cell", cell };
  const problems = [
    limitProblem(`The ledger of cell ${cell} takes`, bytes, "byte", limits.ledger_bytes, "ledger_bytes"),
    limitProblem(
      `Cell ${cell} has`,
      leases,
      "outstanding lease",
      limits.outstanding_leases,
      "outstanding_leases",
    ),
  ];
  return problems.flatMap((problem) => (problem === undefined ? [] : [{ problem, next, about }]));
}

/** Such as `Cell 4 has 21 outstanding leases, more than the limit of 20 (outstanding_leases).` */
function limitProblem(
  subject: string,
  value: number | null,
  noun: string,
  limit: number,
  name: string,
): string | undefined {
  if (value === null || value < NEAR * limit) return undefined;
  const standing =
    value > limit
      ? `more than the limit of ${limit} (${name}), so its begins are refused`
      : value === limit
        ? `which is the limit (${name}), so its begins are refused`
        : `near the limit of ${limit} (${name})`;
  return `${subject} ${countOf(value, noun)}, ${standing}.`;
}

const keyReasons = ({ key }: Observed): Reason[] =>
  key !== null && key.expires_in_ms < KEY_SOON_MS
    ? [
        {
          problem: `Your key expires in ${durationText(key.expires_in_ms)}.`,
          next: "leasehold keys rotate --help",
          about: { part: "keys" },
        },
      ]
    : [];
