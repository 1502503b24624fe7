/** HTML that is safe to put into a page. Only `html` makes it. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = string | number | Markup | undefined | readonly Part[];

/** An HTML template. It escapes its values, except those that are markup already. */
export function html(literals: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  return new Markup(literals.map((literal, index) => literal + textOf(parts[index])).join(""));
}

function textOf(part: Part): string {
  if (part === undefined) return "";
  if (part instanceof Markup) return part.text;
  if (typeof part === "object") return part.map(textOf).join("");
  return String(part).replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Renders `code`, *emphasis* and **strong** in a text. */
export function inline(text: string): Markup {
  const parts = text.split(/(`[^`]+`|\*\*[^*]+\*\*|\*[^*]+\*)/);
  return html`${parts.map((part) => {
    if (part.startsWith("`")) return html`<code>${part.slice(1, -1)}</code>`;
    if (part.startsWith("**")) return html`<strong>${part.slice(2, -2)}</strong>`;
    if (part.startsWith("*")) return html`<em>${part.slice(1, -1)}</em>`;
    return part;
  })}`;
}

export interface Chapter {
  /** Empty for the text before the first heading. */
  title: string;
  anchor: string;
  paragraphs: string[];
}

/** Splits Markdown into chapters: `## Title`, then paragraphs, with blank lines in between. */
export function chaptersOf(text: string): Chapter[] {
  const chapters: Chapter[] = [{ title: "", anchor: "", paragraphs: [] }];
  for (const block of text.split(/\n{2,}/)) {
    if (block.startsWith("## ")) {
      const title = block.slice(3);
      chapters.push({ title, anchor: `guide-${title.toLowerCase().replaceAll(" ", "-")}`, paragraphs: [] });
    } else {
      chapters.at(-1)?.paragraphs.push(block.replaceAll("\n", " "));
    }
  }
  return chapters;
}

export const paragraphs = (texts: readonly string[]): Markup =>
  html`${texts.map((text) => html`<p>${inline(text)}</p>`)}`;
