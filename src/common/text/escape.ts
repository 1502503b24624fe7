/** Control, format, surrogate, private and unassigned characters, and other separators of lines. */
const UNSAFE = /[\p{C}\p{Zl}\p{Zp}]/gu;

/**
 * Shows a text from outside on one line of a terminal. Characters that could move the cursor, change colors,
 * reverse the direction or stay invisible appear as `\u202e`.
 */
export const escapeControls = (text: string): string =>
  text.replaceAll("\\", "\\\\").replaceAll(UNSAFE, asUnits);

/**
 * The same for a text that has lines. It keeps backslashes, so it changes nothing in parts that are escaped
 * already, and strings in JSON keep their meaning.
 */
export const escapeLines = (text: string): string =>
  text.replaceAll(UNSAFE, (char) => (char === "\n" ? char : asUnits(char)));

/** JSON that is safe to show on a terminal. */
export const toJson = (value: unknown, indent?: number): string =>
  escapeLines(JSON.stringify(value, null, indent));

/** `\uXXXX` for each UTF-16 code unit, as JSON writes them. */
function asUnits(char: string): string {
  let text = "";
  for (let at = 0; at < char.length; at += 1)
    text += `\\u${char.charCodeAt(at).toString(16).padStart(4, "0")}`;
  return text;
}
