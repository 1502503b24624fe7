import type { Change, Client } from "../../users/client/index.ts";
import { escapeControls } from "../../common/text/escape.ts";
import type { Watched, WatchEvent } from "./watch-event.ts";

/** Pages that one look reads. The next look goes on from there. */
const MAX_PAGES = 20;
const PAGE_SIZE = 1_000;

interface ChangeFilter {
  cell: string | undefined;
  type: string | undefined;
  from: string | undefined;
}

/** What happens to leases and claims, as the change feed tells it. */
export class ChangesWatch implements Watched {
  readonly #client: Client;
  readonly #filter: ChangeFilter;
  #checkpoint: string | undefined;
  /** Everything up to it was returned. */
  #printed: string | undefined;
  /** What was read and not printed yet, because a later page of the look failed. */
  #pending: WatchEvent[] = [];

  constructor(client: Client, filter: ChangeFilter) {
    this.#client = client;
    this.#filter = filter;
    this.#checkpoint = filter.from;
    this.#printed = filter.from;
  }

  get place(): string | undefined {
    return this.#printed;
  }

  async poll(): Promise<WatchEvent[]> {
    const { cell, type: bucketType } = this.#filter;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const options = { after: this.#checkpoint, cell, bucketType, pageSize: PAGE_SIZE };
      const { changes, checkpoint, hasMore, ranges } = await this.#client.changes.page(options);
      this.#pending.push(...changes.map(eventOf));
      if (checkpoint !== this.#checkpoint) this.#pending.push({ document: { checkpoint, ranges } });
      this.#checkpoint = checkpoint;
      if (!hasMore) break;
    }
    this.#printed = this.#checkpoint;
    return this.#pending.splice(0);
  }
}

function eventOf(change: Change): WatchEvent {
  const { event, cell_id: cell, lease_uuid: lease, epoch, claim } = change;
  const name =
    claim?.bucket === undefined
      ? "an erased name"
      : `${claim.bucket.type} ${escapeControls(claim.bucket.value)}`;
  return {
    document: { ...change },
    text:
      claim === undefined
        ? `lease ${lease} of cell ${cell}: ${event}`
        : `${name}: ${event} by cell ${cell}, epoch ${epoch}`,
  };
}
