import { NotFoundError, type AuditEntry, type Cell, type Client } from "../../users/client/index.ts";
import { auditChanges, type AuditChange } from "../../common/status/audit-changes.ts";
import { escapeControls } from "../../common/text/escape.ts";
import { take } from "../output/result.ts";
import type { Watched, WatchEvent } from "./watch-event.ts";

interface FleetOptions {
  cell: string | undefined;
  /** Audit entries from this time on are events. */
  fromMs: number;
  /** Says something once, on standard error. */
  warn: (text: string) => void;
}

const MAX_CELLS = 1_000;
/** Open leases of a cell that are followed. */
const MAX_LEASES = 1_000;
/** Leases of a cell that are asked for their decision in one look. */
const MAX_DECIDED = 200;
const MAX_ENTRIES = 1_000;
/** Entries reach D1 within a minute, so they are asked for again for longer. */
const LATE_MS = 5 * 60_000;

interface SeenCell {
  state: string | null;
  address: string;
}

/** Cells, leases and what operators change, read from time to time. */
export class FleetWatch implements Watched {
  readonly #client: Client;
  readonly #options: FleetOptions;
  readonly #cells = new Map<string, SeenCell>();
  /** The open leases of each cell. */
  readonly #open = new Map<string, Set<string>>();
  /** The ids of entries that were printed, with their times. */
  readonly #entries = new Map<string, number>();
  readonly #warned = new Set<string>();
  readonly #pending: WatchEvent[] = [];
  #auditFromMs: number;
  #latestMs: number;

  constructor(client: Client, options: FleetOptions) {
    this.#client = client;
    this.#options = options;
    this.#auditFromMs = options.fromMs;
    this.#latestMs = options.fromMs;
  }

  get place(): string {
    return new Date(this.#latestMs).toISOString();
  }

  async poll(): Promise<WatchEvent[]> {
    const { items, isCut } = await take(this.#client.cells.list(), MAX_CELLS);
    if (isCut) this.#warnOnce(`only the first ${MAX_CELLS} cells are followed`);
    const { cell } = this.#options;
    const cells = items.filter(({ cell_id: id }) => cell === undefined || id === cell);
    const removed = isCut ? [] : await this.#newlyRemoved(new Set(cells.map(({ cell_id: id }) => id)));
    // What was found stays here if a later call of this look fails.
    this.#pending.push(...this.#cellEvents([...cells, ...removed]));
    for (const { cell_id: id } of removed) this.#open.delete(id);
    for (const { cell_id: id, state } of cells)
      if (state !== null) this.#pending.push(...(await this.#leaseEvents(id)));
    this.#pending.push(...(await this.#auditEvents()));
    return this.#pending.splice(0);
  }

  /** The cells that were listed before and are not any more, because they were removed (X5). */
  async #newlyRemoved(listed: ReadonlySet<string>): Promise<Cell[]> {
    const followed = [...this.#cells].filter(([, { state }]) => state !== "REMOVED");
    const gone = new Set(followed.map(([id]) => id).filter((id) => !listed.has(id)));
    if (gone.size === 0) return [];
    const removed: Cell[] = [];
    for await (const cell of this.#client.cells.list({ includeRemoved: true }))
      if (gone.has(cell.cell_id) && cell.removed_at !== null) removed.push({ ...cell, state: "REMOVED" });
    return removed;
  }

  #cellEvents(cells: readonly Cell[]): WatchEvent[] {
    const isFirst = this.#cells.size === 0;
    const events: WatchEvent[] = [];
    for (const { cell_id: cell, state, address } of cells) {
      const before = this.#cells.get(cell);
      this.#cells.set(cell, { state, address });
      if (isFirst || (before?.state === state && before.address === address)) continue;
      events.push({
        document: { event: "cell", cell, state, address, before: before ?? null },
        text: `cell ${cell}: ${state ?? "can't be reached"}, ${escapeControls(address)}`,
      });
    }
    return events;
  }

  async #leaseEvents(cell: string): Promise<WatchEvent[]> {
    const { leases } = this.#client.forCell(cell);
    const { items, isCut } = await take(leases.list(), MAX_LEASES);
    if (isCut) this.#warnOnce(`only the oldest ${MAX_LEASES} open leases of cell ${cell} are followed`);
    const before = this.#open.get(cell);
    const now = new Set(items.map(({ uuid }) => uuid));
    const events: WatchEvent[] = [];
    for (const { uuid, counts } of before === undefined ? [] : items)
      if (before?.has(uuid) === false)
        events.push({
          document: { event: "lease", cell, lease: uuid, state: "GRANTED", counts },
          text:
            `lease ${uuid} of cell ${cell}: GRANTED, ${counts.creates} creates, ` +
            `${counts.destroys} destroys, ${counts.replaces} replaces`,
        });
    const gone = [...(before ?? [])].filter((uuid) => !now.has(uuid));
    if (gone.length > MAX_DECIDED)
      this.#warnOnce(`only ${MAX_DECIDED} decided leases of cell ${cell} are printed per look`);
    for (const uuid of gone.slice(0, MAX_DECIDED)) events.push(...(await this.#decided(cell, uuid)));
    this.#open.set(cell, now);
    return events;
  }

  /** A lease that is still granted has only left the part of the list that is followed. */
  async #decided(cell: string, uuid: string): Promise<WatchEvent[]> {
    try {
      const { state, decided_by: by } = await this.#client.forCell(cell).leases.get(uuid);
      if (state === "GRANTED") return [];
      return [
        {
          document: { event: "lease", cell, lease: uuid, state, decided_by: by },
          text: `lease ${uuid} of cell ${cell}: ${state}`,
        },
      ];
    } catch (error) {
      if (error instanceof NotFoundError) return [];
      throw error;
    }
  }

  async #auditEvents(): Promise<WatchEvent[]> {
    const { cell } = this.#options;
    const after = new Date(this.#auditFromMs).toISOString();
    const { items, isCut } = await take(this.#client.audit.list({ cell, after }), MAX_ENTRIES);
    if (isCut) this.#warnOnce(`only the latest ${MAX_ENTRIES} audit entries are printed per look`);
    const fresh = items.filter(({ id }) => !this.#entries.has(id)).toReversed();
    for (const { id, at } of fresh) this.#entries.set(id, Date.parse(at));
    this.#latestMs = Math.max(this.#latestMs, ...fresh.map(({ at }) => Date.parse(at) + 1));
    this.#auditFromMs = Math.max(this.#options.fromMs, this.#latestMs - LATE_MS);
    for (const [id, atMs] of this.#entries) if (atMs < this.#auditFromMs) this.#entries.delete(id);
    return auditChanges(fresh).map(auditEvent);
  }

  #warnOnce(text: string): void {
    if (this.#warned.has(text)) return;
    this.#warned.add(text);
    this.#options.warn(text);
  }
}

const auditEvent = (entry: AuditChange<AuditEntry>): WatchEvent => ({
  document: { event: "audit", ...entry },
  text:
    `audit ${entry.at}: ${entry.action} ${escapeControls(entry.target)} with key ` +
    escapeControls(entry.key_id) +
    (entry.key_note === null ? "" : ` (${escapeControls(entry.key_note)})`) +
    (entry.reason === null ? "" : `, because: ${escapeControls(entry.reason)}`),
});
