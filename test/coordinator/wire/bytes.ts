/**
 * Protobuf by hand: the messages of generations whose schemas this project does not have. Nothing here knows
 * the schemas that the coordinator uses.
 */

type Value = bigint | number | string | Uint8Array | Fields;
/** A list of fields, because a number may occur more than once. */
export type Fields = readonly (readonly [no: number, value: Value])[];

export function encode(fields: Fields): Uint8Array {
  return joined(
    fields.map(([no, value]) => {
      if (typeof value === "bigint" || typeof value === "number")
        return joined([varint(BigInt(no * 8)), varint(BigInt(value))]);
      const bytes =
        typeof value === "string"
          ? new TextEncoder().encode(value)
          : value instanceof Uint8Array
            ? value
            : encode(value);
      return joined([varint(BigInt(no * 8 + 2)), varint(BigInt(bytes.length)), bytes]);
    }),
  );
}

/** The fields of a message: numbers as they are, everything else as bytes. */
export function decode(bytes: Uint8Array): [number, bigint | Uint8Array][] {
  const fields: [number, bigint | Uint8Array][] = [];
  let offset = 0;
  const read = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[offset++] ?? 0;
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (offset < bytes.length) {
    const tag = Number(read());
    const value = read();
    if (tag % 8 === 0) fields.push([tag >> 3, value]);
    else {
      fields.push([tag >> 3, bytes.slice(offset, offset + Number(value))]);
      offset += Number(value);
    }
  }
  return fields;
}

/** The message at a path of field numbers, each the first with its number. */
export function at(bytes: Uint8Array, ...path: number[]): bigint | Uint8Array | undefined {
  let value: bigint | Uint8Array | undefined = bytes;
  for (const no of path)
    value = value instanceof Uint8Array ? decode(value).find(([each]) => each === no)?.[1] : undefined;
  return value;
}

function varint(value: bigint): Uint8Array {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return Uint8Array.from([...bytes, Number(rest)]);
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}
