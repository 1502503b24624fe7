import { countText, html, type Markup, type Part } from "./markup.ts";

/** The width of a bar, in units of its own. */
const BAR_WIDTH = 100;

interface Bar {
  name: Part;
  value: number;
  /** What is beside the bar. By default, the value. */
  text?: string;
}

/** A bar for each value, the largest across the whole width. The numbers are beside the bars. */
export function barsOf(label: string, bars: readonly Bar[]): Markup {
  const most = Math.max(1, ...bars.map(({ value }) => value));
  return html`<figure class="panel">
    <figcaption>${label}</figcaption>
    <dl class="bars">
      ${bars.map(
        ({ name, value, text }) =>
          html`<div>
            <dt>${name}</dt>
            <dd>
              <svg viewBox="0 0 ${BAR_WIDTH} 1" preserveAspectRatio="none" aria-hidden="true">
                <rect width="${((BAR_WIDTH * value) / most).toFixed(1)}" height="1" />
              </svg>
              <span>${text ?? countText(value)}</span>
            </dd>
          </div>`,
      )}
    </dl>
  </figure>`;
}
