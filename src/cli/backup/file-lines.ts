import { createReadStream } from "node:fs";
import { damaged } from "./format.ts";

/** A lease has at most 1.9 MB, and no other line is nearly as long. */
const MAX_LINE_BYTES = 16_777_216;
const CHUNK_BYTES = 1_048_576;
const LINE_FEED = 0x0a;

export interface FileLine {
  bytes: Buffer;
  /** Counted from 1. */
  number: number;
  /** The offset behind the line feed. */
  end: number;
}

/** Reads the lines of a file that end with a line feed. What follows the last line feed is left out. */
export async function* fileLines(path: string): AsyncGenerator<FileLine, void, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  let number = 0;
  let end = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES })) {
    const bytes = rest.length === 0 ? (chunk as Buffer) : Buffer.concat([rest, chunk as Buffer]);
    let from = 0;
    for (let to = bytes.indexOf(LINE_FEED); to !== -1; to = bytes.indexOf(LINE_FEED, from)) {
      number += 1;
      end += to + 1 - from;
      yield { bytes: bytes.subarray(from, to), number, end };
      from = to + 1;
    }
    rest = bytes.subarray(from);
    if (rest.length > MAX_LINE_BYTES)
      throw damaged(`line ${number + 1} has more than ${MAX_LINE_BYTES} bytes`);
  }
}
