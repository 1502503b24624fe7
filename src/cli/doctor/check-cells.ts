import { isLeaseholdError, type Cell } from "../../users/client/index.ts";
import { originOf } from "../../users/router/lookups/routes.ts";
import { messageOf } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { sharedAddressesOf } from "../../common/status/shared-addresses.ts";
import { driftOf, hasDrift, isSilent } from "../../common/status/health.ts";
import { take } from "../output/result.ts";
import { cellsText } from "../../common/text/cells-text.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { fail, ok, warn, type Check } from "./check.ts";

const MAX_CELLS = 1_000;

/** The addresses that are probed, and how many at a time. */
const PROBED = 100;
const AT_ONCE = 8;
const PROBE_MS = 5_000;

/** Whether cells are reachable, for the coordinator and for routers. */
export async function checkCells(context: Context, isProbed: boolean): Promise<Check[]> {
  let listed: readonly Cell[];
  try {
    listed = (await take((await context.client()).cells.list(), MAX_CELLS)).items;
  } catch (error) {
    if (!isLeaseholdError(error)) throw error;
    return [fail("cells", `they can't be listed: ${messageOf(error)}`, "leasehold cells ls")];
  }
  const cells = listed.filter(({ state }) => state !== "REMOVED");
  return [
    checkStates(cells),
    checkReports(cells),
    checkAddresses(cells),
    ...(isProbed ? [await probeAll(context, cells.slice(0, PROBED))] : []),
  ];
}

function checkStates(cells: readonly Cell[]): Check {
  const [lost, frozen, draining, removing] = [null, "FROZEN", "DRAINING", "REMOVING"].map((wanted) =>
    idsOf(cells.filter(({ state }) => state === wanted)),
  ) as [string[], string[], string[], string[]];
  const facts = {
    cells: cells.length,
    unreachable: lost.length,
    frozen: frozen.length,
    draining: draining.length,
    removing: removing.length,
  };
  const found = [
    ...saying(lost, "can't be reached", "can't be reached"),
    ...saying(frozen, "is frozen", "are frozen"),
    ...saying(draining, "is draining", "are draining"),
    ...saying(removing, "is being removed", "are being removed"),
  ].join("; ");
  if (lost.length > 0) return fail("cells", found, "leasehold status", facts);
  const [first] = [...frozen, ...draining, ...removing];
  return first === undefined
    ? ok("cells", cells.length === 1 ? "1 cell is active" : `${cells.length} cells are active`, facts)
    : warn("cells", found, commandLine("cells", "show", first), facts);
}

/** What cells report. One that has never reported may be a cell that does not use the SDK. */
function checkReports(cells: readonly Cell[]): Check {
  const silent = idsOf(cells.filter(({ status }) => status !== null && isSilent(status.age_ms)));
  const drifting = idsOf(cells.filter(({ status }) => hasDrift(driftOf(status))));
  const facts = { silent: silent.length, drifting: drifting.length };
  const found = [
    ...saying(silent, "is silent", "are silent"),
    ...saying(drifting, "found drift in its last verification", "found drift in their last verification"),
  ].join("; ");
  return found === ""
    ? ok("reports", "no cell is silent or has found drift", facts)
    : warn("reports", found, "leasehold verify status", facts);
}

function checkAddresses(cells: readonly Cell[]): Check {
  const wrong = idsOf(cells.filter(({ address }) => originOf(address) === undefined));
  const groups = sharedAddressesOf(cells).map(idsOf);
  const shared = groups.flat();
  const facts = { wrong: wrong.length, shared: shared.length };
  if (wrong.length > 0)
    return fail(
      "addresses",
      `${cellsText(wrong)}: no bare https origin, so routers refuse it`,
      `${commandLine("cells", "set", wrong[0])} --address URL --reason TEXT`,
      facts,
    );
  return shared.length === 0
    ? ok("addresses", "routers can use all of them", facts)
    : warn(
        "addresses",
        groups.map((several) => `${cellsText(several)} have the same one`).join("; "),
        `${commandLine("cells", "set", groups[0]?.at(-1))} --address URL --reason TEXT`,
        facts,
      );
}

const idsOf = (cells: readonly Cell[]): string[] => cells.map(({ cell_id: id }) => id);

/** Such as `cell 7 is frozen`. Nothing if there are no ids. */
const saying = (ids: readonly string[], one: string, several: string): string[] =>
  ids.length === 0 ? [] : [`${cellsText(ids)} ${ids.length === 1 ? one : several}`];

/** Any answer counts, because a cell need not serve `/`. The key is not sent. */
async function probeAll({ io }: Context, cells: readonly Cell[]): Promise<Check> {
  const failed = new Set<string>();
  const left = cells.filter(({ address }) => URL.canParse(address));
  const worker = async (): Promise<void> => {
    for (let cell = left.shift(); cell !== undefined; cell = left.shift()) {
      const signal = AbortSignal.any([io.signal, AbortSignal.timeout(PROBE_MS)]);
      const init = { method: "HEAD", headers: {}, signal, redirect: "manual" } as const;
      await io.fetch(cell.address, init).catch(() => failed.add(cell?.cell_id ?? ""));
    }
  };
  const probed = left.length;
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  io.signal.throwIfAborted();
  // They fail in any order, and are listed in that of the cells.
  const silent = idsOf(cells.filter(({ cell_id: id }) => failed.has(id)));
  const facts = { probed, silent: silent.length };
  return silent.length === 0
    ? ok(
        "cells' answers",
        probed === 1 ? "1 address answers from here" : `${probed} addresses answer from here`,
        facts,
      )
    : warn(
        "cells' answers",
        `no answer from here: ${cellsText(silent)}`,
        commandLine("cells", "show", silent[0]),
        facts,
      );
}
