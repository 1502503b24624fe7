/** A message of a stream that has arrived as a whole. */
export interface Frame {
  bytes: number;
  isCompressed: boolean;
}

export const HEADER_BYTES = 5;

/** Follows the messages of a stream: each has a flag, its length in 4 bytes, and its content. */
export class FrameReader {
  /** How many messages have begun. */
  begun = 0;
  /** How long the last of them is, or as much of its length as has arrived. */
  bytes = 0;
  #headerBytes = 0;
  #isCompressed = false;
  #missing = 0;

  /** Returns the messages that end in this chunk. */
  read(chunk: Uint8Array): Frame[] {
    const whole: Frame[] = [];
    for (let at = 0; at < chunk.length;) {
      if (this.#headerBytes < HEADER_BYTES) {
        this.#readHeader(chunk[at] ?? 0);
        at += 1;
      } else {
        const taken = Math.min(this.#missing, chunk.length - at);
        this.#missing -= taken;
        at += taken;
      }
      if (this.#headerBytes < HEADER_BYTES || this.#missing > 0) continue;
      whole.push({ bytes: this.bytes, isCompressed: this.#isCompressed });
      this.#headerBytes = 0;
    }
    return whole;
  }

  #readHeader(byte: number): void {
    if (this.#headerBytes === 0) {
      this.begun += 1;
      this.#isCompressed = byte === 1;
      this.bytes = 0;
    } else {
      this.bytes = this.bytes * 256 + byte;
      this.#missing = this.bytes;
    }
    this.#headerBytes += 1;
  }
}
