import { refused, ok, type Result } from "../core/refusal.ts";

type Frame = { kind: "array"; index: number } | { kind: "object"; keys: Set<string>; key: string };

interface Fault {
  field: string;
  message: string;
}

/**
 * Parses JSON strictly, so that two parsers cannot disagree on its meaning: no duplicate keys, no
 * `__proto__`, and no nesting deeper than `maxDepth`. This is checked before any value is built.
 */
export function parseJson(text: string, maxDepth: number): Result<unknown> {
  const fault = scan(text, maxDepth);
  if (fault !== undefined)
    return refused("INVALID_ARGUMENT", `\`${fault.field}\` ${fault.message}`, { field: fault.field });
  try {
    return ok(JSON.parse(text) as unknown);
  } catch {
    return refused("INVALID_ARGUMENT", "the body must be valid JSON", { field: "body" });
  }
}

/**
 * Checks only keys and nesting. It may miss faults in text that is not JSON, which `JSON.parse` then refuses.
 */
function scan(text: string, maxDepth: number): Fault | undefined {
  const frames: Frame[] = [];
  for (let index = 0; index < text.length; index += 1) {
    const top = frames.at(-1);
    switch (text.charAt(index)) {
      case "{":
      case "[":
        frames.push(
          text[index] === "{" ? { kind: "object", keys: new Set(), key: "" } : { kind: "array", index: 0 },
        );
        if (frames.length > maxDepth)
          return { field: "body", message: `must not be nested deeper than ${maxDepth} levels` };
        break;
      case "}":
      case "]":
        frames.pop();
        break;
      case ",":
        if (top?.kind === "array") top.index += 1;
        break;
      case '"': {
        const end = endOfString(text, index);
        if (top?.kind === "object" && isKey(text, end)) {
          const key = unquote(text.slice(index, end));
          if (key === undefined) return undefined;
          top.key = key;
          if (key === "__proto__")
            return { field: pathOf(frames), message: "is not a known field; remove it" };
          if (top.keys.has(key)) return { field: pathOf(frames), message: "is given twice; give it once" };
          top.keys.add(key);
        }
        index = end - 1;
        break;
      }
      default:
    }
  }
  return undefined;
}

/** The index after the closing quote. */
function endOfString(text: string, start: number): number {
  for (let index = start + 1; index < text.length; index += 1) {
    if (text[index] === "\\") index += 1;
    else if (text[index] === '"') return index + 1;
  }
  return text.length;
}

function isKey(text: string, end: number): boolean {
  let index = end;
  while (/[ \t\r\n]/.test(text[index] ?? "")) index += 1;
  return text[index] === ":";
}

function unquote(quoted: string): string | undefined {
  if (!quoted.includes("\\")) return quoted.slice(1, -1);
  try {
    return JSON.parse(quoted) as string;
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

/** Names of unknown fields are the caller's own text, so they may have any length and lone surrogates. */
const shortened = (name: string): string =>
  (name.length <= 64 ? name : `${name.slice(0, 64)}…`).toWellFormed();
