import { wallClock } from "../runtime.ts";

/**
 * The length of the names after which other work may run, in UTF-16 units. Checking
 * them takes about half a millisecond, and a whole one if normalization has to sort marks.
 */
const PART_LENGTH = 4_096;

/** What a name costs whatever its length, because its shard has to be computed. */
const NAME_LENGTH = 16;

/**
 * Goes through items that each have a name. After each part of them, it lets the work of other requests run.
 * Checking all names of a large request at once would delay each step of every other request by as much.
 */
export async function* inParts<Item>(
  items: Iterable<Item>,
  nameOf: (item: Item) => string,
): AsyncGenerator<Item, void, void> {
  let length = 0;
  for (const item of items) {
    if (length >= PART_LENGTH) {
      await new Promise<void>((resume) => void wallClock.after(0, resume));
      length = 0;
    }
    length += NAME_LENGTH + nameOf(item).length;
    yield item;
  }
}
