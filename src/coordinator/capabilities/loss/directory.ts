import { MAX_BELIEVED } from "../../kernel/instances.ts";
import { abovePoints, POSITION_MARGIN, type History } from "./history.ts";
import type { HistoryPoint } from "../../kernel/messages.ts";
import { ok, type Result } from "../../kernel/refusal.ts";
import type { Cell, DirectoryReconciliation, RestoreDirectory } from "../../kernel/directory/messages.ts";
import type { MissingRows } from "../../kernel/directory/hooks.ts";
import type { DirectoryPart } from "../../kernel/directory/part.ts";

interface Needs extends DirectoryPart {
  readonly history: History;
}

/**
 * Reconciles a directory that has gone back in time (H8). Nothing of what is left is removed, because it is
 * true: it was stored before the loss, or since.
 */
export class DirectoryReconciler {
  readonly #part: Needs;

  constructor(part: Needs) {
    this.#part = part;
  }

  /**
   * Takes over one page. If the directory is not lost, nothing is changed, unless the operator declares a
   * loss. A page can be sent again.
   */
  async reconcile(page: RestoreDirectory): Promise<Result<DirectoryReconciliation>> {
    const { history, instances, commits } = this.#part;
    const isDeclared = await history.declare(page);
    if (page.dryRun || !history.isLost) {
      const isExamined = history.isLost || isDeclared;
      return ok(this.#answer(isExamined ? this.#missingOf(page) : this.#nothing()));
    }
    const options = { weight: 2 * (page.cells.length + page.keys.length), evenIfStopped: true };
    const restored = await commits.submit("restore_directory", () => ok(this.#restore(page)), options);
    if (!restored.ok) return restored;
    const { missing, durable } = restored.value;
    if (durable !== undefined) {
      durable();
      const { point } = instances;
      this.#part.ports.log("history_reconciled", {
        part: "the directory",
        reason: page.operator.reason ?? "",
        incarnation: point?.incarnation ?? 0,
        position: point?.position ?? 0,
      });
    }
    return ok(this.#answer(missing));
  }

  #answer({ cells, others }: Missing): DirectoryReconciliation {
    const told = Object.assign({}, ...others.map((rows) => rows.told)) as DirectoryReconciliation;
    return {
      ...told,
      status: this.#part.history.status,
      cells: cells.map(({ cell }) => cell),
    };
  }

  #nothing(): Missing {
    const others = this.#part.hooks.missing.map((missing) => missing(undefined));
    return { cells: [], others };
  }

  /** Returns the copies that have more than the rows that are left. */
  #missingOf(page: RestoreDirectory): Missing {
    const { store, hooks } = this.#part;
    const isNewer = (copy: Cell): boolean => {
      const own = store.cell(copy.cell);
      return own === undefined || copy.updatedAtMs > own.updatedAtMs || isRemoval(own, copy);
    };
    return {
      cells: page.cells.filter(isNewer),
      others: hooks.missing.map((missing) => missing(page)),
    };
  }

  #restore(page: RestoreDirectory): { missing: Missing; durable: (() => void) | undefined } {
    const { store } = this.#part;
    // Another call may have accepted the loss during the wait (M1).
    if (!this.#part.history.isLost) return { missing: this.#nothing(), durable: undefined };
    const missing = this.#missingOf(page);
    const { cells } = missing;
    const hasPlacement = cells.length > 0 || page.isPlacementConfirmed;
    if (hasPlacement && store.placement === undefined) store.setPlacement(page.placement);
    for (const copy of cells) {
      const own = store.cell(copy.cell);
      const isOlder = own !== undefined && copy.updatedAtMs <= own.updatedAtMs;
      store.putCell(isOlder ? { ...own, removedAtMs: copy.removedAtMs } : copy);
    }
    for (const rows of missing.others) rows.restore();
    if (!page.isLast) return { missing, durable: undefined };
    // It needs no room (O3), because a directory that is lost hands out no entries.
    this.#part.audit.current.append(page.operator, {
      action: "reconcile_part",
      cell: null,
      target: "directory",
      before: { state: this.#part.history.state },
      after: { state: "complete" },
    });
    const durable = this.#accept(page.seen);
    for (const resumed of this.#part.hooks.resumed) resumed();
    return { missing, durable };
  }

  #accept(seenByCaller: HistoryPoint | undefined): () => void {
    const { history, instances, store } = this.#part;
    const own = { incarnation: instances.incarnation, position: store.position };
    const seen = abovePoints(abovePoints(own, history.status.loss?.seen), seenByCaller);
    const firstPosition = store.position + 1;
    store.raiseTo(Math.min(seen.position, MAX_BELIEVED) + POSITION_MARGIN);
    return history.accept(seen, firstPosition);
  }
}

/** Whether the directory has lost the removal of this cell (X5). */
const isRemoval = (own: Cell, copy: Cell): boolean => own.removedAtMs === null && copy.removedAtMs !== null;

interface Missing {
  cells: Cell[];
  /** What capabilities miss. */
  others: MissingRows[];
}
