import { expect, test } from "vitest";
import { FrameReader, type Frame } from "../../../src/hosts/grpc/request-guard.ts";

function frame(bytes: number, isCompressed = false): Buffer {
  const made = Buffer.alloc(5 + bytes, 1);
  made.writeUInt8(isCompressed ? 1 : 0, 0);
  made.writeUInt32BE(bytes, 1);
  return made;
}

test("messages are found, however they are cut into chunks", () => {
  const sizes = [0, 3, 300, 0, 70_000, 1];
  const all = Buffer.concat(sizes.map((bytes, no) => frame(bytes, no % 2 === 1)));
  for (const step of [1, 2, 4, 5, 6, 7, 299, 16_384, all.length]) {
    const reader = new FrameReader();
    const found: Frame[] = [];
    for (let at = 0; at < all.length; at += step) found.push(...reader.read(all.subarray(at, at + step)));
    expect(found).toEqual(sizes.map((bytes, no) => ({ bytes, isCompressed: no % 2 === 1 })));
    expect(reader.begun).toBe(sizes.length);
  }
});

test("an incomplete message is known by its flag and by its length", () => {
  const reader = new FrameReader();
  expect([reader.read(frame(2)), reader.begun]).toEqual([[{ bytes: 2, isCompressed: false }], 1]);
  expect([reader.read(Buffer.from([0])), reader.begun]).toEqual([[], 2]);
  expect([reader.read(Buffer.from([255, 255, 255, 255, 1])), reader.bytes]).toEqual([[], 2 ** 32 - 1]);
});
