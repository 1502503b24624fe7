import { Markup } from "../api/docs/markup.ts";
import { escapeControls } from "../../common/text/escape.ts";

export { Markup };

export type Part = string | number | Markup | null | undefined | readonly Part[];

/**
 * An HTML template. It escapes its values, except those that are markup already. Characters that are
 * invisible or change the direction of the text appear as `\u202e`, because names may have them to look like
 * others.
 */
export function html(literals: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  return new Markup(literals.map((literal, index) => literal + textOf(parts[index])).join(""));
}

/** The value of a form's field: it is sent back, so its invisible characters stay as they are. */
export const fieldValue = (value: string): Markup => new Markup(escapeHtml(value));

function textOf(part: Part): string {
  if (part === undefined || part === null) return "";
  if (part instanceof Markup) return part.text;
  if (typeof part === "object") return part.map(textOf).join("");
  return escapeHtml(escapeControls(String(part)));
}

const escapeHtml = (text: string): string =>
  text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

/** A number with separators, such as `12,400`. */
export const countText = (count: number): string => count.toLocaleString("en-US");

const units = [
  [1_000_000_000, "GB"],
  [1_000_000, "MB"],
  [1_000, "kB"],
] as const;

export function sizeText(bytes: number): string {
  const [least, unit] = units.find(([each]) => bytes >= each) ?? [1, "B"];
  const amount = bytes / least;
  return `${amount.toFixed(amount < 10 && least > 1 ? 1 : 0)} ${unit}`;
}
