/**
 * Finds the field at which a message can't be read (W13). The library says which field of JSON it is, but not
 * of which item of a list. Of a binary message it says nothing: it reads a field that has another type than
 * its own, and all that follows, as something else.
 */
import {
  fromJson,
  fromJsonString,
  ScalarType,
  type DescField,
  type DescMessage,
  type JsonReadOptions,
  type JsonValue,
} from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { shortened } from "../kernel/refusal.ts";

export interface MessageFault {
  /** Such as `create_records[0].claim.route`. Empty: the message as a whole. */
  field: string;
  /** The end of a sentence that begins with the field. */
  detail: string;
}

/** Returns a sentence. */
export const faultText = ({ field, detail }: MessageFault): string =>
  field === "" ? `the message ${detail}` : `\`${field}\` ${detail}`;

/** A field of a message. Its text is made only for a fault, because every message is searched. */
interface Place {
  parent: Place | undefined;
  name: string;
  index: number | undefined;
}

function textOf(place: Place | undefined): string {
  if (place === undefined) return "";
  const prefix = place.parent === undefined ? "" : `${textOf(place.parent)}.`;
  return prefix + place.name + (place.index === undefined ? "" : `[${place.index}]`);
}

/** Searches a binary message. */
export const binaryFault = (schema: DescMessage, message: Uint8Array): MessageFault | undefined =>
  new BinarySearch(message).fault(schema);

class BinarySearch {
  readonly #bytes: Uint8Array;
  readonly #reader: BinaryReader;
  /** The first field of another type. A message that is cut says so instead. */
  #other: MessageFault | undefined;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#reader = new BinaryReader(bytes);
  }

  fault(schema: DescMessage): MessageFault | undefined {
    return this.#message(schema, this.#bytes.length, undefined) ?? this.#other;
  }

  #message(schema: DescMessage, end: number, parent: Place | undefined): MessageFault | undefined {
    let counts: Map<number, number> | undefined;
    while (this.#reader.pos < end) {
      const tag = this.#tag();
      if (tag === undefined) return { field: textOf(parent), detail: "has bytes with which no field begins" };
      const [no, type] = tag;
      const field = fieldOf(schema, no);
      const place: Place = { parent, name: field?.name ?? String(no), index: undefined };
      if (field?.fieldKind === "list") {
        counts ??= new Map();
        place.index = counts.get(no) ?? 0;
        counts.set(no, place.index + 1);
      }
      const fault =
        type === WireType.LengthDelimited
          ? this.#content(field, end, place)
          : this.#number(no, type, end, place);
      if (fault !== undefined) return fault;
      if (field !== undefined && !isOfType(field, type))
        this.#note(place, `is sent as ${wireNames[type]}, and must be ${kindOf(field)}`);
    }
    return undefined;
  }

  #tag(): [number, WireType] | undefined {
    try {
      return this.#reader.tag();
    } catch {
      return undefined;
    }
  }

  #number(no: number, type: WireType, end: number, place: Place): MessageFault | undefined {
    const start = this.#reader.pos;
    try {
      this.#reader.skip(type, no);
    } catch {
      return { field: textOf(place), detail: MALFORMED };
    }
    if (this.#reader.pos > end) return { field: textOf(place), detail: MALFORMED };
    const isTooLong = type === WireType.Varint && this.#reader.pos - start > MAX_VARINT_BYTES;
    return isTooLong ? { field: textOf(place), detail: "is a number of more than 64 bits" } : undefined;
  }

  /** Reads a text, bytes, a message or a packed list. */
  #content(field: DescField | undefined, end: number, place: Place): MessageFault | undefined {
    let length: number;
    try {
      length = this.#reader.uint32();
    } catch {
      return { field: textOf(place), detail: MALFORMED };
    }
    const start = this.#reader.pos;
    const contentEnd = start + length;
    if (contentEnd > end) {
      const arrived = Math.max(0, end - start);
      return { field: textOf(place), detail: `is cut: it has ${length} bytes, of which ${arrived} arrived` };
    }
    const child = field?.message;
    const packed = field === undefined ? undefined : packedType(field);
    if (child !== undefined) {
      const fault = this.#message(child, contentEnd, place);
      if (fault !== undefined) return fault;
    } else if (packed !== undefined)
      while (this.#reader.pos < contentEnd) {
        const fault = this.#number(0, packed, contentEnd, place);
        if (fault !== undefined) return fault;
      }
    else if (field !== undefined && isText(field) && !isUtf8(this.#bytes.subarray(start, contentEnd)))
      this.#note(place, "is not UTF-8");
    this.#reader.pos = contentEnd;
    return undefined;
  }

  #note(place: Place, detail: string): void {
    this.#other ??= { field: textOf(place), detail };
  }
}

const MALFORMED = "is cut or malformed";
const MAX_VARINT_BYTES = 10;

