import type { Serving } from "../peers/serve.ts";

const PAGE_ITEMS = 100;

export interface LeasePage {
  leases: { uuid: string }[];
  next_page_token: string;
}

/** Reads one cell's list of leases page by page, and starts again after the last page. */
export class LeasePages {
  readonly #serving: Serving;
  readonly #cell: string;
  #token = "";

  constructor(serving: Serving, cell: string) {
    this.#serving = serving;
    this.#cell = cell;
  }

  get isAtStart(): boolean {
    return this.#token === "";
  }

  /** Returns undefined when the call failed. */
  async next(): Promise<LeasePage | undefined> {
    const { url, keys } = this.#serving;
    const query = new URLSearchParams({
      page_size: String(PAGE_ITEMS),
      ...(this.isAtStart ? {} : { page_token: this.#token }),
    });
    const headers = { authorization: `Bearer ${keys[this.#cell] ?? ""}` };
    const answer = await fetch(`${url}/v1/cells/${this.#cell}/leases?${query}`, { headers });
    if (!answer.ok) return undefined;
    const page = (await answer.json()) as LeasePage;
    this.#token = page.next_page_token;
    return page;
  }
}
