/** The rules of the protocol, and the page that has each. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

interface Rule {
  number: string;
  text: string;
  /** From the root of the repository. */
  page: string;
}

const root = join(import.meta.dirname, "../..");

/** The rules of the kernel, and a table of the other pages. */
export const kernelPage = "docs/reference/protocol.md";

/** The pages beside the code that carries out their rules. */
export const otherPages: readonly string[] = globSync("src/**/rules.md", { cwd: root }).toSorted();

export const textOf = (page: string): string => readFileSync(join(root, page), "utf8");

export const rules: readonly Rule[] = [kernelPage, ...otherPages].flatMap((page) =>
  textOf(page)
    .split(/^(?=- \*\*|#)/m)
    .flatMap((text) => {
      const number = /^- \*\*([A-Z]\d+)\*\* /.exec(text)?.[1];
      return number === undefined ? [] : [{ number, text, page }];
    }),
);

/** A rule by its number. */
export const ruleOf: ReadonlyMap<string, Rule> = new Map(rules.map((rule) => [rule.number, rule]));
