import { isLeaseholdError, type Client } from "../../users/client/index.ts";
import type { ExportedClaims, Removal } from "../../users/client/api-types.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { callRoute } from "../connection/call-route.ts";
import { CommandError, messageOf, usageError, exitCodes } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { failureOf } from "../framework/failure.ts";
import { reminder } from "../output/reminder.ts";
import { fields, table } from "../output/table.ts";
import type { Result } from "../output/result.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import { exportCell } from "./export-cell.ts";

interface RemoveOptions extends ChangeOptions {
  export?: string;
}

interface Step {
  state: Removal["state"];
  released_claims: number;
  claims_left: number;
}

const PROGRESS_EVERY = 10_000;
/** A step waits for shards, and a count or a comparison for many answers of them. */
const CALL_TIMEOUT_MS = 60_000;
/**
 * Failures in a row after which the command gives up. It can be repeated. A ledger may wait for a minute
 * before it sends a decision again.
 */
const MOST_FAILURES = 150;
const PAUSE_MS = 1_000;

/** Removes a cell: exports its claims, then releases them in steps. Repeated, it goes on where it ended. */
export async function removeCell(context: Context, id: string, options: RemoveOptions): Promise<Result> {
  const reason = reasonOf(options);
  const removal = await countAll(context, id);
  if (options.dryRun === true) return preview(removal);
  if (isDone(removal))
    return {
      document: { removal, changed: false, dry_run: false },
      text: () => `Cell ${id} is removed already. Nothing was changed.`,
    };
  const isStarted = removal.progress !== null;
  if (!isStarted) refuseUnready(removal, options);
  await confirm(context, options, { name: id, effect: effectOf(removal, reason) });
  if (!isStarted) await compare(context, removal, options.export ?? "");
  else if (options.export !== undefined)
    await context.io.err.write(
      "The removal has started before, so this run exports nothing. The export is the file of the run that " +
        "has started it.\n",
    );
  const released = await release(context, id, reason, options.export);
  return {
    document: {
      removal: await read(context, id),
      released_claims: released,
      export: isStarted ? null : options.export,
      changed: true,
      dry_run: false,
    },
    text: () => `Cell ${id} is removed. This run has released ${released} claims.`,
    notes: [FINAL, ...(isStarted ? [] : [`The export is in ${options.export}.`])],
    nextSteps: ["leasehold audit --action remove_cell"],
  };
}

/** The directory may not know it yet, and a ledger that was reconciled may have leases: steps end both. */
const isDone = (removal: Removal): boolean =>
  removal.removed_at !== null && removal.claims_total === 0 && removal.outstanding_leases === 0;

const FINAL = "There is no undo: other cells may take the names, and the id is never used again.";

/** Reads the state of the removal. The claims are counted as far as one call gets. */
async function read(context: Context, id: string, cursor = ""): Promise<Removal> {
  const query = cursor === "" ? "" : `?cursor=${cursor}`;
  const request = { method: "GET", path: pathOf(id, query), timeoutMs: CALL_TIMEOUT_MS };
  return (await callRoute<{ removal: Removal }>(context, request)).removal;
}

/**
 * Reads the state of the removal, and counts all claims. The state is that of the first call: what was
 * unapplied then may be missing in the counts.
 */
async function countAll(context: Context, id: string): Promise<Removal> {
  const { err, signal } = context.io;
  const removal = await read(context, id);
  let { claims, claims_total: total, cursor } = removal;
  while (cursor !== null) {
    await err.write(`${total} claims counted\n`);
    signal.throwIfAborted();
    const next = await read(context, id, cursor);
    claims = sumOf([...claims, ...next.claims]);
    total += next.claims_total;
    ({ cursor } = next);
  }
  return { ...removal, claims, claims_total: total, cursor };
}

function sumOf(counts: Removal["claims"]): Removal["claims"] {
  const sums = new Map<string, Removal["claims"][number]>();
  for (const each of counts) {
    const key = `${each.source_type} ${each.bucket_type}`;
    sums.set(key, { ...each, count: each.count + (sums.get(key)?.count ?? 0) });
  }
  return [...sums.values()];
}

const pathOf = (id: string, rest = ""): string => `/v1/admin/cells/${id}/removal${rest}`;

const removeLine = (id: string): string =>
  `${commandLine("cells", "remove", id)} --export FILE --reason TEXT`;

