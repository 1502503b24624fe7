import type { Operations } from "./api-types.ts";
import type { Caller, Input } from "./caller.ts";
import { valueOf } from "./errors.ts";
import type { OperationId } from "./hooks.ts";

export interface Page<Item> {
  items: readonly Item[];
  /** "" on the last page. */
  nextPageToken: string;
}

/**
 * A listing whose pages are read on demand. `for await` yields the items, `pages()` the pages. If a page
 * fails, it throws: a listing is never cut short. A page token that comes twice is an error. `Each` is the
 * type of a page.
 */
export class Pages<Item, Each extends Page<Item> = Page<Item>> implements AsyncIterable<Item> {
  readonly #read: (pageToken: string) => Promise<Each>;
  readonly #from: string;

  constructor(read: (pageToken: string) => Promise<Each>, from = "") {
    this.#read = read;
    this.#from = from;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const { items } of this.pages()) yield* items;
  }

  async *pages(): AsyncGenerator<Each, void, undefined> {
    const seen = new Set([this.#from]);
    for (let token = this.#from; ;) {
      const page = await this.#read(token);
      yield page;
      if (page.nextPageToken === "") return;
      if (seen.has(page.nextPageToken)) throw new Error("the listing returned the same page token twice");
      seen.add(page.nextPageToken);
      token = page.nextPageToken;
    }
  }

  /** Reads all items into memory. */
  async all(): Promise<Item[]> {
    const all: Item[] = [];
    for await (const item of this) all.push(item);
    return all;
  }
}

/** The listings of which only the items are needed. */
type Listing = "listCells" | "listKeys" | "listCredentialUses" | "listLeases" | "listTransfers";

/** Lists page by page, from a page token or from the beginning. */
export const pagesOf = <Id extends OperationId, Item, Each extends Page<Item>>(
  caller: Caller,
  operation: Id,
  input: Input<Id>,
  pageOf: (answer: Operations[Id]["answer"]) => Each,
  from: string | undefined,
): Pages<Item, Each> =>
  new Pages(async (token) => {
    const query = { ...input.query, page_token: token };
    return pageOf(valueOf(await caller.call(operation, { ...input, query })));
  }, from);

/** The same for a listing of which only the items are needed. */
export const listing = <Id extends Listing, Item>(
  caller: Caller,
  operation: Id,
  input: Input<Id>,
  itemsOf: (answer: Operations[Id]["answer"]) => readonly Item[],
  from: string | undefined,
): Pages<Item> =>
  pagesOf(
    caller,
    operation,
    input,
    (answer) => ({ items: itemsOf(answer), nextPageToken: answer.next_page_token }),
    from,
  );
