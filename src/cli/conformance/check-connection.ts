/** What must be true before any check can say something about a rule. */
import { NoAnswerError, type Api, type CellName, type Received } from "../../users/conformance/api.ts";
import type { NameTypes } from "../../users/conformance/check-context.ts";
import { describe } from "../../users/conformance/nonconformity.ts";
import { CommandError, usageError, exitCodes } from "../framework/command-error.ts";
import type { Tested } from "./read-keys.ts";

function cellsOf({ cell, otherCell }: Tested): [who: CellName, id: string][] {
  return otherCell === undefined
    ? [["cell", cell]]
    : [
        ["cell", cell],
        ["other", otherCell],
      ];
}

/** @throws when the implementation does not answer, or does not accept the key of a cell */
export async function checkKeys(api: Api, tested: Tested): Promise<void> {
  for (const [who, id] of cellsOf(tested)) {
    const received = await api
      .send("GET", `/v1/cells/${id}/leases?page_size=1`, { who })
      .catch((error: unknown) => {
        if (!(error instanceof NoAnswerError)) throw error;
        throw new CommandError(`${tested.url} does not answer: ${error.message}`, exitCodes.unavailable);
      });
    const { status } = received;
    if (status === 401 || status === 403)
      throw new CommandError(
        `the key of cell ${id} is not accepted: ${describe(received)}`,
        exitCodes.notAllowed,
      );
    if (status !== 200)
      throw new CommandError(
        `the leases of cell ${id} can't be listed: ${describe(received)}`,
        exitCodes.failed,
      );
  }
}

/**
 * Begins a lease in each cell, and rolls it back.
 *
 * @param unending rolls back after an interruption, too
 * @throws when a cell is frozen, or when a type is not declared: then nearly every check would fail
 */
export async function checkBegins(
  api: Api,
  unending: Api,
  tested: Tested,
  types: NameTypes,
  prefix: string,
): Promise<void> {
  for (const [who, id] of cellsOf(tested)) {
    const value = `${prefix}${who}`;
    const create = {
      bucket: { type: types.bucket, value },
      subject: { type: types.subject, id: "7" },
      source: { type: types.source, id: value },
    };
    const path = `/v1/cells/${id}/leases/${crypto.randomUUID()}`;
    let begun: Received | undefined;
    try {
      begun = await answered(api.send("PUT", path, { who, body: { creates: [create] } }));
    } finally {
      await answered(unending.send("POST", `${path}/rollback`, { who }));
    }
    if (begun === undefined) continue;
    const { reason, field, detail } = (begun.json ?? {}) as {
      reason?: string;
      field?: string;
      detail?: string;
    };
    if (reason?.startsWith("CELL_") === true)
      throw new CommandError(`cell ${id} can't be tested: ${detail} (${reason})`, exitCodes.conflict);
    if (begun.status === 400 && field?.endsWith(".type") === true)
      throw usageError(`a type is not declared: ${detail} Give --type, --subject and --source.`);
  }
}

/** Undefined: there was no answer, which the checks will tell. The clean-up of the run gives up the lease. */
const answered = (call: Promise<Received>): Promise<Received | undefined> =>
  call.catch((error: unknown) => {
    if (error instanceof NoAnswerError) return undefined;
    throw error;
  });