/** @throws if the removal cannot start, before anything is asked or sent */
function refuseUnready(removal: Removal, options: RemoveOptions): void {
  const { cell_id: id, state, outstanding_leases: leases } = removal;
  if (state !== "DRAINING")
    throw new CommandError(
      `cell ${id} is ${state}: drain it first. Nothing was changed`,
      exitCodes.conflict,
      [`${commandLine("cells", "drain", id)} --reason TEXT`],
    );
  if (leases > 0)
    throw new CommandError(
      `cell ${id} still has ${leases} open leases: decide them first. Nothing was changed`,
      exitCodes.conflict,
      [commandLine("leases", "ls", "--cell", id)],
    );
  if (options.export === undefined)
    throw usageError("--export FILE is required: a removal starts only with an export of the cell's claims", [
      removeLine(id),
    ]);
}

function effectOf(removal: Removal, reason: string): string {
  const { cell_id: id, claims_total: total, progress } = removal;
  const what = progress === null ? `removes cell ${id}` : `goes on with the removal of cell ${id}`;
  return `This ${what}, because: ${reason}\nIt releases ${total} claims, for good. ${FINAL}`;
}

/**
 * Removes a cell that has neither claims nor open leases. Repeated, it goes on where it ended.
 *
 * @param operator - drains the cell
 * @param emptyLine - the command that releases the cell's claims of a source type
 * @throws CommandError if the cell has claims or open leases. Then it is not drained, because a draining cell
 *   takes no begins, so nobody could release its claims.
 */
export async function removeEmptyCell(
  context: Context,
  operator: Client,
  id: string,
  reason: string,
  emptyLine: (source: string) => string,
): Promise<void> {
  const removal = await read(context, id);
  if (isDone(removal)) return;
  if (removal.progress === null) {
    await settle(context, id);
    refuseUnlessEmpty(await countAll(context, id), emptyLine);
    await operator.cells.drain(id, { reason });
    await approveRemoval(context, id, []);
  }
  await release(context, id, reason);
}

function refuseUnlessEmpty(removal: Removal, emptyLine: (source: string) => string): void {
  const { cell_id: id, claims, claims_total: total, outstanding_leases: leases } = removal;
  const sources = [...new Set(claims.map(({ source_type: source }) => source))];
  if (total > 0)
    throw new CommandError(
      `cell ${id} still has ${total} claims, of the source types ${sources.join(", ")}, so it was not ` +
        "drained: repeat the command with --source",
      exitCodes.conflict,
      sources.map(emptyLine),
    );
  if (leases > 0)
    throw new CommandError(
      `cell ${id} still has ${leases} open leases, so it was not drained: decide them first`,
      exitCodes.conflict,
      [commandLine("leases", "ls", "--cell", id)],
    );
}

/** Waits until shards have applied the last decisions, because the removal starts only then. */
async function settle(context: Context, id: string): Promise<void> {
  const remind = reminder(context.io);
  for (let tries = 1; ; tries += 1) {
    const { unapplied_decisions: unapplied } = await read(context, id);
    if (unapplied === 0) return;
    if (tries === MOST_FAILURES)
      throw new CommandError(
        `shards have not applied ${unapplied} decisions of cell ${id} yet: nothing was changed`,
        exitCodes.unavailable,
        ["leasehold status"],
      );
    await remind(`waits until shards have applied ${unapplied} decisions`);
    await context.io.wait(PAUSE_MS);
  }
}

async function compare(context: Context, counted: Removal, path: string): Promise<void> {
  const id = counted.cell_id;
  await settle(context, id);
  const { claims } = counted.unapplied_decisions === 0 ? counted : await countAll(context, id);
  const sources = [...new Set(claims.map(({ source_type: source }) => source))];
  const exported = await exportCell(context, await context.client(), id, sources, path);
  try {
    await approveRemoval(context, id, exported);
  } catch (error) {
    throw notStarted(context, id, path, error);
  }
}

/** Has an export compared with what the cell has. The first step then starts the removal. */
export async function approveRemoval(
  context: Context,
  id: string,
  exported: readonly ExportedClaims[],
): Promise<void> {
  const { err, signal } = context.io;
  let cursor = "";
  for (;;) {
    const answer = await callRoute<{ cursor?: string; compared_claims?: number }>(context, {
      method: "POST",
      path: pathOf(id),
      body: JSON.stringify({ export: exported, cursor }),
      timeoutMs: CALL_TIMEOUT_MS,
    });
    if (answer.cursor === undefined) return;
    ({ cursor } = answer);
    await err.write(`${answer.compared_claims} claims compared with the export\n`);
    signal.throwIfAborted();
  }
}

/** Reasons for which the claims of the cell may not be those of the export any more. */
const OUTDATED = new Set(["EXPORT_DIFFERS", "CONCURRENT_CHANGE"]);

