import { fromBase36, lazily, tokensOf } from "./code-point-runs.ts";
import { CASE_FOLDS } from "./tables.ts";

const folds = lazily(decodeFolds);

/**
 * Applies full case folding with the committed table (statuses C and F). `toLowerCase` is not enough: it
 * keeps ß and final sigma, and it depends on the Unicode version of the runtime.
 */
export function caseFold(text: string): string {
  const table = folds();
  let folded = "";
  let kept = 0;
  for (let index = 0; index < text.length;) {
    const codePoint = text.codePointAt(index) ?? 0;
    const next = index + (codePoint > 0xffff ? 2 : 1);
    const fold = table.get(codePoint);
    if (fold !== undefined) {
      folded += text.slice(kept, index) + fold;
      kept = next;
    }
    index = next;
  }
  return folded + text.slice(kept);
}

function decodeFolds(): Map<number, string> {
  const table = new Map<number, string>();
  let codePoint = 0;
  for (const token of tokensOf(CASE_FOLDS)) {
    const [gap = "", several] = token.split("=");
    if (several !== undefined) {
      codePoint += fromBase36(gap);
      table.set(codePoint, String.fromCodePoint(...several.split(",").map(fromBase36)));
      continue;
    }
    const [first = 0, count = 0, step = 0, delta = 0] = token.split(".").map(fromBase36);
    codePoint += first;
    for (let i = 0; i < count; i += 1)
      table.set(codePoint + i * step, String.fromCodePoint(codePoint + i * step + delta));
    codePoint += (count - 1) * step;
  }
  return table;
}
