/** Control, format, surrogate, private and unassigned characters, and other separators of lines. */
const UNSAFE = /[\p{C}\p{Zl}\p{Zp}]/gu;

/**
 * Shows a text from outside on one line of a terminal. Characters that could move the cursor, change colors,
 * reverse the direction or stay invisible appear as `\u{...}`.
 */
export const escapeControls = (text: string): string =>
  text.replaceAll("\\", "\\\\").replaceAll(UNSAFE, (char) => `\\u{${codeOf(char).toString(16)}}`);

/**
 * The same for a text that has lines. It keeps backslashes, so it changes nothing in parts that are escaped
 * already.
 */
export const escapeLines = (text: string): string =>
  text.replaceAll(UNSAFE, (char) => (char === "\n" ? char : `\\u{${codeOf(char).toString(16)}}`));

const codeOf = (char: string): number => char.codePointAt(0) ?? 0;

/** The same characters, except the white space that formats the document. */
const UNSAFE_IN_JSON = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** JSON that is safe to show on a terminal. Strings keep their meaning. */
export const toJson = (value: unknown, indent?: number): string =>
  JSON.stringify(value, null, indent).replaceAll(UNSAFE_IN_JSON, (char) =>
    char === "\n" ? char : [...asUnits(char)].join(""),
  );

/** `\uXXXX` for each UTF-16 code unit, as JSON writes them. */
function* asUnits(char: string): Generator<string> {
  for (let at = 0; at < char.length; at += 1) yield `\\u${char.charCodeAt(at).toString(16).padStart(4, "0")}`;
}