const isOutdated = (error: unknown): boolean => isLeaseholdError(error) && OUTDATED.has(error.reason ?? "");

function notStarted({ io }: Context, id: string, path: string, error: unknown): CommandError {
  const { message = messageOf(error), exitCode } = failureOf(error, io.signal.aborted);
  const advice = isOutdated(error)
    ? `${path} is not an export of what the cell has now: give the name of another file`
    : `${path} has the export: keep it. The same command goes on with it`;
  return new CommandError(
    `the removal of cell ${id} has not started: ${message.replace(/\.$/, "")}. ${advice}`,
    exitCode === exitCodes.ok ? exitCodes.failed : exitCode,
    [
      isOutdated(error)
        ? removeLine(id)
        : `${commandLine("cells", "remove", id, "--export", path)} --reason TEXT`,
    ],
  );
}

/** Repeats steps until the cell is removed. Returns how many claims they have released. */
async function release(context: Context, id: string, reason: string, path?: string): Promise<number> {
  const { err, signal, wait } = context.io;
  const request = {
    method: "POST",
    path: pathOf(id, "/steps"),
    body: JSON.stringify({ reason }),
    timeoutMs: CALL_TIMEOUT_MS,
  };
  const remind = reminder(context.io);
  let released = 0;
  for (let failures = 0; ;) {
    try {
      signal.throwIfAborted();
      const step = await callRoute<Step>(context, request);
      failures = 0;
      const before = released;
      released += step.released_claims;
      if (Math.floor(before / PROGRESS_EVERY) < Math.floor(released / PROGRESS_EVERY))
        await err.write(`${released} claims released, ${step.claims_left} left\n`);
      if (step.state === "REMOVED" && step.released_claims === 0) return released;
    } catch (error) {
      // The claims have changed since they were compared.
      if (path !== undefined && isOutdated(error)) throw notStarted(context, id, path, error);
      failures += 1;
      if (signal.aborted || failures === MOST_FAILURES || !mayPass(error))
        throw interrupted(context, id, released, error, path);
      await remind(`no progress: ${messageOf(error)}`);
      // Ctrl-C ends the wait, and the next turn says how to go on.
      await wait(PAUSE_MS).catch(() => undefined);
    }
  }
}

/** Whether a step may succeed if it is repeated. */
const mayPass = (error: unknown): boolean =>
  isLeaseholdError(error)
    ? error.retryable
    : error instanceof CommandError && error.exitCode === exitCodes.unavailable;

function interrupted(
  { io }: Context,
  id: string,
  released: number,
  error: unknown,
  path: string | undefined,
): CommandError {
  const { message = messageOf(error), exitCode } = failureOf(error, io.signal.aborted);
  // Only a run before the first step needs it, and the others accept it.
  const exportOption = path === undefined ? [] : ["--export", path];
  return new CommandError(
    `the removal of cell ${id} stopped after ${released} claims of this run: ${message}. The same command ` +
      "goes on with it",
    exitCode === exitCodes.ok ? exitCodes.failed : exitCode,
    [`${commandLine("cells", "remove", id, ...exportOption)} --reason TEXT`],
  );
}

function preview(removal: Removal): Result {
  const { cell_id: id, state, claims, claims_total: total, progress } = removal;
  const { outstanding_leases: leases, unapplied_decisions: unapplied } = removal;
  return {
    document: { removal, changed: false, dry_run: true },
    text: (style) =>
      [
        fields([
          ["cell", id],
          ["state", state],
          ["open leases", leases],
          ["unapplied", unapplied],
          ["claims to release", total],
          ["released before", progress?.released_claims],
        ]),
        ...(claims.length === 0 ? [] : [table(claims, COLUMNS, style)]),
      ].join("\n\n"),
    notes: ["Nothing was changed."],
    nextSteps: nextOf(removal),
  };
}

const COLUMNS = [
  { title: "SOURCE", value: ({ source_type: source }: Removal["claims"][number]) => source },
  { title: "TYPE", value: ({ bucket_type: type }: Removal["claims"][number]) => type },
  { title: "CLAIMS", value: ({ count }: Removal["claims"][number]) => count, isNumber: true },
];

function nextOf({ cell_id: id, state, outstanding_leases: leases, progress }: Removal): string[] {
  if (state === "REMOVED") return [];
  if (progress !== null) return [`${commandLine("cells", "remove", id)} --reason TEXT`];
  return [
    ...(leases > 0 ? [commandLine("leases", "ls", "--cell", id)] : []),
    state === "DRAINING" ? removeLine(id) : `${commandLine("cells", "drain", id)} --reason TEXT`,
  ];
}
