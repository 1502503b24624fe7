export interface Page<Item> {
  items: readonly Item[];
  /** "" on the last page. */
  nextPageToken: string;
}

/**
 * A listing, page by page as it is needed. `for await` goes over the items, `pages()` over the pages. Throws what a page throws: never a short
 * list. A listing that repeats itself is an error, not a loop without end. `Each`: what its pages say besides.
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
      if (seen.has(page.nextPageToken))
        throw new Error("the listing repeats itself: a page token came twice");
      seen.add(page.nextPageToken);
      token = page.nextPageToken;
    }
  }

  /** All of it, in memory. */
  async all(): Promise<Item[]> {
    const all: Item[] = [];
    for await (const item of this) all.push(item);
    return all;
  }
}