const wireNames: Readonly<Record<WireType, string>> = {
  [WireType.Varint]: "a number",
  [WireType.Bit64]: "8 bytes",
  [WireType.LengthDelimited]: "bytes",
  [WireType.StartGroup]: "a group",
  [WireType.EndGroup]: "the end of a group",
  [WireType.Bit32]: "4 bytes",
};

const fieldsOf = new WeakMap<DescMessage, Map<number, DescField>>();

function fieldOf(schema: DescMessage, no: number): DescField | undefined {
  let fields = fieldsOf.get(schema);
  if (fields === undefined) {
    fields = new Map(schema.fields.map((field) => [field.number, field]));
    fieldsOf.set(schema, fields);
  }
  return fields.get(no);
}

const isText = (field: DescField): boolean => field.scalar === ScalarType.STRING;

/** How the field is sent, or each item of a list. */
function wireTypeOf({ scalar, enum: values }: DescField): WireType {
  switch (scalar) {
    case undefined:
      return values === undefined ? WireType.LengthDelimited : WireType.Varint;
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return WireType.LengthDelimited;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return WireType.Bit64;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return WireType.Bit32;
    default:
      return WireType.Varint;
  }
}

/** The type of the items of a list of numbers, which may be sent as one field. */
function packedType(field: DescField): WireType | undefined {
  const type = wireTypeOf(field);
  return field.fieldKind === "list" && type !== WireType.LengthDelimited ? type : undefined;
}

const isOfType = (field: DescField, type: WireType): boolean =>
  type === wireTypeOf(field) || (type === WireType.LengthDelimited && packedType(field) !== undefined);

function kindOf({ message, enum: values, scalar }: DescField): string {
  if (message !== undefined) return `a ${message.name}`;
  if (values !== undefined) return `a value of the enum ${values.name}`;
  if (scalar === ScalarType.STRING) return "text";
  if (scalar === ScalarType.BYTES) return "bytes";
  return scalar === ScalarType.BOOL ? "true or false" : "a whole number";
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Most texts are ASCII, for which no decoder is needed. */
function isUtf8(bytes: Uint8Array): boolean {
  let index = 0;
  while ((bytes[index] ?? 128) < 128) index += 1;
  if (index === bytes.length) return true;
  try {
    utf8.decode(bytes);
    return true;
  } catch {
    return false;
  }
}

/** Searches a message in JSON, which the library could not read. */
export function jsonFault(
  schema: DescMessage,
  text: string,
  options: Partial<JsonReadOptions>,
): MessageFault | undefined {
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch {
    return { field: "", detail: "is not JSON" };
  }
  const fault = faultIn(schema, value, "", options);
  if (fault !== undefined) return fault;
  try {
    fromJsonString(schema, text, options);
    return undefined;
  } catch {
    return { field: "", detail: "has an object with a key that is there twice" };
  }
}

function faultIn(
  schema: DescMessage,
  value: JsonValue,
  at: string,
  options: Partial<JsonReadOptions>,
): MessageFault | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return { field: at, detail: "must be an object" };
  for (const [key, sent] of Object.entries(value)) {
    const field = schema.fields.find(({ name, jsonName }) => name === key || jsonName === key);
    const place = `${at === "" ? "" : `${at}.`}${field?.name ?? shortened(key)}`;
    if (field === undefined) return { field: place, detail: "is no field of the message" };
    const fault = faultOfField(schema, field, key, sent, place, options);
    if (fault !== undefined) return fault;
  }
  return canRead(schema, value, options)
    ? undefined
    : { field: at, detail: "has two fields of which only one may be sent, or one of them twice" };
}

function faultOfField(
  schema: DescMessage,
  field: DescField,
  key: string,
  sent: JsonValue,
  place: string,
  options: Partial<JsonReadOptions>,
): MessageFault | undefined {
  if (canRead(schema, { [key]: sent }, options)) return undefined;
  const isList = field.fieldKind === "list";
  if (isList && !Array.isArray(sent)) return { field: place, detail: "must be a list" };
  const items = isList ? (sent as JsonValue[]) : [sent];
  for (const [index, item] of items.entries()) {
    const itemPlace = isList ? `${place}[${index}]` : place;
    if (canRead(schema, { [key]: isList ? [item] : item }, options)) continue;
    // Messages of Google's have a form of their own in JSON.
    const isOwn = field.message !== undefined && !field.message.typeName.startsWith("google.protobuf.");
    const inside = isOwn ? faultIn(field.message, item, itemPlace, options) : undefined;
    return inside ?? { field: itemPlace, detail: `must be ${kindOf(field)}` };
  }
  return { field: place, detail: `must be ${kindOf(field)}` };
}

function canRead(schema: DescMessage, value: JsonValue, options: Partial<JsonReadOptions>): boolean {
  try {
    fromJson(schema, value, options);
    return true;
  } catch {
    return false;
  }
}
