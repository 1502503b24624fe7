/**
 * A queue that takes the items of several owners in turn, so that one owner with many items does not keep the
 * others waiting. The items of one owner stay in their order.
 */
export class FairQueue<Item> {
  /** The owners with waiting items, in the order in which they get their turns. */
  readonly #byOwner = new Map<string, Item[]>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  lengthOf(owner: string): number {
    return this.#byOwner.get(owner)?.length ?? 0;
  }

  push(owner: string, item: Item): void {
    const items = this.#byOwner.get(owner);
    if (items === undefined) this.#byOwner.set(owner, [item]);
    else items.push(item);
    this.#length += 1;
  }

  /** Returns the next item without taking it. */
  peek(): Item | undefined {
    const [items] = this.#byOwner.values();
    return items?.[0];
  }

  /** Takes the next item. Its owner gets its next turn after all other owners. */
  shift(): Item | undefined {
    const [entry] = this.#byOwner;
    if (entry === undefined) return undefined;
    const [owner, items] = entry;
    const item = items.shift();
    this.#byOwner.delete(owner);
    if (items.length > 0) this.#byOwner.set(owner, items);
    this.#length -= 1;
    return item;
  }

  /** Takes all items. */
  drain(): Item[] {
    const items = [...this.#byOwner.values()].flat();
    this.#byOwner.clear();
    this.#length = 0;
    return items;
  }
}
