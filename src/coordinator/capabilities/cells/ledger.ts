import type { AuditedAction } from "../../kernel/audit-trail.ts";
import type { LedgerHalf } from "../../kernel/capability.ts";
import { guarded } from "../../kernel/half.ts";
import type { LedgerPart } from "../../kernel/ledger/part.ts";
import type { BeginRequest, CellState } from "../../kernel/messages.ts";
import { method, type Calls } from "../../kernel/method.ts";
import { changedMeanwhile, ok, refused, type Refusal, type Result } from "../../kernel/refusal.ts";
import type { SetState } from "./messages.ts";

const onLedgers = { setState: method<SetState, null>("peer") };

declare module "../../kernel/methods.ts" {
  interface LedgerCalls extends Calls<typeof onLedgers> {}
}

const writes = ["set_state"] as const;

declare module "../../kernel/write-points.ts" {
  interface WritePoints extends Record<(typeof writes)[number], true> {}
}

export const ledger: LedgerHalf<typeof onLedgers> = {
  writes,
  methods: onLedgers,
  make: (part) => ({
    handlers: {
      setState: async (message) => {
        const reply = await part.commits.submit("set_state", () => setState(part, message));
        part.begins.endUnfitWaits();
        return reply;
      },
    },
    hooks: { guardGrant: (request) => stateRefusal(part.store.cellState(), request) },
  }),
};

/** Why the state of the cell allows no begin (X1). */
function stateRefusal(state: CellState, { isVerification, caller }: BeginRequest): Refusal | undefined {
  // A restore claims names while the cells stand still (H9).
  if (state === "FROZEN" && !(isVerification === true && caller.role === "operator"))
    return refused(
      "FAILED_PRECONDITION",
      "the cell is frozen and cannot begin leases; an operator can unfreeze it",
      { reason: "CELL_FROZEN" },
    ).refusal;
  if (state === "DRAINING" && isVerification !== true)
    return refused(
      "FAILED_PRECONDITION",
      "the cell is draining, so only its verification can begin leases; an operator can unfreeze it",
      { reason: "CELL_DRAINING" },
    ).refusal;
  return undefined;
}

function setState(part: LedgerPart, message: SetState): Result<null> {
  const isCurrent = message.stateVersion === part.store.number("cell_state_version");
  if (!isCurrent && message.state !== part.store.cellState()) return changedMeanwhile(`cell ${part.cell}`);
  const full = part.audit.current.refusal;
  if (full !== undefined) return { ok: false, refusal: full };
  const before = part.store.cellState();
  const unfit = guarded(part.hooks.guardCell, "; go on with the steps");
  if (unfit !== undefined) return { ok: false, refusal: unfit };
  // A change that keeps the state also makes a new version, so that messages sent before it are refused
  // afterwards (A2).
  part.store.changeCellState(message.state, part.positions, part.ports.clock.now());
  if (message.state !== before) auditState(part, message, before);
  return ok(null);
}

function auditState(part: LedgerPart, { operator, state }: SetState, before: CellState): void {
  part.audit.current.append(operator, {
    action: stateAction(before, state),
    cell: part.cell,
    target: part.cell,
    before: { state: before },
    after: { state },
  });
}

/** The name of a change of a cell's state in the audit. */
function stateAction(before: CellState, after: CellState): AuditedAction {
  if (after === "FROZEN") return "freeze_cell";
  if (after === "DRAINING") return "drain_cell";
  return before === "DRAINING" ? "undrain_cell" : "unfreeze_cell";
}
