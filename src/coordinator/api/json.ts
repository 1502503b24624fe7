import { refused, ok, shortened, type Result } from "../kernel/refusal.ts";
import { tooManyItems, type Bounds } from "./list-limits.ts";

type Frame = { kind: "array"; index: number; items: ItemBound | undefined } | ObjectFrame;

interface ObjectFrame {
  kind: "object";
  keys: string[];
  /** Those of a large object. */
  others: Set<string> | undefined;
  /** The latest key. */
  key: string;
}

type ItemBound = ReturnType<Bounds["items"]>;

interface Fault {
  field: string;
  message: string;
}

/**
 * Parses JSON strictly, so that two parsers cannot disagree on its meaning: no duplicate keys, no
 * `__proto__`, no number that would be rounded to an integer, and nothing beyond the `bounds`. This is
 * checked before any value is built.
 */
export function parseJson(text: string, bounds: Bounds): Result<unknown> {
  const fault = scan(text, bounds);
  if (fault !== undefined)
    return refused("INVALID_ARGUMENT", `\`${fault.field}\` ${fault.message}`, { field: fault.field });
  try {
    return ok(JSON.parse(text) as unknown);
  } catch {
    return refused("INVALID_ARGUMENT", "the body must be valid JSON", { field: "body" });
  }
}

/**
 * Checks keys, numbers and bounds, and stops at the first fault. It may miss faults in text that is not JSON,
 * which `JSON.parse` then refuses.
 */
function scan(text: string, bounds: Bounds): Fault | undefined {
  const frames: Frame[] = [];
  let top: Frame | undefined;
  // Counts a value at its comma, and the first value of a list or object at its bracket.
  let values = 1;
  for (let index = 0; index < text.length; index += 1) {
    switch (text.charCodeAt(index)) {
      case OPEN_BRACE:
      case OPEN_BRACKET:
        top =
          text.charCodeAt(index) === OPEN_BRACE
            ? { kind: "object", keys: [], others: undefined, key: "" }
            : { kind: "array", index: 0, items: bounds.items(listPathOf(frames)) };
        frames.push(top);
        if (frames.length > bounds.depth)
          return { field: "body", message: `must not be nested deeper than ${bounds.depth} levels` };
        values += 1;
        if (values > bounds.values) return tooManyValues(frames, bounds);
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        frames.pop();
        top = frames.at(-1);
        break;
      case COMMA:
        if (top?.kind === "array") {
          top.index += 1;
          if (top.items !== undefined && top.index >= top.items.most)
            return { field: pathOf(frames), message: tooManyItems(top.items) };
        }
        values += 1;
        if (values > bounds.values) return tooManyValues(frames, bounds);
        break;
      case QUOTE: {
        const end = endOfString(text, index);
        if (top?.kind === "object" && isKey(text, end)) {
          const key = unquote(text, index, end);
          if (key === undefined) return undefined;
          top.key = key;
          if (key === "__proto__")
            return { field: pathOf(frames), message: "is not a known field; remove it" };
          if (!addKey(top, key)) return { field: pathOf(frames), message: "is given twice; give it once" };
        }
        index = end - 1;
        break;
      }
      case MINUS:
      case ZERO:
      case ZERO + 1:
      case ZERO + 2:
      case ZERO + 3:
      case ZERO + 4:
      case ZERO + 5:
      case ZERO + 6:
      case ZERO + 7:
      case ZERO + 8:
      case ZERO + 9: {
        const end = endOfNumber(text, index);
        if (isRounded(text.slice(index, end)))
          return {
            field: pathOf(frames),
            message: "is not a number that JSON represents exactly; send an id as a string",
          };
        index = end - 1;
        break;
      }
      default:
    }
  }
  return undefined;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const ZERO = 0x30;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Objects have few keys. A list of so many is searched faster than a set is made. */
const FEW_KEYS = 16;

/** False: the object has the key already. */
function addKey(frame: ObjectFrame, key: string): boolean {
  if (frame.keys.includes(key) || frame.others?.has(key) === true) return false;
  if (frame.keys.length < FEW_KEYS) frame.keys.push(key);
  else (frame.others ??= new Set()).add(key);
  return true;
}

/** The index after the closing quote, which has an even number of backslashes before it. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let first = end;
    while (text.charCodeAt(first - 1) === BACKSLASH) first -= 1;
    if ((end - first) % 2 === 0) return end + 1;
  }
  return text.length;
}

/** Far longer than any integer has to be written. It limits the work of comparing. */
const MAX_NUMBER_LENGTH = 64;

function endOfNumber(text: string, start: number): number {
  let index = start + 1;
  while (/[\d.eE+-]/.test(text.charAt(index))) index += 1;
  return index;
}

/**
 * Whether a number that is not this integer becomes a safe integer when it is parsed, such as
 * `9007199254740991.4`. All numbers of the API are safe integers, and the schemas refuse the others.
 */
function isRounded(literal: string): boolean {
  if (literal.length > MAX_NUMBER_LENGTH) return true;
  const value = Number(literal);
  if (/^-?\d{1,15}$/.test(literal) || !Number.isSafeInteger(value)) return false;
  return decimalOf(literal) !== decimalOf(String(value));
}

/** The exact value of a decimal number, written in one way only: its digits and the power of ten behind. */
function decimalOf(literal: string): string {
  const [mantissa = "", exponent = "0"] = literal.toLowerCase().split("e");
  const [whole = "", fraction = ""] = mantissa.replace("-", "").split(".");
  const digits = (whole + fraction).replace(/^0+/, "");
  const significant = digits.replace(/0+$/, "");
  if (significant === "") return "0";
  const power = BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - significant.length);
  return `${mantissa.startsWith("-") ? "-" : ""}${significant}e${power}`;
}

function isKey(text: string, end: number): boolean {
  let index = end;
  while (isSpace(text.charCodeAt(index))) index += 1;
  return text.charCodeAt(index) === COLON;
}

const isSpace = (code: number): boolean => code === 0x20 || code === 0x09 || code === 0x0a || code === 0x0d;

/** Returns the text of a string without its quotes. */
function unquote(text: string, start: number, end: number): string | undefined {
  const quoted = text.slice(start + 1, end - 1);
  if (!quoted.includes("\\")) return quoted;
  try {
    return JSON.parse(`"${quoted}"`) as string;
  } catch {
    return undefined;
  }
}

/** The path of a field in its usual notation, such as `creates[3].bucket.value`. */
export function fieldPath(path: readonly PropertyKey[]): string {
  let field = "";
  for (const part of path) {
    if (typeof part === "number") field += `[${part}]`;
    else field += (field === "" ? "" : ".") + shortened(String(part));
  }
  return field;
}

const pathOf = (frames: readonly Frame[]): string =>
  fieldPath(frames.map((frame) => (frame.kind === "array" ? frame.index : frame.key))) || "body";

/** Longer than any field of the contract. A longer key belongs to no list, and copying it takes time. */
const MAX_FIELD_NAME = 64;

/** The path of a list without indexes, as `Bounds` has it. */
const listPathOf = (frames: readonly Frame[]): string =>
  frames
    .map((frame) => (frame.kind === "array" ? "[]" : `.${frame.key.slice(0, MAX_FIELD_NAME)}`))
    .join("")
    .slice(1);

const tooManyValues = (frames: readonly Frame[], { values }: Bounds): Fault => ({
  field: pathOf(frames),
  message: `is beyond the limit of ${values} fields and items in one body; send fewer`,
});
