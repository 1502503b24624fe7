import type { GroupCommit } from "../group-commit.ts";
import { abovePoints, MAX_BELIEVED, POSITION_MARGIN, type History } from "../history.ts";
import type { Limits } from "../limits.ts";
import type { HistoryPoint, Reply } from "../messages.ts";
import type { Ports } from "../ports.ts";
import { ok } from "../refusal.ts";
import type { Cell, DirectoryReconciliation, MintedKey, RestoreDirectory } from "./messages.ts";
import type { DirectoryStore } from "./store.ts";

/**
 * Reconciles a directory that has gone back in time (H8). Nothing of what is left is removed, because it is
 * true: it was stored before the loss, or since.
 */
export class DirectoryReconciler {
  readonly #ports: Pick<Ports, "clock" | "log">;
  readonly #limits: Limits;
  readonly #store: DirectoryStore;
  readonly #history: History;
  readonly #commits: GroupCommit;

  constructor(
    ports: Pick<Ports, "clock" | "log">,
    limits: Limits,
    store: DirectoryStore,
    history: History,
    commits: GroupCommit,
  ) {
    this.#ports = ports;
    this.#limits = limits;
    this.#store = store;
    this.#history = history;
    this.#commits = commits;
  }

  /**
   * Takes over one page. If the directory is not lost, nothing is changed, unless the operator declares a
   * loss. A page can be sent again.
   */
  async reconcile(page: RestoreDirectory): Promise<Reply<DirectoryReconciliation>> {
    const isDeclared = await this.#history.declare(page);
    if (page.dryRun || !this.#history.isLost) {
      const isExamined = this.#history.isLost || isDeclared;
      return ok(this.#answer(isExamined ? this.#missingOf(page) : NOTHING));
    }
    const weight = 2 * (page.cells.length + page.keys.length);
    const { missing, durable } = await this.#commits.submit("restore_directory", () => this.#restore(page), {
      weight,
    });
    if (durable !== undefined) {
      durable();
      const { point } = this.#history;
      this.#ports.log("history_reconciled", {
        part: "the directory",
        reason: page.reason,
        incarnation: point?.incarnation ?? 0,
        position: point?.position ?? 0,
      });
    }
    return ok(this.#answer(missing));
  }

  #answer({ cells, keys, revocations }: Missing): DirectoryReconciliation {
    return {
      status: this.#history.status,
      cells: cells.map(({ cell }) => cell),
      keys: keys.length,
      revocations: revocations.length,
    };
  }

  /** Returns the copies that have more than the rows that are left. */
  #missingOf({ cells, keys }: RestoreDirectory): Missing {
    const isNewer = (copy: Cell): boolean =>
      copy.updatedAtMs > (this.#store.cell(copy.cell)?.updatedAtMs ?? Number.NEGATIVE_INFINITY);
    const isKnown = ({ keyId }: MintedKey): boolean => this.#store.key(keyId) !== undefined;
    return {
      cells: cells.filter(isNewer),
      keys: keys.filter((copy) => !isKnown(copy)),
      revocations: keys.filter(
        (copy) => copy.revokedAtMs !== null && (this.#store.key(copy.keyId)?.revokedAtMs ?? null) === null,
      ),
    };
  }

  #restore(page: RestoreDirectory): { missing: Missing; durable: (() => void) | undefined } {
    // Another call may have accepted the loss during the wait (M1).
    if (!this.#history.isLost) return { missing: NOTHING, durable: undefined };
    const missing = this.#missingOf(page);
    const { cells, keys, revocations } = missing;
    const hasPlacement = cells.length > 0 || page.isPlacementConfirmed;
    if (hasPlacement && this.#store.placement === undefined) this.#store.setPlacement(page.placement);
    for (const copy of cells) this.#store.putCell(copy);
    for (const copy of keys) this.#store.putKey(copy);
    for (const { keyId, revokedAtMs } of revocations) {
      const known = this.#store.key(keyId);
      if (known?.revokedAtMs === null) this.#store.putKey({ ...known, revokedAtMs });
    }
    if (!page.isLast) return { missing, durable: undefined };
    this.#store.forgetKeys(this.#ports.clock.now(), this.#limits.maxKeys);
    return { missing, durable: this.#accept(page.seen) };
  }

  #accept(seenByCaller: HistoryPoint | undefined): () => void {
    const own = { incarnation: this.#history.incarnation, position: this.#store.position };
    const seen = abovePoints(abovePoints(own, this.#history.status.loss?.seen), seenByCaller);
    const firstPosition = this.#store.position + 1;
    this.#store.raiseTo(Math.min(seen.position, MAX_BELIEVED) + POSITION_MARGIN);
    return this.#history.accept(seen, firstPosition, true);
  }
}

interface Missing {
  cells: Cell[];
  keys: MintedKey[];
  /** The keys whose revocation is missing. A key may be in both lists. */
  revocations: MintedKey[];
}

const NOTHING: Missing = { cells: [], keys: [], revocations: [] };
